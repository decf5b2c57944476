"""Commands that are killed at any moment: builds, outputs, finished strategies are there whole, and nothing stays."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.sim.result_cache import is_sealed
from relay_hw.cli.data import save_npz
from relay_hw.compare.main import JOURNAL
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.module import copy_build
from relay_hw.support.temporary import is_temporary
from relay_hw.sweep.journal import Journal
from tests.accel.fpga.stubs import stub_tools
from tests.processes import left_with
from tests.relay_hw.small_models import images, save_mixed, save_plain

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system has no /proc")
LIBRARY = """
import sys
from pathlib import Path
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.verilator import Build, build_library
build_library(Build.of(load_config("tiny"), rtl=Path(sys.argv[1])), cache=Path(sys.argv[2]))
"""
BITSTREAM = """
import sys
from pathlib import Path
from relay_hw.accel.fpga.flow import Design, build_bitstream
from relay_hw.accel.fpga.parts import find_part
design = Design("echo", "echo", {"echo.v": "module echo; endmodule"}, find_part("lfe5u-25f"), "", 25)
made = build_bitstream(design, [1, 2], Path(sys.argv[1]))
assert made.data.startswith(b"bits of seed 2") and made.data.endswith(b"}"), made.data
"""
# synthesised.json, design.lpf; of each seed netlist, configuration and report; the bitstream.
_FILES_OF_STEPS = 2 + 2 * 3 + 1
PROBE = Path(__file__).parents[2] / "accel" / "sim" / "probe"


class Killer:
    """Starts a program and kills it, at any moment or soon after a temporary file has appeared in a folder."""

    def __init__(self, words: Sequence[str | Path], watched: Path) -> None:
        self._words = [sys.executable, *map(str, words)]
        self._watched = watched
        self._random = random.Random(1)
        self._seconds = 0.0

    def finish(self) -> None:
        """Run it to its end, and remember how long that takes."""
        begin = time.monotonic()
        done = subprocess.run(self._words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self._seconds = time.monotonic() - begin

    def kill(self, number: int) -> bool:
        """Start it and kill it; nothing of it stays alive. Whether it still ran then."""
        mark = f"mark-{uuid.uuid4()}"
        process = subprocess.Popen(
            self._words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"MARK": mark}
        )
        before = set(self._temporary())
        if number % 2:
            time.sleep(self._random.uniform(0, self._seconds))
        else:
            while process.poll() is None and not set(self._temporary()) - before:
                time.sleep(0.0005)
            time.sleep(self._random.uniform(0, 0.1))
        process.kill()
        was_running = process.wait() == -signal.SIGKILL
        assert left_with(mark) == []
        return was_running

    def _temporary(self) -> list[str]:
        return [name for name in os.listdir(self._watched) if is_temporary(name)]


def check_kills(killer: Killer, kills: int, check: Callable[[], object], rest: Callable[[], object]) -> None:
    """Kill a program so often while it runs; `check` after each, `rest` after the next program that ends well."""
    killer.finish()
    done = 0
    for started in count(1):
        done += killer.kill(started)
        check()
        if done == kills:
            break
    print(f"{done} kills of {started} starts; the others had ended before")
    killer.finish()
    check()
    rest()


@pytest.mark.parametrize(
    ("save", "kills"),
    [(save_plain, 2), pytest.param(save_plain, 200, marks=pytest.mark.long),
     pytest.param(save_mixed, 10, marks=pytest.mark.long)],
)  # fmt: skip
def test_compile_onto_a_build(save: Callable[[Path], Path], kills: int, tmp_path: Path) -> None:
    root, model, data = tmp_path / "root", save(tmp_path / "net.onnx"), tmp_path / "data.npz"
    root.mkdir()
    save_npz(data, {"image": images(4, 1)})
    words = ["-m", "relay_hw.cli", "compile", model, "-o", root / "build", "--calibration", data, "--config", "tiny"]

    def check() -> None:
        artifact = load_artifact(root / "build")
        # Another writer of the folder finds nothing in its way, and leaves nothing.
        copy_build(artifact, root / "copy")
        assert sorted(os.listdir(root)) == ["build", "copy"]

    check_kills(Killer(words, root), kills, check, lambda: None)


@pytest.mark.parametrize("kills", [pytest.param(200, marks=pytest.mark.long)])
def test_outputs_of_a_run(kills: int, tmp_path: Path) -> None:
    from relay_hw.runtime.compile import compile_model
    from relay_hw.runtime.models import load_model
    from relay_hw.runtime.options import CompileOptions

    root, model = tmp_path / "root", load_model(save_plain(tmp_path / "net.onnx"))
    root.mkdir()
    data = {"image": images(64, 1)}
    save_npz(tmp_path / "data.npz", data)
    compile_model(model.mod, CompileOptions(config="tiny"), params=model.params, calibration=data).save(
        tmp_path / "build"
    )
    words = ["-m", "relay_hw.cli", "run", tmp_path / "build", "--input", tmp_path / "data.npz",
             "--output", root / "out.npz"]  # fmt: skip
    killer = Killer(words, root)
    killer.finish()
    want = dict(np.load(root / "out.npz"))

    def check() -> None:
        found = dict(np.load(root / "out.npz"))
        assert all(np.array_equal(found[name], want[name]) for name in want)

    check_kills(killer, kills, check, lambda: _only(root, "out.npz"))


def _only(root: Path, *names: str) -> None:
    assert sorted(os.listdir(root)) == sorted(names)


@pytest.mark.long
@pytest.mark.parametrize(("processes", "kills"), [("1", 140), ("2", 60)])
def test_strategies_of_a_comparison(processes: str, kills: int, tmp_path: Path) -> None:
    """A strategy that was finished is neither lost nor done again."""
    model, report = save_plain(tmp_path / "net.onnx"), tmp_path / "report"
    save_npz(tmp_path / "test.npz", {"image": images(8, 2), "labels": np.arange(8) % 5})
    save_npz(tmp_path / "data.npz", {"image": images(8, 1)})
    words = ["-m", "relay_hw.cli", "compare", model, "--data", tmp_path / "test.npz", "--calibration",
             tmp_path / "data.npz", "--strategies", "int8,int8-minmax,int8-pow2,int8-mse", "-o", report,
             "--config", "tiny", "--processes", processes, "--engine", "numpy"]  # fmt: skip
    work = report / "work"
    work.mkdir(parents=True)
    known: dict[str, tuple[str, float]] = {}
    rounds = count()

    def check() -> None:
        if not (work / JOURNAL).exists():
            return
        # Rows with the seconds that each took, which no second computation would give again.
        found: dict[str, tuple[str, float]] = {}
        with closing(sqlite3.connect(work / JOURNAL)) as database, database, suppress(sqlite3.OperationalError):
            for key, content, seconds in database.execute("SELECT key, content, seconds FROM results").fetchall():
                found[key] = content, seconds
            assert known.items() <= found.items()
            known.update(found)
            if len(found) == 4:
                # Begin again with one to four that are left to do.
                for gone in sorted(found)[: 1 + next(rounds) % 4]:
                    database.execute("DELETE FROM results WHERE key = ?", (gone,))
                    del known[gone]
        assert Journal(work / JOURNAL).read(list(known)).keys() == known.keys()

    def rest() -> None:
        assert not [name for name in (*os.listdir(work), *os.listdir(report)) if is_temporary(name)]

    check_kills(Killer(words, work), kills, check, rest)


@pytest.mark.parametrize("kills", [pytest.param(20, marks=pytest.mark.long)])
def test_a_library_of_the_verilog(kills: int, tmp_path: Path) -> None:
    """With Verilator and the C++ compiler, which end too; the library is whole when it is there."""
    cache = tmp_path / "rtl"
    cache.mkdir()
    killer = Killer(["-c", LIBRARY, PROBE, tmp_path], cache)

    def check() -> None:
        for entry in cache.iterdir():
            if entry.is_dir() and not is_temporary(entry.name):
                assert (entry / "sealed.json").is_file() and (entry / "libvta_top.so").is_file()
                shutil.rmtree(entry)

    check_kills(killer, kills, check, lambda: _suffixes(cache))


@pytest.mark.parametrize("kills", [pytest.param(20, marks=pytest.mark.long)])
def test_steps_of_a_bitstream(kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sealed before is what it was then, and the next run makes the rest; the tools are stubs."""
    monkeypatch.setenv("PATH", f"{stub_tools(tmp_path / 'tools')}:{os.environ['PATH']}")
    root, known, done = tmp_path / "stages", dict[Path, bytes](), list[bool]()
    root.mkdir()
    killer = Killer(["-c", BITSTREAM, root], root)

    def check() -> None:
        for mark in root.glob("*/*"):
            if not mark.suffix and is_sealed(mark.parent, mark.name):
                for name in json.loads(mark.read_bytes())["files"]:
                    content = (mark.parent / name).read_bytes()
                    assert known.setdefault(mark.parent / name, content) == content
        if len(known) == _FILES_OF_STEPS:
            done.append(not [path for path in root.rglob("*") if is_temporary(path.name)])
            shutil.rmtree(next(root.iterdir()))
            known.clear()

    check_kills(killer, kills, check, lambda: None)
    assert done and all(done)


def _suffixes(cache: Path) -> None:
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
