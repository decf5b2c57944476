"""Workers: results, refusals, failures, deaths."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from relay_hw.compare.pool import run_tasks
from relay_hw.errors import InputError, QuantizeError


def start() -> int:
    return os.getpid()


def work(shared: int, task: Any, tell: Callable[[str], object]) -> Any:
    tell(f"doing {task}")
    if task == "refuse":
        raise QuantizeError("strategy x: bits must be few, not many")
    if task == "break":
        raise ZeroDivisionError("oh")
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return shared, task, os.environ.get("OPENBLAS_NUM_THREADS")


def test_here_with_one_process() -> None:
    heard: list[tuple[int, str]] = []
    found = list(run_tasks(start, work, ["a", "b"], 1, lambda n, text: heard.append((n, text))))
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
        ("die", InputError, "a worker process must stay alive, not end with status -9; take fewer processes"),
    ],
)
def test_what_goes_wrong_is_said(task: str, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        list(run_tasks(start, work, ["a", task], 2, lambda _n, _t: None))
