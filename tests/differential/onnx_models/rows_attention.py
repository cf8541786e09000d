"""Attention and what goes with it."""
import element_types as et
from operator_rows import row
from tolerance import peak, ulps

SIZES = [1, 2, 4, 7, 8, 9, 16]


@row("Attention", peak(32), first=23)
def attention(s, op):
    t = s.dtype([et.F32] * 3 + [et.F16])
    batch, kv_heads, size, value_size = s.int(1, 2), s.int(1, 3), s.pick(SIZES), s.pick(SIZES)
    heads, queries, keys = kv_heads * s.pick([1, 1, 2]), s.pick([1, 3, 8, 9]), s.pick([1, 4, 9, 17])
    packed = s.chance(0.4)
    shapes = [(batch, heads, queries, size), (batch, kv_heads, keys, size), (batch, kv_heads, keys, value_size)]
    if packed:
        shapes = [(b, n, h * d) for b, h, n, d in shapes]
    q, k, v = (s.leaf(t, shape) for shape in shapes)
    past = s.pick([0, 0, 0, 3])
    total = keys + past
    a = {"q_num_heads": heads, "kv_num_heads": kv_heads} if packed else {}
    mask = None
    if s.chance(0.4):
        mask = s.leaf(s.pick([et.BOOL, t]), s.pick([(queries, total), (1, 1, queries, total), (batch, heads, queries, total)]))
        if mask.dtype == et.BOOL:
            mask.array[..., 0] = True  # a row that sees nothing is undefined
            mask.fill = mask.array
    pasts = [s.leaf(t, (batch, kv_heads, past, d)) for d in (size, value_size)] if past else [None, None]
    mode = s.maybe(0.25, s.int(0, 3))
    present = bool(past) and s.chance(0.7)
    s.emit(op, [q, k, v, mask] + pasts, [True, present, present, mode is not None], is_causal=s.maybe(0.3, 1), scale=s.maybe(0.3, 0.3),
           softcap=s.maybe(0.2, 2.0), qk_matmul_output_mode=mode, **a)


@row("RotaryEmbedding", peak(4), first=23)
def rotary(s, op):
    batch, heads, length, size = s.int(1, 2), s.int(1, 3), s.pick([1, 4, 9]), s.pick([2, 4, 8, 16])
    packed = s.chance(0.4)
    x = s.leaf(s.dtype([et.F32] * 3 + [et.F16, et.BF16]), (batch, length, heads * size) if packed else (batch, heads, length, size))
    turned = s.pick([0, 0, size // 2 if size >= 4 else 0])
    half = (turned or size) // 2
    positions = s.leaf(et.I64, (batch, length), (0, 12)) if s.chance(0.5) else None
    table = lambda: s.leaf(x.dtype, (12, half) if positions else (batch, length, half), "unit")
    s.emit(op, [x, table(), table(), positions], interleaved=s.maybe(0.4, s.int(0, 1)), rotary_embedding_dim=turned or None,
           num_heads=heads if packed or turned else None)


@row("SwiGLU", ulps(16), alone=28)
def swiglu(s, op):
    x = s.leaf(s.dtype([et.F32, et.F64]), s.shape(1, 4))
    s.emit(op, [x, s.like(x)], alpha=s.maybe(0.5, s.rng.uniform(0.5, 2)))


@row("CausalConvWithState", peak(16), alone=28)
def causal_conv(s, op):
    batch, channels, length, k = s.int(1, 2), s.pick([1, 3, 8, 9]), s.pick([1, 4, 9, 17]), s.int(1, 4)
    x = s.leaf(et.F32, (batch, channels, length))
    w = s.leaf(et.F32, (channels, 1, k))
    bias = s.maybe(0.5, s.leaf(et.F32, (channels,)))
    state = s.leaf(et.F32, (batch, channels, k - 1)) if k > 1 and s.chance(0.5) else None
    s.emit(op, [x, w, bias, state], [True, True], activation=s.pick([None, "none", "silu", "swish"]))


@row("LinearAttention", peak(64), alone=28)
def linear_attention(s, op):
    batch, length, heads, key, value = s.int(1, 2), s.pick([1, 3, 8]), s.int(1, 3), s.pick([2, 4, 8]), s.pick([2, 4, 9])
    rule = s.pick(["linear", "gated", "delta", "gated_delta"])
    q, k, v = (s.leaf(et.F32, (batch, length, heads * d), "unit") for d in (key, key, value))
    state = s.leaf(et.F32, (batch, heads, key, value), "unit") if s.chance(0.5) else None
    decay = s.leaf(et.F32, (batch, length, s.pick([heads, heads * key])), (-1.0, -0.01)) if "gated" in rule else None
    beta = s.leaf(et.F32, (batch, length, heads), (0.1, 0.9)) if "delta" in rule else None
    s.emit(op, [q, k, v, state, decay, beta], [True, True], update_rule=rule, q_num_heads=heads, kv_num_heads=heads)
