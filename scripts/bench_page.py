"""docs/performance.md from measurements.

In: rows and what `bench_layers` found. Out: the page as text; the same measurements give the same page.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench_rows import HEADER, Row, markdown

from accel.sim.causes import Cause
from relay_hw.report import number, percent

AREA = Path(__file__).resolve().parents[1] / "build" / "area.json"

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


def page(rows: Sequence[Row], found: dict[str, Any]) -> str:
    """The whole page."""
    parts = [
        HEAD,
        markdown(HEADER, [row.cells() for row in rows]),
        "\n## ResNet-18's convolutions, each alone\n",
        _losses(found["layers"]),
        "\n## Whole networks\n",
        _networks(found["networks"]),
        "\nWhere the cycles go:\n",
        _losses(found["networks"]),
        CAUSE_WORDS,
        "## What a configuration costs\n",
        _area(),
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


def _area() -> str:
    if not AREA.exists():
        return "Not measured here: `make area` writes build/area.json."
    area = json.loads(AREA.read_text())
    keys = list(dict.fromkeys(key for row in area.values() for key in row if key != "seconds"))
    cells = [(name, *(_cell(row.get(key)) for key in keys)) for name, row in area.items()]
    return markdown(("configuration", *keys), cells, frozenset(keys))


def _cell(value: object) -> str:
    return number(value) if isinstance(value, int) else str(value if value is not None else "-")
