"""Rules that remove operators without effect, such as x + 0."""

from __future__ import annotations

from relay_hw.ir.expr import Call, Expr, Trait, Tuple, TupleGetItem
from relay_hw.op import with_trait
from relay_hw.transform.graph import dtype_of, is_op, op_name, scalar_value, shape_of
from relay_hw.transform.rewrite_rules import TUPLE_ITEM, Rule, Uses


def _is_same_type(call: Call, data: Expr) -> bool:
    return call.checked_type == data.checked_type


def _always(call: Call, uses: Uses) -> Expr | None:
    return call.args[0] if _is_same_type(call, call.args[0]) else None


def _same_shape(call: Call, uses: Uses) -> Expr | None:
    shape = shape_of(call)
    return call.args[0] if shape is not None and _is_same_type(call, call.args[0]) else None


def _transpose(call: Call, uses: Uses) -> Expr | None:
    shape = shape_of(call)
    if shape is None:
        return None
    axes = call.attrs.axes or tuple(reversed(range(len(shape))))
    moved = [axis % len(shape) for axis in axes if shape[axes.index(axis)] != 1]
    # Axes of size 1 may move freely: the other ones keep their order.
    return call.args[0] if moved == sorted(moved) and _is_same_type(call, call.args[0]) else None


def _pad(call: Call, uses: Uses) -> Expr | None:
    return call.args[0] if not any(width for pair in call.attrs.pad_width for width in pair) else None


def _neutral(call: Call, uses: Uses) -> Expr | None:
    """x + 0, x - 0, x * 1, x / 1. The sum with 0 turns -0.0 into 0.0, which compares equal."""
    neutral = 0.0 if is_op(call, "add", "subtract") else 1.0
    left, right = call.args
    if scalar_value(right) == neutral and _is_same_type(call, left):
        return left
    if is_op(call, "add", "multiply") and scalar_value(left) == neutral and _is_same_type(call, right):
        return right
    return None


def _unbounded_clip(call: Call, uses: Uses) -> Expr | None:
    low, high = call.attrs.a_min, call.attrs.a_max
    return call.args[0] if low == float("-inf") and high == float("inf") else None


def _single_concatenate(call: Call, uses: Uses) -> Expr | None:
    parts = call.args[0]
    return parts.fields[0] if isinstance(parts, Tuple) and len(parts.fields) == 1 else None


def _item(item: TupleGetItem, uses: Uses) -> Expr | None:
    if isinstance(item.tuple_value, Tuple):
        return item.tuple_value.fields[item.index]
    if op_name(item.tuple_value) == "nn.dropout" and item.index == 0 and isinstance(item.tuple_value, Call):
        return item.tuple_value.args[0]
    return None


def _global_pool(call: Call, uses: Uses) -> Expr | None:
    """A pooling window of one element with stride 1."""
    attrs = call.attrs
    alone = all(size == 1 for size in (*attrs.pool_size, *attrs.strides)) and not any(attrs.padding)
    return call.args[0] if alone and dtype_of(call) == dtype_of(call.args[0]) else None


IDENTITY_RULES = (
    Rule("copy", ("copy", "annotation.stop_fusion"), _always),
    Rule("cast-to-same", ("cast",), _always),
    Rule(
        "reshape-to-same",
        (*with_trait(Trait.RESHAPES), "broadcast_to"),
        _same_shape,
    ),
    Rule("transpose-nothing", ("transpose",), _transpose),
    Rule("pad-nothing", ("nn.pad",), _pad),
    Rule("neutral-operand", ("add", "subtract", "multiply", "divide"), _neutral),
    Rule("clip-nothing", ("clip",), _unbounded_clip),
    Rule("concatenate-one", ("concatenate",), _single_concatenate),
    Rule("item-of-tuple", (TUPLE_ITEM,), _item),
    Rule("pool-nothing", ("nn.max_pool2d", "nn.avg_pool2d"), _global_pool),
)
