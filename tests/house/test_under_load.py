"""Tests that send signals, wait or look at the clock pass on a busy machine, run after run.

In: the suite's test files. Out: such tests, found by their text and that of what they use, each run beside processes
that never rest. No run may fail: a test that fails now and then is told here, not to whoever changes something else.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.house.sources import ROOT

RUNS, BUSY = 20, 4
# As many tests at a time as there are busy processes: none waits for another's clock.
WORKERS = BUSY
# What tells of signals and time in the text of a function.
TIMED = re.compile(
    r"\bSIG(INT|TERM|KILL|HUP|STOP|CONT|PIPE)\b|\bsend_signal\b|\bterminate\(\)|\bkill(pg)?\(|\bsleep\(|\bmonotonic\("
)


def timed_tests(text: str) -> list[str]:
    """Names of the tests of a file that have to do with signals or time, themselves or by a function of the file."""
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    lines = text.splitlines()
    timed = {node.name for node in functions if TIMED.search("\n".join(lines[node.lineno - 1 : node.end_lineno]))}
    while more := {node.name for node in functions if node.name not in timed and _names(node) & timed}:
        timed |= more
    return [node.name for node in functions if node.name in timed and node.name.startswith("test_")]


def _names(node: ast.AST) -> set[str]:
    """What a function refers to: names, and its arguments, which may be fixtures."""
    inside = list(ast.walk(node))
    return {one.id for one in inside if isinstance(one, ast.Name)} | {
        one.arg for one in inside if isinstance(one, ast.arg)
    }


def all_timed_tests() -> list[str]:
    """Node ids of such tests of the whole suite."""
    files = {path: path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    del files[Path(__file__)]
    return [f"{path.relative_to(ROOT)}::{name}" for path, text in files.items() for name in timed_tests(text)]


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that never rest, ended in the end."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
        assert all(one.poll() is None for one in running)
    finally:
        for one in running:
            one.kill()
            one.wait()


def test_tests_are_found_by_what_they_use() -> None:
    text = """
def _end(child): child.terminate()
def one(): _end(1)
def test_by_function(): one()
def test_by_fixture(one): pass
def test_itself(): time.sleep(1)
def test_none(): pass
"""
    assert timed_tests(text) == ["test_by_function", "test_by_fixture", "test_itself"]
    found = all_timed_tests()
    assert "tests/relay_hw/cli/test_bad_input.py::test_an_interrupted_compile_leaves_nothing" in found


@pytest.mark.long
def test_timed_tests_pass_beside_busy_processes() -> None:
    tests = all_timed_tests()
    with busy_processes(BUSY):
        for run in range(RUNS):
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(WORKERS), *tests],
                cwd=ROOT,
                capture_output=True,
                text=True,
            )
            print(f"run {run + 1} of {RUNS}: {done.stdout.strip().splitlines()[-1]}", flush=True)
            assert done.returncode == 0, done.stdout
