"""Proves a finished program sound in whatever order its units run: bounds, banks, hazards, no deadlock.

In: a program and its configuration. Out: nothing, or TensorizeError that names the instructions. Checked are bounds,
use of what was never written, tokens (balanced, given before they are taken, never more than a semaphore holds),
conflicts between units that no chain of tokens orders, and the ports of the accumulator's banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import SEMAPHORE_MAX, SEMAPHORES, AccelConfig
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.spec import BY_OP, Dst, Mem, Op, Unit
from relay_hw.accel.isa.state import depth
from relay_hw.accel.isa.stream import Instr, decode_instructions
from relay_hw.accel.isa.tensors import slot_bytes
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.emit.footprint import DRAM, Access, Cells, UopMemory, accesses

WRITABLE = (SectionKind.OUTPUT, SectionKind.SCRATCH)
Last = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the resident stream leaves: scratchpad entries that stay as they are, and the micro-ops among them."""

    entries: dict[Mem | str, NDArray[np.bool_]]
    uops: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Use:
    """Ports of the accumulator banks that an instruction uses."""

    banks: tuple[int, ...]
    reads: bool
    writes: bool


def check_program(program: Program, config: AccelConfig) -> None:
    """Raise TensorizeError for the first thing that is wrong."""
    kept: _Kept | None = None
    if program.resident is not None:
        body = _body(decode_instructions(program.resident.data or b""), "resident stream")
        first = _Hazards(program, config, body, happens_before(body, config))
        for index in range(len(body)):
            first.visit(index)
        kept = first.kept()
    body = _body(program.instructions, "program")
    hazards = _Hazards(program, config, body, happens_before(body, config), kept)
    for index in range(len(body)):
        hazards.visit(index)
    hazards.finish()


def _body(instructions: Sequence[Instr], what: str) -> Sequence[Instr]:
    if not instructions or instructions[-1][0] is not Op.FINISH:
        raise TensorizeError(f"{what} must end with finish")
    for index, (op, _) in enumerate(instructions[:-1]):
        if op is Op.FINISH:
            raise TensorizeError(f"instruction {index}: finish must be the last instruction")
    return instructions[:-1]


def happens_before(body: Sequence[Instr], config: AccelConfig) -> list[list[int]]:
    """For each instruction and unit the last instruction of the unit that is over when the instruction starts.

    Raises TensorizeError for tokens that are shared by pairs of units, not balanced, taken before they are given (a
    deadlock), or more than a semaphore counts.
    """
    gives = _by_semaphore(body, "set")
    takes = _by_semaphore(body, "wait")
    givers: list[list[int]] = [[] for _ in body]
    for semaphore in range(SEMAPHORES):
        given, taken = gives[semaphore], takes[semaphore]
        if len(given) != len(taken):
            raise TensorizeError(
                f"semaphore {semaphore} must be given as often as taken, not {len(given)} and {len(taken)}"
            )
        for what, users in (("giving", given), ("taking", taken)):
            units = {_unit(body, index).name.lower() for index in users}
            if len(units) > 1:
                raise TensorizeError(f"semaphore {semaphore} must have one {what} unit, not {', '.join(sorted(units))}")
        for giver, taker in zip(given, taken, strict=True):
            if giver >= taker:
                raise TensorizeError(
                    f"instruction {taker} must wait for an instruction before it, not for {giver}: deadlock"
                )
            givers[taker].append(giver)
        _check_count(semaphore, given, taken, config)
    return _clocks(body, givers)


def _by_semaphore(body: Sequence[Instr], field: str) -> list[list[int]]:
    return [[i for i, (_, v) in enumerate(body) if v[field] >> semaphore & 1] for semaphore in range(SEMAPHORES)]


def _unit(body: Sequence[Instr], index: int) -> Unit:
    unit = BY_OP[body[index][0]].unit
    assert unit is not None
    return unit


def _check_count(semaphore: int, given: Sequence[int], taken: Sequence[int], config: AccelConfig) -> None:
    """Tokens whose taker is not dispatched yet, and those whose taker stands in a queue, must fit the count."""
    events = sorted([(index, 0) for index in given] + [(index, 1) for index in taken])
    open_tokens = most = 0
    for _, taking in events:
        open_tokens += -1 if taking else 1
        most = max(most, open_tokens)
    if most + config.queue_depth > SEMAPHORE_MAX:
        raise TensorizeError(f"semaphore {semaphore} must hold at most {SEMAPHORE_MAX} tokens, not {most}")


def _clocks(body: Sequence[Instr], givers: Sequence[Sequence[int]]) -> list[list[int]]:
    known: list[list[int]] = []
    last: dict[Unit, list[int]] = {unit: [-1] * len(Unit) for unit in Unit}
    for index in range(len(body)):
        now = last[_unit(body, index)]
        for giver in givers[index]:
            now = [max(a, b) for a, b in zip(now, known[giver], strict=True)]
            unit = _unit(body, giver)
            now[unit] = max(now[unit], giver)
        known.append(list(now))
        last[_unit(body, index)] = list(now)
    return known


class _Hazards:
    """Walks the program in order and remembers who used each cell last."""

    def __init__(
        self,
        program: Program,
        config: AccelConfig,
        body: Sequence[Instr],
        known: list[list[int]],
        kept: _Kept | None = None,
    ) -> None:
        self._program = program
        self._config = config
        self._body = body
        self._known = known
        self._granule = config.granule_bytes
        cells: dict[Mem | str, int] = {mem: depth(config, mem) for mem in Mem}
        cells[DRAM] = program.window_bytes // self._granule
        self._read: dict[Mem | str, Last] = {m: np.full((len(Unit), n), -1, np.int32) for m, n in cells.items()}
        self._written: dict[Mem | str, Last] = {m: np.full((len(Unit), n), -1, np.int32) for m, n in cells.items()}
        self._filled = {memory: np.zeros(count, bool) for memory, count in cells.items()}
        self._writable = np.zeros(cells[DRAM], bool)
        self._uops = UopMemory(program, config, None if kept is None else kept.uops)
        self._ports: dict[tuple[Unit, int, bool], int] = {}
        self._kept = kept.entries if kept is not None else {}
        if kept is not None:
            self._filled |= {memory: entries.copy() for memory, entries in kept.entries.items()}
        self._map_sections()

    def kept(self) -> _Kept:
        """The scratchpads after the last instruction."""
        return _Kept({mem: filled for mem, filled in self._filled.items() if isinstance(mem, Mem)}, self._uops.words)

    def _map_sections(self) -> None:
        for section in self._program.sections:
            cells = slice(section.offset // self._granule, -(-section.end // self._granule))
            if section.data is not None or section.kind is SectionKind.INPUT:
                self._filled[DRAM][cells] = True
            if section.kind in WRITABLE:
                self._writable[cells] = True

    def visit(self, index: int) -> None:
        """Check one instruction against all before it."""
        op, values = self._body[index]
        found = accesses(index, op, values, self._uops.words, self._config)
        for access in found:
            self._check_dram(index, access)
            self._check_kept(index, access)
            self._check_order(index, access)
        for access in found:
            if not access.write and not self._filled[access.memory][access.cells].all():
                cell = access.cells[~self._filled[access.memory][access.cells]][0]
                raise self._error(index, f"must read {access.name} {cell} only after it was written")
        self._check_ports(index, _bank_use(op, values, found, self._config))
        for access in found:
            self._note(index, access)
        self._uops.run(op, values)

    def finish(self) -> None:
        """Every byte of the outputs must be written at the end."""
        kinds = {section.name: section.kind for section in self._program.sections}
        for slot in self._program.tensors:
            if kinds[slot.section] is SectionKind.OUTPUT:
                begin = self._program.tensor_offset(slot.name)
                cells = slice(begin // self._granule, (begin + slot_bytes(self._config, slot)) // self._granule)
                if not self._filled[DRAM][cells].all():
                    raise TensorizeError(f"output {slot.name} must be written by the program, every byte of it")

    def _check_dram(self, index: int, access: Access) -> None:
        if access.memory != DRAM:
            return
        limit = self._program.window_bytes
        if (access.cells[-1] + 1) * self._granule > limit:
            raise self._error(index, f"must stay inside the window of {limit} bytes")
        if access.write and not self._writable[access.cells].all():
            where = int(access.cells[~self._writable[access.cells]][0]) * self._granule
            raise self._error(index, f"must write output and scratch sections only, not byte {where}")

    def _check_kept(self, index: int, access: Access) -> None:
        """Later launches rely on what the resident stream loaded."""
        stays = self._kept.get(access.memory)
        if access.write and stays is not None and stays[access.cells].any():
            cell = access.cells[stays[access.cells]][0]
            raise self._error(index, f"must not write {access.name} {cell}, which the resident stream loaded")

    def _check_order(self, index: int, access: Access) -> None:
        """Earlier instructions of other units that conflict must be over."""
        unit, known, cells = _unit(self._body, index), self._known[index], self._together(access)
        tables = [self._written] + ([self._read] if access.write else [])
        for other in Unit:
            if other is unit:
                continue
            for table in tables:
                last = table[access.memory][other, cells]
                worst = int(last.max())
                if worst > known[other]:
                    cell = int(cells[int(last.argmax())])
                    verb = "writes" if access.write else "reads"
                    raise self._error(index, f"must wait for {self._name(worst)} before it {verb} {access.name} {cell}")

    def _together(self, access: Access) -> Cells:
        """The cells whose users must take turns: tables and coefficients are read by the port that LOAD writes."""
        if access.memory is Mem.TAB or access.memory is Mem.COF:
            return np.arange(depth(self._config, access.memory), dtype=np.int64)
        return access.cells

    def _check_ports(self, index: int, use: _Use) -> None:
        unit, known = _unit(self._body, index), self._known[index]
        for bank in use.banks:
            for writing, used in ((False, use.reads), (True, use.writes)):
                if not used:
                    continue
                for other in Unit:
                    last = self._ports.get((other, bank, writing), -1)
                    if other is not unit and last > known[other]:
                        raise self._error(index, f"must wait for {self._name(last)} before it uses acc bank {bank}")
                self._ports[unit, bank, writing] = index

    def _note(self, index: int, access: Access) -> None:
        unit = _unit(self._body, index)
        table = self._written if access.write else self._read
        table[access.memory][unit, access.cells] = index
        if access.write:
            self._filled[access.memory][access.cells] = True

    def _name(self, index: int) -> str:
        return f"instruction {index} ({self._body[index][0].name.lower()})"

    def _error(self, index: int, what: str) -> TensorizeError:
        return TensorizeError(f"{self._name(index)} {what}")


def _bank_use(op: Op, values: dict[str, int], found: Sequence[Access], config: AccelConfig) -> _Use:
    cells = [access.cells // config.acc_bank_depth for access in found if access.memory is Mem.ACC]
    if not cells:
        return _Use((), False, False)
    banks = tuple(int(bank) for bank in np.unique(np.concatenate(cells)))
    reads = op is not Op.LOAD
    writes = op is not Op.REQUANT or values["dst"] == Dst.ACC
    return _Use(banks, reads, writes)
