"""Shortens LiteDRAM's critical path: whether a request hits its bank's open row is compared a cycle ahead.

In: a bank machine, before it is finalized. Out: the same, to the cycle, with a shorter way to what it decides.

LiteDRAM compares the row of the request at hand with the open one and, to close a row early, with that of the request
behind, in front of everything that it decides: the longest way of a SoC. The row of the request behind can be
compared with the open one at once; once that request is at hand, a register says the same. Where a row is open and the
request at hand meets it, the two comparisons are one; where not, nothing asks for the second.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any


def know_row_hits(bank: Any) -> None:
    """Replace both comparisons of a LiteDRAM BankMachine. Raises ValueError if it is not built as is known here."""
    migen, structure = _module("migen"), _module("migen.fhdl.structure")
    (_, behind), (_, at_hand) = bank._submodules[:2]
    statements = list(_flat(bank._fragment.comb))
    hits = [one for one in statements if isinstance(one, structure._Assign) and _compares(structure, one.r, "==")]
    asks: list[Any] = [one for one in statements if isinstance(one, structure.If) and _asks(structure, one)]
    if len(hits) != 1 or len(asks) != 1:
        raise ValueError(
            "a bank machine must compare rows once for hits and once to close them early, "
            f"not {len(hits)} and {len(asks)} times"
        )
    row, row_at_hand = hits[0].r.operands
    targets = _module("migen.fhdl.tools").list_targets(bank._fragment.sync["sys"])
    (row_opened,) = (signal for signal in targets if signal is not row and len(signal) == 1)
    row_behind = behind.source.addr[row_at_hand.start : row_at_hand.stop]
    meets, hit = migen.Signal(name="row_behind_meets"), migen.Signal(name="row_is_met")
    bank.comb += meets.eq(row == row_behind)
    hits[0].r = hit
    asks[0].t[0].cond = ~meets
    # A row that is opened is that of the request at hand, which waits for it.
    bank.sync += migen.If(at_hand.sink.ready & at_hand.sink.valid, hit.eq(meets)).Elif(~row_opened, hit.eq(1))


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _flat(statements: Any) -> Iterator[Any]:
    for statement in statements:
        if isinstance(statement, (list, tuple)):
            yield from _flat(statement)
        else:
            yield statement


def _asks(structure: Any, statement: Any) -> bool:
    """Whether all that a condition leads to hangs on another one, that two rows differ."""
    inner: Any = statement.t[0] if statement.t else None
    return isinstance(inner, structure.If) and _compares(structure, inner.cond, "!=")


def _compares(structure: Any, value: Any, by: str) -> bool:
    """Whether a value compares something with the row of an address."""
    is_operator = isinstance(value, structure._Operator) and value.op == by
    return is_operator and isinstance(value.operands[1], structure._Slice)
