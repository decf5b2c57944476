"""DynamicToStatic: operators whose sizes are run-time values become those with attributes where values are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from relay_hw.analysis.infer import infer_type
from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter
from relay_hw.op import get
from relay_hw.op.dynamic_shape import numbers
from relay_hw.transform.base import Pass, map_functions
from relay_hw.transform.effects import pin_effects
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.graph import constant, constant_value, dtype_of, is_op, op_name, shape_of

# (call on new arguments, values of its constant arguments by place) -> the call with attributes, None to leave it.
Rule = Callable[[Call, Mapping[int, Any]], "Call | None"]


class DynamicToStatic(Pass):
    """`dyn.*` operators whose sizes, axes or places are constants become the operators of the same name without `dyn.`.

    Shapes of tensors of known sizes are constants, and constants are folded as types become known, so that sizes that
    depend on others are found as well.
    """

    name = "dynamic-to-static"
    opt_level = 3

    def transform(self, mod: IRModule) -> IRModule:
        result = mod = pin_effects(mod)
        while True:
            folded = infer_type(FoldConstant().transform(mod))
            new = map_functions(folded, _static)
            if new is folded:
                return result
            result = mod = infer_type(new)


def _static(function: Function) -> Function:
    rewriter = _Rewriter()
    new = rewriter.rewrite(function)
    assert isinstance(new, Function)
    return new if rewriter.has_changed else function


class _Rewriter(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.has_changed = False

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        known = shape_of(old.args[0]) if is_op(old, "shape_of", "ndarray_size") else None
        if known is not None:
            self.has_changed = True
            value = known if is_op(old, "shape_of") else int(np.prod(known))
            return constant(np.array(value, dtype_of(old)), old.span)
        rule, places = RULES.get(op_name(old), (None, ()))
        if rule is None:
            return new
        values = {at: constant_value(new.args[at]) for at in places}
        found = None if any(value is None for value in values.values()) else rule(new, values)
        self.has_changed |= found is not None
        return new if found is None else found


def _call(name: str, call: Call, places: Sequence[int], *attrs: Any) -> Call:
    """A call of `name`, with these attributes, on the arguments at `places`."""
    op = get(name)
    assert op.attrs_type is not None
    return Call(op, [call.args[at] for at in places], op.attrs_type(*attrs), span=call.span)


def _reshape(call: Call, values: Mapping[int, Any]) -> Call:
    return _call("reshape", call, (0,), numbers(values[1]), call.attrs.allowzero)


def _squeeze(call: Call, values: Mapping[int, Any]) -> Call | None:
    # Without an axis the static one would remove all.
    axes = numbers(values[1])
    return _call("squeeze", call, (0,), axes) if axes else None


def _strided_slice(call: Call, values: Mapping[int, Any]) -> Call:
    begin, end, strides = (numbers(values[at]) for at in (1, 2, 3))
    return _call("strided_slice", call, (0,), begin, end, strides, call.attrs.slice_mode)


def _one_hot(call: Call, values: Mapping[int, Any]) -> Call:
    return _call("one_hot", call, (0, 1, 2), int(values[3]), call.attrs.axis, call.attrs.dtype)


def _topk(call: Call, values: Mapping[int, Any]) -> Call:
    return Call(get("topk"), call.args[:1], replace(call.attrs, k=numbers(values[1])[0]), span=call.span)


def _pad(call: Call, values: Mapping[int, Any]) -> Call | None:
    if call.attrs.pad_mode not in ("constant", "edge", "reflect"):
        return None
    widths = tuple(numbers(pair) for pair in values[1])
    return _call("nn.pad", call, (0, 2), widths, call.attrs.pad_mode)


def _resize(call: Call, values: Mapping[int, Any]) -> Call:
    roi = tuple(float(value) for value in values[2].ravel())
    attrs = replace(call.attrs, size=numbers(values[1]), roi=roi if len(roi) == 4 else None)
    return Call(get("image.resize2d"), call.args[:1], attrs, span=call.span)


# Each operator with its rule, and the places of the arguments that must be constants.
RULES: Final[Mapping[str, tuple[Rule, tuple[int, ...]]]] = MappingProxyType(
    {
        "dyn.reshape": (_reshape, (1,)),
        "dyn.squeeze": (_squeeze, (1,)),
        "dyn.expand_dims": (lambda c, v: _call("expand_dims", c, (0,), int(v[1]), c.attrs.num_newaxis), (1,)),
        "dyn.broadcast_to": (lambda c, v: _call("broadcast_to", c, (0,), numbers(v[1])), (1,)),
        "dyn.full": (lambda c, v: _call("full", c, (0,), numbers(v[1]), c.attrs.dtype), (1,)),
        "dyn.zeros": (lambda c, v: _call("zeros", c, (), numbers(v[0]), c.attrs.dtype), (0,)),
        "dyn.ones": (lambda c, v: _call("ones", c, (), numbers(v[0]), c.attrs.dtype), (0,)),
        "dyn.tile": (lambda c, v: _call("tile", c, (0,), numbers(v[1])), (1,)),
        "dyn.strided_slice": (_strided_slice, (1, 2, 3)),
        "dyn.one_hot": (_one_hot, (3,)),
        "dyn.topk": (_topk, (1,)),
        "dyn.nn.pad": (_pad, (1,)),
        "dyn.image.resize2d": (_resize, (1, 2)),
    }
)
