"""Tuning: times all legal tiles of each convolution on the cycle simulator, for a given number of seconds.

In: `@accel_k` functions, a target, seconds. Out: a chooser of tiles. Results are kept by content in the user's
cache: the same layer on the same configuration is searched once, and then always computed with the same tile.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relay_hw import tensorize
from relay_hw.accel import isa
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.sim import cycle
from relay_hw.accel.sim.result_cache import locked, read_row, write_row
from relay_hw.accel.sim.verilator import user_cache_folder
from relay_hw.errors import InputError
from relay_hw.ir.expr import Function
from relay_hw.support.progress import SILENT, Progress
from relay_hw.support.sources import sources_hash
from relay_hw.tensorize.compile import plan_region
from relay_hw.tensorize.kernel import ConvKernel, KernelSpec
from relay_hw.tensorize.refine import Refiner, explain, layer_cycles, without_weights
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.im2col import shapes_of
from relay_hw.tensorize.tiles.sizes import ConvTile, Tile
from relay_hw.tensorize.tiles.tile_space import Choice, all_ranked

# Files are written anew when their form changes.
_FORM = 1


@dataclass(slots=True)
class _Search:
    """One convolution: all its tiles, how many were timed, and the cycles of those, by number in the ranking."""

    kernel: ConvKernel
    path: Path
    ranked: tuple[Choice, ...]
    seconds: float = 0.0
    tried: int = 0
    cycles: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def done(self) -> bool:
        return self.tried == len(self.ranked)

    @property
    def best(self) -> list[tuple[Choice, int]]:
        """Timed choices, the fastest first."""
        return [
            (self.ranked[n], cycles) for n, cycles in sorted(self.cycles.items(), key=lambda item: (item[1], item[0]))
        ]


class Tuner:
    """Chooses tiles by measured cycles. Layers that were not tuned are left to `refine`."""

    def __init__(self, config: Target, cache: Path | None = None) -> None:
        self._config = config
        self._sources = sources_hash(tensorize, isa, cycle)
        self._folder = (cache or user_cache_folder()) / "schedules"
        self._refiner = Refiner()
        self._searches: dict[str, _Search] = {}

    def __call__(self, kernel: KernelSpec, config: Target) -> Tile:
        """The fastest tile found. Raises TensorizeError if none fits."""
        found = self._found(kernel)
        return found[0][0].tile if found else self._refiner(kernel, config)

    def reason(self, kernel: KernelSpec, tile: Tile, config: Target) -> str:
        """Why the layer is computed with `tile`."""
        found = self._found(kernel)
        if not found or not isinstance(tile, ConvTile) or found[0][0].tile != tile:
            return self._refiner.reason(kernel, tile, config)
        return f"{explain(found)} (tuned)"

    def search(self, functions: Iterable[Function], seconds: float, progress: Progress = SILENT) -> None:
        """Time tiles of all convolutions in turn, the cheapest by estimate first, until the time is up.

        What an earlier search of as many seconds found is taken as it is. Raises InputError.
        """
        if not seconds > 0:
            raise InputError(f"seconds of tuning must be above 0, not {seconds:g}")
        for kernel in self._convolutions(functions):
            key = self._key(kernel)
            if key not in self._searches:
                self._searches[key] = self._read(key, kernel)
        open_ones = [s for s in self._searches.values() if not s.done and s.seconds < seconds]
        end = time.monotonic() + seconds
        step = f"tuning {len(self._searches)} layers, schedules tried"
        progress.started(step)
        for search in _in_turn(open_ones, end):
            _time_next(search, self._config)
            tried = sum(one.tried for one in self._searches.values())
            progress.advanced(step, tried, f"at most {max(0.0, end - time.monotonic()):.0f} s left")
        for search in open_ones:
            search.seconds = seconds
            self._write(search)

    def _convolutions(self, functions: Iterable[Function]) -> Iterator[ConvKernel]:
        for number, function in enumerate(functions):
            for layer in plan_region(function, self._config, f"accel_{number}").layers:
                if isinstance(layer.kernel, ConvKernel) and layer.kernel.groups == 1:
                    yield layer.kernel

    def _found(self, kernel: KernelSpec) -> list[tuple[Choice, int]]:
        if not isinstance(kernel, ConvKernel) or kernel.groups > 1:
            return []
        search = self._searches.get(self._key(kernel))
        return search.best if search is not None else []

    def _key(self, kernel: ConvKernel) -> str:
        """Hash of everything that times depend on: sizes, configuration, memory, code of compiler and simulator."""
        content = repr((_FORM, shapes_of(kernel, self._config), self._config, self._sources))
        return hashlib.sha256(content.encode()).hexdigest()

    def _read(self, key: str, kernel: ConvKernel) -> _Search:
        search = _Search(
            without_weights(kernel, self._config),
            self._folder / f"{key}.json",
            all_ranked(shapes_of(kernel, self._config), self._config),
        )
        try:
            known = read_row(search.path, key) or {}
            cycles = {int(number): int(cycles) for number, cycles in known["cycles"].items()}
            tried, seconds = int(known["tried"]), float(known["seconds"])
        except (ValueError, KeyError, AttributeError, TypeError):
            return search
        if all(0 <= number < tried <= len(search.ranked) for number in cycles):
            search.cycles, search.tried, search.seconds = cycles, tried, seconds
        return search

    def _write(self, search: _Search) -> None:
        """Store the results; another process's results are kept where they are further along."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder.with_suffix(".lock")):
            others = self._read(search.path.stem, search.kernel)
            if others.tried > search.tried:
                search.cycles, search.tried = others.cycles, others.tried
            seconds = max(others.seconds, search.seconds)
            content: dict[str, Any] = {"tried": search.tried, "seconds": seconds, "cycles": search.cycles}
            write_row(search.path, search.path.stem, content)


def _in_turn(searches: Sequence[_Search], end: float) -> Iterator[_Search]:
    """Those with tiles left, one after the other, until `end`."""
    left = list(searches)
    while left:
        for search in tuple(left):
            if time.monotonic() >= end:
                return
            yield search
            if search.done:
                left.remove(search)


def _time_next(search: _Search, config: Target) -> None:
    number = search.tried
    search.tried += 1
    cycles = _measure(search.kernel, search.ranked[number].tile, config)
    if cycles is not None:
        search.cycles[number] = cycles


def _measure(kernel: ConvKernel, tile: ConvTile, config: Target) -> int | None:
    """Cycles of the layer alone; None if no program can be made."""
    try:
        return layer_cycles(kernel, tile, config)
    except AccelError:
        return None
