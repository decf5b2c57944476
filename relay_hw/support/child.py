"""Runs child processes that never outlive this process, nor do their own children, however it ends.

In: a command. Out: the process, or what it said. On systems other than Linux they end with this process only where it
ends by an exception. A program that reads untrusted data limits itself here, too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final

# Linux's prctl(2): the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG: Final = 1
# A shell leads the process group of the command and its children, and ends the group on request.
_GUARD: Final = 'trap "kill -9 0" TERM; exec 3<&0; "$@" <&3 3<&- & exec 3<&-; wait "$!"'


def start_child(
    command: Sequence[str | Path],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    is_kind: bool = False,
    **streams: Any,
) -> subprocess.Popen[str]:
    """Start a command with text streams. `is_kind`: at low priority. Raises FileNotFoundError."""
    words = [os.fspath(word) for word in command]
    if shutil.which(words[0]) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", *words],
        cwd=folder,
        env=environment,
        text=True,
        start_new_session=True,
        preexec_fn=_in_child(is_kind),
        **streams,
    )


def run_child(
    command: Sequence[str | Path],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    given: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `given` is its standard input. Raises FileNotFoundError."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_child(command, folder, environment, **streams) as process:
        try:
            said, errors = process.communicate(given)
        except BaseException:
            end_child(process)
            raise
    return subprocess.CompletedProcess(list(command), process.returncode, said, errors)


def run_children(
    commands: Sequence[Sequence[str | Path]], folder: Path, jobs: int
) -> list[subprocess.CompletedProcess[str]]:
    """Run commands, `jobs` at a time, to the end of all or until one fails; what was run, in order, that one last.

    Raises FileNotFoundError.
    """
    live: list[subprocess.Popen[str]] = []
    lock, is_over = Lock(), False

    def run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with start_child(command, folder, **streams) as process:
            with lock:
                live.append(process)
                # One that was about to start when another failed ends as well.
                if is_over:
                    end_child(process)
            said, errors = process.communicate()
        return subprocess.CompletedProcess(list(command), process.returncode, said, errors)

    found: list[subprocess.CompletedProcess[str]] = []
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in pool.map(run, commands):
                found.append(done)
                if done.returncode:
                    break
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            with lock:
                is_over = True
                for process in live:
                    end_child(process)
    return found


def end_child(process: subprocess.Popen[str]) -> None:
    """End a child and all processes that it started; does nothing if it has ended."""
    if process.poll() is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def bound(what: int, most: int) -> None:
    """Limit a resource of this process, one of `resource.RLIMIT_*`, to `most`, or less if it was limited before."""
    import resource

    before = resource.getrlimit(what)[1]
    least = most if before == resource.RLIM_INFINITY else min(most, before)
    resource.setrlimit(what, (least, before))


def bound_memory(more_bytes: int) -> None:
    """Limit address space to this many bytes more than now, or in total if the current size is unknown."""
    import resource

    told = Path("/proc/self/statm")
    pages = int(told.read_text().split()[0]) if told.exists() else 0
    bound(resource.RLIMIT_AS, pages * resource.getpagesize() + more_bytes)


def _in_child(is_kind: bool) -> Callable[[], None]:
    """Set up the child process before it runs the command."""
    parent = os.getpid()
    # Nothing may be imported between fork and exec.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    nice = getattr(os, "nice", None) if is_kind else None

    def prepare() -> None:
        if nice is not None:
            nice(10)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # it ended in between
                os._exit(1)

    return prepare
