"""Groups operators that only move int8 elements into one copy on the accelerator.

In: calls of a dataflow graph. Out: groups, composites like those of `fuse`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from relay_hw.ir.expr import Call, Constant, Expr, Tuple, Var
from relay_hw.target.accel.groups import TreeGroup
from relay_hw.transform.graph import dtype_of, is_op, shape_of

MOVES: Final = (
    "concatenate",
    "expand_dims",
    "layout_transform",
    "nn.batch_flatten",
    "nn.mirror_pad",
    "nn.upsampling",
    "repeat",
    "reshape",
    "reverse",
    "squeeze",
    "strided_slice",
    "tile",
    "transpose",
)
_BORDERS: Final = ("qnn.quantize", "qnn.dequantize")


def move_groups(
    root: Call, uses: Mapping[Expr, int], readers: Mapping[Expr, Sequence[Expr]], taken: set[Expr]
) -> Iterator[TreeGroup]:
    """Candidates: the largest tree of moving calls that ends in `root`, and `root` alone; none at the graph's border.

    There the host moves elements while it converts them.
    """
    for deep in (True, False):
        found = move_group(root, uses, readers, taken, deep)
        if found is not None:
            yield found


def move_group(
    root: Call, uses: Mapping[Expr, int], readers: Mapping[Expr, Sequence[Expr]], taken: set[Expr], deep: bool
) -> TreeGroup | None:
    """The tree of moving calls that ends in `root`, or `root` alone; None where the host moves the elements."""
    if not is_moving(root) or not any(not is_op(reader, *_BORDERS) for reader in readers.get(root, ())):
        return None
    # Of a result that has parts of the host's, the host needs what is new only.
    if any(map(_is_source, _sources(root))) and _goes_to_host(root, readers):
        return None
    members, inputs = [root], list[Expr]()
    stack = list(reversed(list(_data(root))))
    while stack:
        arg = stack.pop()
        # The host moves what is its own before it is an input.
        is_own = uses[arg] == 1 and arg not in taken and not is_of_host(arg)
        # What cannot lie in memory between two copies is part of each copy that reads it.
        if deep and isinstance(arg, Call) and is_moving(arg) and (is_own or not _has_place(arg)):
            members.append(arg)
            stack.extend(reversed(list(_data(arg))))
        elif arg not in inputs:
            inputs.append(arg)
    if any(dtype_of(arg) != "int8" for arg in inputs):
        return None
    if all(map(is_of_host, inputs)):
        return None
    return TreeGroup("accel.move", root, frozenset(members), tuple(inputs))


def is_of_host(expr: Expr) -> bool:
    """Whether a tensor is an input, or moved elements of inputs, of which the host makes integers."""
    return all(isinstance(source, Constant) or _is_source(source) for source in _sources(expr))


def _is_source(expr: Expr) -> bool:
    return isinstance(expr, Var) or is_op(expr, "qnn.quantize")


def _sources(expr: Expr) -> Iterator[Expr]:
    """What a tensor's elements come from, behind the operators that move them."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and is_op(node, *MOVES):
            stack += _data(node)
        else:
            yield node


def _goes_to_host(root: Call, readers: Mapping[Expr, Sequence[Expr]]) -> bool:
    """Whether only the host reads the elements, which others may move on the way."""
    stack = [root]
    while stack:
        found = readers.get(stack.pop(), ())
        if not all(is_op(reader, *_BORDERS, *MOVES) for reader in found):
            return False
        stack += [reader for reader in found if isinstance(reader, Call) and is_moving(reader)]
    return True


def is_moving(call: Call) -> bool:
    """Whether a call only moves int8 elements."""
    return is_op(call, *MOVES) and dtype_of(call) == "int8"


def _has_place(call: Call) -> bool:
    """Whether a tensor has a layout in the accelerator's memory."""
    shape = shape_of(call)
    return shape is not None and (len(shape) < 4 or (len(shape) == 4 and shape[0] == 1))


def _data(call: Call) -> Iterator[Expr]:
    """The tensors that the call moves: its first argument, or that tuple's fields."""
    first = call.args[0]
    yield from first.fields if isinstance(first, Tuple) else (first,)
