"""Relax's operators that move, select, sort and concatenate elements, as Relay."""

from __future__ import annotations

from types import MappingProxyType

from relay_hw import op
from relay_hw.frontend.relax.elementwise import scalar
from relay_hw.frontend.relax.site import Converter, Refusal, Site, Table, fields_of
from relay_hw.ir.expr import Expr, Tuple

_COORDINATES = {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"}


def _to_result(s: Site) -> Expr:
    """Reshape, flatten, squeeze, expand: inference in Relax has found the new shape already."""
    try:
        return op.reshape(s[0], s.result.static_shape)
    except ValueError:
        raise Refusal("its result must have a known shape") from None


def _permute(s: Site) -> Expr:
    axes = s.attr("axes")
    return op.transpose(s[0], tuple(axes) if axes else None)


def _parts(s: Site) -> list[Expr]:
    return fields_of(s[0], len(s.raw[0].ty.fields))


def _concat(s: Site) -> Expr:
    axis, parts = s.attr("axis"), _parts(s)
    if axis is None:
        return op.concatenate([op.reshape(part, (-1,)) for part in parts], 0)
    return op.concatenate(parts, axis)


def _split(s: Site) -> Expr:
    given, axis = s.attr("indices_or_sections"), s.attr("axis")
    if isinstance(given, int):
        size = s.shape(0)[axis]
        # Parts of equal size, and the rest as the last one.
        step = -(-size // given)
        given = list(range(step, size, step))
    return op.split(s[0], tuple(given), axis)


def _slice(s: Site) -> Expr:
    axes, begin, end = s.sizes(1), s.sizes(2), s.sizes(3)
    strides = s.sizes(4) if len(s.raw) > 4 else (1,) * len(axes)
    return op.strided_slice(s[0], begin, end, strides, axes)


def _tile(s: Site) -> Expr:
    return op.tile(s[0], s.ints("repeats"))


def _repeat(s: Site) -> Expr:
    return op.repeat(s[0], s.attr("repeats"), s.attr("axis"))


def _take(s: Site) -> Expr:
    axis, mode = s.attr("axis"), s.attr("mode")
    return op.take(s[0], s[1], axis=axis, mode=mode if mode in ("fast", "wrap", "clip") else "clip")


def _last_axis_first(s: Site, index: int) -> Expr:
    rank = s.rank(index)
    return op.transpose(s[index], (rank - 1, *range(rank - 1)))


def _gather_nd(s: Site) -> Expr:
    """Relax has the coordinates on the last axis, Relay on the first."""
    return op.gather_nd(s[0], _last_axis_first(s, 1), batch_dims=s.attr("batch_dims"))


def _scatter_elements(s: Site) -> Expr:
    return op.scatter_elements(s[0], s[1], s[2], axis=s.attr("axis"), reduction=s.attr("reduction"))


def _scatter_nd(s: Site) -> Expr:
    return op.scatter_nd(s[0], _last_axis_first(s, 1), s[2], mode=s.attr("reduction"))


def _one_hot(s: Site) -> Expr:
    dtype = s.result.dtype
    values = [scalar(s.number(i), dtype) for i in (1, 2)]
    return op.one_hot(s[0], *values, depth=s.attr("depth"), axis=s.attr("axis"), dtype=dtype)


def _sort(s: Site) -> Expr:
    return op.sort(s[0], axis=s.attr("axis"), is_ascend=not s.attr("descending"))


def _argsort(s: Site) -> Expr:
    return op.argsort(s[0], axis=s.attr("axis"), is_ascend=not s.attr("descending"), dtype=s.result.dtype)


def _topk(s: Site) -> Expr:
    dtype, is_ascend = str(s.attr("dtype")), not s.attr("largest")
    return op.topk(s[0], s.attr("k"), s.attr("axis"), s.attr("ret_type"), is_ascend, dtype)


def _triangle(upper: bool) -> Converter:
    return lambda s: op.trilu(s[0], scalar(int(s.number(1)), "int64"), upper)


def _meshgrid(s: Site) -> Expr:
    parts = _parts(s)
    sizes = [int(item.shape[0]) for item in s.raw[0].ty.fields]
    if s.attr("indexing") != "ij":
        raise Refusal("its indexing must be ij")
    grids: list[Expr] = []
    for axis, part in enumerate(parts):
        shape = [1] * len(sizes)
        shape[axis] = sizes[axis]
        grids.append(op.broadcast_to(op.reshape(part, tuple(shape)), tuple(sizes)))
    return Tuple(grids)


def _resize(s: Site) -> Expr:
    layout, mode = s.attr("layout"), s.attr("coordinate_transformation_mode")
    if layout not in ("NCHW", "NHWC") or mode not in _COORDINATES:
        raise Refusal(f"its layout must be NCHW or NHWC and its coordinates known, not {layout} and {mode}")
    return op.image.resize2d(
        s[0],
        s.sizes(1),
        layout=layout,
        method=s.attr("method"),
        coordinate_transformation_mode=mode,
        rounding_method=s.attr("rounding_method"),
        cubic_alpha=s.attr("cubic_alpha"),
        cubic_exclude=s.attr("cubic_exclude"),
        extrapolation_value=s.attr("extrapolation_value"),
    )


def _pixel_shuffle(s: Site) -> Expr:
    return op.nn.depth_to_space(s[0], s.attr("upscale_factor"), mode="CRD")


CONVERTERS: Table = MappingProxyType(
    {name: _to_result for name in ("reshape", "flatten", "squeeze", "expand_dims", "nn.batch_flatten")}
    | {
        "permute_dims": _permute,
        "concat": _concat,
        "split": _split,
        "stack": lambda s: op.stack(_parts(s), s.attr("axis")),
        "broadcast_to": lambda s: op.broadcast_to(s[0], s.sizes(1)),
        "tile": _tile,
        "repeat": _repeat,
        "flip": lambda s: op.reverse(s[0], s.attr("axis")),
        "strided_slice": _slice,
        "take": _take,
        "gather_elements": lambda s: op.gather(s[0], s.attr("axis"), s[1]),
        "gather_nd": _gather_nd,
        "scatter_elements": _scatter_elements,
        "scatter_nd": _scatter_nd,
        "one_hot": _one_hot,
        "sort": _sort,
        "argsort": _argsort,
        "topk": _topk,
        "tril": _triangle(False),
        "triu": _triangle(True),
        "meshgrid": _meshgrid,
        "einsum": lambda s: op.einsum(_parts(s), s.attr("subscripts")),
        "image.resize2d": _resize,
        "nn.pixel_shuffle": _pixel_shuffle,
    }
)
