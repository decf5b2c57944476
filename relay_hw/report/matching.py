"""Compares two builds: matches their layers, finds what changed and which cycles were gained and lost.

In: two measured reports with their networks. Out: `Matching`; its pairs hold every layer of both, so that their
cycles add up to those of both reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from relay_hw.accel.sim.causes import Cause
from relay_hw.report.model import LayerRow, Report, layer_json
from relay_hw.report.network import Network, Node
from relay_hw.report.text import number

# Decibels of noise that tell one strategy from another.
_NOISE_DB: Final = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between the builds, as text."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A layer in both builds, by its number among the rows of each, or in one. `more`: cycles that each cause takes
    more in the second one, products included."""

    left: int | None
    right: int | None
    name: str
    cycles: tuple[int, int]
    more: Mapping[Cause, int]
    changes: tuple[Change, ...]

    @property
    def gained(self) -> int:
        """Cycles that the second build saves."""
        return self.cycles[0] - self.cycles[1]


@dataclass(frozen=True, slots=True)
class Matching:
    """`left` and `right`: the reports; `settings`: what the builds as a whole have otherwise."""

    left: Report
    right: Report
    settings: tuple[Change, ...]
    pairs: tuple[Pair, ...]

    @property
    def matched(self) -> tuple[Pair, ...]:
        """Pairs of layers that both builds have."""
        return tuple(pair for pair in self.pairs if pair.left is not None and pair.right is not None)

    @property
    def cycles(self) -> tuple[int, int]:
        """Cycles of an inference of each."""
        return self.left.cycles or 0, self.right.cycles or 0


def match_layers(left: Report, right: Report) -> Matching:
    """Match all layers of two reports."""
    links = _links(left, right)
    pairs = tuple(
        _pair(left, right, one, other) for one, other in _in_order(links, len(left.layers), len(right.layers))
    )
    settings = _changes((what, read(left), read(right)) for what, read in _SETTINGS.items())
    return Matching(left, right, settings, pairs)


_SETTINGS: Final[Mapping[str, Callable[[Report], str]]] = {
    "model": lambda report: report.model,
    "configuration": lambda report: report.config,
    "strategy": lambda report: report.strategy,
    "memory": lambda report: report.memory_model,
    "products a cycle": lambda report: number(report.macs_per_cycle),
    "launches": lambda report: number(report.launches),
    "cycles once, for resident weights": lambda report: number(report.resident_cycles),
}


def _links(left: Report, right: Report) -> dict[int, int]:
    """Numbers of the right rows by those of the left ones. Equal names are sure, then common sources, then, in order,
    what computes the same on the same shapes."""
    sources = _sources(left), _sources(right)
    tests: tuple[Callable[[int, int], bool], ...] = (
        lambda one, other: left.layers[one].name == right.layers[other].name,
        lambda one, other: bool(sources[0].get(one, set()) & sources[1].get(other, set())),
        lambda one, other: _work(left.layers[one]) == _work(right.layers[other]),
    )
    links: dict[int, int] = {}
    for test in tests:
        free = [number for number in range(len(right.layers)) if number not in links.values()]
        for one in range(len(left.layers)):
            found = next((other for other in free if test(one, other)), None) if one not in links else None
            if found is not None:
                links[one] = found
                free.remove(found)
    return links


def _sources(report: Report) -> dict[int, set[str]]:
    """Names in the model's file of what each row's layer was made of."""
    nodes = report.network.nodes if report.network is not None else ()
    return {node.layer: {f"{_kind(node)} {name}" for name in node.names} for node in nodes if node.layer >= 0}


def _kind(node: Node) -> str:
    """The kind of a row: conversions are named like the layer that they convert for."""
    return node.operator if node.operator in ("qnn.quantize", "qnn.dequantize") else ""


def _work(row: LayerRow) -> tuple[str, str, int]:
    return row.operator, row.shape, row.macs


def _in_order(links: Mapping[int, int], left: int, right: int) -> Iterator[tuple[int | None, int | None]]:
    """Rows in the order of the left report; those that only the right one has stand behind what they follow there."""
    back = {other: one for one, other in links.items()}
    behind: dict[int, list[int]] = {}
    last = -1
    for other in range(right):
        if other in back:
            last = back[other]
        else:
            behind.setdefault(last, []).append(other)
    for one in range(-1, left):
        if one >= 0:
            yield one, links.get(one)
        yield from ((None, other) for other in behind.get(one, ()))


def _pair(left: Report, right: Report, one: int | None, other: int | None) -> Pair:
    before = None if one is None else left.layers[one]
    after = None if other is None else right.layers[other]
    spent = _spent(before), _spent(after)
    more = {cause: spent[1].get(cause, 0) - spent[0].get(cause, 0) for cause in Cause}
    changes: tuple[Change, ...] = ()
    if before is not None and after is not None and one is not None and other is not None:
        changes = _changes(_facts(before, after, _node(left.network, one), _node(right.network, other)))
    row = before or after
    assert row is not None
    cycles = (before.cycles or 0) if before else 0, (after.cycles or 0) if after else 0
    return Pair(one, other, row.name, cycles, {cause: count for cause, count in more.items() if count}, changes)


def _spent(row: LayerRow | None) -> dict[Cause, int]:
    """Cycles of a row by cause."""
    if row is None or row.cycles is None:
        return {}
    return {Cause.PRODUCTS: row.cycles - sum(row.stalls.values()), **row.stalls}


def _node(network: Network | None, layer: int) -> Node | None:
    return next((node for node in network.nodes if node.layer == layer), None) if network is not None else None


def _facts(before: LayerRow, after: LayerRow, one: Node | None, other: Node | None) -> Iterator[tuple[str, str, str]]:
    yield "where", before.where, after.where
    yield "operator", before.operator, after.operator
    yield "shape", before.shape, after.shape
    yield "tile and why", before.reason, after.reason
    yield "bytes", number(before.traffic.total), number(after.traffic.total)
    yield "bytes of weights", number(before.traffic.weights), number(after.traffic.weights)
    if one is not None and other is not None:
        yield "scale", _scale(one), _scale(other)
        yield "signal to noise", *_noises(one, other)


def _scale(node: Node) -> str:
    return "" if node.scale is None else f"{node.scale:.6g}, zero point {node.zero_point}"


def _noises(one: Node, other: Node) -> tuple[str, str]:
    """Both in dB, or equal texts if they hardly differ."""
    texts = ["" if node.noise_db is None else f"{node.noise_db:.1f} dB" for node in (one, other)]
    both = one.noise_db is not None and other.noise_db is not None
    is_near = both and abs((one.noise_db or 0) - (other.noise_db or 0)) < _NOISE_DB
    return (texts[0], texts[0]) if is_near else (texts[0], texts[1])


def _changes(facts: Iterator[tuple[str, str, str]]) -> tuple[Change, ...]:
    return tuple(Change(what, before, after) for what, before, after in facts if before != after)


def matching_json(found: Matching) -> dict[str, Any]:
    """The object that `relay-hw diff --json` prints."""
    sides = {"a": found.left, "b": found.right}
    return {
        **{
            key: {"model": side.model, "config": side.config, "strategy": side.strategy, "memory": side.memory_model,
                  "cycles": side.cycles, "launches": side.launches}
            for key, side in sides.items()
        },
        "settings": _changes_json(found.settings),
        "matched": len(found.matched),
        "gained": found.cycles[0] - found.cycles[1],
        "pairs": [_pair_json(found, pair) for pair in found.pairs],
    }  # fmt: skip


def _changes_json(changes: Sequence[Change]) -> list[dict[str, str]]:
    return [{"what": change.what, "a": change.before, "b": change.after} for change in changes]


def _pair_json(found: Matching, pair: Pair) -> dict[str, Any]:
    return {
        "name": pair.name,
        "cycles": {"a": pair.cycles[0], "b": pair.cycles[1]},
        "gained": pair.gained,
        "more_by_cause": {str(cause): cycles for cause, cycles in pair.more.items()},
        "changes": _changes_json(pair.changes),
        "a": None if pair.left is None else layer_json(found.left, found.left.layers[pair.left]),
        "b": None if pair.right is None else layer_json(found.right, found.right.layers[pair.right]),
    }
