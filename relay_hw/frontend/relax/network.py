"""Relax's operators of neural networks, as Relay: convolutions, products, pools, norms, activations, attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from types import MappingProxyType

import numpy as np

from relay_hw import op
from relay_hw.frontend.relax.elementwise import scalar
from relay_hw.frontend.relax.site import Converter, Refusal, Site, Table
from relay_hw.ir.expr import Call, Constant, Expr, Op, Tuple


def _out_dtype(s: Site) -> str | None:
    """The element type of sums, if it is not that of the data."""
    return s.result.dtype if s.result.dtype != s.type(0).dtype else None


def _convolution(build: Callable[..., Call], transposed: bool) -> Converter:
    def convert(s: Site) -> Expr:
        layout, kernel = s.attr("data_layout"), s.attr("kernel_layout")
        if s.attr("out_layout") not in ("", layout):
            raise Refusal(f"its result must have the layout {layout} of the data, not {s.attr('out_layout')}")
        sizes = dict(zip(kernel, s.shape(1), strict=True))
        groups = s.attr("groups")
        extra = {"output_padding": s.ints("output_padding")} if transposed else {}
        return build(
            s[0],
            s[1],
            strides=s.ints("strides"),
            padding=s.ints("padding"),
            dilation=s.ints("dilation"),
            groups=groups,
            channels=sizes["O"] * (groups if transposed else 1),
            kernel_size=tuple(size for axis, size in sizes.items() if axis not in "OI"),
            data_layout=layout,
            kernel_layout=kernel,
            out_dtype=_out_dtype(s) or "",
            **extra,
        )

    return convert


def _matmul(s: Site) -> Expr:
    """numpy's matmul: vectors are matrices of one row or column, leading axes broadcast."""
    left, right = s.shape(0), s.shape(1)
    a = op.reshape(s[0], (1, *left)) if len(left) == 1 else s[0]
    b = op.reshape(s[1], (*right, 1)) if len(right) == 1 else s[1]
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    out = _out_dtype(s)
    if len(columns) == 2:
        flat = a if len(rows) == 2 else op.reshape(a, (-1, rows[-1]))
        product = op.nn.dense(flat, _transposed(b), units=columns[-1], out_dtype=out)
        if len(left) == 2 and len(right) == 2:
            return product
    else:
        lead = np.broadcast_shapes(rows[:-2], columns[:-2])
        wide = [_spread(x, shape, lead) for x, shape in ((a, rows), (b, columns))]
        product = op.nn.batch_matmul(*wide, out_dtype=out, transpose_b=False)
    return op.reshape(product, s.result.static_shape)


def _transposed(matrix: Expr) -> Expr:
    """Transpose a matrix; cancels with a previous transpose."""
    if isinstance(matrix, Constant):
        return Constant(np.ascontiguousarray(matrix.data.T))
    if isinstance(matrix, Call) and isinstance(matrix.op, Op) and matrix.op.name == "transpose":
        axes = getattr(matrix.attrs, "axes", None)
        if axes is None or tuple(axes) == (1, 0):
            return matrix.args[0]
    return op.transpose(matrix, (1, 0))


def _spread(x: Expr, shape: Sequence[int], lead: Sequence[int]) -> Expr:
    whole = (*lead, *shape[-2:])
    if tuple(shape) != whole:
        x = op.broadcast_to(x, whole)
    return x if len(whole) == 3 else op.reshape(x, (-1, *shape[-2:]))


def _pool(build: Callable[..., Call], counts_pads: bool) -> Converter:
    def convert(s: Site) -> Expr:
        if s.attr("out_layout") not in ("", s.attr("layout")):
            raise Refusal("its result must have the layout of its data")
        window = {name: s.ints(name) for name in ("pool_size", "strides", "dilation", "padding")}
        extra = {"count_include_pad": bool(s.attr("count_include_pad"))} if counts_pads else {}
        return build(s[0], **window, layout=s.attr("layout"), ceil_mode=bool(s.attr("ceil_mode")), **extra)

    return convert


def _adaptive(build: Callable[..., Call]) -> Converter:
    def convert(s: Site) -> Expr:
        size = s.attr("output_size")
        return build(s[0], None if size is None else tuple(size), layout=s.attr("layout"))

    return convert


def _batch_norm(s: Site) -> Expr:
    if s.attr("training"):
        raise Refusal("it must not be training")
    norm = {name: s.attr(name) for name in ("axis", "epsilon", "center", "scale")}
    return op.nn.batch_norm(s[0], s[1], s[2], s[3], s[4], **norm)


def _over(s: Site, name: str) -> tuple[int, ...]:
    return tuple(axis % s.rank(0) for axis in s.ints(name))


def _layer_norm(s: Site) -> Expr:
    axes, epsilon = _over(s, "axes"), s.attr("epsilon")
    if len(axes) == 1:
        norm = {name: s.attr(name) for name in ("center", "scale")}
        return op.nn.layer_norm(s[0], s[1], s[2], axis=axes[0], epsilon=epsilon, **norm)
    centered = op.subtract(s[0], op.mean(s[0], axis=axes, keepdims=True))
    variance = op.mean(op.multiply(centered, centered), axis=axes, keepdims=True)
    plain = op.multiply(centered, op.rsqrt(op.add(variance, scalar(epsilon, s.type(0).dtype))))
    scaled = op.multiply(plain, s[1]) if s.attr("scale") else plain
    return op.add(scaled, s[2]) if s.attr("center") else scaled


def _group_norm(s: Site) -> Expr:
    norm = {name: s.attr(name) for name in ("epsilon", "center", "scale")}
    return op.nn.group_norm(s[0], s[1], s[2], s.attr("num_groups"), axis=s.attr("channel_axis"), **norm)


def _instance_norm(s: Site) -> Expr:
    norm = {name: s.attr(name) for name in ("epsilon", "center", "scale")}
    return op.nn.instance_norm(s[0], s[1], s[2], axis=s.attr("channel_axis"), **norm)


def _rms_norm(s: Site) -> Expr:
    squares = op.mean(op.multiply(s[0], s[0]), axis=_over(s, "axes"), keepdims=True)
    factor = op.rsqrt(op.add(squares, scalar(s.attr("epsilon"), s.type(0).dtype)))
    return op.multiply(op.multiply(s[0], factor), s[1])


def _gelu(s: Site) -> Expr:
    dtype = s.type(0).dtype
    inner = op.add(scalar(1, dtype), op.erf(op.multiply(s[0], scalar(1 / sqrt(2), dtype))))
    return op.multiply(op.multiply(s[0], scalar(0.5, dtype)), inner)


def _gelu_tanh(s: Site) -> Expr:
    dtype, x = s.type(0).dtype, s[0]
    cube = op.multiply(op.multiply(x, x), x)
    inner = op.multiply(op.add(x, op.multiply(cube, scalar(0.044715, dtype))), scalar(sqrt(2 / np.pi), dtype))
    return op.multiply(op.multiply(x, scalar(0.5, dtype)), op.add(scalar(1, dtype), op.tanh(inner)))


def _selu(s: Site) -> Expr:
    dtype, x = s.type(0).dtype, s[0]
    alpha, scale = scalar(1.6732632423543772, dtype), scalar(1.0507009873554805, dtype)
    low = op.multiply(alpha, op.subtract(op.exp(op.minimum(x, scalar(0, dtype))), scalar(1, dtype)))
    return op.multiply(scale, op.where(op.greater(x, scalar(0, dtype)), x, low))


def _softplus(s: Site) -> Expr:
    dtype = s.type(0).dtype
    beta, threshold = scalar(s.attr("beta"), dtype), scalar(s.attr("threshold"), dtype)
    scaled = op.multiply(s[0], beta)
    limited = op.minimum(scaled, threshold)
    soft = op.divide(op.log(op.add(scalar(1, dtype), op.exp(limited))), beta)
    return op.where(op.greater(scaled, threshold), s[0], soft)


def _prelu(s: Site) -> Expr:
    return op.nn.prelu(s[0], s[1], axis=s.attr("axis"))


def _dropout(s: Site) -> Expr:
    """Inference drops nothing."""
    return Tuple([s[0], op.ones_like(s[0])])


def _pad(s: Site) -> Expr:
    widths, mode = s.ints("pad_width"), s.attr("pad_mode")
    pairs = [(widths[2 * i], widths[2 * i + 1]) for i in range(len(widths) // 2)]
    if mode == "reflect":
        return op.nn.mirror_pad(s[0], pairs, "REFLECT")
    if mode not in ("constant", "edge"):
        raise Refusal(f"its mode must be constant, edge or reflect, not {mode}")
    return op.nn.pad(s[0], pairs, scalar(s.attr("pad_value"), s.type(0).dtype), pad_mode=mode)


def _attention(s: Site) -> Expr:
    """Query, key, value [batch, places, heads, depth]; a bias is added to the products."""
    batch, queries, heads, depth = s.shape(0)
    keys, dtype = s.shape(1)[1], s.type(0).dtype
    if s.attr("window_size") is not None or s.shape(1)[2] != heads:
        raise Refusal("it must have no window and as many heads for keys as for queries")

    def matrices(index: int) -> Expr:
        _, places, _, size = s.shape(index)
        return op.reshape(op.transpose(s[index], (0, 2, 1, 3)), (batch * heads, places, size))

    factor = s.attr("scale")
    products = op.nn.batch_matmul(matrices(0), matrices(1))
    scores = op.multiply(products, scalar(1 / sqrt(depth) if factor is None else factor, dtype))
    scores = op.reshape(scores, (batch, heads, queries, keys))
    if len(s.args) > 3:
        scores = op.add(scores, s[3])
    if s.attr("causal_mask") is not None:
        offset = keys - queries if s.attr("causal_mask") == "BottomRight" else 0
        mask = np.triu(np.full((queries, keys), -np.inf), 1 + offset).astype(dtype)
        scores = op.add(scores, Constant(mask))
    weights = op.reshape(op.nn.softmax(scores, axis=-1), (batch * heads, queries, keys))
    mixed = op.nn.batch_matmul(weights, matrices(2), transpose_b=False)
    return op.transpose(op.reshape(mixed, (batch, heads, queries, s.shape(2)[3])), (0, 2, 1, 3))


CONVERTERS: Table = MappingProxyType(
    {f"nn.conv{n}d": _convolution(getattr(op.nn, f"conv{n}d"), False) for n in (1, 2, 3)}
    | {f"nn.conv{n}d_transpose": _convolution(getattr(op.nn, f"conv{n}d_transpose"), True) for n in (1, 2, 3)}
    | {f"nn.max_pool{n}d": _pool(getattr(op.nn, f"max_pool{n}d"), False) for n in (1, 2, 3)}
    | {f"nn.avg_pool{n}d": _pool(getattr(op.nn, f"avg_pool{n}d"), True) for n in (1, 2, 3)}
    | {f"nn.adaptive_avg_pool{n}d": _adaptive(getattr(op.nn, f"adaptive_avg_pool{n}d")) for n in (1, 2, 3)}
    | {
        "matmul": _matmul,
        "nn.batch_norm": _batch_norm,
        "nn.layer_norm": _layer_norm,
        "nn.group_norm": _group_norm,
        "nn.instance_norm": _instance_norm,
        "nn.rms_norm": _rms_norm,
        "nn.softmax": lambda s: op.nn.softmax(s[0], s.attr("axis")),
        "nn.log_softmax": lambda s: op.nn.log_softmax(s[0], s.attr("axis")),
        "nn.gelu": _gelu,
        "nn.gelu_tanh": _gelu_tanh,
        "nn.silu": lambda s: op.multiply(s[0], op.sigmoid(s[0])),
        "nn.selu": _selu,
        "nn.softplus": _softplus,
        "nn.leakyrelu": lambda s: op.nn.leaky_relu(s[0], s.attr("alpha")),
        "nn.prelu": _prelu,
        "nn.dropout": _dropout,
        "nn.pad": _pad,
        "nn.attention": _attention,
        "nn.attention_bias": _attention,
    }
)
