"""Measure RTL simulation against the RTL of another commit: processor time of one network's launches, in turn.

In: a commit. Out: million cycles a second of both, and the median of the ratios. Each commit builds its own model of
`default` and runs in a process of its own, so that only the assembly of programs must be common to both.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import bench_layers  # noqa: F401  # first: it puts examples on the path
import bench_speed

from relay_hw.accel.isa.disasm import disassemble

ROOT = Path(__file__).resolve().parents[1]
NETWORK = "resnet8"
ROUNDS = 9
# Runs with `accel` of either commit: a launch for each line that comes, told as cycles and processor seconds.
WORKER = """
import sys, time
import numpy as np
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.rtl_device import RtlDevice
device = RtlDevice(load_config("default"))
program = assemble_file(sys.argv[1])
device.load(program)
random = np.random.default_rng(1)
for section in program.sections:
    if section.kind is SectionKind.INPUT:
        device.write(section.offset, random.integers(0, 256, section.size, np.uint8))
if program.resident is not None:
    device.launch(SectionKind.RESIDENT)
device.launch()
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.process_time()
    cycles = device.launch().cycles
    print(cycles, time.process_time() - begin, flush=True)
"""


class Worker:
    """A process that launches a program on the RTL of the tree in `root`."""

    def __init__(self, root: Path, program: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", WORKER, str(program)]
        self._process = subprocess.Popen(
            command, env=environment, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._line()

    def launch(self) -> float:
        """Million cycles a second of one launch."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        cycles, seconds = self._line().split()
        return int(cycles) / float(seconds) / 1e6

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"bench_rtl: a model must launch, not end with status {self._process.wait()}")
        return line


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """The accelerator as it was at a commit, in a folder for a while."""
    packed = subprocess.run(["git", "archive", commit, "accel"], cwd=ROOT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
        yield Path(folder)


@contextmanager
def compiled_program() -> Iterator[Path]:
    """The network's program as assembly."""
    with bench_speed.compiled(NETWORK) as (artifact, _, _, _):
        (program,) = artifact.programs.values()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.asm"
            path.write_text(disassemble(program))
            yield path


def measure(commit: str, program: Path, rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Median speeds of the commit and of this tree in million cycles a second, and the median of their ratios."""
    with tree_of(commit) as old_root:
        old, new = Worker(old_root, program), Worker(ROOT, program)
        pairs = [(old.launch(), new.launch()) for _ in range(rounds)]
        old.close()
        new.close()
    before, after = zip(*pairs, strict=True)
    ratio = statistics.median(b / a for a, b in pairs)
    return statistics.median(before), statistics.median(after), ratio


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", metavar="COMMIT", required=True, help="whose RTL this tree's is held against")
    parser.add_argument("--program", type=Path, help=f"assembly for `default` (default: {NETWORK}, compiled now)")
    args = parser.parse_args(arguments)
    if args.program is not None:
        before, after, ratio = measure(args.against, args.program.resolve())
    else:
        with compiled_program() as program:
            before, after, ratio = measure(args.against, program)
    print(f"{args.against}: {before:.3f} million cycles a second; this tree: {after:.3f}; {ratio:.2f} times as many")
    return 0


if __name__ == "__main__":
    sys.exit(main())
