"""Children that read inputs: whatever one of them does, the run goes on. Linux alone.

In: jobs, each some inputs of one entry point. Out: their findings. A child has imported what this process has, takes no
more memory than that and `MOST_BYTES`, and no more than `MOST_SECONDS` of processor time an input.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import resource
import selectors
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from relay_hw.support.child import bound, bound_memory
from tests.fuzz.judge import Entry, Finding, Outcome, judge, made

MOST_BYTES: Final = 1 << 30
MOST_SECONDS: Final = 5.0
# An input that waits for something takes no processor time; nothing here has to wait.
MOST_SECONDS_ON_THE_WALL: Final = 60.0


@dataclass(frozen=True, slots=True)
class Job:
    """Inputs `first` up to `last` of one entry point."""

    entry: Entry
    seed: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Done:
    """A job's findings by number, and the longest time that one of them took."""

    job: Job
    findings: dict[int, Finding]
    slowest: float


@dataclass(slots=True)
class _Child:
    """A process at work on a job."""

    job: Job
    folder: Path
    pid: int
    stream: int
    next: int
    findings: dict[int, Finding] = field(default_factory=dict[int, Finding])
    slowest: float = 0.0
    rest: bytes = b""
    heard: float = field(default_factory=time.monotonic)


def run(jobs: Sequence[Job], processes: int, folder: Path) -> Iterator[Done]:
    """The jobs' findings, each job as soon as it is done. `folder` is where inputs become files."""
    waiting = list(reversed(jobs))
    for job in {job.entry.name: job for job in jobs}.values():
        made(job.entry, job.seed, job.first)  # what all inputs are made from is made once, not by every child
    with selectors.DefaultSelector() as ready:
        live: list[_Child] = []
        try:
            while waiting or live:
                while waiting and len(live) < processes:
                    job = waiting.pop()
                    _begin(ready, live, _Child(job, folder / job.entry.name, 0, -1, job.first))
                for key, _ in ready.select(1.0):
                    yield from _hear(ready, live, key.data)
                for child in list(live):
                    if time.monotonic() - child.heard > MOST_SECONDS_ON_THE_WALL:
                        os.kill(child.pid, signal.SIGXCPU)
        finally:
            for child in live:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
                os.close(child.stream)


def _begin(ready: selectors.BaseSelector, live: list[_Child], child: _Child) -> None:
    """Start a process at the child's next input."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _work(child, writing)
    os.close(writing)
    child.pid, child.stream, child.rest, child.heard = pid, reading, b"", time.monotonic()
    live.append(child)
    ready.register(reading, selectors.EVENT_READ, child)


def _hear(ready: selectors.BaseSelector, live: list[_Child], child: _Child) -> Iterator[Done]:
    """Take what a child wrote; where it ended, go on behind the input that ended it, or give its job back as done."""
    data = os.read(child.stream, 1 << 16)
    child.heard = time.monotonic()
    *lines, child.rest = (child.rest + data).split(b"\n")
    for line in lines:
        outcome, said, seconds = json.loads(line)
        child.findings[child.next] = Finding(Outcome(outcome), said)
        child.slowest = max(child.slowest, seconds)
        child.next += 1
    if data:
        return
    ready.unregister(child.stream)
    os.close(child.stream)
    live.remove(child)
    status = os.waitpid(child.pid, 0)[1]
    if child.next < child.job.last:
        child.findings[child.next] = _ended(status)
        child.next += 1
    if child.next < child.job.last:
        _begin(ready, live, child)
    else:
        yield Done(child.job, child.findings, child.slowest)


def _ended(status: int) -> Finding:
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGPROF, -signal.SIGXCPU):
        return Finding(Outcome.SLOW, f"took more than {MOST_SECONDS} s")
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    return Finding(Outcome.CRASH, f"ended the process: {how}")


def _work(child: _Child, writing: int) -> NoReturn:
    """The child: read inputs, write a line for each."""
    try:
        for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGPROF, signal.SIGXCPU):
            signal.signal(stop, signal.SIG_DFL)
        faulthandler.disable()
        # Nobody wants its core, and what a library says while it dies is not for this terminal.
        bound(resource.RLIMIT_CORE, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        bound_memory(MOST_BYTES)
        folder = child.folder / str(os.getpid())
        folder.mkdir(parents=True)
        for number in range(child.next, child.job.last):
            data = made(child.job.entry, child.job.seed, number)
            begin = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            finding = judge(child.job.entry, data, folder)
            signal.setitimer(signal.ITIMER_PROF, 0)
            line = [finding.outcome.value, finding.said[:2_000], round(time.process_time() - begin, 3)]
            os.write(writing, json.dumps(line).encode() + b"\n")
    except BaseException:
        os._exit(1)
    os._exit(0)
