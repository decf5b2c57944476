"""scripts/quantization_tables.py without its hours: one table from one report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from relay_hw.compare.measures import Quality
from relay_hw.compare.rows import Row, row_json

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
tables: ModuleType = __import__("quantization_tables")
sys.path.pop(0)

QUALITY = Quality(400, 31.26, 0.93, (0.9, 0.95), 1.0, None, 0.985, (0.967, 0.993), 2, 4, -0.005, (-0.02, 0.01), 0.69)


def report() -> dict[str, Any]:
    row = Row("mxfp4", "", QUALITY, QUALITY, (), "no hardware", 123456, (), "numpy", "", {})
    floats = {"top1": 0.935, "macs": 7, "weight_bytes": 8}
    values = {"best": "mxfp4", "images": 400, "calibration_images": 96, "held_out_images": 32, "float": floats}
    return {**values, "strategies": [row_json(row, front=())]}


def test_energy_anew_goes_to_all_rows_that_count_the_same() -> None:
    counts = {"config": "w4", "cycles": 9, "dram_bytes": 8, "accel_mac_share": 1.0}
    rows = [
        {**counts, "name": "w4a8", "energy_uj": 5.0},
        {**counts, "name": "w4a8-gptq", "energy_uj": 5.0},
        {**counts, "name": "mixed", "cycles": 10, "energy_uj": 6.0},
        {**dict.fromkeys(counts), "name": "mxfp4", "energy_uj": None},
    ]
    assert sorted(tables.representatives(rows)) == ["mixed", "w4a8"]
    fresh = [{**rows[0], "energy_uj": 4.0}, {**rows[2], "energy_uj": 3.0}]
    assert [row["energy_uj"] for row in tables.with_energy(rows, fresh)] == [4.0, 4.0, 3.0, None]
    assert [row["energy_uj"] for row in tables.with_energy(rows, fresh[:1])] == [4.0, 4.0, None, None]


def test_a_table_in_markdown() -> None:
    lines = tables.table("resnet8_cifar10", report()).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1 and len(rows) == 3
    cells = [cell.strip() for cell in rows[-1].strip("|").split("|")]
    assert cells[:4] == ["`mxfp4` ★", "no hardware", "93.00%", "98.50% (96.7 to 99.3)"]
    assert cells[4:] == ["+2 -4", "31.3", "-", "-", "123,456", "-", "-"]


def test_the_page_is_what_was_measured() -> None:
    text = tables.PAGE.read_text()
    assert text == tables.page(text, json.loads(tables.RESULTS.read_text())), (
        "run: python scripts/quantization_tables.py"
    )


def test_what_is_kept_of_a_report_gives_the_same_table() -> None:
    found = report()
    assert tables.table("resnet8_cifar10", tables.kept(found)) == tables.table("resnet8_cifar10", found)
