"""Images: resizing, sampling at positions, regions."""
import numpy

import element_types as et
from operator_rows import row
from rows_nn import image
from tolerance import peak, sums


def coordinates(s):
    modes = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + (["half_pixel_symmetric"] if s.opset >= 19 else [])
    return s.maybe(0.8, s.pick(modes))


@row("Resize", peak(16))
def resize(s, op):
    x = image(s, [et.F32] * 4 + [et.U8, et.I8, et.I32, et.F64, et.F16], dims=s.pick([1, 2, 2, 2]), most=800)
    mode = s.pick([None, "nearest", "linear", "linear", "cubic"])
    if x.dtype not in et.FLOATS or x.rank == 3:
        mode = s.pick([None, "nearest"] + (["linear"] if x.dtype in et.FLOATS else []))
    a = {"mode": mode, "coordinate_transformation_mode": coordinates(s)}
    if mode in (None, "nearest"):
        a["nearest_mode"] = s.maybe(0.7, s.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        a["cubic_coeff_a"], a["exclude_outside"] = s.maybe(0.4, -0.5), s.maybe(0.3, 1)
    if s.opset >= 18 and mode in ("linear", "cubic"):
        a["antialias"] = s.maybe(0.25, 1)
    spatial = x.shape[2:]
    if s.chance(0.5):
        scales = [s.pick([0.5, 1.0, 2.0, 3.0, 1.5]) for _ in spatial]
        # Lengths that are whole: what a fractional one means is a matter of its own.
        scales = [float(f) if d * f == int(d * f) and d * f >= 1 else 2.0 for d, f in zip(spatial, scales)]
        s.emit(op, [x, None, s.constant(numpy.array([1.0, 1.0] + scales), et.F32)], **a)
    else:
        sizes = [s.pick([d, 2 * d, max(1, d // 2), s.int(1, 12)]) for d in spatial]
        s.emit(op, [x, None, None, s.ints(list(x.shape[:2]) + sizes)], **a)


@row("Upsample", peak(8), alone=9)
def upsample(s, op):
    x = s.leaf(et.F32, (s.int(1, 2), s.int(1, 3), s.int(1, 6), s.int(1, 6)))
    s.emit(op, [x, s.add(numpy.array([1, 1, s.int(1, 3), s.int(1, 3)], et.F32), "initializer")], mode=s.pick([None, "nearest", "linear"]))


def regions(s, x, columns):
    """Boxes inside an image of this many pixels."""
    count = s.int(1, 4)
    low = s.generator.uniform(0, 2, (count, 2))
    size = s.generator.uniform(1, 5, (count, 2))
    return numpy.concatenate([low, low + size], 1).astype(x.dtype)[:, :columns]


@row("RoiAlign", peak(16))
def roi_align(s, op):
    x = image(s, [et.F32], dims=2)
    boxes = regions(s, x, 4)
    batch = s.generator.integers(0, x.shape[0], len(boxes))
    s.emit(op, [x, s.add(boxes, "initializer"), s.add(batch.astype(et.I64), "initializer")], output_height=s.maybe(0.8, s.int(1, 4)),
           output_width=s.maybe(0.8, s.int(1, 4)), sampling_ratio=s.maybe(0.6, s.int(0, 3)), spatial_scale=s.maybe(0.5, 0.5),
           mode=s.pick([None, "avg", "max"]), coordinate_transformation_mode=s.maybe(0.5, s.pick(["half_pixel", "output_half_pixel"])) if s.opset >= 16 else None)


@row("MaxRoiPool")
def max_roi_pool(s, op):
    x = image(s, [et.F32, et.F32, et.F16], dims=2)
    low = s.generator.integers(0, 2, (3, 2))
    boxes = numpy.concatenate([s.generator.integers(0, x.shape[0], (3, 1)), low, low + s.generator.integers(1, 4, (3, 2))], 1)
    s.emit(op, [x, s.add(boxes.astype(et.F32), "initializer")], pooled_shape=[s.int(1, 3), s.int(1, 3)], spatial_scale=s.maybe(0.4, 0.5))


@row("GridSample", peak(16), first=16)
def grid_sample(s, op):
    dims = 3 if s.opset >= 20 and s.chance(0.3) else 2
    x = image(s, [et.F32] * 3 + [et.F64], dims=dims, most=800)
    grid = s.leaf(s.pick([x.dtype]), (x.shape[0],) + tuple(s.int(1, 5) for _ in range(dims)) + (dims,), s.pick([(-1.0, 1.0), (-1.4, 1.4)]))
    modes = ["linear", "nearest", "cubic"] if s.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = s.maybe(0.8, s.pick(modes[:2] if dims == 3 else modes))
    s.emit(op, [x, grid], mode=mode, padding_mode=s.maybe(0.7, s.pick(["zeros", "border", "reflection"])), align_corners=s.maybe(0.5, s.int(0, 1)))


@row("Col2Im", sums(8), first=18)
def col2im(s, op):
    image_shape, block = [s.int(3, 7), s.int(3, 7)], [s.int(1, 3), s.int(1, 3)]
    a = {"strides": s.maybe(0.4, [s.int(1, 2), s.int(1, 2)]), "pads": s.maybe(0.4, [s.int(0, 1) for _ in range(4)]), "dilations": s.maybe(0.2, [1, 2])}
    strides, pads, dilations = a["strides"] or [1, 1], a["pads"] or [0] * 4, a["dilations"] or [1, 1]
    counts = [(image_shape[i] + pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(2)]
    x = s.leaf(et.F32, (s.int(1, 2), s.int(1, 3) * block[0] * block[1], max(0, counts[0] * counts[1])))
    s.emit(op, [x, s.ints(image_shape), s.ints(block)], **a)


@row("DeformConv", peak(16), first=19)
def deform_conv(s, op):
    x = image(s, [et.F32], dims=2, most=600)
    c, (h, w) = x.shape[1], x.shape[2:]
    groups = s.pick([1, c])
    offset_group = s.pick([g for g in (1, 2) if c % g == 0])
    m, kh, kw = groups * s.int(1, 3), s.int(1, 3), s.int(1, 3)
    pads = [s.int(0, 1) for _ in range(4)]
    oh, ow = h + pads[0] + pads[2] - kh + 1, w + pads[1] + pads[3] - kw + 1
    offset = s.leaf(et.F32, (x.shape[0], offset_group * kh * kw * 2, oh, ow), (-1.5, 1.5))
    mask = s.leaf(et.F32, (x.shape[0], offset_group * kh * kw, oh, ow), "unit") if s.chance(0.4) else None
    bias = s.like(x, (m,)) if s.chance(0.5) else None
    s.emit(op, [x, s.like(x, (m, c // groups, kh, kw)), offset, bias, mask], kernel_shape=[kh, kw], pads=pads, group=groups if groups > 1 else None,
           offset_group=offset_group if offset_group > 1 else None)
