"""ROW meets others in an accumulator bank exactly at the edges that TIMING.md names; the earlier one is at fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.config import INSTRUCTION_BYTES, load_config
from relay_hw.accel.isa.errors import Fault, FaultCode
from relay_hw.accel.isa.program import Program, WindowPlan
from relay_hw.accel.isa.rules import row_entries
from relay_hw.accel.isa.slots import row_round_slots
from relay_hw.accel.isa.spec import Dst, Form, Mem, Op, RowKind
from relay_hw.accel.sim.rtl_device import RtlDevice

TINY, DEFAULT = load_config("tiny"), load_config("default")
BANK = TINY.acc_bank_depth
ROW = {"kind": RowKind.RMS_NORM, "rows": 2, "columns": 8, "row_step": 2, "entry_step": 1}
ALU = {"alu_op": AluOp.ADD, "use_imm": 1, "uop_end": 1}
# Slots of a round in which each of a row's first entries is read: for its maximum, its sums, its results.
READS = {0: 0, 1: 1, 3: 2}

Code = list[tuple[Op, dict[str, int]]]


@pytest.fixture(scope="module")
def device() -> Iterator[RtlDevice]:
    made = RtlDevice(TINY)
    yield made
    made.close()


def fault_of(device: RtlDevice, code: Code) -> tuple[FaultCode, int] | None:
    """Code and index of the fault that a program ends with, if it does."""
    plan = WindowPlan(window_bytes=1 << 15, program_offset=1 << 14)
    device.load(Program.build(device.config, [*code, (Op.FINISH, {})], plan))
    try:
        device.launch()
    except Fault as fault:
        return fault.code, fault.index
    return None


def accesses(begin: int) -> tuple[set[int], set[int]]:
    """Edges at which ROW reads and writes, started at edge `begin`."""
    slots, entries = row_round_slots(TINY, ROW["columns"]), row_entries(TINY, ROW["columns"])
    places = [(row, entry) for row in range(ROW["rows"]) for entry in range(entries)]
    at = {(place, stage): begin + 1 + (place[0] + stage) * slots + 4 * place[1] + READS[stage]
          for place in places for stage in READS}  # fmt: skip
    return set(at.values()), {edge + 20 for (_, stage), edge in at.items() if stage == 3}


def test_compute_meets_every_read_and_every_write(device: RtlDevice) -> None:
    """One slot of ALU, a cycle later each time, behind slots that keep to the other bank."""
    # The first ALU starts at edge 0, ROW as many edges behind it as an instruction has beats.
    reads, writes = accesses(INSTRUCTION_BYTES // TINY.bus_bytes)
    expected, found = set[int](), set[int]()
    for slots in range(2 * INSTRUCTION_BYTES // TINY.bus_bytes, 5 * row_round_slots(TINY, ROW["columns"]) + 20):
        if slots + 7 in reads or slots + 11 in writes:
            expected.add(slots)
        code: Code = [(Op.ALU, {**ALU, "iter_in": slots, "dst_base": BANK}), (Op.ROW, ROW), (Op.ALU, ALU)]
        fault = fault_of(device, code)
        if fault is not None:
            assert fault == (FaultCode.ACC_BANK, 1)
            found.add(slots)
    assert found == expected and len(found) > 12


@pytest.mark.parametrize(
    "other",
    [
        (Op.ALU, {**ALU, "iter_in": 600}),
        (Op.REQUANT, {"form": Form.PASS, "iter_in": 600, "clip_hi": 1}),
        (Op.REQUANT, {"form": Form.PASS, "dst": Dst.ACC, "acc_base": DEFAULT.acc_bank_depth, "iter_in": 600}),
        (Op.LOAD, {"mem": Mem.ACC, "z": 300}),
    ],
    ids=["alu", "requant_reads", "requant_writes", "load"],
)
def test_the_earlier_instruction_is_at_fault(other: tuple[Op, dict[str, int]]) -> None:
    """Who reads or writes a bank in every cycle, in front of ROW and behind it, and ROW in a bank of its own."""
    device = RtlDevice(DEFAULT)
    row = {**ROW, "columns": 2 * DEFAULT.block_out}
    assert fault_of(device, [other, (Op.ROW, row)]) == (FaultCode.ACC_BANK, 0)
    assert fault_of(device, [(Op.ROW, row), other]) == (FaultCode.ACC_BANK, 0)
    apart = {**row, "acc_base": 2 * DEFAULT.acc_bank_depth}
    assert fault_of(device, [other, (Op.ROW, apart)]) is None
