"""Checks layouts of tensor types: the arguments of each operator, and the layout of its result.

In: one call, its argument types, its result type. Out: the result type with a layout; TypeCheckError names the edge.
Types without a layout are taken as they are, so that programs that never name one are not concerned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from relay_hw.analysis.describe import describe
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Trait, Tuple
from relay_hw.ir.types import TensorType, TupleType, Type

_MERGING: Final = frozenset(("concatenate", "qnn.concatenate"))


def is_laid_out(types: Sequence[Type]) -> bool:
    """Whether an argument, or a field of a tuple argument, has a layout."""
    return any(
        isinstance(ty, TensorType) and bool(ty.layout)
        for given in types
        for ty in (given.fields if isinstance(given, TupleType) else (given,))
    )


def check_arguments(call: Call, op: Op, types: Sequence[Type]) -> None:
    """Check that the arguments have the layouts in the attributes of `op`. Raises TypeCheckError."""
    attrs = call.attrs
    if op.name == "layout_transform":
        _expect(call, 0, types, attrs.src_layout)
    elif hasattr(attrs, "data_layout"):
        _expect(call, 0, types, attrs.data_layout)
        _expect(call, 1, types, attrs.kernel_layout)
    elif hasattr(attrs, "layout"):
        _expect(call, 0, types, attrs.layout)
    elif op.has(Trait.ON_CHANNELS):
        _check_channels(call, op, types)


def result_layout(call: Call, op: Op, types: Sequence[Type], result: Type) -> Type:
    """`result` with the layout of the arguments. Raises TypeCheckError if they disagree."""
    return _with_layout(result, _found(call, op, types, result))


def _found(call: Call, op: Op, types: Sequence[Type], result: Type) -> str:
    attrs, name = call.attrs, op.name
    first = _layout(types[0]) if types else ""
    if name == "layout_transform":
        return attrs.dst_layout
    if hasattr(attrs, "data_layout") or hasattr(attrs, "layout"):
        return (getattr(attrs, "out_layout", "") or first) if first else ""
    if name == "transpose":
        return _permuted(first, attrs.axes)
    if op.pattern is FusionPattern.COMM_REDUCE and hasattr(attrs, "keepdims"):
        return _reduced(types[0], result, attrs)
    if name in _MERGING:
        return _common(call, types[0], call.args[0])
    if hasattr(attrs, "lhs_axis") or (op.has(Trait.ELEMENTWISE) and len(types) > 1):
        return _broadcast(call, types, result)
    return first if op.has(Trait.KEEPS_AXES) else ""


def _expect(call: Call, index: int, types: Sequence[Type], wanted: str) -> None:
    given = _layout(types[index]) if index < len(types) else ""
    if given and given != wanted:
        raise _refusal(call, index, wanted, given)


def _refusal(call: Call, index: int, wanted: str, given: str, source: Expr | None = None) -> TypeCheckError:
    source = source or call.args[index]
    edge = f"argument {index + 1} of {describe(call.op)}"
    return TypeCheckError(f"{edge} must have layout {wanted}, not {given} as {describe(source)} gives it", call.span)


def _check_channels(call: Call, op: Op, types: Sequence[Type]) -> None:
    units = _units(_layout(types[0]))
    ty = types[0]
    if not units or not isinstance(ty, TensorType) or "C" not in units:
        return
    axis = call.attrs.axis % ty.rank
    if units[axis] != "C":
        layout, right = _layout(ty), units.index("C")
        raise TypeCheckError(f"axis of {op.name} must be {right}, which is C of {layout}, not {axis}", call.span)


def _common(call: Call, ty: Type, arg: Expr) -> str:
    """The layout of all fields that have one."""
    fields = ty.fields if isinstance(ty, TupleType) else ()
    found = ""
    for index, field in enumerate(fields):
        layout = _layout(field)
        if found and layout and layout != found:
            source = arg.fields[index] if isinstance(arg, Tuple) else arg
            raise _refusal(call, 0, found, layout, source)
        found = found or layout
    return found


def _broadcast(call: Call, types: Sequence[Type], result: Type) -> str:
    """The layout of the full-rank arguments; others must be a suffix of it."""
    rank = result.rank if isinstance(result, TensorType) else 0
    full = [index for index, ty in enumerate(types) if isinstance(ty, TensorType) and ty.rank == rank and ty.layout]
    if not full:
        return ""
    layout = _layout(types[full[0]])
    for index, ty in enumerate(types):
        given = _layout(ty)
        if given and not layout.endswith(given):
            raise _refusal(call, index, layout, given)
    return layout


def _reduced(ty: Type, result: Type, attrs: object) -> str:
    if not isinstance(ty, TensorType) or not ty.layout:
        return ""
    units = _units(ty.layout)
    axes: Sequence[int] | int | None = getattr(attrs, "axis", None)
    if getattr(attrs, "keepdims", False):
        return ty.layout
    chosen = range(ty.rank) if axes is None else (axes,) if isinstance(axes, int) else axes
    gone = {axis % ty.rank for axis in chosen}
    if getattr(attrs, "exclude", False):
        gone = set(range(ty.rank)) - gone
    kept = [unit for place, unit in enumerate(units) if place not in gone]
    return "".join(kept) if isinstance(result, TensorType) and len(kept) == result.rank else ""


def _permuted(layout: str, axes: Sequence[int] | None) -> str:
    units = _units(layout)
    order = list(range(len(units)))[::-1] if axes is None else [axis % len(units) if units else 0 for axis in axes]
    return "".join(units[axis] for axis in order) if len(order) == len(units) else ""


def _units(layout: str) -> list[str]:
    """`NCHW4c` as N, C, H, W, 4c."""
    return re.findall(r"\d*[A-Za-z]", layout)


def _layout(ty: Type) -> str:
    return ty.layout if isinstance(ty, TensorType) else ""


def _with_layout(ty: Type, layout: str) -> Type:
    """A tensor with `layout`, or a tuple with it where a field has as many dimensions."""
    match ty:
        case TensorType() if ty.layout != layout:
            fits = not layout or len(_units(layout)) == ty.rank
            return TensorType(ty.shape, ty.dtype, layout if fits else "")
        case TupleType(fields=fields):
            rank = len(_units(layout))
            return TupleType(
                [
                    _with_layout(field, layout if isinstance(field, TensorType) and field.rank == rank else "")
                    for field in fields
                ]
            )
        case _:
            return ty
