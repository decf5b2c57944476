"""Tracks the batch axis through operators, and gives each operator's attributes for a single sample.

In: a call, where the samples lie in each argument. Out: the attributes for one sample, or MixedError with the reason.
An operator that is not listed here is taken to mix samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Any, Final

from relay_hw.ir.expr import Call, Trait
from relay_hw.ir.types import TensorType
from relay_hw.op import get, with_trait
from relay_hw.op.reduce import reduced_axes
from relay_hw.op.slices import StridedSliceAttrs, slices
from relay_hw.transform.graph import op_name, shape_of


class MixedError(Exception):
    """Samples are mixed or cannot be separated; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Place:
    """The samples of a tensor lie along `axis`, whose size is `outer` x batch x `inner`."""

    axis: int
    outer: int = 1
    inner: int = 1

    @property
    def single(self) -> int:
        """The size of the axis for one sample."""
        return self.outer * self.inner


# None for a tensor that does not depend on the samples; for a tuple, a place per field.
Where = Place | None | tuple["Where", ...]
# (call, where the samples lie in each argument, batch) -> attributes for one sample.
Rule = Callable[[Call, Sequence[Place | None], int], Any]


def mixed(call: Call, reason: str) -> MixedError:
    """The error with the operator's name and place."""
    where = f" ({call.span})" if call.span is not None else ""
    return MixedError(f"{op_name(call)}{where} {reason}")


def refuse_axes(call: Call, place: Place | None, axes: Sequence[int]) -> None:
    """Raises MixedError if the samples lie along one of `axes` of the first argument, negative ones from the end."""
    rank = len(_dims(call, 0))
    if place is not None and place.axis in {axis % rank for axis in axes}:
        raise mixed(call, f"works along axis {place.axis}, where the samples lie")


def _dims(call: Call, number: int) -> tuple[Any, ...]:
    ty = call.args[number].type
    if not isinstance(ty, TensorType):
        raise mixed(call, "reads values that are no tensors")
    return tuple(ty.shape)


def _data_only(call: Call, places: Sequence[Place | None]) -> Place | None:
    """The place of the first argument, the only one that may have samples."""
    if any(place is not None for place in places[1:]):
        raise mixed(call, "reads samples as weights or settings")
    return places[0]


def _any_axis(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    _data_only(call, places)
    return call.attrs


def _axis(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    """Elements depend on others along `axis`; without an axis, on all."""
    place, axis = _data_only(call, places), call.attrs.axis
    axes = range(len(_dims(call, 0))) if axis is None else [axis] if isinstance(axis, int) else axis
    refuse_axes(call, place, tuple(axes))
    return call.attrs


def _axes(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    refuse_axes(call, _data_only(call, places), call.attrs.axes)
    return call.attrs


def _reduce(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    for number, place in enumerate(places):
        if place is not None and place.axis in reduced_axes(op_name(call), call.attrs, len(_dims(call, number))):
            raise mixed(call, f"joins what lies along axis {place.axis}, where the samples lie")
    return call.attrs


def _first_axis(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    """The operator is independent along the first axis; statistics and channels are on later ones."""
    place = _data_only(call, places)
    if place is None or place.axis != 0 or getattr(call.attrs, "axis", 1) % len(_dims(call, 0)) == 0:
        raise mixed(call, "must find the samples on axis 0")
    return call.attrs


def _layout(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    attrs = call.attrs
    layout = getattr(attrs, "data_layout", None) or attrs.layout
    place = _data_only(call, places)
    if place is None or layout[place.axis : place.axis + 1] != "N" or not layout.isalpha():
        raise mixed(call, f"must find the samples on axis N of {layout}")
    return attrs


def _layout_transform(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    source = call.attrs.src_layout
    place = _data_only(call, places)
    if place is None or source[place.axis : place.axis + 1] != "N" or "n" in source + call.attrs.dst_layout:
        raise mixed(call, f"must find the samples on axis N of {source}")
    return call.attrs


def _rows(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    """dense and matmul: the axis that is summed over is no axis of samples."""
    place = _data_only(call, places)
    depth = -2 if getattr(call.attrs, "transpose_a", False) else -1
    refuse_axes(call, place, (depth,))
    return call.attrs


def _batch_matmul(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    for number, place in enumerate(places):
        if place is not None and place.axis != 0:
            raise mixed(call, f"multiplies along axis {place.axis} of argument {number}, where the samples lie")
        if place is None and _dims(call, number)[0] != 1:
            raise mixed(call, "multiplies samples by matrices that differ from sample to sample")
    if None not in places and places[0] != places[1]:
        raise mixed(call, "pairs samples in different orders")
    return call.attrs


def _like(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    """The second argument only lends its element type."""
    if places[0] is None:
        raise mixed(call, "reads samples for their element type")
    return call.attrs


def _squeeze(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    axes = call.attrs.axis
    if axes is None:
        axes = tuple(axis for axis, dim in enumerate(_dims(call, 0)) if dim == 1)
    refuse_axes(call, places[0], axes)
    return replace(call.attrs, axis=tuple(axes))


def _pad(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    place = _data_only(call, places)
    refuse_axes(call, place, [axis for axis, pair in enumerate(call.attrs.pad_width) if tuple(pair) != (0, 0)])
    return call.attrs


def _tile(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    reps, rank = tuple(call.attrs.reps), len(_dims(call, 0))
    if len(reps) > rank:
        raise mixed(call, "gives more axes than it reads")
    refuse_axes(call, places[0], [axis for axis, rep in enumerate(reps, rank - len(reps)) if rep != 1])
    return call.attrs


def _slice(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    place, attrs, dims = places[0], call.attrs, _dims(call, 0)
    assert place is not None
    rank, size = len(dims), dims[place.axis]
    kept = slices(attrs, rank)[place.axis]
    if not isinstance(size, int) or range(*kept.indices(size)) != range(size):
        raise mixed(call, f"takes a part of axis {place.axis}, where the samples lie")
    axes = attrs.axes if attrs.axes else tuple(range(len(attrs.begin)))
    others = [number for number, axis in enumerate(axes) if axis % rank != place.axis]
    strides = attrs.strides or (1,)
    return StridedSliceAttrs(
        tuple(attrs.begin[k] for k in others),
        tuple(attrs.end[k] if k < len(attrs.end) else dims[axes[k]] for k in others),
        tuple(strides[k % len(strides)] for k in others),
        attrs.slice_mode,
        tuple(axes[k] for k in others),
    )


def _take(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    """Rows of data by index: either has samples, not both."""
    data, indices = places
    if call.attrs.batch_dims or (data is not None and indices is not None):
        raise mixed(call, "reads another sample's elements by index")
    if data is not None:
        refuse_axes(call, data, range(len(_dims(call, 0))) if call.attrs.axis is None else (call.attrs.axis,))
    return call.attrs


def _gather(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    if places[0] is None or places[0] != places[1] or call.attrs.axis is None:
        raise mixed(call, "must find the samples at one place of data and indices")
    refuse_axes(call, places[0], (call.attrs.axis,))
    return call.attrs


def _trilu(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    refuse_axes(call, _data_only(call, places), (-1, -2))
    return call.attrs


def _channel(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    """Numbers for each channel along `axis`; those for the whole tensor need none."""
    place = _data_only(call, places)
    if any(prod(_dims(call, number)) != 1 for number in range(1, len(call.args))):
        refuse_axes(call, place, (call.attrs.axis,))
    return call.attrs


def _expanded(call: Call, places: Sequence[Place | None], batch: int) -> Any:
    """broadcast_to: the size of the samples' axis, counted from the end, becomes that of one sample."""
    (place,), shape = places, list(call.attrs.shape)
    assert place is not None
    shape[place.axis + len(shape) - len(_dims(call, 0))] = place.single
    return replace(call.attrs, shape=tuple(shape))


def reshaped(call: Call, place: Place, batch: int) -> tuple[tuple[int, ...], Place]:
    """The shape that a reshape gives for one sample, and where its elements lie in the result for all."""
    old, new = shape_of(call.args[0]), shape_of(call)
    if old is None or new is None or 0 in new:
        raise mixed(call, "must give a known shape")
    before = prod(old[: place.axis]) * place.outer
    behind = place.inner * prod(old[place.axis + 1 :])
    for axis, size in enumerate(new):
        left, right = prod(new[:axis]), prod(new[axis + 1 :])
        if size % batch == 0 and before % left == 0 and behind % right == 0:
            outer, inner = before // left, behind // right
            if outer * batch * inner == size:
                return (*new[:axis], outer * inner, *new[axis + 1 :]), Place(axis, outer, inner)
    raise mixed(call, "spreads samples over several axes")


_CONVOLUTIONS: Final = [name for name in with_trait(Trait.ANCHOR) if hasattr(get(name).attrs_type, "data_layout")]

# Beside elementwise operators, which keep samples apart wherever they lie.
RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **dict.fromkeys(
            [*with_trait(Trait.POOLS), *_CONVOLUTIONS, "nn.upsampling", "nn.depth_to_space", "nn.space_to_depth"]
            + [f"image.resize{rank}d" for rank in (1, 2, 3)],
            _layout,
        ),
        **dict.fromkeys(["expand_dims", "transpose", "nn.dropout", "fixed.table"], _any_axis),
        **dict.fromkeys(["nn.softmax", "nn.fast_softmax", "nn.log_softmax", "nn.layer_norm", "nn.l2_normalize"], _axis),
        **dict.fromkeys(
            ["nn.lrn", "cumsum", "cumprod", "sort", "argsort", "topk", "reverse", "split", "repeat"], _axis
        ),
        **dict.fromkeys(["nn.batch_norm", "nn.prelu", "nn.bias_add", "simulated.format"], _channel),
        **dict.fromkeys(["qnn.quantize", "qnn.dequantize", "qnn.requantize", "fixed.requantize"], _channel),
        **dict.fromkeys([*with_trait(Trait.REDUCES), "argmax", "argmin", "variance"], _reduce),
        **dict.fromkeys(["nn.instance_norm", "nn.group_norm", "nn.batch_flatten"], _first_axis),
        **dict.fromkeys(["nn.dense", "nn.matmul", "qnn.dense"], _rows),
        **dict.fromkeys(["nn.pad", "nn.mirror_pad"], _pad),
        "broadcast_to": _expanded,
        "cast_like": _like,
        "gather": _gather,
        "layout_transform": _layout_transform,
        "nn.batch_matmul": _batch_matmul,
        "onnx.resize": _axes,
        "squeeze": _squeeze,
        "strided_slice": _slice,
        "take": _take,
        "tile": _tile,
        "trilu": _trilu,
    }
)
