"""A program as files: its script runs it on a board that is not there, at whatever address memory is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from relay_hw.interp import evaluate
from relay_hw.vta import board
from relay_hw.vta.__main__ import main
from relay_hw.vta.deploy import files
from relay_hw.vta.sim.choices import CHOICES
from relay_hw.vta.sim.machine import run
from relay_hw.vta.sim.state import Dram, new_state
from tests.relay_hw.vta.networks import mixed
from tests.relay_hw.vta.test_region import data_of, program_of


class Memory(np.ndarray):
    """Contiguous memory with a physical address."""

    physical_address: int

    def flush(self) -> None:
        """Nothing is cached."""

    invalidate = flush


class FakeBoard:
    """What the package pynq offers, with the simulator behind its registers."""

    def __init__(self, geometry: Any, base: int) -> None:
        self.geometry, self.base = geometry, base
        self.registers: dict[int, int] = {}
        self.loaded = ""

    def module(self) -> ModuleType:
        found = ModuleType("pynq")
        vars(found).update(Overlay=self.overlay, allocate=self.allocate, MMIO=self.mmio)
        return found

    def overlay(self, path: str) -> None:
        self.loaded = path

    def allocate(self, shape: tuple[int], dtype: Any) -> Memory:
        self.memory = np.full(shape, 0xA5, dtype).view(Memory)
        self.memory.physical_address = self.base
        return self.memory

    def mmio(self, base: int, length: int) -> Any:
        assert length == 0x1000 and base in range(0x43C00000, 0x43C04000, 0x1000)
        outer = self

        class Block:
            def write(self, offset: int, value: int) -> None:
                outer.registers[base + offset] = value
                if (base, offset, value) == (0x43C00000, 0, 1):
                    outer.start()

            def read(self, offset: int) -> int:
                return outer.registers.get(base + offset, 0)

        return Block()

    def start(self) -> None:
        found = self.registers
        assert [found[0x43C00000 + 0x1000 * k] for k in (1, 2, 3)] == [0x81] * 3
        begin = found[0x43C00018] - self.base
        words = np.asarray(self.memory)[begin : begin + 16 * found[0x43C00010]].view("<u8").reshape(-1, 2)
        state = new_state(self.geometry, Dram(np.asarray(self.memory), self.base))
        run(words, state, CHOICES[self.geometry.core])
        found[0x43C02018] = 1


@pytest.mark.parametrize("base", [0x1600_0000, 0x3F00_5000])
@pytest.mark.parametrize("config", ["pynq", "pynq_4x8"])
def test_the_script_gives_the_interpreters_result(
    base: int, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mod = mixed(9, 16, 40, batch=2)
    program, x = program_of(mod, config), data_of(mod)
    (tmp_path / "vta_0.bin").write_bytes(program.to_bytes())
    folder = tmp_path / "files"
    assert main([str(tmp_path / "vta_0.bin"), "-o", str(folder)]) == 0
    fake = FakeBoard(program.head.geometry, base)
    monkeypatch.setitem(sys.modules, "pynq", fake.module())
    np.savez(tmp_path / "in.npz", x0=x)
    monkeypatch.setattr(sys, "argv", ["board.py", str(folder), str(tmp_path / "in.npz"), str(tmp_path / "out.npz")])
    exec(compile((folder / "board.py").read_text(), "board.py", "exec"), {"__name__": "__main__"})
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["y0"], np.asarray(evaluate(mod, {"x": x})))
    assert fake.loaded == str(folder / "vta.bit")


def test_files_at_an_address(tmp_path: Path) -> None:
    program = program_of(mixed(9), "pynq")
    found = files(program, 0x1600_0000)
    for name in ("insn.bin", "used.bin", "sections.txt"):
        (tmp_path / name).write_bytes(found[name])
    placed, begins, _ = board.place(tmp_path, 0x1600_0000)
    np.testing.assert_array_equal(np.frombuffer(found["placed.bin"], "<u8").reshape(-1, 2), placed)
    assert begins["x0"] == 0 and "0x16000000 x0" in found["README.txt"].decode()
    for name in ("README.txt", "listing.txt"):
        assert found[name].startswith(b"Nobody here has loaded these files on a board.\n")
    assert found["board.py"].startswith(b'"""Nobody here has loaded this on a board.')
    lines = found["listing.txt"].decode().splitlines()
    assert sum("@" in line for line in lines) == int((program.used >= 0).sum())
    assert lines[1].startswith("layer 0: tile ")


def test_a_machine_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "SECONDS", 0.01)
    fake = FakeBoard(None, 0)
    monkeypatch.setattr(fake, "start", lambda: None)
    with pytest.raises(TimeoutError, match=r"VTA must be done within 0\.01 seconds"):
        board.launch(fake.module(), 0, 1)


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.bin").write_bytes(b"no")
    for arguments, message in (
        (["no.bin"], "a program of VTA must begin with its mark and its head"),
        (["none.bin"], "No such file"),
        (["no.bin", "--address", "0x123"], "address must be a multiple of 4096 below 2**32, not 0x123"),
    ):
        with pytest.raises(SystemExit) as caught:
            main([str(tmp_path / arguments[0]), *arguments[1:], "-o", str(tmp_path / "out")])
        assert caught.value.code == 2 and message in capsys.readouterr().err
