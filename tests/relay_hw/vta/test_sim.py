"""VTA's simulator: instructions against loops in plain Python, each disagreement of its implementations, its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from relay_hw.vta.geometry import Buffer, Core, Geometry, load_geometry
from relay_hw.vta.isa import Alu, AluOp, Finish, Flags, Gemm, Insn, Loops, Memory, Op, Queue, encode, encode_uops
from relay_hw.vta.sim.arith import alu, gemm
from relay_hw.vta.sim.checker import CheckError, check
from relay_hw.vta.sim.choices import CHOICES, Choices, Shift
from relay_hw.vta.sim.machine import run
from relay_hw.vta.sim.memory import load, store
from relay_hw.vta.sim.state import Dram, SimulationError, State, new_state

SMALL = load_geometry("small")


def machine(geometry: Geometry = SMALL, size: int = 1 << 16) -> State:
    data = np.random.default_rng(7).integers(0, 256, size).astype(np.uint8)
    return new_state(geometry, Dram(data))


def with_uops(state: State, uops: Sequence[Sequence[int]]) -> State:
    state.uop[: len(uops)] = encode_uops(np.array(uops), state.geometry)
    return state


def random_loops(rng: np.random.Generator, count: int) -> Loops:
    out, inner = (int(n) for n in rng.integers(1, 4, 2))
    return Loops(0, count, out, inner, *(int(n) for n in rng.integers(0, 9, 4)))


@pytest.mark.parametrize("name", ["small", "pynq_4x8"])
def test_gemm_is_one_micro_op_after_the_other(name: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        state = machine(load_geometry(name))
        uops = rng.integers(0, (60, 60, 8), (5, 3))
        loops = random_loops(rng, 5)
        factors = [0, 0] if rng.integers(2) else [int(n) for n in rng.integers(0, 4, 2)]
        insn = Gemm(loops, *factors, reset=not rng.integers(4))
        want, low = state.acc.astype(np.int64), state.out.copy()
        for i in range(loops.iter_out):
            for j in range(loops.iter_in):
                for a, x, w in uops:
                    a += i * loops.dst_factor_out + j * loops.dst_factor_in
                    x += i * loops.src_factor_out + j * loops.src_factor_in
                    w += i * factors[0] + j * factors[1]
                    for row in range(state.geometry.batch):
                        products = state.wgt[w].astype(np.int64) * state.inp[x, row].astype(np.int64)
                        want[a, row] = 0 if insn.reset else want[a, row] + products.sum(1)
                    low[a] = want[a].astype(np.int8)
        gemm(with_uops(state, uops.tolist()), insn)
        np.testing.assert_array_equal(state.acc, want.astype(np.int32))
        np.testing.assert_array_equal(state.out, low)


@pytest.mark.parametrize("opcode", list(AluOp))
def test_alu_is_one_micro_op_after_the_other(opcode: AluOp) -> None:
    rng = np.random.default_rng(opcode)
    functions = {
        AluOp.MIN: min,
        AluOp.MAX: max,
        AluOp.ADD: lambda a, b: a + b,
        AluOp.SHR: lambda a, b: a >> b if b >= 0 else a << -b,
        AluOp.MUL: lambda a, b: a * b,
    }
    for _ in range(40):
        state = machine()
        state.acc[:] = rng.integers(-40, 40, state.acc.shape)
        uops = rng.integers(0, (40, 40, 1), (4, 3))
        loops = random_loops(rng, 4)
        insn = Alu(loops, opcode, bool(rng.integers(2)), int(rng.integers(-20, 20)))
        want = state.acc.astype(object)
        for i in range(loops.iter_out):
            for j in range(loops.iter_in):
                for a, b, _ in uops:
                    a += i * loops.dst_factor_out + j * loops.dst_factor_in
                    b += i * loops.src_factor_out + j * loops.src_factor_in
                    for lane in range(state.geometry.block):
                        right = insn.imm if insn.use_imm else want[b, 0, lane]
                        right = max(min(int(right), 1 << 9), -(1 << 9)) if opcode is AluOp.SHR else int(right)
                        whole = functions[opcode](int(want[a, 0, lane]), right)
                        want[a, 0, lane] = (whole + (1 << 31)) % (1 << 32) - (1 << 31)
        alu(with_uops(state, uops.tolist()), insn, Choices(multiplies=True))
        np.testing.assert_array_equal(state.acc, want.astype(np.int64).astype(np.int32))


@pytest.mark.parametrize("pads", [(2, 0, 0, 0), (0, 2, 0, 0), (0, 0, 2, 0), (0, 0, 0, 2), (1, 1, 1, 1)])
def test_a_padded_load(pads: tuple[int, int, int, int]) -> None:
    state = machine()
    load(state, Memory(Op.LOAD, Buffer.INP, 7, 4, 3, 5, 9, *pads), Choices())
    rows = state.dram.data.view(np.int8).reshape(-1, 16)
    image = np.stack([rows[4 + 9 * y : 9 + 9 * y] for y in range(3)])
    want = np.pad(image, ((pads[0], pads[1]), (pads[2], pads[3]), (0, 0))).reshape(-1, 1, 16)
    np.testing.assert_array_equal(state.inp[7 : 7 + len(want)], want)


def test_a_store_of_what_was_loaded_is_stale_in_hardware() -> None:
    """Disagreement 1: only fsim reads ACC when it stores."""
    for core, is_stale in ((Core.HLS, True), (Core.CHISEL, True), (Core.FSIM, False)):
        state = machine()
        load(state, Memory(Op.LOAD, Buffer.ACC, 0, 8, 1, 1, 1), CHOICES[core])
        store(state, Memory(Op.STORE, Buffer.OUT, 0, 0, 1, 1, 1), CHOICES[core])
        low = state.acc[0].astype(np.int8).reshape(-1)
        assert (state.dram.data[:16].view(np.int8) != low).any() == is_stale
        nothing = Alu(Loops(0, 1, 1, 1, 0, 0, 0, 0), AluOp.SHR, True, 0)
        alu(with_uops(state, [(0, 0, 0)]), nothing, CHOICES[core])
        store(state, Memory(Op.STORE, Buffer.OUT, 0, 0, 1, 1, 1), CHOICES[core])
        np.testing.assert_array_equal(state.dram.data[:16].view(np.int8), low)


@pytest.mark.parametrize(
    ("shift", "amount", "is_imm", "want"),
    [
        (Shift.FULL, 20, True, 0),
        (Shift.FIVE_BITS, 20, True, -24576 << 12),
        (Shift.RIGHT, 20, True, -1),
        (Shift.FULL, -2, False, -98304),
        (Shift.FIVE_BITS, -2, False, -98304),
        (Shift.RIGHT, -2, False, -1),
        (Shift.RIGHT, -2, True, -98304),
    ],
)
def test_shifts_differ(shift: Shift, amount: int, is_imm: bool, want: int) -> None:
    """Disagreement 2."""
    state = with_uops(machine(), [(0, 1, 0)])
    state.acc[0], state.acc[1] = -24576, amount
    alu(state, Alu(Loops(0, 1, 1, 1, 0, 0, 0, 0), AluOp.SHR, is_imm, amount if is_imm else 0), Choices(shift=shift))
    assert (state.acc[0] == (want or -1)).all()


def test_what_only_some_have() -> None:
    """Disagreements 3 to 7."""
    multiply = Alu(Loops(0, 1, 1, 1, 0, 0, 0, 0), AluOp.MUL, True, 3)
    for core in (Core.HLS, Core.CHISEL):
        with pytest.raises(SimulationError, match="the ALU must have MUL where a program uses it"):
            alu(with_uops(machine(), [(0, 0, 0)]), multiply, CHOICES[core])
        with pytest.raises(SimulationError, match="LOAD must be to a buffer that it fills, not to ACC_8BIT"):
            load(machine(), Memory(Op.LOAD, Buffer.ACC_8BIT, 0, 0, 1, 1, 1), CHOICES[core])
    state = machine()
    load(state, Memory(Op.LOAD, Buffer.ACC_8BIT, 0, 1, 1, 1, 1), CHOICES[Core.FSIM])
    assert state.acc[0, 0].tolist() == state.dram.data[16:32].view(np.int8).tolist()
    for core, buffer in ((Core.HLS, Buffer.WGT), (Core.OPENCL, Buffer.ACC)):
        state = machine()
        load(state, Memory(Op.LOAD, buffer, 0, 1, 1, 1, 1, 1), CHOICES[core])
        size = SMALL.entry_bytes(buffer)
        assert state.of(buffer)[0].tobytes() == state.dram.data[size : 2 * size].tobytes()
    state = with_uops(machine(load_geometry("pynq_4x8")), [(0, 0, 0)])
    before = state.acc[0].copy()
    alu(state, Alu(Loops(0, 1, 1, 1, 0, 0, 0, 0), AluOp.ADD, True, 1), CHOICES[Core.CHISEL])
    assert (state.acc[0] - before).tolist() == [[1] * 8, [0] * 8, [0] * 8, [0] * 8]
    with pytest.raises(SimulationError, match="micro-ops must be below 2048, not 2048"):
        gemm(machine(load_geometry("de10nano")), Gemm(Loops(2048, 2049, 1, 1, 0, 0, 0, 0), reset=True))


def nops(queue: Queue, flags: Flags, count: int = 1) -> list[Insn]:
    buffers = {Queue.LOAD: Buffer.INP, Queue.COMPUTE: Buffer.UOP, Queue.STORE: Buffer.OUT}
    op = Op.STORE if queue is Queue.STORE else Op.LOAD
    return [Memory(op, buffers[queue], 0, 0, 0, 0, 0, flags=flags)] * count


def test_tokens_are_lost_or_block() -> None:
    """Disagreement 8: Chisel's counters hold 255."""
    gives = nops(Queue.LOAD, Flags(push_next=True), 300)
    takes = nops(Queue.COMPUTE, Flags(pop_prev=True), 300)
    words = encode([*gives, *takes, Finish()], SMALL)
    assert run(words, machine(), CHOICES[Core.HLS])["instructions"] == 601
    with pytest.raises(SimulationError, match="the program must go on: compute at LOAD pop_prev UOP"):
        run(words, machine(), CHOICES[Core.CHISEL])
    assert run(words, machine(), replace(CHOICES[Core.CHISEL], most_tokens=300))["instructions"] == 601


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ([], "a program must end in its one FINISH"),
        ([Finish(), Finish()], "a program must end in its one FINISH"),
        ([*nops(Queue.LOAD, Flags(pop_next=True)), Finish()], "FINISH must leave nothing behind, not 1 instructions"),
        ([*nops(Queue.LOAD, Flags(push_next=True)), Finish()], "leave nothing behind, not 0 instructions and 1 tokens"),
        ([*nops(Queue.LOAD, Flags(pop_prev=True)), Finish()], "flags of the load module must be those of a neighbour"),
        ([*nops(Queue.STORE, Flags(push_next=True)), Finish()], "flags of the store module must be those of a neighb"),
        ([Memory(Op.LOAD, Buffer.INP, 511, 0, 1, 2, 2), Finish()], "entries of INP must be below 512, not 512"),
        ([Memory(Op.LOAD, Buffer.INP, 0, 4096, 1, 1, 1), Finish()], r"must be in \[0x0, 0x10000\), not 0x10000"),
        ([Memory(Op.LOAD, Buffer.OUT, 0, 0, 1, 1, 1), Finish()], "LOAD must be to a buffer that it fills, not to OUT"),
        ([Memory(Op.STORE, Buffer.INP, 0, 0, 1, 1, 1), Finish()], "STORE must be from OUT, not from INP"),
        ([Memory(Op.STORE, Buffer.OUT, 128, 0, 1, 1, 1), Finish()], "entries of OUT must be below 128, not 128"),
    ],
)
def test_what_has_no_meaning(program: list[Insn], message: str) -> None:
    first = (Queue.LOAD, Queue.STORE, Queue.COMPUTE)
    with pytest.raises(SimulationError, match=message):
        run(encode(program, SMALL), machine(), Choices(first=first))


LOAD_INP = Memory(Op.LOAD, Buffer.INP, 0, 0, 1, 4, 4)
LOAD_WGT = Memory(Op.LOAD, Buffer.WGT, 0, 0, 1, 1, 1)
LOAD_UOP = Memory(Op.LOAD, Buffer.UOP, 0, 4096, 1, 1, 1)
LOOP = Loops(0, 1, 1, 4, 0, 1, 0, 1)
STORE = Memory(Op.STORE, Buffer.OUT, 0, 1024, 1, 4, 4)


def product(tokens: bool = True) -> list[Insn]:
    """Four entries times one block, stored."""
    end = Memory(Op.LOAD, Buffer.UOP, 0, 0, 0, 0, 0, flags=Flags(pop_next=True))
    return [
        LOAD_UOP,
        LOAD_INP,
        replace(LOAD_WGT, flags=Flags(push_next=True)),
        Gemm(LOOP, reset=True),
        Gemm(LOOP, flags=Flags(pop_prev=tokens, push_next=True)),
        replace(STORE, flags=Flags(pop_prev=True, push_prev=True)),
        end,
        Finish(),
    ]


def prepared() -> State:
    state = machine()
    state.dram.data[4096 * 4 : 4096 * 4 + 4] = 0
    return state


def test_a_program_that_is_ordered() -> None:
    words = encode(product(), SMALL)
    check(words, prepared())
    for core in Core:
        for first in ((Queue.LOAD, Queue.COMPUTE, Queue.STORE), (Queue.STORE, Queue.COMPUTE, Queue.LOAD)):
            state = prepared()
            inp = state.dram.data[:64].view(np.int8).reshape(4, 16).astype(np.int32)
            wgt = state.dram.data[:256].view(np.int8).reshape(16, 16).astype(np.int32)
            counts = run(words, state, replace(CHOICES[core], first=first))
            found = state.dram.data[1024 * 16 : 1024 * 16 + 64]
            np.testing.assert_array_equal(found.view(np.int8).reshape(4, 16), (inp @ wgt.T).astype(np.int8))
            assert counts["gemm_uops"] == counts["reset_uops"] == 4 and counts["inp_bytes"] == counts["store_bytes"]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (product()[:-1], "a program must end in FINISH"),
        (product(tokens=False), "tokens must order compute and load at INP, not leave it open: GEMM push_next"),
        ([*product()[:-2], Finish()], "FINISH must leave no token behind, not 1"),
        ([*product()[:4], Finish()], "FINISH must leave no token behind, not 1"),
        ([*product()[:-1], *product()[6:]], "the program must end: compute waits at LOAD pop_next UOP"),
        ([LOAD_INP, Finish()], "FINISH must wait for the load module"),
        ([STORE, Finish()], "entries of OUT must be written before they are read: STORE OUT"),
        ([LOAD_UOP, Gemm(replace(LOOP, dst_factor_in=60)), Finish()], "entries of ACC must be below 128, not 180"),
        ([replace(LOAD_INP, sram_base=510), Finish()], "entries of INP must be below 512, not 513"),
        ([*nops(Queue.LOAD, Flags(pop_prev=True)), Finish()], "flags of the load module must be those of a neighbour"),
    ],
)
def test_what_the_checker_finds(program: list[Insn], message: str) -> None:
    with pytest.raises(CheckError, match=message):
        check(encode(program, SMALL), prepared())


def test_a_load_of_what_is_being_stored_is_a_race() -> None:
    late = Memory(Op.LOAD, Buffer.INP, 8, 1024, 1, 1, 1, flags=Flags(push_next=True))
    waits = Memory(Op.LOAD, Buffer.UOP, 0, 0, 0, 0, 0, flags=Flags(pop_prev=True))
    with pytest.raises(CheckError, match=r"tokens must order (load and store|store and load) at DRAM"):
        check(encode([*product()[:-1], late, waits, Finish()], SMALL), prepared())
