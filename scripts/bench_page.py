"""docs/performance.md from measurements.

In: rows and what `bench_layers` found. Out: the page as text; the same measurements give the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench_rows import HEADER, Row, markdown

from relay_hw.accel.sim.causes import Cause
from relay_hw.report import number, percent

HEAD = """# Performance

Written by `make bench`; do not edit. Configuration `default`: 16 x 16 multipliers of 8 bits, a 64-bit AXI port, the
standard memory model (100 edges of latency, one beat an edge, 16 bursts outstanding each way). Cycles run from the
launch write to done, of one launch for the whole network, first layer and classifier included, and are those of the
Verilog under Verilator: every launch below was run there, and all counters were those of the cycle simulator. Networks
have seeded weights (`examples/models`); time depends on no data. Seconds are
processor time.

Utilisation: products of the model over cycles x 256, unpadded. Roofline: what no launch of the program goes below: the
most of products over 256, slots of the output stage, bytes read and fetched over 8, bytes written over 8.
"""
CAUSE_WORDS = "\n" + "\n".join(f"- `{cause}`: {cause.meaning}" for cause in Cause) + "\n"


# What the page shows of a layer or a network.
KEPT = (
    "name", "cycles", "roofline_cycles", "roofline", "causes", "macs", "utilisation", "utilisation_all", "bytes",
    "host",
)  # fmt: skip
PARTS = ("layers", "networks", "transformers", "speeds", "host", "control", "language")


def kept(found: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of the measurements."""
    return {part: _kept_part(values) if part in PARTS else values for part, values in found.items()}


def _kept_part(values: dict[str, Any]) -> dict[str, Any]:
    tables = {
        part: [{key: row[key] for key in KEPT if key in row} for row in values[part]]
        for part in ("layers", "networks", "transformers")
        if part in values
    }
    return {"rows": values["rows"], **tables}


def page(found: dict[str, Any]) -> str:
    """The whole page."""
    rows = [Row(**{key: row[key] for key in row if key != "holds"}) for part in PARTS for row in found[part]["rows"]]
    parts = [
        HEAD,
        markdown(HEADER, [row.cells() for row in rows]),
        "\n## ResNet-18's convolutions, each alone\n",
        _losses(found["layers"]["layers"]),
        "\n## Whole networks\n",
        _networks(found["networks"]["networks"] + found["transformers"]["transformers"]),
        "\nWhere the cycles go:\n",
        _losses(found["networks"]["networks"] + found["transformers"]["transformers"]),
        CAUSE_WORDS,
        "## What a configuration costs\n",
        _area(found["area"]),
        f"\nMeasured with Python {found['python']} on {found['machine']}.\n",
    ]
    return "\n".join(parts)


def _losses(rows: Sequence[dict[str, Any]]) -> str:
    header = ("", "cycles", "roofline", "of it", *Cause)
    cells = [
        (
            row["name"],
            number(row["cycles"]),
            number(row["roofline_cycles"]),
            percent(row["roofline"]),
            *(number(row["causes"][cause]) for cause in Cause),
        )
        for row in rows
    ]
    return markdown(header, cells, frozenset(header[1:]))


def _networks(rows: Sequence[dict[str, Any]]) -> str:
    header = ("", "products", "cycles", "utilisation", "all multipliers", "bytes read", "bytes written", "on the host")
    cells = [
        (
            row["name"],
            number(row["macs"]),
            number(row["cycles"]),
            percent(row["utilisation"]),
            percent(row["utilisation_all"]),
            number(row["bytes"]["read"]),
            number(row["bytes"]["written"]),
            ", ".join(f"{entry['operator']}" for entry in row["host"]) or "nothing",
        )
        for row in rows
    ]
    text = markdown(header, cells, frozenset(header[1:-1]))
    return (
        f"{text}\n\nAll multipliers: products of the model and of the output stage over cycles x multipliers of both."
    )


def _area(area: dict[str, dict[str, Any]]) -> str:
    if not area:
        return "Not counted: `make area` writes build/area.json, which `make bench` shows."
    keys = list(dict.fromkeys(key for row in area.values() for key in row if key != "seconds"))
    cells = [(name, *(_cell(row.get(key)) for key in keys)) for name, row in area.items()]
    return markdown(("configuration", *keys), cells, frozenset(keys))


def _cell(value: object) -> str:
    return number(value) if isinstance(value, int) else str(value if value is not None else "-")
