"""Adds `Keep` and `Drop`: every object is freed after its last use, so that loops run in bounded memory.

In: a lowered function. Out: the same with holders counted. A function owns its arguments; a new object, a branch, a
call and the end of a function take over what they are given; everything else looks at its operands only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from relay_hw.backend.native.nodes import (
    Again,
    Apply,
    Arm,
    Block,
    Box,
    Branch,
    Callback,
    Check,
    Constant,
    Drop,
    Field,
    Fill,
    Invoke,
    Keep,
    Local,
    Make,
    Match,
    NativeFunction,
    Product,
    Reduce,
    Return,
    Scalar,
    Set,
    Statement,
    Store,
    TailApply,
    TailInvoke,
    Unbox,
    locals_of,
)
from relay_hw.ir.trampoline import Recursion, run


def count_holders(function: NativeFunction) -> NativeFunction:
    """The function with `Keep` and `Drop`."""
    body, live = run(_block(function.body, frozenset()))
    unused = [Drop(param) for param in function.params if param.dtype is None and param not in live]
    return replace(function, body=(*unused, *body))


@dataclass(frozen=True, slots=True)
class _Operands:
    """Objects that a statement takes over, and those that it looks at."""

    taken: tuple[Local, ...] = ()
    seen: tuple[Local, ...] = ()


def _objects(found: Iterable[Local]) -> tuple[Local, ...]:
    return tuple(local for local in found if local.dtype is None)


def _operands(statement: Statement) -> _Operands:
    match statement:
        case Set(value=value) | Return(value=value):
            return _Operands(_objects((value,)))
        case Make(fields=given) | Invoke(args=given) | Again(args=given) | TailInvoke(args=given):
            return _Operands(_objects(given))
        case Apply(callee=callee, args=args) | TailApply(callee=callee, args=args):
            return _Operands((callee, *args))
        case Store(ref=ref, value=value):
            return _Operands((value,), (ref,))
        case Scalar(value=value) | Reduce(value=value):
            return _Operands((), _objects(locals_of(value)))
        case Fill(pieces=pieces):
            return _Operands((), _objects(one for piece in pieces for one in locals_of(piece.value)))
        case Product(left=left, right=right):
            return _Operands((), _objects((*locals_of(left), *locals_of(right))))
        case Callback(args=args):
            return _Operands((), args)
        case Unbox(value=value) | Field(value=value) | Match(value=value) | Check(value=value):
            return _Operands((), (value,))
        case Constant() | Box() | Branch() | Keep() | Drop():
            return _Operands()


def _result(statement: Statement) -> Local | None:
    """The object that a statement makes."""
    to = None if isinstance(statement, Set) else getattr(statement, "to", None)
    return to if to is not None and to.dtype is None else None


def _block(block: Block, live: frozenset[Local]) -> Recursion[tuple[Block, frozenset[Local]]]:
    """The block with holders counted, and the objects that must live before it, if those in `live` must after it."""
    written: list[Statement] = []  # from the last one to the first one
    for statement in reversed(block):
        made = _result(statement)
        if made is not None and made not in live:
            written.append(Drop(made))
        live -= {made} if made is not None else set()
        if isinstance(statement, (Branch, Match)):
            found, live = yield _branches(statement, live)
            written.append(found)
            continue
        operands = _operands(statement)
        before, after = _balance(operands, live)
        written += [*after, statement, *before]
        live |= {*operands.taken, *operands.seen}
    return tuple(reversed(written)), live


def _balance(operands: _Operands, live: frozenset[Local]) -> tuple[list[Statement], list[Statement]]:
    """What comes before a statement, and what after it."""
    before: list[Statement] = []
    left = list(operands.taken)
    while left:
        local = left.pop()
        if local in live or local in left:
            before.append(Keep(local))
    # What is taken over as well as looked at is looked at first.
    gone = [one for one in dict.fromkeys(operands.seen) if one not in live and one not in operands.taken]
    return before, [Drop(local) for local in gone]


def _branches(statement: Branch | Match, live: frozenset[Local]) -> Recursion[tuple[Branch | Match, frozenset[Local]]]:
    blocks = (statement.then, statement.otherwise) if isinstance(statement, Branch) else _arms(statement)
    found: list[tuple[Block, frozenset[Local]]] = []
    for block in blocks:
        found.append((yield _block(block, live)))
    before: frozenset[Local] = live.union(*(needed for _, needed in found))
    if isinstance(statement, Match):
        before |= {statement.value}
    done = [(*_dropped(before - needed), *block) for block, needed in found]
    if isinstance(statement, Branch):
        return replace(statement, then=done[0], otherwise=done[1]), before
    arms = tuple(Arm(arm.tests, block) for arm, block in zip(statement.arms, done, strict=True))
    return replace(statement, arms=arms), before


def _arms(statement: Match) -> Sequence[Block]:
    return [arm.block for arm in statement.arms]


def _dropped(locals_: frozenset[Local]) -> list[Statement]:
    return [Drop(local) for local in sorted(locals_, key=lambda local: local.number)]
