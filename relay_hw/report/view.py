"""The data that the script of a build's page reads: layers, the network's layout, launches.

In: a `Report`. Out: JSON, with long columns packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from relay_hw.accel.isa.spec import INSTRUCTIONS, Unit
from relay_hw.accel.sim.causes import Cause
from relay_hw.report.layout import HEIGHT, lay_out
from relay_hw.report.model import Report, layer_json
from relay_hw.report.names import short_names
from relay_hw.report.network import INPUT, OUTPUT, Network
from relay_hw.report.packed import Packer
from relay_hw.report.picture import ROWS, Pad, Picture

Json = Any
# Widths of operators, and of inputs and outputs.
_WIDE, _SMALL = 184.0, 128.0


def view_json(report: Report) -> tuple[Json, str]:
    """The page's data, and its packed columns."""
    packer = Packer()
    names = _shorts(row.name for row in report.layers)
    layers = [layer_json(report, row) | {"short": names[row.name]} for row in report.layers]
    data = {
        "macs_per_cycle": report.macs_per_cycle,
        "bus_bytes": report.bus_bytes,
        "causes": {str(cause): cause.meaning for cause in Cause},
        "units": [unit.name for unit in Unit],
        "ops": [
            {"name": row.op.name.lower(), "unit": -1 if row.unit is None else int(row.unit)} for row in INSTRUCTIONS
        ],
        "layers": layers,
        "graph": graph_json(report.network),
        "pad_rows": ROWS,
        "launches": [_picture_json(picture, packer) for picture in report.pictures],
    }
    return data, packer.text()


def _shorts(names: Iterable[str]) -> dict[str, str]:
    return short_names(list(dict.fromkeys(names)))


def graph_json(network: Network | None) -> Json:
    """A network with its layout; null if there is none."""
    if network is None:
        return None
    widths = [_SMALL if node.where in (INPUT, OUTPUT) else _WIDE for node in network.nodes]
    layout = lay_out(widths, [(begin, end) for end, node in enumerate(network.nodes) for begin in node.inputs])
    names = _shorts(node.name for node in network.nodes)
    nodes = [
        _node_json(asdict(node) | {"short": names[node.name], "x": x, "y": y, "width": width})
        for node, (x, y), width in zip(network.nodes, layout.places, widths, strict=True)
    ]
    wires = [{"begin": wire.begin, "end": wire.end, "points": _flat(wire.points)} for wire in layout.wires]
    return {"width": layout.width, "height": layout.height, "box": HEIGHT, "nodes": nodes, "wires": wires}


def _node_json(node: Json) -> Json:
    """A node with its position; missing attributes are left out."""
    return {key: value for key, value in node.items() if value not in (None, (), "")}


def _flat(points: Sequence[tuple[float, float]]) -> list[float]:
    return [value for point in points for value in point]


def _picture_json(picture: Picture, packer: Packer) -> Json:
    ran, spent = picture.instructions, picture.spent
    lengths = [end - begin for begin, end in zip(ran.starts, ran.ends, strict=True)]
    waited = [begin - asked for begin, asked in zip(ran.starts, ran.asked, strict=True)]
    return {
        "function": picture.function,
        "cycles": picture.cycles,
        "launches": picture.launches,
        "instructions": {
            "op": packer.add(ran.ops),
            "start": packer.add(ran.starts),
            "length": packer.add(lengths),
            "waited": packer.add(waited),
            "layer": packer.add(ran.layers),
            "takes": packer.add(ran.takes),
            "gives": packer.add(ran.gives),
        },
        "kinds": [{"cause": str(kind.cause), "what": kind.what, "fill": kind.fill} for kind in spent.kinds],
        "spent": {
            "length": packer.add(spent.lengths),
            "layer": packer.add(spent.layers),
            "kind": packer.add(spent.which),
        },
        "useful": packer.add(picture.useful),
        "parts": picture.parts,
        "pads": [_pad_json(pad, packer) for pad in picture.pads],
        "window_bytes": picture.window_bytes,
        "sections": [asdict(section) for section in picture.sections],
        "pieces": {
            name: packer.add([int(getattr(transfer, field)) for transfer in picture.transfers])
            for name, field in (
                ("section", "section"), ("layer", "layer"), ("begin", "begin"), ("end", "end"),
                ("written", "is_written"), ("first", "first"), ("last", "last"),
            )
        },
    }  # fmt: skip


def _pad_json(pad: Pad, packer: Packer) -> Json:
    return {
        "name": pad.name,
        "entries": pad.entries,
        "entry_bytes": pad.entry_bytes,
        "used": packer.add(pad.used),
        "row": packer.add(pad.rows),
        "begin": packer.add(pad.begins),
        "length": packer.add(pad.lengths),
        "layer": packer.add(pad.layers),
    }
