"""Tests vta_top on cocotbext-axi's memory and master with random back-pressure: bytes, faults, reset, second launch."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from random import Random

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION
from relay_hw.accel.sim.bench.bench_core import BASE, expected_window
from relay_hw.accel.sim.bench.common import Dut, get, rng, start, step
from relay_hw.accel.sim.functional import FunctionalDevice

REGIMES = (0.0, 0.1, 0.5, 0.9)


class Bench:
    """The accelerator between a memory and a host."""

    def __init__(self, dut: Dut) -> None:
        self.dut = dut
        for name in ("m_axi", "s_axil"):
            logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.WARNING)
        reset = {"reset": dut.rst_ni, "reset_active_level": False}
        self.ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk_i, size=1 << 23, **reset)
        self.host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, **reset)

    async def begin(self) -> None:
        await start(self.dut)
        self.dut.rst_ni.value = 0
        for _ in range(4):
            await step(self.dut)
        self.dut.rst_ni.value = 1

    def stall(self, random: Random, regime: float) -> None:
        """Every channel pauses with the same probability, at moments of its own."""

        def pauses(seed: int) -> Iterator[bool]:
            own = Random(seed)
            while True:
                yield own.random() < regime

        write, read = self.ram.write_if, self.ram.read_if
        assert write is not None and read is not None
        for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
            channel.set_pause_generator(pauses(random.getrandbits(32)))

    async def get(self, name: str) -> int:
        return await self.host.read_dword(REGISTER[name].offset)

    async def set(self, name: str, value: int) -> None:
        await self.host.write_dword(REGISTER[name].offset, value)

    async def prepare(self, program: Program, window_bytes: int | None = None) -> None:
        device = FunctionalDevice(load_config("tiny"))
        device.load(program)
        self.ram.write(BASE, device.read(0, program.window_bytes).tobytes())
        code = program.code
        await self.set("WINDOW_BASE", BASE)
        await self.set("WINDOW_BYTES", program.window_bytes if window_bytes is None else window_bytes)
        await self.set("PROGRAM", code.offset)
        await self.set("COUNT", program.count)

    async def launch(self) -> int:
        """Run to done or fault; the status then, once the core is idle."""
        await self.set("CONTROL", 1)
        await with_timeout(RisingEdge(self.dut.done_o), 4, "ms")
        while (status := await self.get("STATUS")) & 1:
            pass
        return status

    def window(self, program: Program) -> bytes:
        data = self.ram.read(BASE, program.window_bytes)
        assert isinstance(data, bytes)
        return data


@cocotb.test()
async def runs_random_programs_under_back_pressure(dut: Dut) -> None:
    random, bench, config = rng(), Bench(dut), load_config("tiny")
    await bench.begin()
    assert await bench.get("MAGIC") == DEVICE_MAGIC
    assert await bench.get("VERSION") == ISA_VERSION
    assert await bench.get("CONFIG_HASH") == config.hash32
    for seed, regime in enumerate(REGIMES):
        bench.stall(random, regime)
        program = random_program(config, seed, 16)
        await bench.prepare(program)
        assert await bench.launch() == 0b010
        assert await bench.get("INSTRUCTIONS") == program.count
        assert bench.window(program) == expected_window(program).tobytes(), f"seed {seed}, regime {regime}"


@cocotb.test()
async def a_reset_forgets_an_answer_that_waits(dut: Dut) -> None:
    """Of a read and of a write: the host that asked was reset as well."""
    register = REGISTER["WATCHDOG"].offset
    await start(dut, s_axil_rready=0, s_axil_bready=0, s_axil_wdata=7, s_axil_wstrb=15)
    for asked, answer in ((("ar",), dut.s_axil_rvalid), (("aw", "w"), dut.s_axil_bvalid)):
        for channel in asked:
            getattr(dut, f"s_axil_{channel}valid").value = 1
            if channel != "w":
                getattr(dut, f"s_axil_{channel}addr").value = register
        for _ in range(20):
            await step(dut)
        assert get(answer) == 1
        for channel in asked:
            getattr(dut, f"s_axil_{channel}valid").value = 0
        dut.rst_ni.value = 0
        for _ in range(3):
            await step(dut)
        dut.rst_ni.value = 1
        for _ in range(30):
            await step(dut)
            assert get(answer) == 0, "an answer from before the reset"


@cocotb.test()
async def reports_faults_and_recovers(dut: Dut) -> None:
    random, bench, config = rng(), Bench(dut), load_config("tiny")
    await bench.begin()
    bench.stall(random, 0.3)
    program = random_program(config, 5, 16)
    offset = program.code.offset
    for index in (0, 5, program.count - 1):
        await bench.prepare(program)
        bench.ram.write(BASE + offset + 32 * index, b"\xee")
        status = await bench.launch()
        assert status == FaultCode.ILLEGAL_OPCODE << 8 | 0b100
        assert await bench.get("FAULT_INDEX") == index
    await bench.prepare(program, window_bytes=offset + 64)
    assert (await bench.launch()) >> 8 == FaultCode.DRAM_RANGE
    await bench.prepare(program)
    await bench.set("WATCHDOG", 50)
    assert (await bench.launch()) >> 8 == FaultCode.WATCHDOG
    await bench.set("WATCHDOG", 0)
    await bench.prepare(program)
    assert await bench.launch() == 0b010
    assert bench.window(program) == expected_window(program).tobytes()


@cocotb.test()
async def a_reset_in_the_middle_leaves_it_usable(dut: Dut) -> None:
    random, bench, config = rng(), Bench(dut), load_config("tiny")
    await bench.begin()
    bench.stall(random, 0.2)
    program = random_program(config, 6, 16)
    for _ in range(6):
        await bench.prepare(program)
        await bench.set("CONTROL", 1)
        for _ in range(random.randrange(1, 400)):
            await step(dut)
        await bench.set("CONTROL", 2)
        while await bench.get("STATUS"):
            pass
    await bench.prepare(program)
    assert await bench.launch() == 0b010
    assert bench.window(program) == expected_window(program).tobytes()
