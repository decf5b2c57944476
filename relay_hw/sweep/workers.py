"""Chooses where tasks are computed: in this process, or by the workers of a Dask cluster.

In: a number of processes, maybe an address. Out: `Workers`. A scheduler runs any code that it is sent: a local cluster
listens on loopback only, a remote one is reached by its address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from relay_hw.errors import InputError
from relay_hw.support.progress import Progress
from relay_hw.sweep.crew import Here, Workers

MISSING: Final = "dask and distributed must be installed: pip install 'relay-hw[explore]'"
_SCHEMES: Final = ("tls://", "tcp://")


def has_dask() -> bool:
    """Whether Dask is installed."""
    return find_spec("distributed") is not None


def default_processes() -> int:
    """Cores that this process may use; 1 without Dask."""
    if not has_dask():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_scheduler(address: str) -> None:
    """Raise InputError for an invalid scheduler address, or if Dask is not installed."""
    if not address.startswith(_SCHEMES):
        raise InputError(f"scheduler must be tls://HOST:PORT or tcp://HOST:PORT, not {address}")
    if not has_dask():
        raise InputError(MISSING)


def check_processes(processes: int | None) -> None:
    """Raise InputError if several processes are asked for by number and Dask is not installed."""
    if (processes or 1) > 1 and not has_dask():
        raise InputError(f"{MISSING}, or leave --processes out")


@contextmanager
def workers(processes: int, scheduler: str | None, progress: Progress) -> Iterator[Workers]:
    """Up to `processes` of this machine, those of a `scheduler`, or this process.

    Raises InputError if a scheduler cannot be reached.
    """
    if scheduler is None and (processes == 1 or not has_dask()):
        yield Here()
        return
    from relay_hw.sweep.cluster import local_cluster, remote_cluster

    found = local_cluster(processes, progress) if scheduler is None else remote_cluster(scheduler)
    with found as cluster:
        yield cluster
