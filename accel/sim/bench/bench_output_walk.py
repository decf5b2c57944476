"""Tests vta_output_walk against nested loops: slots of every form, holds, and indices outside their scratchpads."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import cocotb

from relay_hw.accel.isa.slots import VECTOR_SLOTS
from relay_hw.accel.isa.spec import Dst, Form, Op, encode
from relay_hw.accel.sim.bench.bench_once import once_of
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

IDLE = {"stop_i": 0, "hold_i": 0, "hold_start_i": 0}

Slot = tuple[int, int, int, int, int, int]  # read, prm, dst, group, second, last of the vector


def random_instruction(random: Random, dut: Dut, dsts: tuple[Dst, ...] = tuple(Dst)) -> dict[str, int]:
    """Fields of a REQUANT instruction into one of `dsts` that stays inside every scratchpad."""
    acc, out, prm = (parameter(dut, f"{name}_DEPTH") for name in ("ACC", "OUT", "PRM"))
    form, dst = random.choice(list(Form)), random.choice(dsts)
    steps = {key: random.randrange(6) for key in ("acc_out", "acc_in", "dst_out", "dst_in")}
    bases = {"acc_base": random.randrange(acc - 40), "res_base": random.randrange(acc - 40)}
    part, room = parameter(dut, "PART"), {Dst.OUT: out, Dst.ACC: acc, Dst.INP: parameter(dut, "INP_PARTS")}[dst]
    bases |= {"dst_base": random.randrange(room - 40)}
    if dst is Dst.INP:
        bases["dst_base"] -= bases["dst_base"] % part
        steps |= {key: steps[key] * part for key in ("dst_out", "dst_in")}
        bases["dst_base"] = min(bases["dst_base"], room - 40 * part)
    bases |= {"prm_base": random.randrange(prm - 8)}
    return {"form": form, "dst": dst, "set": random.getrandbits(16), "iter_out": random.choice((1, 2, 3)),
            "iter_in": random.choice((1, 3, 4)), "prm_out": random.randrange(3),
            "still": random.getrandbits(1), "table": random.randrange(256), "clip_lo": -5, "clip_hi": 9,
            **steps, **bases}  # fmt: skip


def expected_slots(v: dict[str, int], groups: int) -> Iterator[Slot]:
    for i in range(v["iter_out"]):
        for j in range(v["iter_in"]):
            at = i * v["acc_out"] + j * v["acc_in"]
            behind = i if v["still"] else at
            prm, dst = v["prm_base"] + i * v["prm_out"], v["dst_base"] + i * v["dst_out"] + j * v["dst_in"]
            reads = VECTOR_SLOTS[Form(v["form"])].of(groups) // groups
            for group in range(groups):
                end = group == groups - 1
                if reads == 1:
                    yield v["acc_base"] + at, prm, dst, group, 0, int(end)
                    continue
                yield v["acc_base"] + at, prm, dst, group, 0, 0
                yield v["res_base"] + behind, prm, dst, group, 1, int(end)


def told(values: dict[str, int]) -> dict[str, int]:
    """What says an instruction."""
    return {"insn_i": encode(Op.REQUANT, values), "once_i": once_of(Op.REQUANT, values) >> 2}


@cocotb.test()
async def walks_like_nested_loops(dut: Dut) -> None:
    random, groups = rng(), parameter(dut, "GROUPS")
    await start(dut, **IDLE, start_i=0, insn_i=0, once_i=0, index_i=0)
    waiting = [random_instruction(random, dut) for _ in range(60)]
    running: list[Slot] = []
    while waiting or running:
        hold = random.random() < 0.2
        dut.hold_i.value = dut.hold_start_i.value = hold
        ready = not running or (len(running) == 1 and not hold)
        go = bool(waiting) and ready and random.random() < 0.8
        dut.start_i.value = go
        if go:
            dut.insn_i.value = encode(Op.REQUANT, waiting[0])
            dut.once_i.value = once_of(Op.REQUANT, waiting[0]) >> 2
        await settle()
        assert get(dut.ready_o) == ready and not get(dut.fault_o)
        assert get(dut.slot_valid_o) == (bool(running) and not hold)
        if running and not hold:
            names = ("read_o", "prm_o", "dst_o", "group_o", "second_o", "vector_last_o")
            got = tuple(get(getattr(dut, name)) for name in names)
            assert got == running.pop(0)
            assert get(dut.insn_last_o) == (not running)
        if go:
            running += list(expected_slots(waiting.pop(0), groups))
        await step(dut)


@cocotb.test()
async def faults_outside_each_scratchpad(dut: Dut) -> None:
    random = rng()
    limits = {"acc_base": "ACC", "res_base": "ACC", "prm_base": "PRM", "dst_base": "OUT"}
    for key, memory in limits.items():
        for outside in (0, 1):
            values = random_instruction(random, dut, (Dst.OUT,)) | {"form": Form.ADD, "iter_out": 1, "iter_in": 1}
            values[key] = parameter(dut, f"{memory}_DEPTH") - 1 + outside
            await start(dut, **IDLE, start_i=1, **told(values), index_i=77)
            await step(dut)
            dut.start_i.value = 0
            await settle()
            assert get(dut.fault_o) == outside, f"{key} = {values[key]}"
            assert get(dut.slot_valid_o) == 1 - outside and get(dut.index_o) == 77


@cocotb.test()
async def faults_on_vectors_that_start_inside_an_output_block(dut: Dut) -> None:
    random, part, depth = rng(), parameter(dut, "PART"), parameter(dut, "INP_PARTS")
    for entry in (0, 1, part, part + 1, depth - part, depth):
        values = random_instruction(random, dut, (Dst.INP,)) | {"dst_base": entry, "iter_out": 1, "iter_in": 1}
        await start(dut, **IDLE, start_i=1, **told(values), index_i=7)
        await step(dut)
        dut.start_i.value = 0
        await settle()
        assert get(dut.fault_o) == (entry % part != 0 or entry >= depth), entry
        assert get(dut.to_inp_o) and not get(dut.to_acc_o)
