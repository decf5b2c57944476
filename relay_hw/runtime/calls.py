"""Finds the order in which an inference calls the regions of a build; runs the host's part if it has control flow.

In: the flat `main` of a build, its functions, a sample. Out: `Calls`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from relay_hw.backend.flat import FlatFunction, FlatInvoke, Machine, Value, evaluate
from relay_hw.backend.nodes import STRAIGHT
from relay_hw.errors import EvalError, InputError
from relay_hw.runtime.manifest import TensorInfo
from relay_hw.runtime.ports import random_samples, read_samples

# Calls of a sample whose order is looked for: some seconds of small ones, after which it most likely never ends.
MOST_CALLS: Final = 100_000


def outside(
    main: FlatFunction, functions: Mapping[str, FlatFunction], segments: Collection[str]
) -> dict[str, FlatFunction]:
    """Functions by name that call segments without being one: `main` and functions of control flow."""
    return {"main": main} | {name: function for name, function in functions.items() if name not in segments}


class Source(Enum):
    """How the order of calls is known."""

    PROGRAM = "the program: nothing depends on data"
    SAMPLE = "the first sample of the data"
    RANDOM = "a random sample"
    NONE = "nothing: no sample could be run, so each region counts once"


@dataclass(frozen=True, slots=True)
class Calls:
    """Device functions in the order in which one inference launches them, and how that is known."""

    order: tuple[str, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class Caller:
    """The host's part of a build: `segments` are the functions that `main` calls, `regions` those on the device.

    `batch`: parts of a sample, which go through the regions one after the other.
    """

    main: FlatFunction
    functions: Mapping[str, FlatFunction]
    segments: Collection[str]
    regions: Sequence[str]
    batch: int = 1

    @property
    def is_straight(self) -> bool:
        """Whether `main` does no more than call segments one after the other."""
        return all(
            node.function in self.segments if isinstance(node, FlatInvoke) else isinstance(node, STRAIGHT)
            for node in self.main.nodes
        )

    def calls(self, rows: Sequence[TensorInfo], data: Mapping[str, Any] | None = None) -> Calls:
        """The order of calls; where it depends on data, that of the first sample of `data`, else of a random one."""
        if self.is_straight:
            names = [node.function for node in self.main.nodes if isinstance(node, FlatInvoke)]
            order = tuple(name for name in names if name in self.regions)
            return Calls(order * self.batch, Source.PROGRAM)
        for source in (Source.SAMPLE, Source.RANDOM):
            try:
                given = data if source is Source.SAMPLE else random_samples(rows, 1, has_control_flow=True)
                if given is not None:
                    return Calls(self.traced(rows, given), source)
            except (InputError, EvalError):
                continue
        return Calls(tuple(self.regions), Source.NONE)

    def traced(self, rows: Sequence[TensorInfo], data: Mapping[str, Any]) -> tuple[str, ...]:
        """Regions in the order in which the first sample of `data` calls them, found by running it on numpy.

        Raises InputError for other data, EvalError.
        """
        found: list[str] = []

        def invoke(name: str, args: list[Value]) -> Value:
            if name in self.regions:
                found.append(name)
            return evaluate(self.functions[name], args)

        self._run(rows, data, invoke)
        return tuple(found)

    def host_seconds(self, rows: Sequence[TensorInfo], data: Mapping[str, Any], results: Mapping[str, Value]) -> float:
        """Wall-clock seconds of the first sample of `data` outside of the regions, with host functions on numpy.

        `results`: by region, what stands for its value where nothing depends on it but values.
        Raises InputError for other data, EvalError.
        """
        inside = 0.0

        def invoke(name: str, args: list[Value]) -> Value:
            nonlocal inside
            if name not in self.regions:
                return evaluate(self.functions[name], args)
            if self.is_straight:
                return results[name]
            begin = time.perf_counter()
            value = evaluate(self.functions[name], args)
            inside += time.perf_counter() - begin
            return value

        begin = time.perf_counter()
        self._run(rows, data, invoke)
        return time.perf_counter() - begin - inside

    def _run(
        self, rows: Sequence[TensorInfo], data: Mapping[str, Any], invoke: Callable[[str, list[Value]], Value]
    ) -> None:
        """Run `main` on the first sample of `data`."""
        _, samples = read_samples(rows, data)
        host = Machine(outside(self.main, self.functions, self.segments), self.segments, MOST_CALLS)
        host.call(self.main, [samples[param.name][0] for param in self.main.params], invoke)
