"""Tests vta_core with a random AXI memory: random programs leave the window that the functional simulator leaves."""

from __future__ import annotations

from collections import deque

import cocotb
import numpy as np

from relay_hw.accel.isa.asm import assemble
from relay_hw.accel.isa.config import SEMAPHORE_MAX, load_config
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.spec import FaultCode
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, start, step
from relay_hw.accel.sim.functional import FunctionalDevice

BASE = 0x00400000


class Memory:
    """An AXI slave on the window: answers in order, later or sooner by chance."""

    def __init__(self, dut: Dut, window: np.ndarray, pace: float) -> None:
        self.dut, self.window, self.pace, self.random = dut, window, pace, rng()
        self.bus = len(dut.m_axi_rdata) // 8
        self.reads: deque[tuple[int, bool]] = deque()
        self.writes: deque[int] = deque()  # addresses whose data lack
        self.beats: deque[tuple[bytes, int]] = deque()  # data and last of beats whose address lacks
        self.responses = 0

    def drive(self) -> None:
        """Set this cycle's inputs."""
        dut, luck = self.dut, lambda: self.random.random() < self.pace
        dut.m_axi_arready.value, dut.m_axi_awready.value, dut.m_axi_wready.value = luck(), luck(), luck()
        valid = bool(self.reads) and luck()
        dut.m_axi_rvalid.value = valid
        if valid:
            at, last = self.reads[0]
            dut.m_axi_rdata.value = int.from_bytes(self.window[at : at + self.bus].tobytes(), "little")
            dut.m_axi_rlast.value = last
        dut.m_axi_bvalid.value = self.responses > 0 and luck()

    def sample(self) -> None:
        """Take what the core does with them, once outputs have settled."""
        dut = self.dut
        if get(dut.m_axi_rvalid) and get(dut.m_axi_rready):
            self.reads.popleft()
        if get(dut.m_axi_bvalid) and get(dut.m_axi_bready):
            self.responses -= 1
        if get(dut.m_axi_arvalid) and get(dut.m_axi_arready):
            at, beats = get(dut.m_axi_araddr) - BASE, get(dut.m_axi_arlen) + 1
            self.reads.extend((at + n * self.bus, n == beats - 1) for n in range(beats))
        if get(dut.m_axi_wvalid) and get(dut.m_axi_wready):
            self.beats.append((get(dut.m_axi_wdata).to_bytes(self.bus, "little"), get(dut.m_axi_wlast)))
        if get(dut.m_axi_awvalid) and get(dut.m_axi_awready):
            self.writes.append(get(dut.m_axi_awaddr) - BASE)
        while self.writes and self.beats:
            data, last = self.beats.popleft()
            at = self.writes[0]
            self.window[at : at + self.bus] = np.frombuffer(data, np.uint8)
            self.writes[0] += self.bus
            if last:
                self.writes.popleft()
                self.responses += 1


def expected_window(program: Program) -> np.ndarray:
    device = FunctionalDevice(load_config("tiny"))
    device.load(program)
    device.launch()
    return device.read(0, program.window_bytes)


async def run(dut: Dut, program: Program, pace: float) -> tuple[np.ndarray, int, tuple[int, int] | None]:
    """The window after the run, the instructions counted, and code and index of a fault."""
    device = FunctionalDevice(load_config("tiny"))
    device.load(program)
    memory = Memory(dut, device.read(0, program.window_bytes), pace)
    code = program.code
    inputs = ("m_axi_awready", "m_axi_wready", "m_axi_bvalid", "m_axi_berror", "m_axi_arready", "m_axi_rdata")
    await start(dut, **dict.fromkeys(inputs, 0), m_axi_rerror=0, m_axi_rlast=0, m_axi_rvalid=0, abort_soon_i=0,
                clear_i=0, run_i=0, watchdog_i=0, counter_i=0, window_base_i=BASE, window_bytes_i=program.window_bytes,
                program_i=code.offset, count_i=program.count)  # fmt: skip
    await step(dut)
    dut.run_i.value = 1
    for _ in range(100000):
        memory.drive()
        await settle()
        memory.sample()
        if get(dut.fault_stop_o):
            dut.run_i.value = 0
        if get(dut.fault_o):
            return memory.window, get(dut.instructions_o), (get(dut.fault_code_o), get(dut.fault_index_o))
        if get(dut.done_o) and not get(dut.fault_stop_o):
            await step(dut)
            return memory.window, get(dut.instructions_o), None
        await step(dut)
    raise AssertionError("the program did not end")


@cocotb.test()
async def runs_random_programs(dut: Dut) -> None:
    config = load_config("tiny")
    for seed, pace in ((1, 1.0), (2, 0.5), (3, 0.9), (4, 0.2)):
        program = random_program(config, seed, 24)
        window, instructions, fault = await run(dut, program, pace)
        assert fault is None and instructions == program.count
        assert (window == expected_window(program)).all(), f"seed {seed}"


@cocotb.test()
async def a_last_token_too_many_is_told(dut: Dut) -> None:
    """FINISH waits for the report: the instruction before it gives the token that does not fit."""
    for line in (
        "load mem=inp z=1 set=s3",
        "alu alu_op=add use_imm=1 imm=1 iter_in=1 uop_end=1 set=s3",
        "requant form=pass clip_lo=-128 clip_hi=127 iter_in=1 acc_in=1 dst_in=1 set=s3",
        "store mem=out dram=0x40 z=1 set=s3",
        "row kind=rms_norm rows=1 columns=1 set=s3",
    ):
        before = ["load mem=uop z=1 set=s0", f"{line} wait=s0"] if line.startswith("alu") else [line]
        for more in (0, 1):
            lines = [*before, *[line] * (SEMAPHORE_MAX - 1 + more)]
            sections = [".config tiny", ".section zeros input 0x0 64", ".section out output 0x40 64"]
            program = assemble("\n".join([*sections, *lines, "finish", ""]))
            fault = (await run(dut, program, 1.0))[2]
            assert fault == ((FaultCode.TOKEN_OVERFLOW, len(lines) - 1) if more else None), line
