"""Runs a build: segments by launches of a device, by TVM or by numpy, and what lies between them by the flat machine.

In: an `Artifact`, a device, samples by input name. Out: outputs by name, cycles by launch, seconds by segment.
Samples run one after the other, as a deployment feeds them, or region by region in chunks. Weights that stay on the
device are loaded by a launch of their own, before the first one and whenever another program overwrote them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.isa.program import Program, SectionKind
from accel.sim.device import Device, Job, LaunchStats, run_jobs
from relay_hw.backend.flat import Machine, Value, as_array
from relay_hw.backend.meaning import Request, Thread
from relay_hw.backend.store import ConstantPool, flat_from_json
from relay_hw.errors import EvalError, InputError
from relay_hw.report import SegmentRow
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.calls import outside
from relay_hw.runtime.feed import Feeds, feed_back, read_steps
from relay_hw.runtime.holding import Footprints, Holding
from relay_hw.runtime.manifest import AccelFunction
from relay_hw.runtime.ports import Samples, joined
from relay_hw.runtime.result import ACCEL, Launch, Result
from relay_hw.runtime.steady import Steady, steady
from relay_hw.runtime.watch import watched
from tensorize.layout import image_bytes, image_of, pack_activation, unpack_activation

Array = NDArray[Any]
Progress = Callable[[str, float], None]


@dataclass(slots=True)
class _Clock:
    """What one segment has cost so far."""

    calls: int = 0
    seconds: float = 0.0
    cycles: int | None = None

    def add(self, seconds: float, cycles: int | None = None) -> None:
        """One more call."""
        self.calls += 1
        self.seconds += seconds
        self.add_cycles(cycles)

    def add_cycles(self, cycles: int | None) -> None:
        """Cycles of a launch, known or not."""
        self.cycles = self.cycles if cycles is None else (self.cycles or 0) + cycles


class Executor:
    """A build on a device. `device` None computes the regions by their numpy meaning: the reference."""

    def __init__(self, artifact: Artifact, device: Device | None) -> None:
        """Raises ProgramError for a device of another configuration, ArtifactError for code that nobody trusts."""
        artifact.check_trust()
        self._artifact = artifact
        self._device = device
        self._loaded: Program | None = None
        self._footprints = Footprints(artifact.config)
        self._holding = Holding(self._footprints)
        # Regions whose resident constants were loaded before, and the steady states of orders of calls.
        self._settled: set[str] = set()
        self._steady: dict[tuple[str, ...], Steady] = {}
        self._library: Any = None
        self._in_library = frozenset(artifact.manifest.library.functions if artifact.manifest.library else ())
        segments = frozenset(row.function for row in artifact.manifest.layers)
        self._on_device = frozenset(row.name for row in artifact.manifest.accel)
        hosts = {n: f for n, f in artifact.functions.items() if n in segments - self._on_device}
        self._watched = watched(hosts, artifact.manifest.layers)
        self._machine = Machine(outside(artifact.main, artifact.functions, segments), segments)
        if device is not None:
            for program in artifact.programs.values():
                program.check_config(device.config)

    def run(
        self,
        inputs: Mapping[str, Any],
        limit: int | None = None,
        progress: Progress | None = None,
        keep_regions: bool = False,
        chunk: int = 1,
        feeds: Feeds | None = None,
    ) -> Result:
        """Run the first `limit` samples (all by default), each whole before the next, or `chunk` of them at a time:
        the samples of a chunk take turns, so that a program runs for all of them that wait for it.

        `inputs`: an array for each input by name, samples on the first axis; other keys are ignored. A sample has the
        input's shape, or that shape without its batch axis of 1; for an input that is no tensor of known shape a
        sequence of values. `feeds`, as `check_feeds` gives them: outputs that are inputs of the next sample.
        Raises InputError, EvalError, Fault, AccelError.
        """
        feeds = feeds or {}
        if chunk < 1:
            raise InputError(f"chunk must be at least 1 sample, not {chunk}")
        if feeds and chunk > 1:
            raise InputError(f"chunk must be 1 sample where outputs are fed back, not {chunk}")
        rows = self._artifact.manifest
        samples, arrays = read_steps(rows, inputs, feeds, limit)
        count = samples if limit is None else min(limit, samples)
        if self._in_library:
            # Loading TVM is no part of the first function's time.
            self._tvm()
        begin = time.perf_counter()
        run = _Run(self, arrays, count, keep_regions, progress)
        results: list[Value] = []
        parts, turn = count * rows.batch, chunk * rows.batch
        for start in range(0, parts, turn):
            end = min(start + turn, parts)
            step = turn if chunk > 1 else 1
            for first in range(start, end, step):
                results += run.chunk(range(first, min(first + step, end)))
                if feeds:
                    feed_back(rows, feeds, arrays, results[-1])
            run.account()
        seconds = time.perf_counter() - begin
        regions = {name: tuple(np.concatenate(p) for p in zip(*v, strict=True)) for name, v in run.kept.items()}
        outputs = joined(rows.outputs, results, rows.batch)
        launches, residents = tuple(run.launches), tuple(run.residents)
        return Result(outputs, launches, count, seconds, regions, residents, run.segments(seconds), chunk)

    @property
    def machine(self) -> Machine:
        """Runs what lies between segments."""
        return self._machine

    def where(self, name: str) -> str:
        """What a segment runs on: accel, tvm or numpy."""
        if name in self._on_device:
            return ACCEL
        return "tvm" if name in self._in_library else "numpy"

    def host(self, name: str, args: Sequence[Value], sample: int = 0) -> Value:
        """One host function on one sample. Raises InputError where it would quantize NaN or infinity."""
        found = self._watched.get(name)
        if name in self._in_library:
            value = self._tvm().call(name, args)
        elif name not in self._artifact.functions:
            raise EvalError(f"@{name} must be a function of the build")
        else:
            value = self._machine.call(found.function if found else self._artifact.functions[name], args)
        return found.checked(args, value, sample) if found else value

    def repeats(self, calls: Sequence[str], loads: Mapping[int, str]) -> frozenset[int]:
        """Which of the loads of resident constants before these calls, by number of the call, come again.

        Once come those that the same calls, repeated, would not need, where nothing was loaded for the region before.
        """
        if not loads:
            return frozenset()
        order = tuple(calls)
        if order not in self._steady:
            self._steady[order] = steady(self._footprints, self._artifact.programs, order)
        again = self._steady[order].reloads
        found = frozenset(at for at, name in loads.items() if again[at] or name in self._settled)
        self._settled.update(loads.values())
        return found

    def settle(self, row: AccelFunction) -> LaunchStats | None:
        """Load the region's program where another one is loaded; the launch that made its weights stay, if it took one.

        The device must be used by this executor alone.
        """
        program = self._artifact.programs[row.name]
        if self._device is None or self._loaded is program:
            return None
        self._device.load(program)
        self._loaded = None
        needed = self._holding.needs(program)
        self._holding.take(program)
        stats = self._device.launch(SectionKind.RESIDENT) if needed else None
        self._holding.hold(program)
        self._loaded = program
        return stats

    def accelerate(
        self, row: AccelFunction, samples: Iterable[Sequence[Value]]
    ) -> Generator[tuple[Value, LaunchStats | None], None, None]:
        """One region, settled before, on samples: the value of each and what its launch measured."""
        if self._device is None:
            function = self._artifact.functions[row.name]
            yield from ((self._machine.call(function, args), None) for args in samples)
            return
        config = self._device.config
        program = self._artifact.programs[row.name]
        assert self._loaded is program, "settle comes first"
        slots = [program.tensor(port.tensor) for port in row.inputs]
        begins = [program.tensor_offset(slot.name) for slot in slots]
        reads = tuple(
            (program.tensor_offset(port.tensor), image_bytes(image_of(port.shape), config)) for port in row.outputs
        )

        def jobs() -> Iterator[Job]:
            for args in samples:
                packed = [pack_activation(v, config, s.layout) for v, s in zip(args, slots, strict=True)]
                writes = ((begin, data.view(np.uint8)) for begin, data in zip(begins, packed, strict=True))
                yield Job(tuple(writes), reads)

        for done in run_jobs(self._device, jobs()):
            parts = zip(done.found, row.outputs, strict=True)
            outputs = tuple(unpack_activation(data, port.shape, config) for data, port in parts)
            yield (outputs[0] if len(outputs) == 1 else outputs), done.stats

    def _tvm(self) -> Any:
        if self._library is None:
            from relay_hw.backend.tvm import BuiltLibrary, load_library

            row = self._artifact.manifest.library
            assert row is not None
            pool = ConstantPool()
            packed = {name: flat_from_json(entry, pool) for name, entry in row.packed.items()}
            with self._artifact.host_code() as folder:
                self._library = load_library(folder / row.file, BuiltLibrary(row.cpu, packed))
        return self._library

    @property
    def artifact(self) -> Artifact:
        """The build that runs."""
        return self._artifact


# By region: the samples that need it, and for what.
Waiting = dict[str, list[tuple[int, Request]]]


class _Run:
    """Samples on their way through `main`. Those that wait for the same region are served together.

    Of a model of batch N, each of a sample's N parts goes its own way, and takes launches of its own.
    """

    def __init__(
        self, executor: Executor, inputs: Mapping[str, Samples], count: int, keeps: bool, progress: Progress | None
    ) -> None:
        self.launches: list[Launch] = []
        self.residents: list[Launch] = []
        self.kept: dict[str, list[tuple[Array, ...]]] = {}
        self._executor = executor
        self._inputs = inputs
        self._count = count
        self._batch = executor.artifact.manifest.batch
        self._keeps = keeps
        self._progress = progress
        self._times: dict[str, _Clock] = {}
        self._last = ""
        # The launches of this turn, and the load before each, by its number.
        self._calls: list[Launch] = []
        self._loads: dict[int, Launch] = {}

    def chunk(self, samples: range) -> list[Value]:
        """Results of `main` for these samples, or parts of them, in order."""
        main, machine = self._executor.artifact.main, self._executor.machine
        threads = {k: Thread(machine, main, [self._inputs[p.name][k] for p in main.params]) for k in samples}
        waiting: Waiting = {}
        for k, thread in threads.items():
            self._advance(k, thread, None, waiting)
        while waiting:
            # The program that is loaded goes on while anything waits for it.
            name = self._last if self._last in waiting else max(waiting, key=lambda name: len(waiting[name]))
            self._last = name
            self._serve(name, threads, waiting)
        return [thread.value for thread in threads.values()]

    def account(self) -> None:
        """Loads that come again in each turn belong to it, others to no sample: to be called at the end of each."""
        names = {at: load.function for at, load in self._loads.items()}
        again = self._executor.repeats([launch.function for launch in self._calls], names)
        for at, launch in enumerate(self._calls):
            load = self._loads.get(at)
            if load is not None and at in again:
                self.launches.append(load)
                self._time(load.function).add_cycles(load.stats.cycles)
            elif load is not None:
                self.residents.append(load)
            self.launches.append(launch)
        self._calls.clear()
        self._loads.clear()

    def segments(self, seconds: float) -> tuple[SegmentRow, ...]:
        """What each segment cost, and what is left of all `seconds`."""
        where = self._executor.where
        rows = [SegmentRow(name, where(name), c.calls, c.seconds, c.cycles) for name, c in self._times.items()]
        rest = max(seconds - sum(row.seconds for row in rows), 0.0)
        return (*rows, SegmentRow("main", "machine", self._count, rest))

    def _advance(
        self, sample: int, thread: Thread, answer: Value, waiting: dict[str, list[tuple[int, Request]]]
    ) -> None:
        """Let a sample go on until it waits for a region, or is done."""
        while (request := thread.advance(answer)) is not None:
            name = request.function
            if self._executor.where(name) == ACCEL:
                waiting.setdefault(name, []).append((sample, request))
                return
            begin = time.perf_counter()
            answer = self._executor.host(name, request.args, sample)
            self._time(name).add(time.perf_counter() - begin)

    def _time(self, name: str) -> _Clock:
        return self._times.setdefault(name, _Clock())

    def _serve(self, name: str, threads: Mapping[int, Thread], waiting: Waiting) -> None:
        """Let a region answer all parts of samples that wait for it, in turn; each goes on with its answer."""
        group = waiting.pop(name)
        row = self._executor.artifact.accel(name)
        assert row is not None
        begin = time.perf_counter()
        settled = self._executor.settle(row)
        if settled is not None:
            self._loads[len(self._calls)] = Launch(group[0][0] // self._batch, name, settled, SectionKind.RESIDENT)
        with closing(self._executor.accelerate(row, (request.args for _, request in group))) as answers:
            for (part, _), (value, stats) in zip(group, answers, strict=True):
                self._time(name).add(time.perf_counter() - begin, None if stats is None else stats.cycles)
                self._note(name, part // self._batch, value, stats)
                self._advance(part, threads[part], value, waiting)
                begin = time.perf_counter()

    def _note(self, name: str, sample: int, value: Value, stats: LaunchStats | None) -> None:
        """A region's answer for a sample, and its launch."""
        if stats is not None:
            self._calls.append(Launch(sample, name, stats))
        if self._keeps:
            self.kept.setdefault(name, []).append(tuple(_leaves(value)))
        if self._progress is not None:
            self._progress(f"sample {sample + 1} of {self._count}", (sample + 1) / self._count)


def _leaves(value: Value) -> list[Array]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [as_array(value)]
