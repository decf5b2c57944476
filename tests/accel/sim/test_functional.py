"""The functional device: tokens, queues, deadlocks, faults, launches, window, tensors, counters."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from relay_hw.accel.isa.asm import assemble
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError, ConfigError, DeadlockError, Fault, FaultCode, ProgramError
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.records import encode_uops
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.sim.device import LaunchStats, read_tensor, write_tensor
from relay_hw.accel.sim.dram_timing import MEMORY_MODELS, MemoryModel, Sdram, memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from tests.call_count import count_calls

TINY = load_config("tiny")
COPY = """
.config tiny
.section in input 0x0 64
.section out output 0x40 64
.tensor x in 0 int8 1x1x4x3 nhwc
.tensor y out 0 int8 1x1x4x3 nhwc
load mem=acc expand=1 dram=0 z=4 set=s0
requant form=pass zero_point=1 clip_lo=-128 clip_hi=127 iter_in=16 acc_in=1 dst_in=1 wait=s0 set=s1
store mem=out dram=0x40 z=4 wait=s1
finish
"""


def loaded(text: str, order: int | None = None) -> FunctionalDevice:
    device = FunctionalDevice(TINY, order_seed=order)
    device.load(assemble(text))
    return device


def test_tensors_go_in_and_come_out() -> None:
    device, program = loaded(COPY), assemble(COPY)
    x = np.arange(12, dtype=np.int8).reshape(1, 1, 4, 3)
    for _ in range(2):
        write_tensor(device, program, "x", x)
        stats = device.launch()
        assert (read_tensor(device, program, "y") == x + 1).all()
        x = x * np.int8(-3)
    assert stats.cycles is None
    assert stats.seconds > 0
    assert stats.counters == {
        "READ_BYTES": 64,
        "WRITE_BYTES": 64,
        "OUTPUT_VECTORS": 16,
        "INSTRUCTIONS": 4,
        "FETCH_BYTES": 128,
    }
    assert set(stats.counters) <= set(REGISTER)


def test_scratchpads_stay_between_programs_but_tokens_and_window_do_not() -> None:
    device = loaded(COPY)
    device.write(0, np.full(64, 7, np.uint8))
    device.launch()
    device.load(assemble(".config tiny\n.section out output 0 64\nstore mem=out dram=0 z=4\nfinish"))
    assert not device.read(0, 64).any()
    device.launch()
    assert (device.read(0, 64) == 8).all()
    leftover = ".config tiny\n.section a input 0 32\nload mem=inp z=1 set=s3\nfinish"
    device.load(assemble(leftover))
    device.launch()
    device.load(assemble(leftover.replace("set", "wait")))
    with pytest.raises(DeadlockError):
        device.launch()


def test_instructions_are_read_from_the_window() -> None:
    device, program = loaded(COPY), assemble(COPY)
    device.launch()
    other = assemble(COPY.replace("zero_point=1", "zero_point=5"))
    device.write(program.code.offset, np.frombuffer(other.code.data or b"", np.uint8))
    device.launch()
    assert (device.read(0x40, 12) == 5).all()


def test_window_accesses_are_checked() -> None:
    device = loaded(COPY)
    for offset, size in ((-1, 1), (4096, 1), (4095, 2), (0, -1)):
        with pytest.raises(ProgramError, match=r"window access must lie in \[0, 4096\), not \["):
            device.read(offset, size)
    with pytest.raises(ProgramError, match="window access must lie in"):
        device.write(4090, np.zeros(7, np.uint8))
    with pytest.raises(ProgramError, match="window data must be uint8 of one axis, not int8 of 1"):
        device.write(0, np.zeros(7, np.int8))  # pyright: ignore[reportArgumentType]
    copy = device.read(0, 4)
    copy[:] = 9
    assert not device.read(0, 4).any()


def test_what_cannot_be_launched() -> None:
    with pytest.raises(AccelError, match="a program must be loaded before it is launched"):
        FunctionalDevice(TINY).launch()
    with pytest.raises(ProgramError, match="program must be made for configuration default"):
        FunctionalDevice(load_config("default")).load(assemble(COPY))


def test_a_deadlock_names_units_and_semaphores() -> None:
    text = """
.config tiny
.section a output 0 32
load mem=uop z=1 set=s1
gemm uop_end=1 wait=s1,s4,s9
requant form=pass wait=s2
store mem=out z=1 wait=s1
finish
"""
    with pytest.raises(DeadlockError) as caught:
        loaded(text.replace("wait=s1\n", "wait=s7\n")).launch()
    assert str(caught.value) == (
        "deadlock: waiting for tokens that nobody gives: compute at instruction 1 (gemm) for s4,s9; "
        "output at instruction 2 (requant) for s2; store at instruction 3 (store) for s7"
    )


def test_a_full_queue_holds_up_the_instructions_behind_it() -> None:
    waiting = "load mem=inp z=1 wait=s0\n" + "load mem=inp z=1\n" * (TINY.queue_depth - 1)
    text = f".config tiny\n.section a output 0 32\n{waiting}store mem=out z=1 set=s0\nfinish"
    loaded(text).launch()
    with pytest.raises(DeadlockError, match="load at instruction 0"):
        loaded(text.replace("store", "load mem=inp z=1\nstore")).launch()


def test_tokens_are_taken_all_or_nothing() -> None:
    """LOAD 1 must not hold s0 while it waits for s1, which STORE gives after taking s0."""
    text = """
.config tiny
.section a output 0 32
load mem=inp z=1 set=s0
load mem=inp z=1 wait=s0,s1
store mem=out z=1 wait=s0 set=s0,s1
finish
"""
    for order in (None, 0, 1, 2, 3):
        loaded(text, order).launch()


def test_faults_carry_code_and_index_and_repeat() -> None:
    device = loaded(COPY.replace("dram=0x40 z=4", "dram=0xff0 z=4"))
    for _ in range(2):
        with pytest.raises(Fault, match="instruction 2: DRAM_RANGE: byte 4143 is outside 4096") as caught:
            device.launch()
        assert (caught.value.code, caught.value.index) == (FaultCode.DRAM_RANGE, 2)
    illegal = loaded(COPY.replace("finish", ".word 0\nfinish"))
    for _ in range(2):
        with pytest.raises(Fault, match="instruction 3: ILLEGAL_OPCODE: opcode must be one of"):
            illegal.launch()


@pytest.mark.parametrize("order", [None, 0, 7])
def test_the_semaphore_limit_is_255(order: int | None) -> None:
    text = ".config tiny\n.section a output 0 32\n" + "load mem=inp z=1 set=s5\n" * 255
    loaded(text + "finish", order).launch()
    with pytest.raises(Fault, match="TOKEN_OVERFLOW: semaphore 5 would pass 255") as caught:
        loaded(text + "load mem=inp z=1 set=s5\nfinish", order).launch()
    assert caught.value.index == 255


def test_a_large_convolution_is_fast() -> None:
    """14 x 14 x 128 by 3 x 3 to 256 channels, 58 million multiplications: no Python loop over micro-ops."""
    config = load_config("default")
    k = np.arange(72)
    uops = encode_uops(0, k % 9 // 3 * 16 + k % 3 + k // 9 * 200, k, k == 0)
    program = Program.build(config, [(Op.LOAD, {"mem": 4, "z": 36, "set": 1})]
        + [(Op.GEMM, {"overwrite": 1, "uop_end": 72, "iter_out": 14, "iter_in": 14, "acc_out": 14, "acc_in": 1,
                      "inp_out": 16, "inp_in": 1, "wait": int(n == 0)}) for n in range(16)]
        + [(Op.FINISH, {})], WindowPlan([Section("uops", SectionKind.UOPS, 0, 576, uops.tobytes())]))  # fmt: skip
    device = FunctionalDevice(config)
    device.load(program)
    launches: list[LaunchStats] = []
    steps = count_calls(lambda: launches.append(device.launch()))
    uops = launches[0].counters["GEMM_UOPS"]
    assert uops == 16 * 14 * 14 * 72
    assert steps < uops / 10


def test_memory_models() -> None:
    assert memory_model("standard") == MemoryModel(100, 1, 16, 16)
    assert memory_model("narrow") == MemoryModel(100, 1, 4, 4)
    assert set(MEMORY_MODELS) == {"standard", "narrow", "ulx3s", "colorlight"}
    with pytest.raises(ConfigError, match="memory model must be one of colorlight, narrow, standard, ulx3s, not fast"):
        memory_model("fast")
    with pytest.raises(ConfigError, match="beats_per_cycle must be 1, not 2"):
        MemoryModel(beats_per_cycle=2)
    for key in ("latency", "read_outstanding", "write_outstanding"):
        with pytest.raises(ConfigError, match=f"memory model: {key} must be from 1 to 65535, not 0"):
            replace(MemoryModel(), **{key: 0})
    for key in ("read_outstanding", "write_outstanding"):
        with pytest.raises(ConfigError, match=f"memory model: {key} must be 1 with SDRAM, not 2"):
            memory_model(f"ulx3s,{key}=2")


def test_memory_models_with_other_sizes() -> None:
    assert memory_model("standard,latency=7,read_outstanding=2") == MemoryModel(7, 1, 2, 16)
    changed, plain = memory_model("ulx3s, rcd=5,latency=9"), memory_model("ulx3s")
    assert plain.sdram is not None
    assert changed == replace(plain, latency=9, sdram=replace(plain.sdram, rcd=5))
    for text, message in (
        ("ulx3s,rcd", "memory model: rcd must be an integer, not nothing"),
        ("ulx3s,rcd=x", "memory model: rcd must be an integer, not x"),
        ("standard,rcd=2", "memory model: key must be one of beats_per_cycle, latency, read_outstanding, write_outs"),
        ("ulx3s,speed=2", "memory model: key must be one of bank_switch, banks, beats_per_cycle, column_bytes, "),
        ("ulx3s,banks=3", "memory model: banks must be a power of two from 1 to 65536, not 3"),
        ("ulx3s,row_bytes=0", "memory model: row_bytes must be a power of two from 1 to 65536, not 0"),
        ("ulx3s,turn=256", "memory model: turn must be from 0 to 255, not 256"),
        ("ulx3s,read_buffer=0", "memory model: read_buffer must be from 1 to 65535, not 0"),
        ("ulx3s,refresh_every=12", "memory model: refresh_every must be above refresh 12 and below 65536, not 12"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            memory_model(text)


def test_sdram_in_beats() -> None:
    sdram, config = Sdram(), load_config("tiny")
    assert [sdram.beat_cycles(config), sdram.read_room(config), sdram.write_room(config)] == [4, 16, 16]
    wide = replace(sdram, column_bytes=16, read_buffer=23, write_buffer=7)
    assert [wide.beat_cycles(config), wide.read_room(config), wide.write_room(config)] == [1, 2, 1]
