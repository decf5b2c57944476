"""Tests vta_axil between cocotbext-axi's master and a register model: data, partial writes, bad addresses, pauses."""

from __future__ import annotations

import logging
from itertools import cycle
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, start

KNOWN = range(0, 0x100, 4)
CONTROL = REGISTER["CONTROL"].offset


@cocotb.test()
async def reads_and_writes_registers(dut: Dut) -> None:
    random = rng()
    logging.getLogger(f"cocotb.{dut._name}.s_axil").setLevel(logging.WARNING)
    await start(dut, write_known_i=0, read_known_i=0, read_ready_i=0, read_data_i=0)
    dut.rst_ni.value = 0
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk_i, dut.rst_ni, reset_active_level=False)
    pattern = [random.random() < 0.4 for _ in range(97)]
    write, read = master.write_if, master.read_if
    assert write is not None and read is not None
    for channel in (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel, read.r_channel):
        channel.set_pause_generator(cycle(pattern[random.randrange(97) :] + pattern))
    registers: dict[int, int] = {}

    async def block() -> None:
        while True:
            await FallingEdge(dut.clk_i)
            await settle()
            dut.write_known_i.value = get(dut.write_addr_o) in KNOWN
            dut.read_ready_i.value = ready = random.random() < 0.6
            dut.read_known_i.value = get(dut.read_addr_o) in KNOWN
            dut.read_data_i.value = registers.get(get(dut.read_addr_o), 0) if ready else random.getrandbits(32)
            if get(dut.write_o):
                registers[get(dut.write_addr_o)] = get(dut.write_data_o)
                assert get(dut.write_control_o) == (get(dut.write_addr_o) == CONTROL)

    cocotb.start_soon(block())
    for _ in range(3):
        await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    model: dict[int, int] = {}
    refused = 0
    for _ in range(150):
        address, word = 4 * random.randrange(80), random.getrandbits(32)
        if random.random() < 0.5:
            size = random.choice((4, 4, 4, 1, 2))
            response: Any = await master.write(address, word.to_bytes(4, "little")[:size])
            legal = size == 4 and address in KNOWN
            assert (response.resp == AxiResp.OKAY) == legal, f"write {address:#x} of {size} bytes"
            if size == 4:
                model[address] = word
            refused += not legal
        else:
            response = await master.read(address, 4)
            assert (response.resp == AxiResp.OKAY) == (address in KNOWN)
            if address in KNOWN:
                assert int.from_bytes(response.data, "little") == model.get(address, 0)
    assert registers == model and refused > 5
