"""`explore`: compiles one network for the accelerators of a design space, with exact cycles, area and energy.

In: a float module, options, data. Out: an `Exploration`. What was measured stays in a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from numpy.typing import NDArray

from relay_hw.compare.places import Place
from relay_hw.compare.store import Store, key_of, with_same_sources
from relay_hw.explore.bench import Bench, Form, answered, form_of
from relay_hw.explore.bounds import least
from relay_hw.explore.design import Base, Placed, Refusal, placed
from relay_hw.explore.exploration import Exploration
from relay_hw.explore.front import Amounts, Objective, amount, beats, unbeaten, whole
from relay_hw.explore.options import USUAL, ExploreOptions
from relay_hw.explore.prepare import Forms, Prepared, found_strategies, given
from relay_hw.explore.results import Measured, Row, State, measured_content, read_measured
from relay_hw.explore.search import Rounds, Search, rounds
from relay_hw.explore.space import Space
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.support.progress import SILENT, Progress
from relay_hw.sweep.crew import Crew
from relay_hw.sweep.journal import Journal, work_folder
from relay_hw.sweep.workers import workers

Array = NDArray[Any]
Data = Mapping[str, Array]
Watch = Callable[[Exploration], object]

JOURNAL: Final = "points.sqlite"
_STEP: Final = "exploring"


def explore(
    mod: IRModule,
    options: ExploreOptions = USUAL,
    *,
    calibration: Data | None = None,
    data: Data | None = None,
    params: Data | None = None,
    progress: Progress = SILENT,
    watch: Watch | None = None,
) -> Exploration:
    """Compile `mod` for the points of a space and find their Pareto front.

    `calibration` has inputs by name, samples first; `data`: with labels or targets too, for how accurate each strategy
    is. `params` are bound as constants. `watch` is called with the results after each round.

    Raises RelayHwError, AccelError: each with one sentence.
    """
    base = options.find_base()
    space, objectives = options.find_space(base), options.find_objectives(data is not None)
    finder = _Finder(space, base, options, objectives)
    strategies = found_strategies(options.find_strategies(space), calibration is not None)
    progress.started("simplifying")
    network = given(mod, params or {}, options.output, calibration, data, options.images)
    with work_folder(options.work, "explore") as folder, workers(options.processes, options.scheduler, progress) as who:
        forms = Forms(network, strategies, Place(base.config, base.memory), Store(folder), progress)
        prepared = forms.prepared(finder.forms(strategies))
        with who.crew(with_same_sources(partial(Bench, prepared.setting)), answered) as crew:
            run = _Run(finder, prepared, Journal(folder / JOURNAL), crew, key_of(network.text), progress)
            found = run.exploration
            for found in run.rounds():
                if watch is not None:
                    watch(found)
    return found


class _Finder:
    """The points of a search with their designs; each is built once."""

    def __init__(self, space: Space, base: Base, how: ExploreOptions, objectives: tuple[Objective, ...]) -> None:
        self.space, self.base, self.how, self.objectives = space, base, how, objectives
        self._known: dict[int, Placed | Refusal] = {}

    def at(self, number: int) -> Placed | Refusal:
        """The design of a point, or why there is none."""
        if number not in self._known:
            self._known[number] = placed(self.space.point(number), self.base)
        return self._known[number]

    def is_legal(self, number: int) -> bool:
        """Whether there is a design."""
        return isinstance(self.at(number), Placed)

    def promise(self, number: int) -> float:
        """Sort key of grid points, smaller first: cost of a product times area."""
        found = self.at(number)
        if isinstance(found, Refusal):
            return 0.0
        return found.area.share(self.base.part) / found.design.config.macs_per_cycle

    def forms(self, strategies: Mapping[str, Strategy]) -> list[Form]:
        """All forms of integers that points of the space may take."""
        widths = {axis.name: axis.values for axis in self.space.axes}.get("multiplier_bits")
        bits = [int(value) for value in widths or (self.base.config.multiplier_bits,)]
        found = ((name, min(width, strategies[name].multiplier_bits)) for name in strategies for width in bits)
        return list(dict.fromkeys(found))

    @property
    def search(self) -> Search:
        """The search asked for, or the default for a space of this size."""
        return self.how.search or (Search.GRID if self.space.size <= self.how.points else Search.SMART)

    @property
    def total(self) -> int:
        """The largest number of points to measure."""
        return self.space.size if self.search is Search.GRID else min(self.how.points, self.space.size)

    def rounds(self) -> Rounds:
        """Rounds of point numbers. Raises InputError."""
        return rounds(self.search, self.space, self.how.points, self.how.seed, self.is_legal, self.promise)


class _Run:
    """One exploration: rounds of points, their results, and what is left to measure."""

    def __init__(
        self, finder: _Finder, prepared: Prepared, journal: Journal, crew: Crew, network: str, progress: Progress
    ) -> None:
        self._finder, self._prepared, self._journal = finder, prepared, journal
        self._crew, self._network, self._progress = crew, network, progress
        self._rows: dict[int, Row] = {}
        self._is_over = False

    @property
    def exploration(self) -> Exploration:
        """The results so far, ordered by number."""
        finder = self._finder
        rows = tuple(sorted(self._rows.values(), key=lambda row: row.number))
        base, axes = finder.base, finder.space.axes
        return Exploration(finder.how.name, base.config.name, base.part, axes, finder.objectives, rows, self._is_over)

    def rounds(self) -> Iterator[Exploration]:
        """The results after each round."""
        self._progress.started(_STEP, self._finder.total)
        coming = self._finder.rounds()
        numbers: list[int] | None = next(coming, [])
        while numbers:
            self._round(numbers)
            try:
                numbers = coming.send(self._front())
            except StopIteration:
                numbers = None
            self._is_over = not numbers
            yield self.exploration
        self._progress.done(_STEP)

    def _round(self, numbers: Sequence[int]) -> None:
        rivals = self._rivals() if self._finder.how.skips else {}
        waiting: dict[str, list[int]] = {}
        designs: dict[str, Placed] = {}
        for number in numbers:
            point, found = self._finder.space.point(number), self._finder.at(number)
            if isinstance(found, Refusal):
                self._rows[number] = Row(point, State.REFUSED, found.reason)
                continue
            reason = self._out(number, found, rivals)
            if reason:
                self._rows[number] = Row(point, State.SKIPPED, reason, found)
                continue
            key = self._key(found)
            designs[key] = found
            waiting.setdefault(key, []).append(number)
        self._measure(designs, waiting)

    def _measure(self, designs: Mapping[str, Placed], waiting: Mapping[str, Sequence[int]]) -> None:
        known = self._journal.read(list(designs))
        for key, content in known.items():
            self._take(waiting[key], read_measured(content))
        rest = [(key, found.design) for key, found in designs.items() if key not in known]
        for _, answer in self._crew.run(rest):
            self._journal.write(answer.key, measured_content(answer.measured), answer.seconds)
            self._take(waiting[answer.key], answer.measured)
            self._say()

    def _take(self, numbers: Sequence[int], measured: Measured) -> None:
        for number in numbers:
            point, found = self._finder.space.point(number), self._finder.at(number)
            assert isinstance(found, Placed)
            if measured.refused:
                self._rows[number] = Row(point, State.REFUSED, measured.refused, found)
            else:
                accuracy = self._prepared.accuracies.get(self._form(found))
                self._rows[number] = Row(point, State.DONE, "", found, measured, accuracy)

    def _form(self, found: Placed) -> Form:
        return form_of(found.design, self._prepared.setting.strategies)

    def _key(self, found: Placed) -> str:
        return key_of("point", self._network, self._prepared.keys[self._form(found)], found.design.content())

    def _amounts(self, row: Row) -> Amounts:
        assert row.placed is not None
        share = row.placed.area.share(self._finder.base.part)
        return tuple(amount(row, objective, share) for objective in self._finder.objectives)

    def _front(self) -> Collection[int]:
        return unbeaten({row.number: self._amounts(row) for row in whole(list(self._rows.values()))})

    def _rivals(self) -> dict[int, Amounts]:
        """Points of the front that leave nothing to the host; only they can rule out others by bounds."""
        rows = [row for row in whole(list(self._rows.values())) if row.measured and not row.measured.host_macs]
        amounts = {row.number: self._amounts(row) for row in rows}
        front = unbeaten(amounts)
        return {number: own for number, own in amounts.items() if number in front}

    def _out(self, number: int, found: Placed, rivals: Mapping[int, Amounts]) -> str:
        """Why a point cannot be on the front, by its lower bounds; empty if it can."""
        form = self._form(found)
        best = least(found.design.config, self._prepared.works[form])
        accuracy = self._prepared.accuracies.get(form)
        bound = self._amounts(Row(self._finder.space.point(number), State.DONE, "", found, best, accuracy))
        rival = next((other for other, own in rivals.items() if beats(own, bound)), None)
        if rival is None:
            return ""
        return f"not measured: its array alone takes {best.cycles:,} cycles, and #{rival} beats even that"

    def _say(self) -> None:
        """Report progress: grids count all points, other searches those that are legal."""
        is_grid = self._finder.search is Search.GRID
        done = sum(1 for row in self._rows.values() if is_grid or row.placed is not None)
        self._progress.advanced(_STEP, min(done, self._finder.total), f"{len(self._front())} on the front")
