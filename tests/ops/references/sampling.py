"""Resampling: by ONNX's reference implementation, and by the formulas where it has none."""
import numpy as np

import onnx_results
from cases import Const, Family, Want

MODES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_crop_and_resize"]


def resize(f, label, x, attributes, scales=None, sizes=None, roi=None, y=None, terms=16):
    a = dict(attributes)
    if "coordinates" in a:
        a["coordinate_transformation_mode"] = a.pop("coordinates")
    if "policy" in a:
        a["keep_aspect_ratio_policy"] = a.pop("policy")
    if y is None:
        y = onnx_results.run("Resize", [
            x.astype("f8"), None if roi is None else np.array(roi, "f4"),
            None if scales is None else np.array(scales, "f4"),
            None if sizes is None else np.array(sizes)], **a)
    operands = [x, None if roi is None else np.array(roi, "f4"),
                None if scales is None else Const(scales, "f32"),
                None if sizes is None else Const(sizes)]
    while operands[-1] is None:
        operands.pop()
    exact = attributes.get("mode", "nearest") == "nearest"
    f.op(f"resize_{label}", "resize", operands, attributes,
         Want(y, exact=exact, terms=terms, magnitude=4 * 2))


def resizes(f):
    x = f.random("x", "f32", (1, 2, 4, 6))
    roi = [0, 0, 0.25, 0.1, 1, 1, 0.75, 0.8]
    for c in MODES:
        r = roi if c == "tf_crop_and_resize" else None
        for mode in ["nearest", "linear", "cubic"]:
            resize(f, f"{mode}_{c}_up", x, {"mode": mode, "coordinates": c}, sizes=[1, 2, 7, 9], roi=r)
            resize(f, f"{mode}_{c}_down", x, {"mode": mode, "coordinates": c}, sizes=[1, 2, 3, 4], roi=r)
    for n in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]:
        resize(f, f"{n}", x, {"mode": "nearest", "nearest_mode": n}, scales=[1, 1, 2, 1.5])
        resize(f, f"{n}_asymmetric", x, {"mode": "nearest", "nearest_mode": n, "coordinates": "asymmetric"},
               scales=[1, 1, 0.5, 2])
    resize(f, "outside", x, {"mode": "linear", "coordinates": "tf_crop_and_resize", "extrapolation_value": 7.5},
           sizes=[1, 2, 3, 5], roi=[0, 0, -0.4, 0.2, 1, 1, 1.3, 0.9])
    resize(f, "cubic_a", x, {"mode": "cubic", "cubic_coeff_a": -0.5}, scales=[1, 1, 2, 2])
    for mode in ["linear", "cubic"]:
        resize(f, f"{mode}_antialias", x, {"mode": mode, "antialias": 1}, sizes=[1, 2, 2, 3])
        resize(f, f"{mode}_exclude", x, {"mode": mode, "exclude_outside": 1}, sizes=[1, 2, 7, 4])
    resize(f, "axes", x, {"mode": "linear", "axes": [3, 2]}, sizes=[9, 5])
    resize(f, "not_larger", x, {"mode": "linear", "axes": [2, 3], "policy": "not_larger"}, sizes=[8, 9])
    resize(f, "not_smaller", x, {"mode": "linear", "axes": [2, 3], "policy": "not_smaller"}, sizes=[8, 9])
    # tf_half_pixel_for_nn, of opset 11: (o + 0.5) / scale, here with nearest_mode floor.
    at = [np.minimum(np.floor((np.arange(n * 2) + 0.5) / 2), n - 1).astype(int) for n in (4, 6)]
    resize(f, "tf_half_pixel_for_nn", x, {"mode": "nearest", "coordinates": "tf_half_pixel_for_nn",
                                          "nearest_mode": "floor"}, scales=[1, 1, 2, 2],
           y=x[:, :, at[0]][:, :, :, at[1]])
    line = f.random("line", "f32", (2, 5))
    resize(f, "line", line, {"mode": "linear"}, sizes=[2, 13])


def cubic_border(x, grid, align):
    """As PyTorch and ONNX Runtime define it: taps outside are the nearest elements, the weights stay
    those of the position. (ONNX's reference implementation moves the position itself.)"""
    def taps(p, n):
        k = int(np.floor(p))
        d = np.abs(p - (k + np.arange(-1, 3)))
        a = -0.75
        near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.clip(k + np.arange(-1, 3), 0, n - 1), np.where(d <= 1, near, far)
    y = np.empty(x.shape[:2] + grid.shape[1:3])
    for n, i, j in np.ndindex(y.shape[0], *y.shape[2:]):
        at = [(v + 1) / 2 * (m - 1) if align else ((v + 1) * m - 1) / 2
              for v, m in zip(grid[n, i, j, ::-1], x.shape[2:])]
        (rows, u), (columns, v) = (taps(p, m) for p, m in zip(at, x.shape[2:]))
        y[n, :, i, j] = np.einsum("crs,r,s->c", x[n][:, rows][:, :, columns], u, v)
    return y


def grids(f):
    x = f.random("image", "f32", (1, 2, 4, 5))
    grid = f.random("grid", "f32", (1, 3, 3, 2), -1.4, 1.4)
    for mode in ["linear", "nearest", "cubic"]:
        for padding in ["zeros", "border", "reflection"]:
            for align in [0, 1]:
                y = onnx_results.run("GridSample", [x.astype("f8"), grid.astype("f8")], mode=mode,
                                     padding_mode=padding, align_corners=align)
                if (mode, padding) == ("cubic", "border"):
                    y = cubic_border(x.astype("f8"), grid.astype("f8"), align)
                f.op(f"grid_{mode}_{padding}_{align}", "grid_sample", [x, grid],
                     {"mode": mode, "padding_mode": padding, "align_corners": align},
                     Want(y, terms=48, magnitude=4 * 2))
    x, grid = f.random("volume", "f32", (1, 1, 3, 4, 2)), f.random("points", "f32", (1, 2, 2, 2, 3), -1.2, 1.2)
    y = onnx_results.run("GridSample", [x.astype("f8"), grid.astype("f8")], mode="linear", align_corners=0)
    f.op("grid_volume", "grid_sample", [x, grid], {"mode": "linear"}, Want(y, terms=48, magnitude=8))
    for rank, size in [(2, [2, 3, 4, 5]), (3, [1, 2, 2, 3, 4]), (2, [1, 1, 1, 3])]:
        theta = f.random(f"theta{size}", "f32", (size[0], rank, rank + 1))
        for align in [0, 1]:
            if align and 1 in size[2:]:
                continue
            y = onnx_results.run("AffineGrid", [theta.astype("f8"), np.array(size)], align_corners=align)
            f.op(f"affine_grid_{rank}_{align}_{size[-1]}", "affine_grid", [theta, Const(size)],
                 {"align_corners": align}, Want(y, terms=4, magnitude=8))


def write():
    f, g = Family("resize"), Family("sampling")
    resizes(f)
    grids(g)
    return [f, g]
