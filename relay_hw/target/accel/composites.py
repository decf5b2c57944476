"""MergeDeviceComposites: groups integer operators that the accelerator runs as one layer into composite functions.

In: the integer graph that quantization makes. Out: the same graph with calls of inner functions whose attributes
`Primitive` and `Composite` say what they are; weights and biases lie inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.ir.expr import MACS, Call, Constant, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, copy_with
from relay_hw.op import rows
from relay_hw.target.accel.drop_batch import drop_batch
from relay_hw.target.accel.groups import PAIRS, TABLE, Group, TreeGroup, is_operand, parts_of
from relay_hw.target.accel.length_bytes import length_bytes
from relay_hw.target.accel.move_groups import move_groups
from relay_hw.target.accel.pad_heads import Padded, pad_heads
from relay_hw.target.accel.pair_groups import pair_groups
from relay_hw.target.accel.split_caches import split_caches
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import (
    calls_that_read,
    count_uses,
    dtype_of,
    is_external,
    is_op,
    op_name,
    outer_order,
    shape_of,
)

# Says why a composite cannot run on the device; None if it can.
Legal = Callable[[Function], "str | None"]


@dataclass(frozen=True, slots=True)
class Composite:
    """A pattern: a chain of operators from the anchor to the last one; `before` may precede the anchor."""

    name: str
    anchor: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    constants: tuple[tuple[str, int], ...] = ()  # (operator, argument) that must be constant


# Functions of rows; reshapes around them that keep the rows change nothing.
_ROWS: Final = tuple(row.name for row in rows.OPS)
# Composites whose results go through no table.
_PLAIN: Final[tuple[Composite, ...]] = (
    *(
        Composite(
            "accel.conv2d",
            "nn.conv2d",
            before=("nn.pad",),
            after=("fixed.requantize", pair),
            constants=(("nn.pad", 1), ("nn.conv2d", 1), ("fixed.requantize", 1)),
        )
        for pair in PAIRS
    ),
    Composite(
        "accel.conv2d",
        "nn.conv2d",
        before=("nn.pad",),
        after=("fixed.requantize",),
        constants=(("nn.pad", 1), ("nn.conv2d", 1), ("fixed.requantize", 1)),
    ),
    Composite(
        "accel.conv2d_transpose",
        "fixed.conv2d_transpose",
        after=("fixed.requantize",),
        constants=(("fixed.conv2d_transpose", 1), ("fixed.requantize", 1)),
    ),
    *(
        Composite(
            "accel.dense",
            "nn.dense",
            before=("nn.batch_flatten", "reshape"),
            after=("fixed.requantize", pair),
            constants=(("nn.dense", 1), ("fixed.requantize", 1)),
        )
        for pair in PAIRS
    ),
    Composite(
        "accel.dense",
        "nn.dense",
        before=("nn.batch_flatten", "reshape"),
        after=("fixed.requantize", "reshape"),
        constants=(("nn.dense", 1), ("fixed.requantize", 1)),
    ),
    Composite(
        "accel.dense",
        "nn.dense",
        before=("nn.batch_flatten", "reshape"),
        after=("fixed.requantize",),
        constants=(("nn.dense", 1), ("fixed.requantize", 1)),
    ),
    Composite(
        "accel.batch_matmul",
        "nn.batch_matmul",
        after=("fixed.requantize",),
        constants=(("fixed.requantize", 1),),
    ),
    Composite(
        "accel.sum_pool2d",
        "fixed.sum_pool2d",
        before=("nn.pad",),
        after=("fixed.requantize",),
        constants=(("nn.pad", 1), ("fixed.requantize", 1)),
    ),
    Composite("accel.max_pool2d", "nn.max_pool2d", before=("nn.pad",), constants=(("nn.pad", 1),)),
    Composite("accel.add", "fixed.add"),
    Composite("accel.mul", "fixed.mul"),
    Composite("accel.clip", "clip"),
    Composite("accel.table", TABLE, constants=((TABLE, 1),)),
    *(
        Composite(
            name.replace("fixed.", "accel."),
            name,
            before=("reshape",),
            after=after,
            constants=((name, 1),) if name == rows.SOFTMAX.name else ((name, 1), (name, 2)),
        )
        for name in _ROWS
        for after in (("reshape",), ())
    ),
)


def _forms(composite: Composite) -> Iterator[Composite]:
    """The composite with a table behind its first stage, where it has one, and without."""
    names = (composite.anchor, *composite.after)
    stage = next((at for at, name in enumerate(names) if name in ("fixed.requantize", *PAIRS)), None)
    if stage is not None:
        after = (*names[1 : stage + 1], TABLE, *names[stage + 1 :])
        yield replace(composite, after=after, constants=(*composite.constants, (TABLE, 1)))
    yield composite


COMPOSITES: Final = tuple(form for composite in _PLAIN for form in _forms(composite))

# Operators of floats too, of which the accelerator knows the integer form only.
_INTEGER: Final = ("nn.conv2d", "nn.dense", "nn.batch_matmul", "nn.max_pool2d", "clip")


class MergeDeviceComposites(FunctionPass):
    """The pass. Of several matching composites it takes the largest that `legal` accepts; without `legal` the largest.

    Where `legal` accepts none, the group is made all the same: the partition asks again and keeps the reason. Before
    that, for a configuration, heads of attention become whole blocks of channels, and lengths bytes.
    """

    name = "merge-device-composites"

    def __init__(self, legal: Legal | None = None, config: AccelConfig | None = None) -> None:
        self.legal = legal
        self.config = config

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        padded = _prepared(function, self.config)
        groups = _choose(padded.function, self.legal)
        if not groups:
            return function
        new = _Merger(groups, padded.macs).rewrite(padded.function)
        assert isinstance(new, Function)
        return new


def _prepared(function: Function, config: AccelConfig | None) -> Padded:
    """The graph in forms that lie well in the memory of a configuration."""
    flat = drop_batch(function)
    if config is None:
        return Padded(flat, {})
    return pad_heads(split_caches(length_bytes(flat, config), config), config.channel_align)


AnyGroup = Group | TreeGroup


def _choose(function: Function, legal: Legal | None) -> dict[Call, AnyGroup]:
    """Groups by their root, consumers first, so that a residual add is offered to the layer before it."""
    uses = count_uses(function)
    order = [node for node in outer_order(function.body) if isinstance(node, Call)]
    position = {node: index for index, node in enumerate(order)}
    readers = calls_that_read(outer_order(function.body))
    taken: set[Expr] = set()
    groups: dict[Call, AnyGroup] = {}
    for root in reversed(order):
        if root in taken:
            continue
        matches = list(_candidates(root, uses, taken, position))
        # A layer in front takes the sum in; or other sums and products do; or it is a layer alone.
        alone = [group for group in matches if is_op(group.chain[0], *PAIRS, TABLE)]
        candidates: list[AnyGroup] = [group for group in matches if group not in alone]
        candidates += [*pair_groups(root, uses, readers, taken), *alone, *move_groups(root, uses, readers, taken)]
        chosen = _first_legal(candidates, legal)
        if chosen is not None:
            groups[root] = chosen
            taken |= chosen.members
    return groups


def _first_legal(candidates: Sequence[AnyGroup], legal: Legal | None) -> AnyGroup | None:
    if legal is None:
        return candidates[0] if candidates else None
    for group in candidates:
        if legal(group.function()) is None:
            return group
    alone = [group for group in candidates if not _takes_more(group)]
    return alone[0] if alone else None


def _takes_more(group: AnyGroup) -> bool:
    """Whether the group is a layer plus optional operators behind it."""
    return op_name(group.root) in (*PAIRS, TABLE, "reshape") and len(group.members) > 1


def _candidates(root: Call, uses: dict[Expr, int], taken: set[Expr], position: dict[Call, int]) -> Iterator[Group]:
    """Every match that ends in `root`, largest first."""
    for composite in COMPOSITES:
        last = composite.after[-1] if composite.after else composite.anchor
        if op_name(root) != last:
            continue
        # The host clips while it converts.
        if composite.anchor == "clip" and is_op(root.args[0], "qnn.quantize"):
            continue
        for oriented in _orientations(root, composite, position):
            chain = _chain(oriented, composite, uses, taken)
            if chain is None:
                continue
            front = _front(chain[-1], composite)
            if front is not None:
                yield _group(composite, root, [*chain, front])
            if joined := _joined(chain[-1], composite, uses, taken):
                group = _group(composite, root, chain)
                yield replace(group, inputs=(group.inputs[0], *parts_of(joined), *group.inputs[2:]), joined=joined)
            # A pad left to the host costs more than a sum or a product on its own.
            if front is None or is_op(front, "reshape") or not _pairs(composite):
                yield _group(composite, root, chain)


def _orientations(root: Call, composite: Composite, position: dict[Call, int]) -> Iterator[Call]:
    """A sum or product may join the layer of either argument: tries the later one first, as the other is then ready."""
    if not _pairs(composite):
        yield root
        return
    swapped = swap_pair(root)
    left, right = (position.get(arg, -1) if isinstance(arg, Call) else -1 for arg in root.args)
    yield from (root, swapped) if left >= right else (swapped, root)


def _pairs(composite: Composite) -> bool:
    """Whether the pattern ends in a second operand behind a layer."""
    return bool(composite.after) and composite.after[-1] in PAIRS


def swap_pair(call: Call) -> Call:
    """fixed.add or fixed.mul with its arguments swapped, which gives the same value."""
    a = call.attrs
    attrs = replace(a, y_zero_point=a.r_zero_point, r_zero_point=a.y_zero_point)
    if is_op(call, "fixed.add"):
        attrs = replace(attrs, y_multiplier=a.r_multiplier, r_multiplier=a.y_multiplier)
    return copy_with(call, args=tuple(reversed(call.args)), attrs=attrs)


def _chain(root: Call, composite: Composite, uses: dict[Expr, int], taken: set[Expr]) -> list[Call] | None:
    """The calls from `root` back to the anchor along first arguments; None if the pattern does not match."""
    names = [composite.anchor, *composite.after]
    chain = [root]
    for name in reversed(names[:-1]):
        part = chain[-1].args[0]
        if not isinstance(part, Call) or op_name(part) != name or uses[part] != 1 or part in taken:
            return None
        chain.append(part)
    if any(op_name(call) in _INTEGER and not _is_int8(call) for call in chain):
        return None
    return chain if _constants_hold(chain, composite) else None


def _front(anchor: Call, composite: Composite) -> Call | None:
    """The operators in front of the anchor. They only move elements, so that each reader may have a copy."""
    part = anchor.args[0]
    if not isinstance(part, Call) or op_name(part) not in composite.before:
        return None
    if is_op(part, "reshape") and not (_keeps_rows(part) if is_op(anchor, *_ROWS) else _is_flatten(part)):
        return None
    return part if _constants_hold([part], composite) else None


def _joined(anchor: Call, composite: Composite, uses: dict[Expr, int], taken: set[Expr]) -> Call | None:
    """The second operand of a product, where it only joins two tensors, for nobody else."""
    if composite.anchor != "nn.batch_matmul":
        return None
    operand = anchor.args[1]
    if not isinstance(operand, Call) or not is_op(operand, "concatenate") or uses[operand] != 1 or operand in taken:
        return None
    return operand if len(parts_of(operand)) == 2 else None


def is_front(call: Call, composite: str) -> bool:
    """Whether `call` may precede the anchor of the composite of this name."""
    return any(known.name == composite and op_name(call) in known.before for known in COMPOSITES)


def _is_int8(call: Call) -> bool:
    return dtype_of(call.args[0]) == "int8"


def _is_flatten(call: Call) -> bool:
    shape, source = shape_of(call), shape_of(call.args[0])
    return shape is not None and source is not None and len(shape) == 2 and shape[0] == source[0]


def _keeps_rows(call: Call) -> bool:
    shape, source = shape_of(call), shape_of(call.args[0])
    return bool(shape) and bool(source) and shape[-1] == source[-1]


def _constants_hold(chain: Sequence[Call], composite: Composite) -> bool:
    return all(
        isinstance(call.args[index], Constant)
        for call in chain
        for name, index in composite.constants
        if op_name(call) == name
    )


def _group(composite: Composite, root: Call, backwards: Sequence[Call]) -> Group:
    chain = tuple(reversed(backwards))
    inputs = tuple(
        arg
        for position, call in enumerate(chain)
        for index, arg in enumerate(call.args)
        if (not isinstance(arg, Constant) or is_operand(call)) and not (index == 0 and position > 0)
    )
    return Group(composite.name, root, chain, inputs)


class _Merger(Rewriter):
    def __init__(self, groups: Mapping[Call, AnyGroup], macs: Mapping[Expr, int]) -> None:
        super().__init__()
        self._groups = groups
        self._macs = macs

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        group = self._groups.get(old)
        if group is None:
            return new
        return Call(self._composite(group), [self._memo[arg] for arg in group.inputs], span=old.span)

    def _composite(self, group: AnyGroup) -> Function:
        """The group's function, which says how many products it has without padding where it has more."""
        function = group.function()
        macs = sum(self._macs[call] for call in group.members if call in self._macs)
        return copy_with(function, attrs={**function.attrs, MACS: macs}) if macs else function
