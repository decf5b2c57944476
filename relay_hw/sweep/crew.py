"""The interface by which tasks are computed, and its simplest form: this process alone.

In: functions and tasks that can be pickled. Out: results as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Protocol

from relay_hw.support.progress import ProgressStep, Steps
from relay_hw.sweep.tasks import Start, Work

# Number of a task, what it does now.
Listen = Callable[[int, ProgressStep], object]


def ignore(_number: int, _step: ProgressStep) -> None:
    """Listen to no task."""


class Crew(Protocol):
    """Computes tasks of one kind, which share data in each process."""

    def run(self, tasks: Sequence[Any], listen: Listen = ignore) -> Iterator[tuple[int, Any]]:
        """Yield (number of the task, result) in order of completion.

        Raises what a task raised; errors that are no refusals become RuntimeError with the trace in other processes.
        """
        ...


class Workers(Protocol):
    """Processes that compute tasks."""

    def crew(self, start: Start, work: Work) -> AbstractContextManager[Crew]:
        """A crew for tasks of the kind `work`; `start` makes the shared data of one process, once it has a task."""
        ...


class Here:
    """This process alone."""

    @contextmanager
    def crew(self, start: Start, work: Work) -> Iterator[Crew]:
        """See `Workers.crew`."""
        yield HereCrew(start, work)


class HereCrew:
    """Computes tasks one after the other."""

    def __init__(self, start: Start, work: Work) -> None:
        self._start, self._work = start, work
        self._shared: list[Any] = []

    def run(self, tasks: Sequence[Any], listen: Listen = ignore) -> Iterator[tuple[int, Any]]:
        """See `Crew.run`."""
        for number, task in enumerate(tasks):
            if not self._shared:
                self._shared.append(self._start())
            yield number, self._work(self._shared[0], task, Steps(partial(listen, number)))
