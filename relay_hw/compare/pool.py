"""A pool of worker processes, each with its own copy of the shared data.

In: a `start` and tasks, all of them functions and values that can be pickled. Out: results in the order in which they
come. A worker that dies, fails or is interrupted ends the others, and none outlives the parent.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from relay_hw.accel.isa.errors import AccelError
from relay_hw.errors import InputError, QuantizeError, RelayHwError, UnsupportedError
from relay_hw.support.progress import IDLE, Progress, ProgressStep, Steps

Work = Callable[[Any, Any, Progress], Any]  # (shared, task, progress) -> result
Listen = Callable[[int, ProgressStep], object]  # number of the task, what it does now

_FAMILY: Final = {kind.__name__: kind for kind in (InputError, QuantizeError, UnsupportedError)}
_QUIET_SECONDS: Final = 0.2
# Workers share the cores: libraries that start threads of their own would fight for them.
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")


class SideBySide:
    """Shows the progress of parallel tasks as one step."""

    def __init__(self, progress: Progress, names: Sequence[str], what: str, before: int = 0) -> None:
        self._progress = progress
        self._names = names
        self._step = f"comparing, {what}"
        self._ready = before
        progress.started(self._step, len(names) + before)

    def __call__(self, number: int, step: ProgressStep) -> None:
        if step is not IDLE:
            self._progress.advanced(self._step, self._ready, f"{self._names[number]}: {step.text}")

    def done(self) -> None:
        """Count a finished task."""
        self._ready += 1
        self._progress.advanced(self._step, self._ready)


@dataclass(frozen=True, slots=True)
class _Message:
    """`kind`: step, done or failed; `name`: of the error's class."""

    kind: str
    content: Any
    name: str = ""


def run_tasks(
    start: Callable[[], Any], work: Work, tasks: Sequence[Any], processes: int, listen: Listen
) -> Iterator[tuple[int, Any]]:
    """Yield (number of the task, result) as tasks finish; `start` makes the shared data of one process.

    With one process, or one task, everything happens here. Raises what a task raised; errors that are no refusals
    become RuntimeError with the worker's trace.
    """
    count = min(processes, len(tasks))
    if count <= 1:
        shared = start() if tasks else None
        for number, task in enumerate(tasks):
            yield number, work(shared, task, Steps(partial(listen, number)))
        return
    workers: list[_Worker] = []
    try:
        with _single_threads(), _no_interrupts():
            for _ in range(count):
                workers.append(_Worker(start, work))
        yield from _collect(workers, tasks, listen)
    finally:
        for worker in workers:
            worker.stop()


def _collect(workers: Sequence[_Worker], tasks: Sequence[Any], listen: Listen) -> Iterator[tuple[int, Any]]:
    waiting = list(reversed(range(len(tasks))))
    busy: dict[Connection, tuple[_Worker, int]] = {}
    for worker in workers:
        number = waiting.pop()
        worker.give(tasks[number])
        busy[worker.pipe] = (worker, number)
    while busy:
        for pipe in wait(list(busy)):
            assert isinstance(pipe, Connection)
            worker, number = busy[pipe]
            message = worker.take()
            if message.kind == "step":
                listen(number, message.content)
                continue
            del busy[pipe]
            if message.kind == "failed":
                raise _FAMILY.get(message.name, RuntimeError)(message.content)
            if waiting:
                following = waiting.pop()
                worker.give(tasks[following])
                busy[pipe] = (worker, following)
            yield number, message.content


class _Worker:
    """One process at the other end of a pipe."""

    def __init__(self, start: Callable[[], Any], work: Work) -> None:
        context = multiprocessing.get_context("spawn")
        ends: Any = context.Pipe()
        self.pipe: Connection = ends[0]
        theirs: Connection = ends[1]
        self._process = context.Process(target=_serve, args=(theirs, start, work), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, task: Any) -> None:
        self.pipe.send(task)

    def take(self) -> _Message:
        """The next message. Raises RuntimeError if the process has ended."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(5)
            code = self._process.exitcode
            hint = "; use fewer processes if memory is short" if code == -signal.SIGKILL else ""
            raise InputError(f"a worker process must stay alive, not end with status {code}{hint}") from None

    def stop(self) -> None:
        self.pipe.close()
        self._process.terminate()
        self._process.join()


class _Sender:
    """Sends a task's progress, at a limited rate."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._next = 0.0

    def __call__(self, step: ProgressStep) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _QUIET_SECONDS
            self._pipe.send(_Message("step", step))


def _serve(pipe: Connection, start: Callable[[], Any], work: Work) -> None:
    """The loop of a worker: receives tasks, sends messages, ends when the parent's pipe breaks."""
    try:
        shared = None
        while True:
            task = pipe.recv()
            try:
                if shared is None:
                    shared = start()
                result = work(shared, task, Steps(_Sender(pipe)))
            except (RelayHwError, AccelError) as error:
                name = type(error).__name__
                pipe.send(_Message("failed", str(error), name if name in _FAMILY else "InputError"))
            except (EOFError, ConnectionError):
                return
            except Exception:
                pipe.send(_Message("failed", traceback.format_exc()))
            else:
                pipe.send(_Message("done", result))
    except (EOFError, ConnectionError):
        return


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Make processes started in the block ignore keyboard interrupts from their first instruction on.

    It reaches the parent, which ends them; behind the block, as a process that is half started would complain.
    """
    # A tracker that starts later would let interrupts through again.
    resource_tracker.ensure_running()
    late: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    # Another thread of the parent may take the signal, so that blocking it here is not enough for the parent.
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    handlers = {number: signal.signal(number, lambda got, _frame: late.append(got)) for number in numbers}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in late[:1]:
            signal.raise_signal(number)


@contextmanager
def _single_threads() -> Iterator[None]:
    """Make processes started in the block use one thread each for linear algebra."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
