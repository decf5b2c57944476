"""Reports of builds: text tables, `report.json` and a self-contained `report.html`.

Pages are Jinja templates, of this room in templates/, their scripts in page/.
"""

from __future__ import annotations

import json

from relay_hw.report.build_page import render_html
from relay_hw.report.difference import Difference, diff
from relay_hw.report.frame import Page, framed
from relay_hw.report.model import (
    Bounds,
    HostTime,
    LayerRow,
    Report,
    SegmentRow,
    bounds_of,
    layer_json,
    profile_json,
    report_json,
    traffic_json,
    utilisation,
)
from relay_hw.report.names import short_names
from relay_hw.report.network import INPUT, OUTPUT, Line, Network, Node
from relay_hw.report.picture import (
    PARTS,
    ROWS,
    Instructions,
    Kind,
    Pad,
    Picture,
    Section,
    Spent,
    Transfer,
)
from relay_hw.report.profile import Profile
from relay_hw.report.render import render
from relay_hw.report.script import ROWS_SCRIPT
from relay_hw.report.speed import Figure, Speed, speed_json, speed_table
from relay_hw.report.table import some, table
from relay_hw.report.text import host_table, layer_table, mac_text, number, percent, placement, segment_table, summary

__all__ = [
    "INPUT",
    "OUTPUT",
    "PARTS",
    "ROWS",
    "ROWS_SCRIPT",
    "Bounds",
    "Difference",
    "Figure",
    "HostTime",
    "Instructions",
    "Kind",
    "LayerRow",
    "Line",
    "Network",
    "Node",
    "Pad",
    "Page",
    "Picture",
    "Profile",
    "Report",
    "Section",
    "SegmentRow",
    "Speed",
    "Spent",
    "Transfer",
    "bounds_of",
    "diff",
    "framed",
    "host_table",
    "layer_json",
    "layer_table",
    "mac_text",
    "number",
    "percent",
    "placement",
    "profile_json",
    "render",
    "render_html",
    "report_files",
    "report_json",
    "segment_table",
    "short_names",
    "some",
    "speed_json",
    "speed_table",
    "summary",
    "table",
    "traffic_json",
    "utilisation",
]


def report_files(report: Report) -> dict[str, bytes]:
    """Contents of `report.json` and `report.html`; the same report gives the same bytes."""
    data = json.dumps(report_json(report), indent=1, sort_keys=True) + "\n"
    return {"report.json": data.encode(), "report.html": render_html(report).encode()}
