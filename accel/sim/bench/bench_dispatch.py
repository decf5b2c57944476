"""Tests vta_dispatch: order, the right queue, back-pressure, FINISH, and faults at the right index."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.spec import BY_OP, Mem, Op, Unit
from relay_hw.accel.sim.bench.bench_dma_walk import merged
from relay_hw.accel.sim.bench.bench_once import once_of
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step
from relay_hw.accel.sim.bench.instructions import Sizes, block_of, first_beat, flawed, legal, ops_of, sizes_of, word_of

# Index, unit, instruction, the beats of its transfer: one piece, its length, the first; its loops of one step.
Pushed = tuple[int, int, int, tuple[int, int, int], int]


async def feed(dut: Dut, words: list[int], count: int, cycles: int = 4000) -> tuple[list[Pushed], int | None]:
    """Present `words`; returns what was pushed, in order, and the cycle of done, until done or fault."""
    random = rng()
    zero = dict.fromkeys(("insn_valid_i", "insn_i", "full_i", "quiet_i"), 0)
    await start(dut, **zero, run_i=1, count_i=count)
    waiting: list[int] = list(words)
    pushed: list[Pushed] = []
    for cycle in range(cycles):
        valid = bool(waiting) and random.random() < 0.8
        full, quiet = random.getrandbits(5) & random.getrandbits(5), random.random() < 0.2
        dut.insn_valid_i.value, dut.full_i.value, dut.quiet_i.value = valid, full, quiet
        dut.insn_i.value = waiting[0] if valid else 0
        await settle()
        push = get(dut.push_o)
        assert not push & full, "a full queue is pushed"
        if push:
            pushed.append((get(dut.index_o), push, get(dut.insn_o), beats(dut), get(dut.once_o)))
        if get(dut.done_o):
            assert quiet
            return pushed, cycle
        if get(dut.fault_o):
            return pushed, None
        if get(dut.insn_pop_o):
            assert valid
            waiting.pop(0)
        await step(dut)
    raise AssertionError("neither done nor fault")


def beats(dut: Dut) -> tuple[int, int, int]:
    return get(dut.one_o), get(dut.length_o), get(dut.first_beat_o)


def check(sizes: Sizes, pushed: list[Pushed], program: list[tuple[Op, dict[str, int]]]) -> None:
    assert [entry[0] for entry in pushed] == list(range(len(pushed)))
    for (op, values), (_, unit, word, got, once) in zip(program, pushed, strict=False):
        assert word == word_of(op, values)
        assert unit == 1 << Unit(BY_OP[op].unit or 0)
        if op in (Op.LOAD, Op.STORE, Op.GATHER):
            x_one, y_one, run = merged(block_of(sizes, values))
            assert got == (x_one | y_one << 1, run // sizes.bus - 1, first_beat(sizes, values))
        if op in (Op.GEMM, Op.ALU, Op.REQUANT):
            assert once >> 2 == once_of(op, values) >> 2
        if op in (Op.GEMM, Op.ALU):
            assert once == once_of(op, values)


@cocotb.test()
async def keeps_order_and_finishes_when_quiet(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    for length in (0, 1, 2, 40, 200):
        ops = [random.choice([op for op in ops_of(sizes) if op is not Op.FINISH]) for _ in range(length)]
        program = [(op, legal(random, sizes, op)) for op in ops]
        words = [word_of(op, values) for op, values in program] + [word_of(Op.FINISH, {})]
        pushed, done = await feed(dut, words, length + 1)
        assert done is not None and len(pushed) == length
        check(sizes, pushed, program)


@cocotb.test()
async def counts_the_beats_of_tall_images(dut: Dut) -> None:
    """A row for each beat of INP, each as long as a row may be: far more beats than a scratchpad holds."""
    sizes, mask = sizes_of(dut), (1 << parameter(dut, "LENGTH_W")) - 1
    beat = max(1, sizes.bus // sizes.elements[Mem.INP])
    values = {"y": sizes.depths[Mem.INP] // beat, "x": 1, "run": 1, "pitch": beat, "row_bytes": 4096}
    values |= {"dram": 0, "sram": 0, "y_stride": 4096}
    pushed, _ = await feed(dut, [word_of(Op.GATHER, values), word_of(Op.FINISH, {})], 2)
    check(sizes, pushed, [(Op.GATHER, values)])
    assert pushed[0][3][1] == values["y"] * 4096 // sizes.bus - 1 < mask


@cocotb.test()
async def faults_at_the_flawed_instruction(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    for _ in range(25):
        length = random.randrange(6)
        ops = [random.choice([op for op in ops_of(sizes) if op is not Op.FINISH]) for _ in range(length)]
        program = [(op, legal(random, sizes, op)) for op in ops]
        word, _, code = flawed(random, sizes, random.choice(ops_of(sizes)))
        words = [word_of(op, values) for op, values in program] + [word, word_of(Op.FINISH, {})]
        pushed, done = await feed(dut, words, length + 2)
        assert done is None
        check(sizes, pushed, program)
        assert (get(dut.index_o), get(dut.code_o)) == (length, code)


@cocotb.test()
async def finish_must_be_the_last(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    gemm = word_of(Op.GEMM, legal(random, sizes, Op.GEMM))
    _, done = await feed(dut, [gemm, word_of(Op.FINISH, {}), gemm], 3)
    assert done is None and (get(dut.index_o), get(dut.code_o)) == (1, FaultCode.ILLEGAL_FIELD)
    _, done = await feed(dut, [gemm, gemm], 2)
    assert done is None and (get(dut.index_o), get(dut.code_o)) == (2, FaultCode.ILLEGAL_OPCODE)
