"""The picture of README.md: a build's layers and where their cycles go, drawn from the `report.json` of the build.

`make images` compiles the example and writes docs/images/cycles.svg; tests/docs/test_picture.py compares them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "images" / "cycles.svg"
STAGES: Final = ("ONNX", "Relay, float32", "Relay, int8", "program", "Verilog")
PRODUCTS: Final = ("multiplying", "#2f6fbb")
# Causes of lost cycles: those of a report, named as a reader of one picture understands them.
CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "fill": ("starting", "#e0a13a"),
    "lanes": ("idle multipliers", "#b9c4d0"),
    "output": ("output stage", "#c5573f"),
    "alu": ("pooling", "#7a9a4e"),
    "drain": ("finishing", "#a67bb5"),
}
OTHER: Final = ("other waits", "#6d7681")
WIDTH: Final = 860
LEFT: Final = 200
BAR: Final = 580
ROW: Final = 26
TOP: Final = 132
FONT: Final = "system-ui, sans-serif"


def picture(report: Mapping[str, Any]) -> str:
    """The picture of a build as SVG."""
    layers = [layer for layer in report["layers"] if layer["where"] == "accel"]
    height = TOP + ROW * len(layers) + 48
    title = (
        f"{report['model']} on configuration {report['config']}: {report['cycles']:,} cycles an inference, "
        f"{report['utilisation']:.0%} of them multiplying"
    )
    body = [*_stages(), _text(20, 100, title, weight="600"), *_rows(layers), *_legend(height - 20)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="{FONT}" font-size="13" role="img" aria-label="{escape(title)}">'
    )
    back = f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>'
    return "\n".join([head, back, *body, "</svg>", ""])


def _text(x: float, y: float, text: str, *, weight: str = "400", anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="#1c2530" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _stages() -> Iterator[str]:
    """The way of a network, as boxes with arrows between them."""
    width, gap = 132, 40
    for index, name in enumerate(STAGES):
        x = 20 + index * (width + gap)
        yield f'<rect x="{x}" y="20" width="{width}" height="36" rx="6" fill="#eef2f7" stroke="#9fb0c3"/>'
        yield _text(x + width / 2, 43, name, anchor="middle")
        if index:
            yield f'<path d="M{x - gap + 6} 38H{x - 8}m-6-5l6 5l-6 5" fill="none" stroke="#5b6b7d" stroke-width="1.5"/>'


def _rows(layers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A bar for each layer, as long as its cycles, in pieces by what they were spent on."""
    most = max(layer["cycles"] for layer in layers)
    for index, layer in enumerate(layers):
        y = TOP + ROW * index
        yield _text(20, y, f"{layer['name']}  {layer['shape'].split(' -> ')[-1]}")
        x = float(LEFT)
        for name, colour, cycles in _pieces(layer):
            width = BAR * cycles / most
            place = f'x="{x:.1f}" y="{y - 13}" width="{width:.1f}" height="17"'
            yield f'<rect {place} fill="{colour}"><title>{name}: {cycles:,}</title></rect>'
            x += width
        yield _text(x + 6, y, f"{layer['cycles']:,}")


def _pieces(layer: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Name, colour and cycles: multiplying first, then each cause."""
    lost = layer["stalls"]
    yield *PRODUCTS, layer["cycles"] - sum(lost.values())
    for cause, (name, colour) in CAUSES.items():
        yield name, colour, lost[cause]
    yield *OTHER, sum(cycles for cause, cycles in lost.items() if cause not in CAUSES)


def _legend(y: float) -> Iterator[str]:
    x = 20.0
    for name, colour in (PRODUCTS, *CAUSES.values(), OTHER):
        yield f'<rect x="{x:g}" y="{y - 11:g}" width="13" height="13" fill="{colour}"/>'
        yield _text(x + 19, y, name)
        x += 42 + 7 * len(name)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="folder that `relay-hw compile` wrote")
    parser.add_argument("-o", "--output", type=Path, default=PICTURE)
    found = parser.parse_args(arguments)
    found.output.write_text(picture(json.loads((found.build / "report.json").read_text())))
    print(f"{found.output}: written")


if __name__ == "__main__":
    main()
