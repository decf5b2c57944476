"""Programs that work for a process: they say what they say, and end with it, those that they started as well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from relay_hw.support import child
from relay_hw.support.child import end_child, run_child, run_children, start_child
from tests.hostile import NAMES
from tests.processes import alive_with, left_with

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system has no /proc")
# A tool like g++, which starts another one and waits for it.
TOOL = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]])"


def test_what_a_program_says_and_how_it_ends(tmp_path: Path) -> None:
    code = "import sys, os; print(sys.stdin.read(), os.getcwd()); print('bad', file=sys.stderr); sys.exit(7)"
    done = run_child([sys.executable, "-c", code], tmp_path, given="hello")
    assert (done.returncode, done.stdout, done.stderr) == (7, f"hello {tmp_path}\n", "bad\n")
    assert run_child([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]).returncode == 128 + 9
    with pytest.raises(FileNotFoundError, match="No such file or directory: 'no-such-tool'"):
        run_child(["no-such-tool"])


def test_words_reach_a_program_as_they_are() -> None:
    names = [name for name in NAMES if "\0" not in name]
    done = run_child([sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *names])
    assert done.stdout == f"{names!a}\n"


def test_the_environment_is_the_one_given() -> None:
    code = "import os; print(sorted(key for key in os.environ if key.startswith('RELAY')))"
    assert run_child([sys.executable, "-c", code], environment={"RELAY_A": "1"}).stdout == "['RELAY_A']\n"


def test_several_programs_one_of_which_fails(tmp_path: Path) -> None:
    tools = [[sys.executable, "-c", f"import sys; print({k}); sys.exit({k == 2})"] for k in range(4)]
    assert [done.stdout for done in run_children(tools[:2], tmp_path, 2)] == ["0\n", "1\n"]
    found = run_children(tools, tmp_path, 2)
    assert [(done.stdout, done.returncode) for done in found] == [("0\n", 0), ("1\n", 0), ("2\n", 1)]


@needs_proc
def test_those_beside_one_that_fails_end(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    tools = [[sys.executable, "-c", "raise SystemExit(1)"], [sys.executable, "-c", TOOL, mark]]
    assert [done.returncode for done in run_children(tools, tmp_path, 2)] == [1]
    assert left_with(mark) == []


@needs_proc
def test_one_that_starts_late_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started when those that run have been ended already."""
    mark, ended = f"mark-{uuid.uuid4()}", threading.Event()
    start, end = child.start_child, child.end_child

    def late(command: Sequence[str], *others: Any, **streams: Any) -> subprocess.Popen[str]:
        if mark in command:
            ended.wait()
        return start(command, *others, **streams)

    def ending(process: subprocess.Popen[str]) -> None:
        end(process)
        ended.set()

    monkeypatch.setattr(child, "start_child", late)
    monkeypatch.setattr(child, "end_child", ending)
    tools = [[sys.executable, "-c", "raise SystemExit(1)"], [sys.executable, "-c", TOOL, mark]]
    assert [done.returncode for done in run_children(tools, tmp_path, 2)] == [1]
    assert left_with(mark) == []


@needs_proc
def test_a_program_ends_by_an_exception_here(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"mark-{uuid.uuid4()}"

    def interrupted(self: subprocess.Popen[str], given: str | None = None) -> None:
        while len(alive_with(mark)) < 3:
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr(child.subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_child([sys.executable, "-c", TOOL, mark])
    assert left_with(mark) == []


@needs_proc
def test_ending_a_program_that_has_ended() -> None:
    with start_child([sys.executable, "-c", "pass"]) as process:
        process.wait()
        end_child(process)


@needs_proc
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children that their parent is gone")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_ends_with_its_parent(number: int) -> None:
    """However that ends: its own program, and what this started."""
    mark = f"mark-{uuid.uuid4()}"
    start = f"run_child([sys.executable, '-c', {TOOL!r}, {mark!r}])"
    code = f"import sys; from relay_hw.support.child import run_child; {start}"
    parent = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    # It, the shell that leads the group, the tool, and the tool's own.
    while len(alive_with(mark)) < 4:
        assert parent.poll() is None
    parent.send_signal(number)
    parent.wait()
    assert left_with(mark) == []
