"""Measures points on the workers of a Dask cluster, started here or running elsewhere.

In: a `Setting`, designs under their keys. Out: measurements as they come. Needs the extra `explore`; `workers.py` asks
before it imports this.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from distributed import Client, LocalCluster, WorkerPlugin, as_completed, get_worker

from relay_hw.errors import InputError
from relay_hw.explore.bench import Answer, Bench, Setting
from relay_hw.explore.design import Design

_PLUGIN: Final = "relay-hw bench"
_LOOPBACK: Final = "127.0.0.1"
# Seconds that a scheduler may take for an answer.
_PATIENCE: Final = 20


class Cluster:
    """The workers of a cluster. A worker that dies is replaced, and its unfinished tasks run again."""

    def __init__(self, client: Client, setting: Setting) -> None:
        self._client = client
        client.register_plugin(_BenchPlugin(setting), name=_PLUGIN)

    def measure(self, designs: Mapping[str, Design]) -> Iterator[Answer]:
        """Measure each of them; yields in order of completion."""
        futures = [self._client.submit(_task, key, design, pure=False) for key, design in designs.items()]
        for _, found in as_completed(futures, with_results=True):
            yield found


class _BenchPlugin(WorkerPlugin):
    """Gives each worker, also one that comes later, its copy of what points share."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.bench: Bench | None = None

    def setup(self, worker: Any) -> None:
        """Called by Dask where a worker begins."""
        self.bench = Bench(self._setting)


def _task(key: str, design: Design) -> Answer:
    plugin = get_worker().plugins[_PLUGIN]
    assert isinstance(plugin, _BenchPlugin) and plugin.bench is not None
    return plugin.bench.answer(key, design)


@contextmanager
def local_client(processes: int) -> Iterator[Client]:
    """A client of a new cluster of local processes, which listens on loopback only."""
    with (
        LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            processes=True,
            host=_LOOPBACK,
            dashboard_address=f"{_LOOPBACK}:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def remote_client(scheduler: str) -> Iterator[Client]:
    """A client of a running scheduler, with certificates from Dask's configuration. Raises InputError."""
    try:
        client = Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"scheduler {scheduler} must answer: {error}") from None
    with client:
        yield client
