"""`compare`: measures the accuracy, distance from float and hardware cost of several strategies on one network.

In: a float module, data, strategies. Out: a `Comparison`. Finished strategies stay in a work folder, if there is one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.compare.comparison import Comparison
from relay_hw.compare.data import TARGETS, read_samples, single_samples
from relay_hw.compare.findings import choose_best
from relay_hw.compare.job import (
    FloatOutputs,
    Measured,
    Setting,
    as_given,
    float_outputs,
    float_weight_bytes,
    held_out_db,
    labelled,
    strategy_row,
)
from relay_hw.compare.measures import measure
from relay_hw.compare.mixed import BASE, mixed_front
from relay_hw.compare.network import Network, prepare
from relay_hw.compare.network_work import network_work
from relay_hw.compare.options import CompareOptions
from relay_hw.compare.rows import FloatRow, Key, Row, read_row, row_content
from relay_hw.compare.store import Store, key_of, with_same_sources
from relay_hw.errors import InputError, RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy, strategy_values
from relay_hw.quantize.inputs import complaint, look
from relay_hw.quantize.strategy_file import strategy_from
from relay_hw.runtime.labels import LABELS, check_labels, doubt
from relay_hw.support.progress import IDLE, SILENT, Progress, ProgressStep
from relay_hw.sweep.crew import Workers
from relay_hw.sweep.journal import Journal, work_folder
from relay_hw.sweep.workers import workers

Array = NDArray[Any]
Data = Mapping[str, Array]

JOURNAL: Final = "rows.sqlite"
# One launch of this many of calibration data is held out from the strategies.
HELD_OUT: Final = 4


@dataclass(frozen=True, slots=True)
class _Shared:
    setting: Setting
    floats: FloatOutputs | None


def compare(
    mod: IRModule,
    data: Data,
    options: CompareOptions,
    *,
    calibration: Data | None = None,
    params: Data | None = None,
    progress: Progress = SILENT,
) -> Comparison:
    """Quantize `mod` by each strategy, compare it with float on `data` and measure it on simulated hardware.

    `data` has an array for each input, samples on the first axis, and `labels` (int [N], for classifiers) or `targets`
    (float [N, ...]). `calibration` has inputs alone: every fourth sample is held out, and the best strategy is chosen
    there. `params` are bound as constants.

    Raises RelayHwError, AccelError: each with one sentence.
    """
    chosen = options.find_strategies()
    missing = [s.name for s in chosen if s.needs_data] + [BASE] * bool(options.mixed) if calibration is None else []
    if missing:
        raise InputError(f"strategy {missing[0]} needs calibration data: give an array for each input")
    progress.started("simplifying")
    network = prepare(_bound(mod, params or {}), options.output)
    if network.batch > 1:
        inputs = network.mod["main"].params
        data = single_samples(inputs, data, network.batch)
        calibration = single_samples(inputs, calibration, network.batch) if calibration is not None else None
    setting = _setting(network, data, calibration, options)
    with work_folder(options.work, "compare") as folder, workers(options.processes, options.scheduler, progress) as who:
        runner = _Runner(Store(folder), who, setting, options.processes, progress)
        floats = runner.floats()
        setting = runner.check_floats(floats)
        chosen += runner.mixed(options.mixed, floats) if options.mixed else []
        rows, pages = runner.rows(chosen, floats)
    notes: tuple[str, ...] = ()
    if options.area:
        rows, notes = _with_areas(rows, [place.config for place in setting.places])
    if network.batch > 1:
        notes += (f"The model takes {network.batch} samples at once; figures are for one of them.",)
    test = setting.test
    quality = measure(floats.test, floats.test, test.labels, test.targets, setting.is_classifier)
    return Comparison(
        model=options.name,
        output=network.name,
        is_logits=network.is_logits,
        images=test.count,
        calibration_images=setting.calibration.count if setting.calibration else 0,
        held_out_images=setting.held_out.count if setting.held_out else 0,
        float_row=FloatRow(
            quality,
            max([network_work(network.mod).macs, *(cost.macs for row in rows for cost in row.costs)]),
            float_weight_bytes(network.mod),
        ),
        rows=tuple(rows),
        best=choose_best(rows),
        pages=pages if options.work is not None else {},
        notes=notes,
        warnings=tuple(_doubts(setting, quality.top1, floats.test.shape[1], options.images)),
    )


def _doubts(setting: Setting, top1: float | None, classes: int, images: int | None) -> Iterator[str]:
    """Warnings about likely mistakes in the data."""
    test, calibration = setting.test, setting.calibration
    if images is not None and images >= test.count + test.batch:
        yield f"{images:,} samples were asked for, but the test data have only {test.count:,}"
    floats = [name for name, array in test.inputs.items() if array.dtype.kind == "f"] if calibration else []
    known = calibration.inputs if calibration else {}
    texts = {name: complaint(_samples(test.inputs[name]), look(_samples(known[name]))) for name in floats}
    yield from (f"test data: input {name}: {text}" for name, text in texts.items() if text)
    text = doubt(top1, classes, test.count) if top1 is not None else ""
    if text and not any(texts.values()):
        yield f"test data, by the float network: {text}"


def _samples(launches: Array) -> Array:
    """Samples without a batch axis of size 1."""
    return launches[:, 0] if launches.ndim > 1 and launches.shape[1] == 1 else launches


def _with_areas(rows: Sequence[Row], configs: Sequence[AccelConfig]) -> tuple[list[Row], tuple[str, ...]]:
    """Rows with the area of each configuration, and a note on those that were never synthesised."""
    from relay_hw.accel.fpga.synth import cache_folder, cached

    used = {cost.config for row in rows for cost in row.costs}
    known = {config.name: cached(config, cache_folder()) for config in configs if config.name in used}
    counted = ("luts", "multipliers", "block_rams", "flip_flops")
    areas = {name: {key: cells[key] for key in counted} if cells else {} for name, cells in known.items()}
    found = [replace(row, costs=tuple(replace(cost, area=areas[cost.config]) for cost in row.costs)) for row in rows]
    missing = " ".join(name for name, cells in known.items() if cells is None)
    note = f"No synthesis result yet for {missing}: `python scripts/area.py {missing}` makes it, in minutes."
    return found, (note,) if missing else ()


def _bound(mod: IRModule, params: Data) -> IRModule:
    from relay_hw.runtime.compile import bind_params

    return bind_params(mod, params)


def _setting(network: Network, data: Data, calibration: Data | None, options: CompareOptions) -> Setting:
    inputs = network.mod["main"].params
    test = read_samples(inputs, data, "test data", options.images)
    if options.unlabelled:
        test = replace(test, labels=None, targets=None)
    elif test.labels is None and test.targets is None:
        raise InputError(f"test data must hold {LABELS} or {TARGETS}, or be compared unlabelled with float alone")
    calib = read_samples(inputs, calibration, "calibration data") if calibration is not None else None
    # Without labels, outputs that look like scores are compared as scores too.
    held_out = None
    if calib is not None and calib.launches >= HELD_OUT:
        calib, held_out = calib.split(HELD_OUT)
    is_classifier = test.labels is not None or test.targets is None
    return Setting(
        network,
        test,
        calib,
        held_out,
        options.find_places(),
        options.engine,
        is_classifier,
        options.name,
        tuple(options.targets),
    )


class _Runner:
    """The steps of one comparison; each first looks for stored results."""

    def __init__(self, store: Store, who: Workers, setting: Setting, processes: int, progress: Progress) -> None:
        self._store, self._journal = store, Journal(store.folder / JOURNAL)
        self._who = who
        self._setting = setting
        self._processes = processes
        self._progress = progress
        network = setting.network
        self._common = (
            key_of(network.to_json(), network.output, network.is_logits),
            *(samples and samples.digest() for samples in (setting.test, setting.calibration, setting.held_out)),
            setting.is_classifier,
        )

    def floats(self) -> FloatOutputs:
        """Outputs of the float network on all data."""
        key = key_of("float", *self._common)
        names = ["test"] + (["held_out"] if self._setting.held_out is not None else [])
        found = self._store.read_arrays("float", key)
        if found is None:
            found = self._run_floats(names)
            self._store.keep_arrays("float", key, found)
        return FloatOutputs(found["test"], found.get("held_out"))

    def _run_floats(self, names: Sequence[str]) -> dict[str, Array]:
        tasks: list[tuple[str, int, int]] = []
        for name in names:
            samples = self._setting.test if name == "test" else self._setting.held_out
            assert samples is not None
            step = -(-samples.launches // (self._processes if samples.launches > 64 else 1))
            tasks += [(name, start, min(start + step, samples.launches)) for start in range(0, samples.launches, step)]
        parts: dict[int, Array] = {}
        listen = _SideBySide(self._progress, ["float" for _ in tasks], "parts of the float network")
        start = with_same_sources(partial(_Shared, self._setting, None))
        with self._who.crew(start, _float_task) as crew:
            for number, outputs in crew.run(tasks, listen):
                parts[number] = outputs
                listen.done()
        return {name: np.concatenate([parts[i] for i, task in enumerate(tasks) if task[0] == name]) for name in names}

    def check_floats(self, floats: FloatOutputs) -> Setting:
        """Check labels and targets against the float network's outputs. Raises InputError."""
        test, width = self._setting.test, floats.test.shape[1]
        if not np.isfinite(floats.test).all():
            raise InputError("the float network's outputs must be finite on the test data")
        if test.labels is not None:
            check_labels(test.labels, width, "test data")
        if test.targets is not None and test.targets.shape[1] != width:
            raise InputError(f"test data: targets must have {width} numbers a sample, not {test.targets.shape[1]}")
        self._setting = replace(self._setting, is_classifier=self._setting.is_classifier and width > 1)
        return self._setting

    def mixed(self, points: int, floats: FloatOutputs) -> list[Strategy]:
        """The strategies of a mixed-precision front. Raises InputError."""
        setting = self._setting
        assert setting.calibration is not None
        key = key_of("mixed", *self._common, [asdict(place) for place in setting.places], points)
        content = self._journal.read([key]).get(key)
        if content is None:
            begin = time.perf_counter()
            self._progress.started("choosing widths of layers by noise and exact cycles")
            data = as_given(setting.calibration)
            judge = partial(held_out_db, setting, floats=floats, progress=self._progress)
            judged = judge if setting.held_out is not None else None
            found = mixed_front(setting.network.mod, data, setting.places, points, judged)
            content = {"strategies": [strategy_values(one) for one in found]}
            self._journal.write(key, content, time.perf_counter() - begin)
        return [strategy_from(values, "mixed front", str(values["name"])) for values in content["strategies"]]

    def rows(self, strategies: Sequence[Strategy], floats: FloatOutputs) -> tuple[list[Row], dict[Key, Path]]:
        """A row for each strategy, stored or measured, in the order given, and files of pages of builds, if kept."""
        where = [asdict(place) for place in self._setting.places]
        others = (where, self._setting.engine, self._setting.targets)
        keys = [key_of("row", *self._common, strategy_values(s), *others) for s in strategies]
        known = self._journal.read(keys)
        found = {number: read_row(known[key]) for number, key in enumerate(keys) if key in known}
        # Long tasks go first, so that processes end together.
        missing = sorted((n for n in range(len(strategies)) if n not in found), key=lambda n: -_weight(strategies[n]))
        tasks = [strategies[number] for number in missing]
        listen = _SideBySide(self._progress, [task.name for task in tasks], "strategies", len(found))
        if tasks:
            start = with_same_sources(partial(_Shared, self._setting, floats))
            with self._who.crew(start, _row_task) as crew:
                for number, measured in crew.run(tasks, listen):
                    found[missing[number]] = measured.row
                    self._keep(keys[missing[number]], measured)
                    listen.done()
        rows = [found[number] for number in range(len(strategies))]
        pages = {
            point.key: self._page(*point.key, key) for row, key in zip(rows, keys, strict=True) for point in row.points
        }
        return rows, {name: path for name, path in pages.items() if path.is_file()}

    def _keep(self, key: str, measured: Measured) -> None:
        """Store pages first: where there is a row, they are there."""
        row = measured.row
        for config, page in measured.pages.items():
            self._store.put(self._page(row.name, config, key), page.encode())
        self._journal.write(key, row_content(row), sum(row.seconds.values()))

    def _page(self, strategy: str, config: str, key: str) -> Path:
        """The file of a build's page."""
        return self._store.path(f"{strategy} on {config}", key, ".html")


def _float_task(shared: _Shared, task: tuple[str, int, int], progress: Progress) -> Array:
    return float_outputs(shared.setting, *task, progress)


def _row_task(shared: _Shared, strategy: Strategy, progress: Progress) -> Measured:
    assert shared.floats is not None
    try:
        return strategy_row(shared.setting, strategy, shared.floats, progress)
    except RelayHwError as error:
        raise labelled(strategy, error) from None


def _weight(strategy: Strategy) -> int:
    """Sort key by expected run time: training, search and learned rounding come first."""
    learned = strategy.weight_rounding.value in ("adaround", "gptq")
    return 8 * strategy.epochs + 4 * bool(strategy.budget) + 2 * len(strategy.candidates) + 2 * learned


class _SideBySide:
    """Shows the progress of parallel tasks as one step."""

    def __init__(self, progress: Progress, names: Sequence[str], what: str, before: int = 0) -> None:
        self._progress = progress
        self._names = names
        self._step = f"comparing, {what}"
        self._ready = before
        progress.started(self._step, len(names) + before)

    def __call__(self, number: int, step: ProgressStep) -> None:
        if step is not IDLE:
            self._progress.advanced(self._step, self._ready, f"{self._names[number]}: {step.text}")

    def done(self) -> None:
        """Count a finished task."""
        self._ready += 1
        self._progress.advanced(self._step, self._ready)
