"""The speed table as a picture: for each model, how many times faster than the fastest peer, in SVG."""
import math

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tilewright",  # the same figures give the same file
    "font.family": "sans-serif",
    "font.size": 9,
})
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

AHEAD, BEHIND, OTHER = "#2a6f97", "#bc4b51", "#8a8f98"


def draw(path, ratios, title):
    """ratios: {(threads, numerics): {model: x}}, of which the first is drawn as bars, the others as marks."""
    (first, bars), *others = ratios.items()
    models = sorted(bars, key=bars.get)
    place = {m: i for i, m in enumerate(models)}
    fig, ax = plt.subplots(figsize=(7.2, 0.21 * len(models) + 1.5))
    # Lengths are logarithms: twice as fast is as far from 1 as half as fast.
    ax.barh(range(len(models)), [math.log2(bars[m]) for m in models], height=0.62,
            color=[AHEAD if bars[m] >= 1 else BEHIND for m in models])
    for (which, of), mark in zip(others, "o|x+"):
        shown = [m for m in of if m in place]
        ax.plot([math.log2(of[m]) for m in shown], [place[m] for m in shown], mark, color=OTHER, markersize=4,
                markerfacecolor="white", label=name_of(which))
    values = [x for of in ratios.values() for x in of.values()]
    low, high = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))
    ticks = range(low, high + 1)
    ax.set_xticks(list(ticks), [f"{2.0**t:g}x" for t in ticks])
    ax.set_xlim(low, high)
    ax.set_yticks(range(len(models)), models)
    ax.set_ylim(-0.7, len(models) - 0.3)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    marks, names = ax.get_legend_handles_labels()
    ax.legend([Patch(color=AHEAD), *marks], [name_of(first), *names], loc="lower right", frameon=False)
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel("the fastest peer's time / Tilewright's")
    fig.tight_layout()
    fig.savefig(path, facecolor="white", metadata={"Date": None, "Creator": None})
    plt.close(fig)


def name_of(which):
    threads, numerics = which
    return f"{threads} thread{'' if threads == 1 else 's'}, {numerics}"
