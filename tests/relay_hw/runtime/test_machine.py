"""The machine's name, as the system tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_hw.runtime.machine import CPUINFO, machine_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: Some  CPU @ 2.00GHz\nflags\t\t: fpu\n", "Some CPU @ 2.00GHz"),
        ("processor\t: 0\nBogoMIPS\t: 108.00\nHardware\t: BCM2711\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4"),
    ],
)
def test_the_system_knows_the_processor(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    assert machine_name(path) == name.replace("  ", " ") and machine_name(CPUINFO)


def test_without_its_file_the_architecture_names_it(tmp_path: Path) -> None:
    assert machine_name(tmp_path / "missing")
