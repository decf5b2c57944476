"""The report of a build before any launch, from what the compiler knows of each layer.

In: a manifest. Out: a `Profile` with the cycles that the exact engine counted, without counters and pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from relay_hw.accel.sim.causes import Cause
from relay_hw.report import LayerRow, Profile
from relay_hw.runtime.manifest import Manifest
from relay_hw.target.partition import HOST
from relay_hw.target.records import LayerInfo

# Key in the manifest's memory maps: buffers between segments.
HOST_MEMORY = "host"


def static_report(manifest: Manifest) -> Profile:
    """The report before any launch."""
    config = manifest.config
    counts = dict.fromkeys(_inside_forms(manifest), 0)
    counts |= {row.name: manifest.calls.count(row.name) for row in manifest.regions}
    layers = [layer_row(row).times(counts.get(row.function, 1)) for row in manifest.layers]
    return Profile(
        model=manifest.model,
        config=manifest.target if config is None else config.name,
        strategy=str(manifest.strategy["name"]),
        macs_per_cycle=0 if config is None else config.macs_per_cycle,
        bus_bytes=0 if config is None else config.bus_bytes,
        layers=(*layers, *_reload_rows(manifest)),
        cycles=sum(row.cycles or 0 for row in layers) + manifest.reload_cycles if manifest.regions else None,
        memory_model=manifest.memory_model,
        facts=_buffer_facts(manifest.memory.get(HOST_MEMORY, {})),
    )


def _inside_forms(manifest: Manifest) -> Iterator[str]:
    """What batched forms call. An inference is counted call by call, so they do not count as well."""
    for row in manifest.batched:
        for node in manifest.functions[row.form]["nodes"]:
            if "invoke" in node:
                yield node["invoke"]


def _reload_rows(manifest: Manifest) -> list[LayerRow]:
    """One row for the constants that an inference reloads."""
    cycles, why = manifest.reload_cycles, Cause.RELOAD.meaning
    return [LayerRow("resident constants", Cause.RELOAD, manifest.target, why, cycles=cycles)] if cycles else []


def _buffer_facts(buffers: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """A line on the size of buffers between segments."""
    used = sum(row["bytes"] for row in buffers.values())
    unshared = sum(row["unshared"] for row in buffers.values())
    return {"buffers between segments": f"{used:,} bytes, {unshared:,} without reuse"} if used else {}


def layer_row(row: LayerInfo) -> LayerRow:
    """A layer of a report, without measurements."""
    return LayerRow(
        name=row.name,
        operator=row.operator,
        where=row.where,
        reason="; ".join(text for text in (row.tile, row.reason) if text),
        function=row.function,
        shape=row.shape,
        macs=row.macs,
        traffic=row.traffic,
        output_slots=row.output_slots,
        row_slots=row.row_slots,
        roofline_cycles=None if row.where == HOST else row.roofline_cycles,
        cycles=row.cycles,
    )
