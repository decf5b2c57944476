"""Tests vta_front: instructions come out of the queues in order, each at its unit, from a memory that is slow."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.spec import BY_OP, Op, Unit, encode
from relay_hw.accel.sim.bench.bench_dma_walk import merged
from relay_hw.accel.sim.bench.bench_once import once_of
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step
from relay_hw.accel.sim.bench.instructions import block_of, first_beat, legal, ops_of, sizes_of, word_of

UNITS = {unit: unit.name.lower() for unit in Unit}
OFFSET = 0x1240 & ~31


@cocotb.test()
async def queues_hold_the_program_in_order(dut: Dut) -> None:
    random, sizes = rng(), sizes_of(dut)
    bus = parameter(dut, "AXI_DATA_BITS") // 8
    for length in (0, 3, 60):
        ops = [random.choice([op for op in ops_of(sizes) if op is not Op.FINISH]) for _ in range(length)]
        program = [(op, legal(random, sizes, op)) for op in ops]
        words = [word_of(op, values) for op, values in program] + [encode(Op.FINISH, {})]
        code = b"".join(word.to_bytes(32, "little") for word in words)
        zero = dict.fromkeys(("fetch_ready_i", "fetch_beat_i", "rdata_i", "rerror_i", "start_i", "idle_i"), 0)
        window = {"window_bytes_i": OFFSET + len(code), "program_i": OFFSET, "count_i": length + 1}
        await start(dut, **zero, **window, run_i=0)
        dut.run_i.value = 1
        await settle()
        expected = {unit: [i for i, op in enumerate(ops) if BY_OP[op].unit is unit] for unit in Unit}
        beats: list[bytes] = []
        done = 0
        for _ in range(20000):
            ready, slow = random.random() < 0.5, random.random() < 0.3
            deliver = bool(beats) and not slow
            dut.fetch_ready_i.value, dut.fetch_beat_i.value = ready, deliver
            dut.rdata_i.value = int.from_bytes(beats.pop(0), "little") if deliver else 0
            heads = get(dut.head_o)
            pops = heads & random.getrandbits(5) & random.getrandbits(5)
            for unit, name in UNITS.items():
                if pops >> unit & 1:
                    check(dut, name, expected[unit].pop(0), words, program, sizes)
            dut.start_i.value = pops
            dut.idle_i.value = 31 if random.random() < 0.5 else random.randrange(31)
            if ready and get(dut.fetch_valid_o):
                begin = get(dut.fetch_offset_o) - OFFSET
                end = begin + get(dut.fetch_beats_o) * bus
                assert 0 <= begin < end <= len(code)
                beats += [code[at : at + bus] for at in range(begin, end, bus)]
            assert not get(dut.dispatch_fault_o) and not get(dut.fetch_range_o) and not get(dut.fetch_error_o)
            await settle()
            done = get(dut.done_o)
            await step(dut)
            if done:
                break
        assert done and get(dut.idle_i) == 31 and not any(expected.values())
        assert get(dut.dispatch_index_o) == length + 1


def check(dut: Dut, name: str, index: int, words: list[int], program: list, sizes) -> None:
    assert get(getattr(dut, f"{name}_index_o")) == index
    assert get(getattr(dut, f"{name}_insn_o")) == words[index]
    if name == "compute":
        assert get(dut.compute_once_o) == once_of(*program[index])
    if name == "output":
        assert get(dut.output_once_o) == once_of(*program[index]) >> 2
    if name in ("load", "store"):
        values = program[index][1]
        x_one, y_one, run = merged(block_of(sizes, values))
        assert get(getattr(dut, f"{name}_one_o")) == x_one | y_one << 1
        assert get(getattr(dut, f"{name}_length_o")) == (run // sizes.bus - 1) % (1 << parameter(dut, "BEATS_W"))
        assert get(getattr(dut, f"{name}_first_o")) == first_beat(sizes, values)
