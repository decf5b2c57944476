"""Where points are measured: in this process, or by the workers of a Dask cluster.

In: a `Setting`, designs under their keys. Out: measurements as they come. A scheduler runs any code that it is sent:
a local cluster listens on loopback only, a remote one is reached by its address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final, Protocol

from relay_hw.errors import InputError
from relay_hw.explore.bench import Answer, Bench, Setting
from relay_hw.explore.design import Design
from relay_hw.support.progress import Progress

MISSING: Final = "dask and distributed must be installed: pip install 'relay-hw[explore]'"
_SCHEMES: Final = ("tls://", "tcp://")


class Workers(Protocol):
    """Measures designs under the keys of their contents."""

    def measure(self, designs: Mapping[str, Design]) -> Iterator[Answer]:
        """Measure each of them once; yields in order of completion."""
        ...


class Here:
    """This process alone."""

    def __init__(self, setting: Setting) -> None:
        self._bench = Bench(setting)

    def measure(self, designs: Mapping[str, Design]) -> Iterator[Answer]:
        """Measure each of them, one after the other."""
        for key, design in designs.items():
            yield self._bench.answer(key, design)


def has_dask() -> bool:
    """Whether Dask is installed."""
    return find_spec("distributed") is not None


def check_scheduler(address: str) -> None:
    """Raise InputError for an invalid scheduler address, or if Dask is not installed."""
    if not address.startswith(_SCHEMES):
        raise InputError(f"scheduler must be tls://HOST:PORT or tcp://HOST:PORT, not {address}")
    if not has_dask():
        raise InputError(MISSING)


@contextmanager
def workers(processes: int, scheduler: str | None, progress: Progress) -> Iterator[Callable[[Setting], Workers]]:
    """A function that makes the workers: `processes` of this machine, those of a `scheduler`, or this process.

    Raises InputError if a scheduler cannot be reached.
    """
    if scheduler is None and (processes == 1 or not has_dask()):
        yield Here
        return
    from relay_hw.explore.cluster import Cluster, local_client, remote_client

    if scheduler is None:
        progress.started(f"starting {processes} processes")
    with local_client(processes) if scheduler is None else remote_client(scheduler) as client:
        yield lambda setting: Cluster(client, setting)
