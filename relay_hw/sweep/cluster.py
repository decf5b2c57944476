"""Tasks on the workers of a Dask cluster, started here or running elsewhere.

In: functions, tasks. Out: results as they come. Needs the extra `explore`; `workers.py` asks before it imports this.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Final
from uuid import uuid4

import dask.config
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, Status, WorkerPlugin, get_worker
from distributed.system import MEMORY_LIMIT

from relay_hw.errors import InputError
from relay_hw.support.progress import Progress, ProgressStep
from relay_hw.sweep.crew import Crew, HereCrew, Listen, ignore
from relay_hw.sweep.tasks import Failure, Result, Start, Work, attempt, seldom

_LOOPBACK: Final = "127.0.0.1"
# Seconds that a scheduler may take for an answer, and processes of this machine until they are there.
_PATIENCE: Final = 20
_START_PATIENCE: Final = 300
# Seconds without a worker of another scheduler: those of batch systems wait in a queue.
_QUEUE_PATIENCE: Final = 3600
# Seconds between looks at processes that start.
_LOOK: Final = 0.05
_CONFIG: Final = {
    # A worker that needs nearly all memory of the machine is ended; no worker waits for others to free some.
    **{f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")},
    # A killed worker is started again, however long a busy machine takes for that.
    "distributed.deploy.lost-worker-timeout": "1 day",
}
# Nannies set the threads of other libraries.
_ENVIRONMENT: Final = {"TVM_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class _Step:
    """What a task does now."""

    number: int
    step: ProgressStep


@dataclass(frozen=True, slots=True)
class _Done:
    """A task that has ended, well or not."""

    number: int
    future: Future


class Cluster:
    """The workers of a cluster. A worker that dies is replaced, and its unfinished tasks run again.

    `grow` starts processes until there are enough for a number of tasks; None: they are not ours to start.
    """

    def __init__(self, client: Client, grow: Callable[[int], object] | None = None) -> None:
        self._client, self._grow = client, grow

    @contextmanager
    def crew(self, start: Start, work: Work) -> Iterator[Crew]:
        """See `Workers.crew`. Each worker, also one that comes later, gets its copy of the data."""
        name = f"relay-hw {uuid4().hex}"
        self._client.register_plugin(_Shared(pickle.dumps(start)), name=name)
        try:
            yield _ClusterCrew(self._client, self._grow, name, work, HereCrew(start, work))
        finally:
            # A scheduler that is gone has forgotten it, too.
            with suppress(OSError, CancelledError):
                self._client.unregister_worker_plugin(name)


class _ClusterCrew:
    """Tasks of one kind on a cluster. One task alone does not start processes of this machine."""

    def __init__(
        self, client: Client, grow: Callable[[int], object] | None, name: str, work: Work, here: HereCrew
    ) -> None:
        self._client, self._grow, self._name, self._work, self._here = client, grow, name, work, here

    def run(self, tasks: Sequence[Any], listen: Listen = ignore) -> Iterator[tuple[int, Any]]:
        """See `Crew.run`."""
        if self._grow is not None and len(tasks) <= 1:
            yield from self._here.run(tasks, listen)
            return
        if self._grow is not None:
            self._grow(len(tasks))
        # Dask calls from threads of its own; whoever listens is called from this one.
        heard: SimpleQueue[_Step | _Done] = SimpleQueue()
        topic = f"{self._name} {uuid4().hex}"
        self._client.subscribe_topic(topic, lambda event: heard.put(_step(*event[1])))
        try:
            live = dict(enumerate(self._submit(topic, number, task, heard) for number, task in enumerate(tasks)))
            while live:
                found = self._next(heard)
                if found is None or found.number not in live:
                    continue
                if isinstance(found, _Step):
                    listen(found.number, found.step)
                    continue
                del live[found.number]
                yield found.number, _value(found.future)
        finally:
            self._client.unsubscribe_topic(topic)

    def _next(self, heard: SimpleQueue[_Step | _Done]) -> _Step | _Done | None:
        """What a worker tells; None if all are silent for long. Raises InputError if there is none any more."""
        patience = _QUEUE_PATIENCE if self._grow is None else _START_PATIENCE
        with suppress(Empty):
            return heard.get(timeout=patience)
        if self._client.nthreads():
            return None
        if self._grow is not None:
            raise InputError("a process must be left, not none: use fewer; what is computed so far is kept")
        raise InputError(f"the scheduler must have a worker within {patience} seconds: start one with `dask worker`")

    def _submit(self, topic: str, number: int, task: Any, heard: SimpleQueue[_Step | _Done]) -> Future:
        future = self._client.submit(_compute, self._name, topic, number, self._work, task, pure=False)
        future.add_done_callback(lambda done: heard.put(_Done(number, done)))
        return future


def _step(number: int, name: str, total: int | None, done: int, detail: str) -> _Step:
    return _Step(number, ProgressStep(name, total, done, detail))


def _value(future: Future) -> Any:
    """The result of a task. Raises what it raised, InputError if no worker survives it or the scheduler is gone."""
    try:
        found: Result | Failure = future.result()
    except KilledWorker as error:
        raise InputError(
            f"a worker process must stay alive, not be killed {error.allowed_failures + 1} times at one task; if it is "
            "out of memory: use fewer processes, fewer samples or a smaller model"
        ) from None
    except CancelledError:
        raise InputError("the scheduler must stay reachable; run again to go on from the results so far") from None
    if isinstance(found, Failure):
        raise found.error()
    return found.value


class _Shared(WorkerPlugin):
    """Holds the data that tasks of a worker share; they are made when the first task comes."""

    def __init__(self, start: bytes) -> None:
        self._start = start

    def setup(self, worker: Any) -> None:
        """Called by Dask where a worker begins."""
        self._lock, self._made = Lock(), list[Any]()

    def get(self) -> Any:
        """The shared data of this process."""
        with self._lock:
            if not self._made:
                self._made.append(pickle.loads(self._start)())
                self._start = b""
            return self._made[0]


def _compute(name: str, topic: str, number: int, work: Work, task: Any) -> Result | Failure:
    """Compute a task on a worker, and tell what it does."""
    worker = get_worker()
    plugin = worker.plugins[name]
    assert isinstance(plugin, _Shared)

    def tell(step: ProgressStep) -> None:
        worker.log_event(topic, [number, step.name, step.total, step.done, step.detail])

    return attempt(work, plugin.get, task, seldom(tell))


@contextmanager
def local_cluster(processes: int, progress: Progress) -> Iterator[Cluster]:
    """Up to `processes` of this machine, started when there are tasks for them; they listen on loopback only."""
    with _environment_restored(), dask.config.set(_CONFIG):
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            dashboard_address=f"{_LOOPBACK}:0",
            silence_logs=logging.CRITICAL,
            memory_limit=MEMORY_LIMIT,
            env=_ENVIRONMENT,
        )
        with cluster, Client(cluster) as client:
            cluster.sync(_ignore_keyboard)
            running = 0

            def grow(tasks: int) -> None:
                nonlocal running
                wanted = min(processes, tasks)
                if wanted > running:
                    progress.started(f"starting {wanted} processes")
                    cluster.scale(wanted)
                    _wait(cluster, wanted)
                    running = wanted

            yield Cluster(client, grow)


def _wait(cluster: LocalCluster, wanted: int) -> None:
    """Return once all processes have started. Raises InputError if one ended instead, or takes too long."""
    try:
        started = cluster.sync(_started, cluster, wanted, callback_timeout=_START_PATIENCE)
    except (TimeoutError, asyncio.TimeoutError):  # Python 3.10 has two
        raise InputError(f"{wanted} processes must start within {_START_PATIENCE} seconds; use fewer") from None
    if not started:
        raise InputError(
            "processes must start, not end before they compute: a script must have what it does below "
            'if __name__ == "__main__", as each of them reads it; else use --processes 1'
        )


async def _started(cluster: LocalCluster, wanted: int) -> bool:
    """Whether all processes started, once each has or has ended. Dask waits for those that ended, too."""
    while len(cluster.workers) < wanted:
        await asyncio.sleep(_LOOK)
    return all(worker.status is Status.running for worker in cluster.workers.values())


async def _ignore_keyboard() -> None:
    """Block SIGINT in the thread that starts processes, so that each is born without it.

    At a terminal it reaches all processes; the parent, whose other threads take it, ends them.
    """
    # A tracker that starts later would let interrupts through again.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


@contextmanager
def _environment_restored() -> Iterator[None]:
    """Take back what is set for workers in the environment of this process."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def remote_cluster(scheduler: str) -> Iterator[Cluster]:
    """The workers of a running scheduler, with certificates from Dask's configuration. Raises InputError."""
    try:
        client = Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"scheduler {scheduler} must answer: {error}") from None
    with client:
        yield Cluster(client)
