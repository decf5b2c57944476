"""Devices by name: one table says which there are, and what each can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.sim.device import Device
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.cli.main import main
from relay_hw.errors import InputError
from relay_hw.target.accel import devices
from relay_hw.target.accel.devices import DEVICES, DeviceKind, DeviceOptions, find_device, open_device


def test_a_device_that_there_is_not() -> None:
    with pytest.raises(InputError, match="device must be one of functional, cycle, rtl, fpga, not quantum"):
        find_device("quantum")


def test_waves_are_asked_of_a_device_that_has_them() -> None:
    with pytest.raises(InputError, match="waves must be recorded on the rtl device, not on cycle"):
        open_device("cycle", load_config("tiny"), DeviceOptions(waves=Path("waves.fst")))


@pytest.mark.parametrize("is_exact", [False, True])
def test_a_new_row_of_the_table_can_be_chosen(
    is_exact: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The recipe of CONTRIBUTING.md: a class with the Device protocol, and a row."""

    def open_mine(config: AccelConfig, options: DeviceOptions) -> Device:
        return FunctionalDevice(config)

    table = (*DEVICES, DeviceKind("mine", open_mine, has_exact_cycles=is_exact))
    monkeypatch.setattr(devices, "DEVICES", table)
    monkeypatch.setattr("relay_hw.cli.commands.DEVICES", table)
    assert isinstance(open_device("mine", load_config("tiny")), FunctionalDevice)
    for command in (["run", "none", "--input", "none.npz"], ["verify", "none"], ["profile", "none"]):
        assert main([*command, "--device", "mine"]) == 2
        is_known = is_exact or command[0] != "profile"
        assert ("--device must be one of" not in capsys.readouterr().err) == is_known
