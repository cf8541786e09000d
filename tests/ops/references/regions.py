"""Regions and boxes of images."""
import math

import numpy as np

import onnx_results
from cases import Const, Family, Want


def align(x, rois, batch, height, width, ratio, scale, half, mode):
    """RoIAlign (He et al., Mask R-CNN): means, or largest weighted neighbours, of bilinear samples."""
    y = np.zeros((len(rois), x.shape[1], height, width))
    off = 0.5 if half else 0.0
    for r, (x1, y1, x2, y2) in enumerate(rois.astype("f8") * scale - off):
        w, h = (x2 - x1, y2 - y1) if half else (max(x2 - x1, 1), max(y2 - y1, 1))
        nh, nw = ratio or math.ceil(h / height), ratio or math.ceil(w / width)
        for c, i, j in np.ndindex(x.shape[1], height, width):
            samples = []
            for a, b in np.ndindex(nh, nw):
                p = [y1 + (i + (a + 0.5) / nh) * h / height, x1 + (j + (b + 0.5) / nw) * w / width]
                if any(v < -1 or v > n for v, n in zip(p, x.shape[2:])):
                    samples.append([0.0])
                    continue
                p = [min(max(v, 0), n - 1) for v, n in zip(p, x.shape[2:])]
                low = [math.floor(v) for v in p]
                high = [min(v + 1, n - 1) for v, n in zip(low, x.shape[2:])]
                part = [v - k for v, k in zip(p, low)]
                samples.append([wy * wx * x[batch[r], c, yy, xx]
                                for yy, wy in ((low[0], 1 - part[0]), (high[0], part[0]))
                                for xx, wx in ((low[1], 1 - part[1]), (high[1], part[1]))])
            if mode == "avg":
                y[r, c, i, j] = sum(map(sum, samples)) / max(len(samples), 1)
            else:
                y[r, c, i, j] = max(map(max, samples))
    return y


def aligned(f):
    x = f.random("x", "f32", (2, 2, 7, 6))
    rois = np.array([[0.5, 1, 4.25, 5.5], [-1.5, 2, 3, 9], [2, 2, 2.5, 2.25]], "f4")
    batch = np.array([0, 1, 1])
    for half in [0, 1]:
        for mode in ["avg", "max"]:
            for ratio, size, scale in [(2, (2, 3), 1.0), (0, (3, 2), 1.0), (3, (1, 1), 0.5)]:
                w = x.astype("f8")
                y = align(w, rois, batch, *size, ratio, scale, half, mode)
                theirs = onnx_results.run(
                    "RoiAlign", [w, rois.astype("f8"), batch], output_height=size[0], output_width=size[1],
                    sampling_ratio=ratio, spatial_scale=scale, mode=mode,
                    coordinate_transformation_mode="half_pixel" if half else "output_half_pixel")
                if not np.allclose(y, theirs):
                    print("differs from ONNX's implementation: roi_align", half, mode, ratio)
                f.op(f"roi_align_{mode}_{half}_{ratio}", "roi_align", [x, rois, batch],
                     {"output_height": size[0], "output_width": size[1], "sampling_ratio": ratio,
                      "spatial_scale": scale, "mode": mode, "half_pixel": half},
                     Want(y, terms=64, magnitude=2 * 8))


def pooled(f):
    x = f.random("pool", "f32", (2, 2, 7, 6))
    rois = np.array([[0, 1, 1, 4, 5], [1, 0, 0, 5, 6], [1, 3, 2, 3, 2], [0, 9, 9, 12, 12], [0, 4, 4, 1, 1]], "f4")
    for scale, (ph, pw) in [(1.0, (2, 2)), (0.5, (3, 2))]:
        y = np.zeros((len(rois), 2, ph, pw))
        for r, (b, *edges) in enumerate(rois.astype("f8")):
            x1, y1, x2, y2 = (math.floor(e * scale + 0.5) for e in edges)
            h, w = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
            for i, j in np.ndindex(ph, pw):
                rows = [k + y1 for k in range(math.floor(i * h / ph), math.ceil((i + 1) * h / ph))]
                cols = [k + x1 for k in range(math.floor(j * w / pw), math.ceil((j + 1) * w / pw))]
                at = [(k, m) for k in rows for m in cols if 0 <= k < 7 and 0 <= m < 6]
                for c in range(2):
                    y[r, c, i, j] = max((x[int(b), c, k, m] for k, m in at), default=0)
        f.op(f"max_roi_pool_{ph}", "max_roi_pool", [x, rois], {"pooled_shape": [ph, pw], "spatial_scale": scale},
             Want(y, exact=True))


def overlap(a, b, centred):
    def sides(v):
        if centred:
            return [v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2]
        return [min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])]
    a, b = sides(a), sides(b)
    area = lambda s: max(s[2] - s[0], 0) * max(s[3] - s[1], 0)
    common = area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])
    total = area(a) + area(b) - common
    return common / total if total > 0 else 0


def suppressed(boxes, scores, most, threshold, least, centred):
    rows = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept = []
        for i in sorted(range(scores.shape[2]), key=lambda i: -scores[b, c, i]):
            if len(kept) == most:
                break
            if least is not None and not scores[b, c, i] > least:
                continue
            if all(overlap(boxes[b, i], boxes[b, k], centred) <= threshold for k in kept):
                kept.append(i)
        rows += [[b, c, i] for i in kept]
    return np.array(rows, "i8").reshape(-1, 3)


def boxes(f):
    for label, centred, most, threshold, least in [("corners", 0, 4, 0.3, 0.2), ("centres", 1, 7, 0.5, None),
                                                   ("all", 0, 11, 1.0, None), ("few", 0, 1, 0.0, 0.5),
                                                   ("none", 0, 3, 0.5, 2.0)]:
        b = f.random(label, "f32", (2, 11, 4), 0, 4)
        s = f.random(f"{label}_scores", "f32", (2, 3, 11), 0, 1)
        y = suppressed(b.astype("f8"), s, most, threshold, least, centred)
        want = Want(y, "i64")
        want.dims = "count, 3"
        operands = {"b": b, "s": s, "most": Const([most]), "t": np.array([threshold], "f4")}
        names = ["b", "s", "most", "t"]
        if least is not None:
            operands["least"] = np.array([least], "f4")
            names.append("least")
        f.chain(f"boxes_{label}", operands, [
            ("chosen", "choose_boxes", names, {"center_point_box": centred},
             Want(np.zeros((2, 3, min(most, 11) + 1)), "i64")),
            ("rows", "list_boxes", ["chosen"], {}, want)])
    want = Want([[0, 0, 5], [0, 1, 2], [0, 1, 7]], "i64")
    want.dims = "count, 3"
    f.op("list_boxes", "list_boxes", [np.array([[[1, 5, 9], [2, 2, 7], [0, 8, 8]]])], {}, want)


def write():
    f = Family("regions")
    for part in (aligned, pooled, boxes):
        part(f)
    return [f]
