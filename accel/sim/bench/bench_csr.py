"""Tests vta_csr: the register map of the table, launch, done, fault, reset while busy, watchdog."""

from __future__ import annotations

import cocotb

from relay_hw.accel.isa.registers import REGISTER, REGISTERS
from relay_hw.accel.isa.spec import DEVICE_MAGIC, ISA_VERSION
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

INPUTS = ("write_i", "write_control_i", "write_addr_i", "write_data_i", "read_addr_i", "done_i", "drained_i",
          "fault_stop_i", "fault_i", "cycles_i", "instructions_i", "counter_ready_i", "counter_i")  # fmt: skip
IDLE = dict.fromkeys(INPUTS, 0)
MASKS = {"WINDOW_BASE": 0xFFFFF000, "PROGRAM": 0xFFFFFFE0}
BUSY, DONE, FAULT = 1, 2, 4


async def write(dut: Dut, name: str, value: int) -> None:
    dut.write_i.value, dut.write_addr_i.value, dut.write_data_i.value = 1, REGISTER[name].offset, value
    dut.write_control_i.value = name == "CONTROL"
    await step(dut)
    dut.write_i.value = 0


async def read(dut: Dut, name: str) -> int:
    dut.read_addr_i.value = REGISTER[name].offset
    await settle()
    assert get(dut.read_known_o), name
    return get(dut.read_data_o)


async def begin(dut: Dut) -> None:
    await start(dut, **IDLE, fault_code_i=0, fault_index_i=0)


@cocotb.test()
async def holds_the_register_map(dut: Dut) -> None:
    random = rng()
    await begin(dut)
    first, last = REGISTER["CYCLES"].offset, REGISTER["INSTRUCTIONS"].offset
    expected = {r.offset: random.getrandbits(32) for r in REGISTERS if r.offset >= first}
    if not parameter(dut, "ROW"):
        expected |= dict.fromkeys(row_counters(), 0)
    counters = {offset // 4 % 32: value for offset, value in expected.items() if first < offset < last}
    assert len(counters) == 18
    dut.cycles_i.value, dut.instructions_i.value = expected[first], expected[last]
    for register in REGISTERS:
        if register.access == "rw":
            expected[register.offset] = 0
    await holds(dut, expected, counters)
    expected |= {REGISTER["MAGIC"].offset: DEVICE_MAGIC, REGISTER["VERSION"].offset: ISA_VERSION}
    expected |= {REGISTER["CONFIG_HASH"].offset: parameter(dut, "CONFIG_HASH")}
    for register in REGISTERS:
        word = random.getrandbits(32)
        if register.access == "rw":
            await write(dut, register.name, word)
            expected[register.offset] = word & MASKS.get(register.name, 0xFFFFFFFF)
    await holds(dut, expected, counters)


def row_counters() -> list[int]:
    """Offsets of the counters of the row unit."""
    return [register.offset for register in REGISTERS if register.name.startswith("ROW_")]


async def holds(dut: Dut, expected: dict[int, int], counters: dict[int, int]) -> None:
    """Every register reads as expected, a counter once it has its turn; nothing else is there."""
    known = {register.offset: register for register in REGISTERS}
    for offset in range(0, 0x400, 4):
        dut.read_addr_i.value = dut.write_addr_i.value = offset
        await settle()
        assert get(dut.read_known_o) == (offset in known), hex(offset)
        writable = offset in known and known[offset].access != "ro"
        assert get(dut.write_known_o) == writable, hex(offset)
        waits = REGISTER["CYCLES"].offset < offset < REGISTER["INSTRUCTIONS"].offset
        waits &= bool(parameter(dut, "ROW")) or offset not in row_counters()
        assert get(dut.read_ready_o) == (not waits), hex(offset)
        if waits:
            dut.counter_ready_i.value, dut.counter_i.value = 1, counters[get(dut.counter_o)]
            await settle()
            assert get(dut.read_ready_o)
            dut.counter_ready_i.value = 0
        if offset in expected:
            assert get(dut.read_data_o) == expected[offset], known[offset].name


@cocotb.test()
async def launches_and_finishes(dut: Dut) -> None:
    await begin(dut)
    for _ in range(3):
        await write(dut, "COUNT", 7)
        dut.write_i.value, dut.write_addr_i.value, dut.write_data_i.value = 1, REGISTER["CONTROL"].offset, 1
        dut.write_control_i.value = 1
        await settle()
        assert get(dut.clear_o) and get(dut.soon_o) and not get(dut.run_o)
        await step(dut)
        dut.write_i.value = 0
        await settle()
        assert get(dut.run_o) and not get(dut.clear_o) and not get(dut.done_o)
        assert await read(dut, "STATUS") == BUSY
        await write(dut, "COUNT", 99)
        assert await read(dut, "COUNT") == 7, "registers hold while busy"
        dut.done_i.value = 1
        await step(dut)
        dut.done_i.value = 0
        await settle()
        assert get(dut.done_o) and not get(dut.run_o)
        assert await read(dut, "STATUS") == DONE


@cocotb.test()
async def stops_on_a_fault_until_drained(dut: Dut) -> None:
    await begin(dut)
    await write(dut, "CONTROL", 1)
    dut.fault_stop_i.value = dut.drained_i.value = 1
    await settle()
    assert not get(dut.run_o) and not get(dut.done_o)
    await step(dut)
    assert await read(dut, "STATUS") & 0xFF == BUSY, "which fault it was is not known yet"
    dut.drained_i.value = 0
    dut.fault_i.value, dut.fault_code_i.value, dut.fault_index_i.value = 1, 6, 1234
    await settle()
    assert not get(dut.run_o) and get(dut.done_o)
    assert await read(dut, "STATUS") == 6 << 8 | FAULT | BUSY
    await step(dut)
    dut.drained_i.value = 1
    await step(dut)
    assert await read(dut, "STATUS") == 6 << 8 | FAULT
    assert await read(dut, "FAULT_INDEX") == 1234


@cocotb.test()
async def resets_while_busy_after_draining(dut: Dut) -> None:
    await begin(dut)
    await write(dut, "CONTROL", 1)
    await write(dut, "CONTROL", 2)
    await settle()
    assert get(dut.abort_soon_o) and not get(dut.run_o) and not get(dut.clear_o)
    await step(dut)
    dut.drained_i.value = 1
    await settle()
    assert get(dut.clear_o) and not get(dut.abort_soon_o)
    await step(dut)
    dut.drained_i.value = 0
    assert await read(dut, "STATUS") == 0
    await settle()
    assert not get(dut.abort_soon_o)


@cocotb.test()
async def a_reset_as_the_program_ends_leaves_the_next_launch_alone(dut: Dut) -> None:
    await begin(dut)
    await write(dut, "CONTROL", 1)
    dut.done_i.value = dut.drained_i.value = 1
    await write(dut, "CONTROL", 2)
    dut.done_i.value = 0
    await settle()
    assert await read(dut, "STATUS") == 0 and not get(dut.abort_soon_o)
    await write(dut, "CONTROL", 1)
    await settle()
    assert get(dut.run_o) and await read(dut, "STATUS") == BUSY


@cocotb.test()
async def watchdog_bites_at_its_limit(dut: Dut) -> None:
    await begin(dut)
    for limit, cycles, bites in ((0, 1 << 31, 0), (0, 0, 0), (100, 99, 0), (100, 100, 1), (100, 200, 1)):
        await write(dut, "WATCHDOG", limit)
        await write(dut, "CONTROL", 1)
        dut.cycles_i.value = cycles
        await settle()
        assert get(dut.watchdog_o) == bites, f"{cycles} of {limit}"
        dut.done_i.value = 1
        await step(dut)
        dut.done_i.value = 0
        await settle()
        assert not get(dut.watchdog_o)
