"""The model of cycles: what documents say of each instruction, modules side by side, tokens in order."""

from __future__ import annotations

import pytest

from relay_hw.vta import make
from relay_hw.vta.geometry import Buffer
from relay_hw.vta.isa import Alu, AluOp, Finish, Flags, Gemm, Insn, Loops, Memory, Op, encode
from relay_hw.vta.session import Simulated
from relay_hw.vta.sim.cycles import modelled_cycles
from relay_hw.vta.sim.state import SimulationError
from tests.relay_hw.vta.networks import sensitive
from tests.relay_hw.vta.test_region import data_of, program_of

LOOPS = Loops(0, 4, 5, 6, 0, 0, 0, 0)


def cycles(*program: Insn, config: str = "pynq") -> int:
    geometry = make(config).geometry
    return modelled_cycles(encode(program, geometry), geometry)


def load(rows: int, buffer: Buffer = Buffer.INP, **flags: bool) -> Memory:
    return Memory(Op.LOAD, buffer, 0, 0, rows, 8, 8, flags=Flags(**flags))


@pytest.mark.parametrize(
    ("insn", "config", "want"),
    [
        # 16 bytes of an instruction come first, two cycles on a bus of 8 bytes and one on a bus of 16.
        (Gemm(LOOPS), "pynq", 2 + 120),
        (Gemm(LOOPS), "ultra96", 1 + 120),
        (Alu(LOOPS, AluOp.MAX, use_imm=True), "pynq", 2 + 240),
        (Alu(LOOPS, AluOp.MAX, use_imm=True), "de10nano", 2 + 120),
        (Alu(LOOPS, AluOp.MAX), "de10nano", 2 + 240),
        (load(10), "pynq", 2 + 10 * 8 * 16 // 8),
        (load(10, Buffer.WGT), "ultra96", 1 + 10 * 8 * 256 // 16),
        (load(10, Buffer.UOP), "pynq", 2 + 8 * 4 // 8),
        (Memory(Op.STORE, Buffer.OUT, 0, 0, 3, 8, 8), "pynq", 2 + 3 * 8 * 16 // 8),
    ],
)
def test_one_instruction(insn: Insn, config: str, want: int) -> None:
    assert cycles(insn, Finish(), config=config) == want


def test_modules_run_side_by_side_until_a_token_is_missing() -> None:
    apart = cycles(load(10), Gemm(LOOPS), Finish())
    assert apart == 2 + 160
    behind = cycles(load(10, push_next=True), Gemm(LOOPS, flags=Flags(pop_prev=True)), Finish())
    assert behind == 2 + 160 + 120
    assert cycles(load(10), load(10), Finish()) == 2 + 320


def test_a_program_that_stands_still() -> None:
    with pytest.raises(SimulationError, match="must go on, not wait for tokens that nobody gives"):
        cycles(Gemm(LOOPS, flags=Flags(pop_prev=True)), Finish())


def test_a_launch_counts_them() -> None:
    """No fewer than its products and the words that it moves."""
    mod = sensitive()
    program = program_of(mod, "pynq")
    session = Simulated({"vta_0": program})
    (answer,) = session.run("vta_0", [[data_of(mod)]])
    stats = answer[1]
    assert stats is not None and stats.cycles is None
    counted = stats.counters
    least = max(counted["gemm_uops"] + counted["reset_uops"] + 2 * counted["alu_uops"], counted["wgt_bytes"] // 8)
    assert least <= counted["modelled_cycles"] < 2 * (least + sum(v for k, v in counted.items() if "_bytes" in k))
