"""The HTML page of a comparison: table, Pareto plots, noise by layer, histograms, sources of the numbers.

In: `Findings`. Out: one self-contained HTML page that needs no network, for screens and paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from relay_hw.compare.energy import CAVEAT, FIGURES, SOURCE, SRAM, share_rows
from relay_hw.compare.findings import Findings
from relay_hw.compare.front import Amount, is_by_agreement, points_of, run_time
from relay_hw.compare.histogram import Histogram
from relay_hw.compare.plots import Axes, Plot, amount_text, pareto_plot
from relay_hw.compare.ranges import Range, Ranges, ranges
from relay_hw.compare.rows import Key, Row
from relay_hw.compare.table import TARGETS, clocks, decibels, interval, notes, pairs, rate, share, short, target_rows
from relay_hw.errors import InputError
from relay_hw.report import ROWS_SCRIPT, number, percent, render, short_names
from relay_hw.support.names import one_of

_WEIGHTS: Final = "bytes of weights"
# Noise at which a cell has its full colour, and that at which it has none, in dB; the strongest colour.
_NONE_DB, _STRONGEST = 40.0, 0.75


def render_page(found: Findings, layers: Sequence[str] | None = None, folder: Path | None = None) -> str:
    """The page. `layers`: whose histograms are shown, None for all; `folder`: where it will lie, for links to builds.

    Raises InputError for an unknown layer.
    """
    shown = found.layer_names if layers is None else tuple(layers)
    for name in shown:
        if name not in found.layer_names:
            raise InputError(one_of("layer", found.layer_names, name))
    columns, links = _columns(found), _links(found, folder)
    names = short_names(found.layer_names)
    return render(
        "compare/templates/compare.html.j2",
        ROWS_SCRIPT,
        title=_title(found),
        found=found,
        tiles=_tiles(found),
        columns=columns,
        rows=[_Strategy.of(found, row, columns, links) for row in found.points],
        machines=list(dict.fromkeys(row.cost.machine for row in found.points if row.cost is not None)),
        clocks=clocks(found),
        targets=TARGETS,
        target_rows=target_rows(found) if any(row.elsewhere for row in found.rows) else [],
        plots=_plots(found),
        noise=_noise(found, names),
        pictures=_pictures(found, shown, names),
        energy=_energy_rows(),
        energy_source=SOURCE,
        energy_caveat=CAVEAT,
    )


def _title(found: Findings) -> str:
    return f"{found.model}: quantization strategies"


def _links(found: Findings, folder: Path | None) -> dict[Key, str]:
    """Addresses of the reports of builds that lie below `folder`, seen from there."""
    if folder is None:
        return {}
    top = folder.resolve()
    paths = {key: path.resolve() for key, path in found.pages.items()}
    return {key: quote(path.relative_to(top).as_posix()) for key, path in paths.items() if path.is_relative_to(top)}


def _tiles(found: Findings) -> list[tuple[str, str]]:
    """Figures of the best strategy, and of the float network."""
    floats = found.float_row
    best = found[found.best] if found.best is not None else None
    tiles: list[tuple[str, str]] = []
    if best is not None:
        tiles.append((best.name, "best strategy"))
        if best.test.agreement is not None:
            tiles.append((share(best.test.agreement), "of samples as in float, by the best"))
        if best.cost is not None:
            tiles.append((number(best.cost.cycles), f"cycles a run on {best.cost.config}, by the best"))
        tiles.append((number(best.weight_bytes), "bytes of weights, of the best"))
    if floats.test.top1 is not None:
        tiles.append((share(floats.test.top1), f"top-1 in float ({interval(floats.test.top1_interval)} %)"))
    tiles.append((number(floats.weight_bytes), "bytes of weights in float"))
    tiles.append((number(floats.macs), "multiply-accumulates"))
    return tiles


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of the table, and a second line below it."""

    text: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table: title, a line below it, and the cell of a strategy."""

    title: str
    small: str
    cell: Callable[[Row], _Cell]


def _column(title: str, small: str, text: Callable[[Row], str]) -> _Column:
    return _Column(title, small, lambda row: _Cell(text(row)))


def _columns(found: Findings) -> list[_Column]:
    rows = found.points
    has_labels = any(row.test.top1 is not None for row in rows)
    columns: list[_Column] = []
    if has_labels:
        columns.append(_Column("top-1", "change, 95 %", _top1))
        if any(row.test.top5 is not None for row in rows):
            columns.append(_column("top-5", "", lambda row: share(row.test.top5)))
    if any(row.test.mse is not None for row in rows):
        columns.append(_column("MSE", "", lambda row: short(row.test.mse)))
    if any(row.test.agreement is not None for row in rows):
        columns.append(_Column("agrees", "with float, 95 %", _agreement))
    if has_labels:
        columns.append(_Column("pairs", "gained/lost, p", lambda row: _Cell(pairs(row.test), _p(row.test.p_value))))
    columns += [
        _column("SQNR", "outputs, dB", lambda row: decibels(row.test.sqnr_db)),
        _column("cycles", "", lambda row: number(row.cost.cycles if row.cost else None)),
        *([_column("a second", "inferences", lambda row: rate(row.cost))] if clocks(found) else []),
        _column("DRAM", "bytes a run", lambda row: number(row.cost.dram_bytes if row.cost else None)),
        _column("weights", "bytes", lambda row: number(row.weight_bytes)),
        _column("energy", "µJ, estimated", lambda row: f"{row.cost.energy.total:,.1f}" if row.cost else "-"),
        _column("on accel.", "of MACs", lambda row: percent(row.cost.accel_share if row.cost else None)),
    ]
    if any(row.area for row in rows):
        columns.append(_column("LUT4", "", lambda row: number(row.area.get("luts"))))
        columns.append(_column("multipliers", "", lambda row: number(row.area.get("multipliers"))))
    columns.append(
        _column("host", "ms, numpy", lambda row: f"{1000 * row.cost.host_seconds:,.2f}" if row.cost else "-")
    )
    columns.append(_column("compile", "seconds", lambda row: f"{row.cost.compile_seconds:.1f}" if row.cost else "-"))
    return columns


def _top1(row: Row) -> _Cell:
    change, within = row.test.change, row.test.change_interval
    if change is None or within is None:
        return _Cell(share(row.test.top1))
    return _Cell(share(row.test.top1), f"{100 * change:+.2f} ({100 * within[0]:+.1f}..{100 * within[1]:+.1f})")


def _agreement(row: Row) -> _Cell:
    return _Cell(share(row.test.agreement), interval(row.test.agreement_interval))


def _p(value: float | None) -> str:
    return "" if value is None else f"p {value:.2g}"


@dataclass(frozen=True, slots=True)
class _Strategy:
    """A row of the table: a strategy on a configuration. `notes`: a line of its own below the numbers; `link`: the
    address of its build's report, empty without one."""

    name: str
    config: str
    link: str
    cells: tuple[_Cell, ...]
    notes: str
    is_best: bool

    @classmethod
    def of(cls, found: Findings, row: Row, columns: Sequence[_Column], links: Mapping[Key, str]) -> _Strategy:
        """The row of a strategy on a configuration."""
        return cls(
            row.name,
            row.cost.config if row.cost is not None else "",
            links.get(row.key, ""),
            tuple(column.cell(row) for column in columns),
            "; ".join(filter(None, [row.summary, *notes(row)])),
            found.is_best(row),
        )


def _plots(found: Findings) -> list[Plot]:
    """Quality over time, over energy and over bytes of weights, where they are known."""
    by_agreement = is_by_agreement(found.rows)
    y_title = "agreement with float" if by_agreement else "SQNR of the outputs, dB"
    kinds: list[tuple[str, Amount]] = [
        ("ms a run" if clocks(found) else "cycles a run", run_time),
        ("energy of a run, µJ (estimated)", lambda row: row.cost.energy.total if row.cost else None),
        (_WEIGHTS, lambda row: row.weight_bytes),
    ]
    rows = {row.key: number for number, row in enumerate(found.points)}
    best = found[found.best].key if found.best is not None else None
    plots: list[Plot] = []
    for title, cost in kinds:
        leaves_out = title != _WEIGHTS
        points = points_of(found.points, cost, lambda row, leaves_out=leaves_out: leaves_out and row.host_share > 0)
        if points:
            y_text = (lambda v: f"{100 * v:.4g}%") if by_agreement else (lambda v: f"{v:.4g}")
            plots.append(pareto_plot(points, Axes(title, y_title, amount_text, y_text), best, rows))
    return plots


@dataclass(frozen=True, slots=True)
class _Noise:
    """A layer's noise under one strategy. `level`: how strong its colour is; without `text` the layer is in float."""

    text: str
    level: float = 0.0
    is_worst: bool = False


@dataclass(frozen=True, slots=True)
class _NoiseTable:
    """Noise by layer and strategy. `rows`: short name, what the layer is, cells; `worst`: layers of each strategy."""

    strategies: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[_Noise, ...]], ...]
    worst: tuple[tuple[str, tuple[str, ...]], ...]


def _noise(found: Findings, names: Mapping[str, str]) -> _NoiseTable | None:
    """Rows of layers, columns of strategies; None if no layer was measured."""
    rows = [row for row in found.rows if row.layers]
    if not rows:
        return None
    table = {row.name: {layer.name: layer for layer in row.layers} for row in rows}
    worst = {row.name: {layer.name for layer in row.worst_layers} for row in rows}
    operators = {layer.name: layer.operator for row in rows for layer in row.layers}

    def cell(row: Row, layer: str) -> _Noise:
        if layer not in table[row.name]:
            return _Noise("")
        value = table[row.name][layer].sqnr_db
        level = 0.0 if value is None else min(max((_NONE_DB - value) / _NONE_DB, 0.0), 1.0)
        return _Noise(decibels(value), _STRONGEST * level, layer in worst[row.name])

    return _NoiseTable(
        tuple(row.name for row in rows),
        tuple(
            (names[layer], f"{operators[layer]}: {layer}", tuple(cell(row, layer) for row in rows))
            for layer in found.layer_names
        ),
        tuple((row.name, tuple(names[layer.name] for layer in row.worst_layers)) for row in rows),
    )


@dataclass(frozen=True, slots=True)
class _Picture:
    """A layer's values. `strategies`: those whose values these are, empty if all share them."""

    name: str
    short: str
    strategies: tuple[str, ...]
    ranges: Ranges | None


def _pictures(found: Findings, shown: Sequence[str], names: Mapping[str, str]) -> list[_Picture]:
    pictures: list[_Picture] = []
    for name in shown:
        groups = _groups(found, name)
        for histogram, clips in groups:
            strategies = tuple(clips) if len(groups) > 1 else ()
            pictures.append(_Picture(name, names[name], strategies, ranges(histogram, clips, found.best)))
    return pictures


def _groups(found: Findings, name: str) -> list[tuple[Histogram, dict[str, Range | None]]]:
    """Distributions of a layer, each with the strategies that have it and their ranges."""
    groups: list[tuple[Histogram, dict[str, Range | None]]] = []
    for strategy, layer in found.layer(name).items():
        for histogram, clips in groups:
            if histogram == layer.histogram:
                clips[strategy] = layer.clip
                break
        else:
            groups.append((layer.histogram, {strategy: layer.clip}))
    return groups


def _energy_rows() -> list[tuple[str, str, str]]:
    """Operations, their picojoules, and where these are from."""
    rows = [(figure.text, f"{figure.picojoules:g}", figure.note) for figure in FIGURES]
    note = "a cache's; straight lines through logarithms between sizes"
    rows += [(f"64-bit access on chip, {size >> 10} KiB", f"{pj:g}", note) for size, pj in SRAM]
    return [*rows, *((what, share, "fitted to netlists") for what, share in share_rows())]
