"""Workers: results, refusals, failures, deaths, interrupts; the same in this process and in others."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from relay_hw.accel.isa.errors import ConfigError
from relay_hw.errors import InputError, QuantizeError
from relay_hw.support.progress import SILENT, Progress
from relay_hw.sweep.crew import HereCrew, Workers
from relay_hw.sweep.workers import default_processes, has_dask, workers
from tests.processes import alive_with
from tests.relay_hw.small_models import save_data, save_plain

ROOT = Path(__file__).parents[3]
needs_dask = pytest.mark.skipif(not has_dask(), reason="the extra explore is not installed")
KILLS = 2


def start() -> int:
    return os.getpid()


def work(shared: int, task: Any, progress: Progress) -> Any:
    progress.started(f"doing {task}", 7)
    name, _, path = str(task).partition(" ")
    match name:
        case "refuse":
            raise QuantizeError("strategy x: bits must be few, not many")
        case "config":
            raise ConfigError("block_in must be small")
        case "break":
            raise ZeroDivisionError("oh")
        case "fill":
            raise MemoryError
        case "mask":
            return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fall":  # a worker is killed, until there are so many marks
            marks = Path(path)
            if len(list(marks.iterdir())) < KILLS:
                (marks / str(os.getpid())).touch()
                os.kill(os.getpid(), signal.SIGKILL)
    return shared, task, os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("TVM_NUM_THREADS")


@pytest.fixture(scope="module")
def two() -> Iterator[Workers]:
    with workers(2, None, SILENT) as found:
        yield found


def run(who: Workers, tasks: list[str]) -> dict[int, Any]:
    with who.crew(start, work) as crew:
        return dict(crew.run(tasks))


def test_here_with_one_process() -> None:
    heard: list[tuple[int, str]] = []
    with workers(1, None, SILENT) as who, who.crew(start, work) as crew:
        found = list(crew.run(["a", "b"], lambda n, step: heard.append((n, step.text))))
        assert list(crew.run([])) == []
    assert [(n, result[:2]) for n, result in found] == [(0, (os.getpid(), "a")), (1, (os.getpid(), "b"))]
    assert heard == [(0, "doing a: 0 of 7"), (1, "doing b: 0 of 7")]


def test_here_where_dask_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_hw.sweep.workers.find_spec", lambda _name: None)
    assert default_processes() == 1
    with workers(2, None, SILENT) as who:
        assert run(who, ["a", "b"])[1][0] == os.getpid()


@needs_dask
def test_elsewhere_with_two(two: Workers) -> None:
    heard: set[tuple[int, str]] = set()
    with two.crew(start, work) as crew:
        found = dict(crew.run(["a", "b", "c"], lambda n, step: heard.add((n, step.text))))
        assert list(crew.run([])) == []
        assert dict(crew.run(["alone"]))[0][0] == os.getpid(), "one task starts no process"
        again = dict(crew.run(["d", "e"]))
    assert {n: result[1] for n, result in found.items()} == {0: "a", 1: "b", 2: "c"}
    assert all(result[0] != os.getpid() and result[2:] == ("1", "1") for result in found.values())
    assert heard == {(0, "doing a: 0 of 7"), (1, "doing b: 0 of 7"), (2, "doing c: 0 of 7")}
    assert {result[0] for result in again.values()} <= {result[0] for result in found.values()}


@needs_dask
def test_processes_are_as_many_as_there_are_tasks_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARK", mark := f"mark-{os.getpid()}-ends")
    before = dict(os.environ)
    with workers(3, None, SILENT) as who:
        assert len(alive_with(mark)) == 0
        pids = {result[0] for result in run(who, ["a", "b"]).values()}
        assert pids <= set(alive_with(mark))
        workers_now = [
            pid for pid in alive_with(mark) if b"spawn_main" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
        ]
        assert len(workers_now) == 2
    assert dict(os.environ) == before
    assert not set(alive_with(mark)) & set(workers_now)


@needs_dask
@pytest.mark.parametrize(
    ("task", "kind", "sentence"),
    [
        ("refuse", QuantizeError, "^strategy x: bits must be few, not many$"),
        ("config", InputError, "^block_in must be small$"),
        ("break", RuntimeError, "ZeroDivisionError: oh"),
        ("fill", MemoryError, None),
        ("die", InputError, "a worker process must stay alive, not be killed 4 times at one task; if it is out of "
         "memory: use fewer processes, fewer samples or a smaller model"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said(two: Workers, task: str, kind: type[Exception], sentence: str | None) -> None:
    with pytest.raises(kind, match=sentence):
        run(two, ["a", task])
    assert set(run(two, ["a", "b"])) == {0, 1}, "the workers go on"


@needs_dask
def test_tasks_of_killed_workers_are_done_by_others(two: Workers, tmp_path: Path) -> None:
    found = run(two, ["a", f"fall {tmp_path}", "b", "c"])
    assert set(found) == {0, 1, 2, 3} and len(list(tmp_path.iterdir())) == KILLS
    assert str(found[1][0]) not in [path.name for path in tmp_path.iterdir()]


@needs_dask
def test_workers_are_born_deaf_to_the_keyboard(two: Workers, tmp_path: Path) -> None:
    """An interrupt reaches all processes at a terminal. Neither first workers nor later ones must tell of it."""
    assert run(two, ["mask", "mask"]) == {0: True, 1: True}
    run(two, ["a", f"fall {tmp_path}"])
    assert run(two, ["mask"] * 4) == dict.fromkeys(range(4), True)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@needs_dask
def test_a_run_that_is_left_early_leaves_the_workers_to_others(two: Workers) -> None:
    with two.crew(start, work) as crew:
        with closing(crew.run(["a", "b", "c"])) as coming:
            assert next(coming)[0] in (0, 1, 2)
        assert set(dict(crew.run(["d", "e"]))) == {0, 1}


@needs_dask
def test_a_scheduler_elsewhere_computes_even_one_task() -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", protocol="tcp", dashboard_address=None
        ) as other,
        workers(1, other.scheduler_address, SILENT) as who,
    ):
        assert run(who, ["alone"])[0][0] != os.getpid()
    with (
        pytest.raises(InputError, match=r"scheduler tcp://127.0.0.1:9 must answer"),
        workers(1, "tcp://127.0.0.1:9", SILENT),
    ):
        pass


@needs_dask
def test_a_scheduler_without_workers_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr("relay_hw.sweep.cluster._QUEUE_PATIENCE", 0.1)
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", protocol="tcp", dashboard_address=None) as other,
        workers(1, other.scheduler_address, SILENT) as who,
        pytest.raises(InputError, match=r"^the scheduler must have a worker within 0\.1 seconds: start one with "),
    ):
        run(who, ["alone"])


@needs_dask
def test_processes_that_are_all_gone_are_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    from relay_hw.sweep import cluster

    monkeypatch.setattr(cluster, "_START_PATIENCE", 0.01)
    alive = {"one": 1}
    client: Any = SimpleNamespace(nthreads=lambda: alive)
    crew = cluster._ClusterCrew(client, lambda _tasks: None, "name", work, HereCrew(start, work))
    assert crew._next(SimpleQueue()) is None, "silent is not gone"
    alive.clear()
    with pytest.raises(InputError, match=r"^a process must be left, not none: use fewer; what "):
        crew._next(SimpleQueue())


@needs_dask
@pytest.mark.parametrize("kind", [TimeoutError, asyncio.TimeoutError])
def test_processes_that_start_too_slowly(kind: type[Exception]) -> None:
    from relay_hw.sweep import cluster

    def sync(*_arguments: object, callback_timeout: float) -> bool:
        raise kind(callback_timeout)

    slow: Any = SimpleNamespace(sync=sync)
    with pytest.raises(InputError, match=r"^2 processes must start within 300 seconds; use fewer$"):
        cluster._wait(slow, 2)


UNGUARDED = """
from relay_hw.support.progress import SILENT
from relay_hw.sweep.workers import workers

with workers(2, None, SILENT) as who, who.crew(int, max) as crew:
    list(crew.run([1, 2]))
"""


@needs_dask
def test_processes_that_cannot_start_are_not_waited_for(tmp_path: Path) -> None:
    """Each reads the script again, and would start processes of its own."""
    (tmp_path / "run.py").write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "relay_hw.errors.InputError: processes must start, not end before they compute: a script must have what it "
        'does below if __name__ == "__main__", as each of them reads it; else use --processes 1'
    )


INTERRUPTED = """
import os, signal, sys
from relay_hw.sweep import cluster
from relay_hw.cli.main import main

if __name__ == "__main__":
    # It is ignored in what a shell starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def waiting(*_arguments):
        # As the keyboard does, while workers are still being imported.
        os.killpg(0, signal.SIGINT)

    cluster._wait = waiting
    sys.exit(main(sys.argv[1:]))
"""


@needs_dask
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
    # Progress, on a busy machine, ends in the seconds so far.
    lines = [line for line in done.stderr.splitlines() if not re.search(r" … \d+ s$", line)]
    assert lines == ["relay-hw: interrupted; no partly written files are left"]
