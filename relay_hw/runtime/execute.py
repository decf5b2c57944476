"""Runs a build: segments on a device, by TVM or numpy, and the code between them by the flat machine.

In: an `Artifact`, a device, samples by input name. Out: outputs by name, cycles by launch, seconds by segment.
Samples run one after the other, as a deployment feeds them, or region by region in chunks. Weights that stay on the
device are loaded by a launch of their own, before the first one and whenever another program overwrote them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.device import Device
from relay_hw.backend.flat import Machine, Value, as_array
from relay_hw.backend.reference import Request, Thread
from relay_hw.backend.store import ConstantPool, flat_from_json
from relay_hw.backend.strands import StrandMachine, Strands, is_pure
from relay_hw.errors import EvalError, InputError
from relay_hw.report import SegmentRow
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.batched import Batch, batches, joined_rows, row_of
from relay_hw.runtime.calls import outside
from relay_hw.runtime.feed import Feeds, feed_back, read_steps
from relay_hw.runtime.manifest import HostLibrary
from relay_hw.runtime.ports import Samples, joined
from relay_hw.runtime.result import Launch, Result, Span
from relay_hw.runtime.stepper import Stepper
from relay_hw.runtime.watch import watched
from relay_hw.support.progress import SILENT, Progress
from relay_hw.target.accel.session import AccelSession
from relay_hw.target.base import Answer, Session, Stats

Array = NDArray[Any]
_RUNNING: Final = "running samples"


@dataclass(slots=True)
class _Clock:
    """Calls, seconds and cycles of one segment so far."""

    calls: int = 0
    seconds: float = 0.0
    cycles: int | None = None

    def add(self, seconds: float, cycles: int | None = None) -> None:
        """Count a call."""
        self.calls += 1
        self.seconds += seconds
        self.add_cycles(cycles)

    def add_cycles(self, cycles: int | None) -> None:
        """Add the cycles of a launch, if known."""
        self.cycles = self.cycles if cycles is None else (self.cycles or 0) + cycles


class Executor:
    """Runs a build on a device. With `device=None`, regions run on the numpy reference implementation."""

    def __init__(self, artifact: Artifact, device: Device | Session | None) -> None:
        """Raises ProgramError for a device of another configuration, ArtifactError for untrusted code."""
        artifact.check_trust()
        self._artifact = artifact
        self._session = device if device is None or isinstance(device, Session) else _session(artifact, device)
        self._loaded: dict[str, Any] = {}
        self._in_library = {name: row for row in artifact.manifest.libraries for name in row.functions}
        segments = frozenset(row.function for row in artifact.manifest.layers)
        self._on_device = frozenset(row.name for row in artifact.manifest.regions)
        hosts = {n: f for n, f in artifact.functions.items() if n in segments - self._on_device}
        self._watched = watched(hosts, artifact.manifest.layers)
        between = outside(artifact.main, artifact.functions, segments)
        self._machine = Machine(between, segments)
        self._batches = batches(artifact.manifest.batched, artifact.manifest.layers, artifact.functions)
        # What runs a sample where calls of fragments are gathered: as strands, unless effects have an order.
        outer = {name: function for name, function in between.items() if name not in self._batches}
        self._outer = StrandMachine(outer) if self._batches else None
        self._has_strands = is_pure(list(outer.values()))

    def run(
        self,
        inputs: Mapping[str, Any],
        limit: int | None = None,
        progress: Progress = SILENT,
        keep_regions: bool = False,
        chunk: int = 1,
        feeds: Feeds | None = None,
    ) -> Result:
        """Run the first `limit` samples (all by default), each whole before the next, or `chunk` of them at a time:
        the samples of a chunk take turns, so that a program runs for all of them that wait for it, and the host works
        on one sample while a device that can works on another.

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
        for row in self._in_library.values():
            # Loading TVM is no part of the first function's time.
            self._library(row)
        begin = time.perf_counter()
        progress.started(_RUNNING, count)
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
        spans = tuple(span.since(begin) for span in run.spans)
        return Result(outputs, launches, count, seconds, regions, residents, run.segments(seconds), chunk, spans)

    def stepper(self, feeds: Sequence[tuple[str, str]], state: Mapping[str, Any] | None = None) -> Stepper:
        """A runner that keeps states: see `Stepper`. Raises InputError."""
        return Stepper(self.run, self._artifact.manifest, feeds, state)

    def thread(self, args: Sequence[Value]) -> Thread | Strands:
        """`main` for one sample, not begun."""
        main = self._artifact.main
        if self._outer is None:
            return Thread(self._machine, main, args)
        if not self._has_strands:
            return Thread(self._outer, main, args)
        return Strands(self._outer, main, args, max(batch.rows for batch in self._batches.values()))

    @property
    def batches(self) -> Mapping[str, Batch]:
        """The fragments whose calls are gathered, and how they are computed together."""
        return self._batches

    def form(self, name: str, args: Sequence[Value]) -> Thread:
        """A fragment or a batched form of it, not begun."""
        return Thread(self._machine, self._artifact.functions[name], args)

    def where(self, name: str) -> str:
        """Where a segment runs: the target, tvm or numpy."""
        if name in self._on_device:
            return self._artifact.manifest.target
        return "tvm" if name in self._in_library else "numpy"

    def is_region(self, name: str) -> bool:
        """Whether a segment runs on the target."""
        return name in self._on_device

    def host(self, name: str, args: Sequence[Value], sample: int = 0) -> Value:
        """Run a host function on one sample. Raises InputError if it would quantize NaN or infinity."""
        found = self._watched.get(name)
        if name in self._in_library:
            value = self._library(self._in_library[name]).call(name, args)
        elif name not in self._artifact.functions:
            raise EvalError(f"@{name} must be a function of the build")
        else:
            value = self._machine.call(found.function if found else self._artifact.functions[name], args)
        return found.checked(args, value, sample) if found else value

    @property
    def session(self) -> Session | None:
        """The device with the build's regions; None if they run on the numpy reference."""
        return self._session

    def region(self, name: str, samples: Iterable[Sequence[Value]]) -> Generator[Answer, None, None]:
        """Run a region, settled before, on samples: the value and measurements of each."""
        if self._session is not None:
            return self._session.run(name, samples)
        function = self._artifact.functions[name]
        return ((self._machine.call(function, args), None) for args in samples)

    def _library(self, row: HostLibrary) -> Any:
        """A library, loaded at its first use."""
        if row.file not in self._loaded:
            from relay_hw.backend.tvm import BuiltLibrary, load_library

            pool = ConstantPool()
            packed = {name: flat_from_json(entry, pool) for name, entry in row.packed.items()}
            with self._artifact.host_code() as folder:
                self._loaded[row.file] = load_library(folder / row.file, BuiltLibrary(row.cpu, packed))
        return self._loaded[row.file]

    @property
    def artifact(self) -> Artifact:
        """The build that runs."""
        return self._artifact


@dataclass(slots=True, eq=False)
class _Task:
    """A sample under way, or calls of a fragment that are computed together: for `callers`, one a row."""

    sample: int
    thread: Thread | Strands
    callers: Sequence[Call] = ()

    def advance(self, request: Request | None, answer: Value) -> list[Request]:
        """Continue with the value of a request; returns new ones."""
        if isinstance(self.thread, Strands):
            return self.thread.advance(request, answer)
        found = self.thread.advance(answer)
        return [] if found is None else [found]


# What needs a function, and for what.
Call = tuple[_Task, Request]


@dataclass(slots=True)
class _Turn:
    """The samples of a chunk: those under way; calls that wait for a region or for others of their fragment, by name;
    samples that have not begun."""

    tasks: dict[int, _Task]
    waiting: dict[str, list[Call]]
    gathered: dict[str, list[Call]]
    fresh: deque[int]


class _Run:
    """Runs samples through `main`; those that wait for the same region are served together, and calls of a fragment
    with batched forms are computed together.

    Of a model of batch N, each of a sample's N parts goes its own way, and takes launches of its own.
    """

    def __init__(
        self, executor: Executor, inputs: Mapping[str, Samples], count: int, keeps: bool, progress: Progress
    ) -> None:
        self.launches: list[Launch] = []
        self.residents: list[Launch] = []
        self.spans: list[Span] = []
        self.kept: dict[str, list[tuple[Array, ...]]] = {}
        self._executor = executor
        self._inputs = inputs
        self._count = count
        self._batch = executor.artifact.manifest.batch
        self._keeps = keeps
        self._progress = progress
        self._times: dict[str, _Clock] = {}
        self._last = ""
        self._host_seconds = 0.0
        # The launches of this turn, and the load before each, by its number.
        self._calls: list[Launch] = []
        self._loads: dict[int, Launch] = {}

    def chunk(self, samples: range) -> list[Value]:
        """Results of `main` for these samples, or parts of them, in order."""
        turn = _Turn({}, {}, {}, deque(samples))
        gathers = bool(self._executor.batches)
        while turn.fresh or turn.waiting or turn.gathered:
            if turn.fresh and (gathers or not turn.waiting):
                self._start(turn)
                continue
            if not turn.waiting:
                self._compute_together(turn)
                continue
            # The program that is loaded goes on while anything waits for it.
            waiting = turn.waiting
            name = self._last if self._last in waiting else max(waiting, key=lambda name: len(waiting[name]))
            self._last = name
            self._serve(name, turn)
        return [turn.tasks[k].thread.value for k in samples]

    def account(self) -> None:
        """Called at the end of each turn: assigns repeated loads to it, and one-time loads to no sample."""
        names = {at: load.function for at, load in self._loads.items()}
        session = self._executor.session
        again = session.repeats([launch.function for launch in self._calls], names) if session else frozenset[int]()
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
        """The cost of each segment, and the rest of all `seconds`."""
        where = self._executor.where
        rows = [SegmentRow(name, where(name), c.calls, c.seconds, c.cycles) for name, c in self._times.items()]
        rest = max(seconds - sum(row.seconds for row in rows), 0.0)
        return (*rows, SegmentRow("main", "machine", self._count, rest))

    def _start(self, turn: _Turn) -> None:
        """Run the next sample until it waits for a region, or is done."""
        main, k = self._executor.artifact.main, turn.fresh.popleft()
        turn.tasks[k] = _Task(k, self._executor.thread([self._inputs[p.name][k] for p in main.params]))
        self._advance(turn.tasks[k], turn)

    def _advance(self, task: _Task, turn: _Turn, request: Request | None = None, answer: Value = None) -> None:
        """Run a task until it waits for regions and fragments only, or is done."""
        found = task.advance(request, answer)
        waits = False
        while found:
            request = found.pop(0)
            name = request.function
            if self._executor.is_region(name) or name in self._executor.batches:
                place = turn.waiting if self._executor.is_region(name) else turn.gathered
                place.setdefault(name, []).append((task, request))
                waits = True
                continue
            begin = time.perf_counter()
            answer = self._executor.host(name, request.args, task.sample)
            self._ran(name, task.sample, begin, time.perf_counter())
            found += task.advance(request, answer)
        if not waits:
            for row, (caller, asked) in enumerate(task.callers):
                self._advance(caller, turn, asked, row_of(task.thread.value, row))

    def _compute_together(self, turn: _Turn) -> None:
        """Begin calls of the fragment that is called most: those that fill forms, or all if no form is filled."""
        gathered = turn.gathered
        name = max(gathered, key=lambda name: len(gathered[name]))
        batch, calls = self._executor.batches[name], gathered.pop(name)
        groups = batch.groups(len(calls))
        taken = sum(group.count for group in groups)
        if taken < len(calls):
            gathered[name] = calls[taken:]
        for group in groups:
            callers, calls = calls[: group.count], calls[group.count :]
            args = joined_rows([request.args for _, request in callers], group.form.rows)
            self._advance(_Task(callers[0][0].sample, self._executor.form(group.form.name, args), callers), turn)

    def _ran(self, name: str, sample: int, begin: float, end: float) -> None:
        """Count a call of a host function."""
        self._time(name).add(end - begin)
        self._host_seconds += end - begin
        self.spans.append(Span(name, self._executor.where(name), sample // self._batch, begin, end))

    def _time(self, name: str) -> _Clock:
        return self._times.setdefault(name, _Clock())

    def _serve(self, name: str, turn: _Turn) -> None:
        """Run a region for all samples that wait for it, in turn, and continue each with its result."""
        first = turn.waiting[name][0][0].sample
        session = self._executor.session
        begin = time.perf_counter()
        settled = session.settle(name) if session is not None else None
        if settled is not None:
            load = Launch(first // self._batch, name, settled, SectionKind.RESIDENT)
            self._loads[len(self._calls)] = load
            self._launched(load, time.perf_counter())
        asked: deque[Call] = deque()
        # Host functions that run while the device works are not its time.
        host = self._host_seconds
        with closing(self._executor.region(name, self._askers(name, turn, asked))) as answers:
            for value, stats in answers:
                (task, request), now = asked.popleft(), time.perf_counter()
                spent = now - begin - (self._host_seconds - host)
                self._time(name).add(spent, None if stats is None else stats.cycles)
                self._note(name, task.sample // self._batch, value, stats, now)
                self._advance(task, turn, request, value)
                begin, host = time.perf_counter(), self._host_seconds

    def _askers(self, name: str, turn: _Turn, asked: deque[Call]) -> Iterator[Sequence[Value]]:
        """Arguments of samples that wait for a region, then of those that come to it as they begin.

        A device that takes one while it works on another thus leaves the time between to the host.
        """
        group = turn.waiting.pop(name)
        while group or turn.fresh:
            if not group:
                self._start(turn)
                group = turn.waiting.pop(name, [])
                continue
            call = group.pop(0)
            asked.append(call)
            yield call[1].args

    def _note(self, name: str, sample: int, value: Value, stats: Stats | None, now: float) -> None:
        """Record a region's result for a sample, and its launch."""
        if stats is not None:
            self._calls.append(Launch(sample, name, stats))
            self._launched(self._calls[-1], now)
        if self._keeps:
            # Copies: without a device a value may lie in memory that later samples use again.
            self.kept.setdefault(name, []).append(tuple(np.array(leaf) for leaf in _leaves(value)))
        self._progress.advanced(_RUNNING, sample + 1)

    def _launched(self, launch: Launch, now: float) -> None:
        """Note when a launch ran that is over `now`."""
        stats = launch.stats
        begin = now - stats.seconds if stats.begin is None else stats.begin
        where = self._executor.where(launch.function)
        self.spans.append(Span(launch.function, where, launch.sample, begin, begin + stats.seconds))


def _session(artifact: Artifact, device: Device) -> Session:
    """A session of target accel with the build's programs."""
    return AccelSession(artifact.manifest.regions, artifact.programs, device)


def _leaves(value: Value) -> list[Array]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [as_array(value)]
