"""Rules for ReLU and clip: one form for each, next to the layer that they can be folded into."""

from __future__ import annotations

import math

from relay_hw.ir.expr import Call, Expr, Trait, Tuple
from relay_hw.transform.graph import has_trait, is_float, is_op, make, op_name, remake, scalar_value, typed
from relay_hw.transform.rewrite_rules import Rule, Uses

# A bound that no float32 passes but infinity.
FLOAT32_MAX = 3.4028234663852886e38

_ACTIVATIONS = ("nn.relu", "clip")


def _bounds(expr: Expr) -> tuple[float, float] | None:
    """The bounds of a ReLU or clip: [low, high]."""
    if not isinstance(expr, Call):
        return None
    if is_op(expr, "nn.relu"):
        return 0.0, math.inf
    return (expr.attrs.a_min, expr.attrs.a_max) if is_op(expr, "clip") else None


def _clip(data: Expr, low: float, high: float, call: Call) -> Expr:
    """The shortest operator that keeps [low, high]."""
    if low == 0.0 and high == math.inf:
        return make("nn.relu", (data,), span=call.span)
    return make("clip", (data,), a_min=low, a_max=high, span=call.span)


def _twice(call: Call, uses: Uses) -> Expr | None:
    outer, inner = _bounds(call), _bounds(call.args[0])
    if outer is None or inner is None:
        return None
    # clip(clip(x)) is one clip to the inner range, itself clipped to the outer one.
    low = min(max(inner[0], outer[0]), outer[1])
    high = max(min(inner[1], outer[1]), outer[0])
    inner_call = call.args[0]
    assert isinstance(inner_call, Call)
    return _clip(inner_call.args[0], low, high, call) if low <= high else None


def _clip_as_relu(call: Call, uses: Uses) -> Expr | None:
    unbounded = call.attrs.a_min == 0.0 and call.attrs.a_max >= FLOAT32_MAX and is_float(call)
    return make("nn.relu", (call.args[0],), span=call.span) if unbounded else None


def _bound_as_clip(call: Call, uses: Uses) -> Expr | None:
    """maximum and minimum with one number."""
    for data, bound in (call.args, reversed(call.args)):
        value = scalar_value(bound)
        if value is None or math.isnan(value) or not is_float(call) or call.checked_type != data.checked_type:
            continue
        low, high = (value, math.inf) if is_op(call, "maximum") else (-math.inf, value)
        return _clip(data, low, high, call)
    return None


def _leaky_as_relu(call: Call, uses: Uses) -> Expr | None:
    return make("nn.relu", (call.args[0],), span=call.span) if call.attrs.alpha == 0 else None


def _swap(call: Call, uses: Uses) -> Expr | None:
    """An activation after a max pooling, a concatenation or another order of elements goes before, next to the layer.

    Max pooling commutes with every function that never falls, as long as its padding (the smallest number) is not
    what a window consists of.
    """
    inner = call.args[0]
    if not isinstance(inner, Call) or not uses.is_single(inner):
        return None
    if is_op(inner, "concatenate") and isinstance(inner.args[0], Tuple):
        parts = [remake(call, (part,)) for part in inner.args[0].fields]
        return remake(inner, (typed(Tuple(parts), inner.args[0].checked_type),))
    if not has_trait(inner, Trait.PERMUTES) and not is_op(inner, "nn.max_pool2d"):
        return None
    if is_op(inner, "nn.max_pool2d") and not _windows_hold_data(inner):
        return None
    return remake(inner, (remake(call, (inner.args[0],)),))


def _windows_hold_data(pool: Call) -> bool:
    padding, size = pool.attrs.padding, pool.attrs.pool_size
    largest = max(padding, default=0)
    return largest < min(size) and not pool.attrs.ceil_mode and all(step == 1 for step in pool.attrs.dilation)


def is_nonnegative(expr: Expr) -> bool:
    """Whether no element of `expr` can be below 0."""
    while has_trait(expr, Trait.KEEPS_SCALE) or is_op(expr, "nn.avg_pool2d", "nn.global_avg_pool2d"):
        assert isinstance(expr, Call)
        # A window of padding alone has the smallest number.
        if is_op(expr, "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d") and not _windows_hold_data(expr):
            return False
        expr = expr.args[0]
    bounds = _bounds(expr)
    return (bounds is not None and bounds[0] >= 0) or op_name(expr) in ("sigmoid", "nn.softmax", "abs", "exp")


ACTIVATION_RULES = (
    Rule("activation-twice", _ACTIVATIONS, _twice),
    Rule("clip-as-relu", ("clip",), _clip_as_relu),
    Rule("bound-as-clip", ("maximum", "minimum"), _bound_as_clip),
    Rule("leaky-relu-as-relu", ("nn.leaky_relu",), _leaky_as_relu),
    Rule("activation-first", _ACTIVATIONS, _swap),
)
