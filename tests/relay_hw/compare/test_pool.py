"""Workers: results, refusals, failures, deaths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from relay_hw.compare.pool import run_tasks
from relay_hw.errors import InputError, QuantizeError
from relay_hw.support.progress import Progress
from tests.relay_hw.small_models import save_data, save_plain

ROOT = Path(__file__).parents[3]


def start() -> int:
    return os.getpid()


def work(shared: int, task: Any, progress: Progress) -> Any:
    progress.started(f"doing {task}")
    if task == "refuse":
        raise QuantizeError("strategy x: bits must be few, not many")
    if task == "break":
        raise ZeroDivisionError("oh")
    if task == "mask":
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return shared, task, os.environ.get("OPENBLAS_NUM_THREADS")


def test_here_with_one_process() -> None:
    heard: list[tuple[int, str]] = []
    found = list(run_tasks(start, work, ["a", "b"], 1, lambda n, step: heard.append((n, step.text))))
    assert [(n, result[:2]) for n, result in found] == [(0, (os.getpid(), "a")), (1, (os.getpid(), "b"))]
    assert heard == [(0, "doing a"), (1, "doing b")]
    assert list(run_tasks(start, work, [], 3, lambda _n, _t: None)) == []


def test_elsewhere_with_two() -> None:
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    heard: list[int] = []
    found = dict(run_tasks(start, work, ["a", "b", "c"], 2, lambda n, _t: heard.append(n)))
    assert {n: result[1] for n, result in found.items()} == {0: "a", 1: "b", 2: "c"}
    assert all(result[0] != os.getpid() and result[2] == "1" for result in found.values())
    assert len({result[0] for result in found.values()}) == 2 and heard
    assert os.environ.get("OPENBLAS_NUM_THREADS") == before


@pytest.mark.parametrize(
    ("task", "kind", "sentence"),
    [
        ("refuse", QuantizeError, "^strategy x: bits must be few, not many$"),
        ("break", RuntimeError, "ZeroDivisionError: oh"),
        ("die", InputError, "a worker process must stay alive, not end with status -9; use fewer processes"),
    ],
)
def test_what_goes_wrong_is_said(task: str, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        list(run_tasks(start, work, ["a", task], 2, lambda _n, _t: None))


def test_workers_are_born_deaf_to_the_keyboard() -> None:
    """An interrupt reaches all processes at a terminal. A worker that is still being imported must not tell of it."""
    found = dict(run_tasks(start, work, ["mask", "mask"], 2, lambda _n, _t: None))
    assert found == {0: True, 1: True}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


INTERRUPTED = """
import os, signal, sys
from relay_hw.compare import pool
from relay_hw.cli.console import Console
from relay_hw.cli.main import main

if __name__ == "__main__":
    # It is ignored in what a shell starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    real = pool._Worker.__init__

    def started(self, *arguments):
        real(self, *arguments)
        # As the keyboard does, while workers are still being imported.
        os.killpg(0, signal.SIGINT)

    pool._Worker.__init__ = started
    sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupted_comparison_says_one_line(tmp_path: Path) -> None:
    save_plain(tmp_path / "plain.onnx")
    data = save_data(tmp_path / "test.npz", 80, labels=True)
    (tmp_path / "run.py").write_text(INTERRUPTED)
    arguments = ["compare", tmp_path / "plain.onnx", "--data", data, "--calibration", data, "--processes", "2",
                 "--strategies", "int8-minmax,int8-pow2", "-o", tmp_path / "report", "--config", "tiny"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py"), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 130
    lines = [line for line in done.stderr.splitlines() if "comparing" not in line]
    assert lines == ["relay-hw: interrupted; no partly written files are left"]
