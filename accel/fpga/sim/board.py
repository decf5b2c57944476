"""Runs a SoC's Verilog as a simulated board: built with Verilator, started as a process, reached by TCP or UDP.

In: Verilog sources and the names of the pins. Out: an address that `relay_hw.accel.fpga.open_link.open_link` takes.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relay_hw.accel.sim.result_cache import kept
from relay_hw.accel.sim.verilator import (
    COMPILE_JOBS,
    Toolchain,
    ToolError,
    find_toolchain,
    run_verilator,
    runtime_objects,
    user_cache_folder,
)
from relay_hw.support.child import run_child, run_children
from relay_hw.support.progress import SILENT, Progress

SERIAL = Path(__file__).with_name("board.cpp")
ETHERNET = Path(__file__).with_name("ethernet.cpp")
_VERILATOR = ("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-timing", "--no-assert", "--no-MMD")
_SILENT = ("-Wno-fatal", "-Wno-lint", "-Wno-style")
CXX_FLAGS = ("-std=c++20", "-w", "-pthread", "-DVM_SC=0", "-DVM_COVERAGE=0", "-DVM_TRACE=0", "-DVL_TIME_CONTEXT")


@dataclass(frozen=True, slots=True)
class BoardModel:
    """The Verilog of a board to simulate, and its pins.

    `files`: name and text of each Verilog source; `clock`, `reset`, `rx`, `tx`: pins; `reset_level`: active.

    `harness` drives the pins: SERIAL, or ETHERNET, which has names for them of its own. `level`: of the C++ compiler.
    """

    top: str
    files: Mapping[str, str]
    clock: str = "clk_i"
    reset: str = "rst_ni"
    reset_level: int = 0
    rx: str = "rx_i"
    tx: str = "tx_o"
    harness: Path = SERIAL
    level: str = "-O2"

    @property
    def defines(self) -> list[str]:
        """What the harness must know."""
        pins = {"CLOCK": self.clock, "RESET": self.reset, "RX": self.rx, "TX": self.tx}
        named = [f"-DBOARD_{key}={name}" for key, name in pins.items()]
        model = [f'-DBOARD_HEADER="V{self.top}.h"', f"-DBOARD_MODEL=V{self.top}"]
        return [*named, *model, f"-DBOARD_RESET_LEVEL={self.reset_level}"]


def build_board(model: BoardModel, progress: Progress = SILENT, cache: Path | None = None) -> Path:
    """Path of the program, made now unless the cache has it. Raises ToolError."""
    tools = find_toolchain()
    root = cache or user_cache_folder()

    def make(work: Path) -> None:
        step = "building the board's model (once)"
        progress.started(step)
        _build_into(model, tools, work, root)
        progress.done(step)

    return kept(root / "boards", _key(model, tools), make) / "board"


@dataclass(frozen=True, slots=True)
class RunningBoard:
    """A board that runs as a process of its own."""

    address: str
    process: subprocess.Popen[str]

    def cycles(self) -> int:
        """Cycles so far. From the first time that this is asked, the time that its host thinks does not count."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def started_board(program: Path, divisor: int, patience: int | None = None) -> Iterator[RunningBoard]:
    """Start a board that lives as long as the context. `divisor`: clock cycles of a bit, 0 on Ethernet; `patience`:
    seconds that a host on a serial line may be silent while another one waits (default: a minute)."""
    command = [str(program), str(divisor), *([] if patience is None else [str(patience)])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise ToolError(f"board must start, not end with status {process.wait()}")
            yield RunningBoard(address, process)
        finally:
            process.stdin.close()
            process.terminate()


@contextmanager
def running_board(program: Path, divisor: int) -> Iterator[str]:
    """The address of a board that lives as long as the context; see `started_board`."""
    with started_board(program, divisor) as board:
        yield board.address


def _key(model: BoardModel, tools: Toolchain) -> str:
    digest = hashlib.sha256(model.harness.read_bytes())
    for name, text in sorted(model.files.items()):
        digest.update(f"{name}\0{text}\0".encode())
    digest.update(repr((model.defines, model.level, _VERILATOR, CXX_FLAGS, tools.version, tools.cxx_version)).encode())
    return f"{model.top}-{digest.hexdigest()[:24]}"


def _build_into(model: BoardModel, tools: Toolchain, work: Path, cache: Path) -> None:
    for name, text in model.files.items():
        (work / name).write_text(text)
    sources = [name for name in model.files if name.endswith((".v", ".sv"))]
    objects = work / "obj"
    arguments = [*_VERILATOR, *_SILENT, "--prefix", f"V{model.top}", "--top-module", model.top, "--Mdir", "obj"]
    run_verilator(tools, [*arguments, "+incdir+.", *sources], work)
    include = tools.root / "include"
    flags = [*CXX_FLAGS, *model.defines, f"-I{objects}", f"-I{include}", f"-I{include / 'vltstd'}"]
    generated = sorted(objects.glob("V*.cpp"))
    # Code that runs once, or little of every cycle, is not worth the compiler's time.
    small = (f"V{model.top}", f"V{model.top}__Syms", f"V{model.top}__ConstPool_0")
    cold = [path for path in generated if "__Slow" in path.stem or path.stem in small]
    joined = objects / "cold.cpp"
    joined.write_text("".join(f'#include "{path.name}"\n' for path in cold))
    sources = [(path, model.level) for path in generated if path not in cold]
    sources += [(model.harness, "-O2"), (joined, "-O0")]
    runtime = runtime_objects(tools, CXX_FLAGS, ("verilated.cpp", "verilated_threads.cpp"), cache)

    outputs = [str(objects / f"{path.stem}.o") for path, _ in sources]
    commands = [[tools.cxx, *flags, level, "-c", "-o", output, path]
                for (path, level), output in zip(sources, outputs, strict=True)]  # fmt: skip
    for done in run_children(commands, work, COMPILE_JOBS):
        _check(tools, done)
    _check(tools, run_child([tools.cxx, "-pthread", "-o", work / "board", *outputs, *runtime], work))
    shutil.rmtree(objects)


def _check(tools: Toolchain, done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        line = next((text for text in done.stderr.splitlines() if "error" in text), done.stderr.strip()[-300:])
        raise ToolError(f"{tools.cxx.name} failed on the board's model: {line}")
