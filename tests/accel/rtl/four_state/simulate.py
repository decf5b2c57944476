"""Runs programs on vta_top under Icarus Verilog, which knows X. In: a program. Out: what memory holds, or where X is.

The bench (`bench.v`) has a memory of its own, and looks at every port of the master for X in what it says.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.gen_verilog import verilog_parameters
from relay_hw.accel.isa.program import Program
from relay_hw.accel.sim.device import Window
from relay_hw.accel.sim.registers import Core
from relay_hw.accel.sim.rtl_device import WINDOW_BASE
from relay_hw.accel.sim.verilator import RTL_DIR, Form, rtl_files

BENCH = Path(__file__).parent / "bench.v"
TOOL = "iverilog"
# Cycles that a small program may take on this memory, which has one burst under way.
_LIMIT = 200_000


def missing() -> str:
    """Why programs cannot run in four states; empty where they can."""
    if shutil.which(TOOL) and shutil.which("vvp"):
        return ""
    return f"{TOOL} is missing (Debian: apt-get install iverilog): nothing runs in four states"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the bench said, and the window as bytes; `unknown` says which of them are X."""

    said: str
    window: NDArray[np.uint8]
    unknown: NDArray[np.bool_]


class FourStates:
    """vta_top of one configuration, compiled once in `folder`."""

    def __init__(
        self,
        config: AccelConfig,
        folder: Path,
        rtl: Path = RTL_DIR,
        form: Form = Form.FABRIC,
        macros: Sequence[str] = (),
    ) -> None:
        self._config, self._folder = config, folder
        sizes = ", ".join(f".{key}({_literal(value)})" for key, value in verilog_parameters(config).items())
        command = [TOOL, "-g2005", "-s", "bench", f"-I{rtl}", f"-I{rtl / 'gen'}", f"-DTOP_PARAMETERS={sizes}"]
        command += [f"-D{name}" for name in macros]
        command += [f"-Pbench.DATA_W={config.axi_data_bits}", "-o", "bench.vvp", str(BENCH)]
        _run([*command, *map(str, rtl_files(rtl, form))], folder)

    def run(self, program: Program) -> Outcome:
        """Run the program once from power-on."""
        window = Window()
        window.load(self._config, program)
        width = self._config.bus_bytes
        words = window.bytes.reshape(-1, width)[:, ::-1]
        self._write("memory.hex", [word.tobytes().hex() for word in words])
        writes = _launch(program)
        self._write("lite.hex", [f"{offset:04x}{value:08x}" for offset, value in writes])
        counts = {"words": len(words), "writes": len(writes), "limit": _LIMIT}
        paths = {"memory": "memory.hex", "lite": "lite.hex", "result": "result.hex"}
        (self._folder / "result.hex").unlink(missing_ok=True)
        said = _run(["vvp", "-n", "bench.vvp", *(f"+{key}={value}" for key, value in {**counts, **paths}.items())],
                    self._folder)  # fmt: skip
        return Outcome(said, *self._read(width, len(words)))

    def _write(self, name: str, lines: Sequence[str]) -> None:
        (self._folder / name).write_text("\n".join(lines) + "\n")

    def _read(self, width: int, words: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        path = self._folder / "result.hex"
        text = path.read_text() if path.exists() else ""
        lines = [line for line in text.split() if len(line) == 2 * width]
        pairs = [line[at : at + 2] for line in lines for at in range(2 * width - 2, -1, -2)]
        unknown = np.array([not set(pair) <= set("0123456789abcdef") for pair in pairs], bool)
        known = [0 if is_x else int(pair, 16) for pair, is_x in zip(pairs, unknown, strict=True)]
        return np.array(known, np.uint8), unknown


def _launch(program: Program) -> list[tuple[int, int]]:
    """Writes of registers that start the program."""
    writes: list[tuple[int, int]] = []

    def write(offset: int, values: Sequence[int]) -> None:
        writes.extend((offset + 4 * k, value) for k, value in enumerate(values))

    core = Core(write, lambda _, count: [0] * count)
    core.window(WINDOW_BASE, program.window_bytes)
    core.launch(program.code, 0xFFFF_FFFF)
    return writes


def _literal(value: int) -> str:
    return str(value) if value < 1 << 31 else f"32'h{value:08x}"


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.strip()
