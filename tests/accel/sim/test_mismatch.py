"""A program for a configuration that differs in one size is refused by every device before it starts, by that size."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import pytest

from relay_hw.accel.fpga.device import FpgaDevice
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.isa.config import SIZES, AccelConfig, config_names, load_config
from relay_hw.accel.isa.errors import ConfigError, ProgramError
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.device import Device
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.accel.sim.pipe import Bus
from relay_hw.accel.sim.rtl_device import RtlDevice

# Configurations whose library of the Verilog other tests of the suite need too.
BUILT = ("tiny", "default")
CONFIGS = [pytest.param(n, marks=() if n in BUILT else pytest.mark.long) for n in config_names()]
# Sizes that hardware of today has one value for: a configuration with another one is refused itself.
FIXED = {"batch", "inp_bits", "acc_bits"}


class BoardLine:
    """The bus of a board whose accelerator is simulated."""

    def __init__(self, config: AccelConfig, soc: SocMap) -> None:
        self._bus = Bus(FunctionalDevice(config))
        self._soc = soc
        self.written = 0

    def write(self, address: int, words: Sequence[int]) -> None:
        self.written += len(words)
        if address >= self._soc.registers_base:
            self._bus.put(address - self._soc.registers_base, words[0])

    def read(self, address: int, count: int) -> list[int]:
        assert count == 1 and address >= self._soc.registers_base
        return [self._bus.get(address - self._soc.registers_base)]

    def close(self) -> None:
        pass


def board(config: AccelConfig) -> Device:
    soc = SocMap("board", config.name, config.hash32, 25_000_000, 1 << 20, 0, 0, 1 << 30)
    return FpgaDevice(config, BoardLine(config, soc), soc)


DEVICES: dict[str, Callable[[AccelConfig], Device]] = {
    "functional": FunctionalDevice,
    "cycle": lambda config: CycleDevice(config, memory_model("standard")),
    "rtl": RtlDevice,
    "fpga": board,
}


def others(config: AccelConfig) -> dict[str, AccelConfig]:
    """By size, a legal configuration that differs in this size alone."""
    found: dict[str, AccelConfig] = {}
    for key in SIZES:
        size: int = getattr(config, key)
        for other in (2 * size, size // 2, size - 1, size + 1):
            try:
                found.setdefault(key, replace(config, **{key: other}))
            except ConfigError:
                continue
    return found


def test_every_size_is_tried() -> None:
    tried = {key for name in config_names() for key in others(load_config(name))}
    assert {field.name for field in fields(AccelConfig)} - {"name"} == set(SIZES)
    # Four bits take blocks of their own.
    assert set(SIZES) - FIXED - tried <= {"wgt_bits"}
    for name in BUILT:
        assert len(others(load_config(name))) >= len(SIZES) - len(FIXED) - 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CONFIGS)
def test_one_other_size(name: str, device: str) -> None:
    config = load_config(name)
    opened = DEVICES[device](config)
    opened.load(Program.build(config, [(Op.FINISH, {})]))
    for key, other in others(config).items():
        for program in (Program.build(other, [(Op.FINISH, {})]),
                        Program.from_bytes(Program.build(other, [(Op.FINISH, {})]).to_bytes())):  # fmt: skip
            sentence = f"program must be made for configuration {name} .*, not {name} .*: {key} must be "
            sentence += re.escape(f"{getattr(config, key)}, not {getattr(other, key)}")
            with pytest.raises(ProgramError, match=sentence):
                opened.load(program)


def test_sizes_are_those_of_the_hash() -> None:
    program = Program.build(load_config("tiny"), [(Op.FINISH, {})])
    for sizes in (program.sizes[1:], (*program.sizes[:-1], ("queue_depth", 2))):
        with pytest.raises(ProgramError, match="sizes must be those of hash 0x"):
            replace(program, sizes=sizes)
    # Where only the hash is known, it decides.
    unknown = replace(program, sizes=(), config_hash=program.config_hash ^ 1)
    with pytest.raises(ProgramError, match=r"program must be made for configuration tiny \(\w+\), not tiny \(\w+\)$"):
        unknown.check_config(load_config("tiny"))
