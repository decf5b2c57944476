"""A fixed loop that says how fast this machine is now: what a speed is held against, in one run, instead of a clock.

In: nothing. Out: steps a second of one processor. A step is a thousand multiplications, each of the result of the one
before, so that no compiler and no vector unit makes it faster.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from relay_hw.accel.sim.verilator import find_toolchain

STEPS = 500_000
REPEATS = 3
SOURCE = """
#include <cstdint>
#include <cstdlib>
#include <cstdio>
int main(int, char** arguments) {
    std::uint64_t value = 1;
    const long count = std::atol(arguments[1]) * 1000;
    for (long i = 0; i < count; ++i) value = value * 6364136223846793005ull + 1442695040888963407ull;
    std::printf("%llu\\n", static_cast<unsigned long long>(value));
}
"""


def steps_per_second() -> float:
    """The fastest of some runs, in processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "loop.cpp", Path(folder) / "loop"
        source.write_text(SOURCE)
        subprocess.run([str(find_toolchain().cxx), "-O1", str(source), "-o", str(program)], check=True)
        return STEPS / min(_seconds(program) for _ in range(REPEATS))


def _seconds(program: Path) -> float:
    """Processor seconds of one run."""
    before = _children()
    subprocess.run([str(program), str(STEPS)], check=True, capture_output=True)
    return _children() - before


def _children() -> float:
    """Processor seconds of all that this process ran."""
    times = os.times()
    return times.children_user + times.children_system
