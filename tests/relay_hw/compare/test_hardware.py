"""What a strategy costs on each configuration: cycles, clocks of boards, stored weights, area, loops."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import time_regions
from relay_hw.target.accel.board import on_board
from relay_hw.text import parse
from tests.relay_hw.compare.given import NAMES, calibration, data, seen


def test_a_board_is_compared_at_its_clock(plain: IRModule, tmp_path: Path) -> None:
    found = compare(
        plain,
        data(),
        CompareOptions(strategies=("int8-minmax", "w4a8"), board="ulx3s-85f", name="plain"),
        calibration=calibration(),
    )
    costs = {cost.config: cost for row in found.rows for cost in row.costs}
    assert {name: (c.board, c.clock_hz) for name, c in costs.items()} == {
        "ecp5": ("ulx3s-85f", 75_000_000),
        "ecp5w4": ("ulx3s-85f", 60_000_000),
    }
    compiled = compile_model(plain, CompileOptions(strategy="int8-minmax", board="ulx3s-85f"), calibration=seen())
    artifact = compiled.save(tmp_path / "build")
    cost = found["int8-minmax"].cost
    assert cost is not None and cost.config == "ecp5" and cost.memory == on_board("ulx3s-85f").memory
    assert cost.cycles == sum(run.timing.cycles for run in time_regions(artifact, cost.memory))
    assert cost.samples_per_second == pytest.approx(75e6 / cost.cycles)
    seconds = [row.cycles / (row.clock_hz or 1) for row in found["w4a8"].costs]
    assert len(seconds) == 2 and seconds == sorted(seconds)
    text = found.to_text()
    assert f"{cost.samples_per_second:,.1f}" in text and f"ecp5 at 75 MHz, {cost.memory} memory" in text
    assert f"{cost.samples_per_second:,.1f}" in found.to_html()
    # Joules on that board, with its memory's cycles, in every form.
    joules = cost.energy.total
    assert all(each.energy.total > each.energy.on_chip > 0 for row in found.rows for each in row.costs)
    assert f"{joules:.1f}" in text and "uJ" in text.splitlines()[2]
    assert f"{joules:,.1f}" in found.to_html() and "µJ, estimated" in found.to_html()
    line = next(csv.DictReader(io.StringIO(found.to_csv())))
    assert (line["board"], float(line["energy_uj"])) == ("ulx3s-85f", pytest.approx(joules, rel=1e-3))
    row = found.to_json()["strategies"][0]
    assert row["board"] == "ulx3s-85f" and row["energy_uj"] == pytest.approx(joules, abs=1e-4)
    assert sum(row["energy_parts_uj"].values()) == pytest.approx(joules, abs=1e-3)


def test_a_board_without_that_clock_is_refused(plain: IRModule) -> None:
    with pytest.raises(InputError, match="configuration must be ecp5 or ecp5w4 on board ulx3s-85f, not tiny"):
        compare(
            plain,
            data(),
            CompareOptions(strategies=NAMES, configs=["tiny"], board="ulx3s-85f"),
            calibration=calibration(),
        )


def test_weights_are_counted_as_they_are_stored(found: Comparison) -> None:
    count = 8 * 3 * 9 + 6 * 8 * 9 + 5 * 24
    assert found.float_row.weight_bytes == 4 * count
    assert found["int8-minmax"].weight_bytes == count
    assert found["w4a8"].weight_bytes == count, "entries of tiny are too small for LOAD to widen"


def test_weights_take_what_their_accelerator_stores(plain: IRModule) -> None:
    """Layer conv_b has 6 x 8 x 9 weights and, in groups of 16 channels, a factor for each of 6 x 9 rows of 8."""
    count, narrow, rows = 8 * 3 * 9 + 6 * 8 * 9 + 5 * 24, 6 * 8 * 9, 6 * 9
    names = ["w4a8", "w4g16a8-gptq", "w2a8-gptq", "w2g16a8-gptq"]
    for config, saved in {
        "default": [narrow // 2, narrow // 2 - rows // 2, narrow // 2, narrow // 2],
        "w4": [narrow // 2, 0, 3 * narrow // 4, 3 * narrow // 4 - rows // 2],
    }.items():
        found = compare(plain, data(), CompareOptions(strategies=names, configs=[config]), calibration=calibration())
        assert [count - row.weight_bytes for row in found.rows] == saved
        gains = {"default": [True, True, False, False], "w4": [True, False, True, True]}
        assert [row.gains for row in found.rows] == gains[config]
        held = [row.cost is not None and f"no gain on {config}" in row.cost.no_gain for row in found.rows]
        assert held == [not gain for gain in gains[config]]
        for row in found.rows:
            assert row.cost is not None
            assert (f"no gain on {config}" in found.to_text()) and (row.gains or row.cost.no_gain in found.to_html())
        assert found[found.best or ""].gains


def test_every_configuration_is_a_point(plain: IRModule) -> None:
    """Strategies on configurations asked for by name: each pair is a row, a point, a line and a cost, as if alone."""
    configs = ["tiny", "wide", "w4"]
    options = CompareOptions(strategies=["int8-minmax", "w4a8"], configs=configs)
    found = compare(plain, data(), options, calibration=calibration())
    pairs = {(row.name, config) for row in found.rows for config in configs}
    assert {point.key for point in found.points} == pairs and len(found.points) == 6
    for row in found.rows:
        assert row.cost is not None and row.cost.cycles == min(cost.cycles for cost in row.costs)
        for cost in row.costs:
            options = CompareOptions(strategies=[row.name], configs=[cost.config])
            (alone,) = compare(plain, data(), options, calibration=calibration()).rows
            assert alone.cost is not None
            same = dict.fromkeys(("compile_seconds", "host_seconds"), 0.0)
            assert replace(cost, **same) == replace(alone.cost, **same)
            assert alone.test == row.test
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert {(line["name"], line["config"]) for line in lines} == pairs
    strategies = found.to_json()["strategies"]
    assert {(row["name"], cost["config"]) for row in strategies for cost in row["costs"]} == pairs
    amounts = {(row["name"], c["config"]): (row["agreement"], c["cycles"]) for row in strategies for c in row["costs"]}

    def is_beaten(own: tuple[float, int]) -> bool:
        return any(cycles < own[1] and share >= own[0] for share, cycles in amounts.values())

    unbeaten = {key for key, own in amounts.items() if not is_beaten(own)}
    assert {(row["name"], c["config"]) for row in strategies for c in row["costs"] if c["front"]} == unbeaten
    assert {(line["name"], line["config"]) for line in lines if line["front"] == "True"} == unbeaten
    text, html = found.to_text(60), found.to_html()
    table = text.partition("\n\n")[2].partition("\n\n")[0].replace(" *", "").splitlines()
    assert {tuple(line.split()[:2]) for line in table} >= pairs
    assert text.count(" * ") == 1 and html.count('class="best') == 1
    for name, config in pairs:
        assert html.count(f"<title>{name} on {config}: ") == 3
    assert "w4a8 on tiny: no gain on tiny: 4-bit weights as 8-bit ones" in text


LOOP = """#[version = "0.0.5"]
def @again(%n: int32, %x: Tensor[(1, 16), float32], %w: Tensor[(16, 16), float32]) -> Tensor[(1, 16), float32] {
  if (equal(%n, 0)) { %x } else { @again(subtract(%n, 1), nn.relu(nn.dense(%x, %w, units=16)), %w) }
}
def @main(%x: Tensor[(1, 16), float32], %w: Tensor[(16, 16), float32]) -> Tensor[(1, 16), float32] {
  @again(TIMES, %x, %w)
}
"""


def looped(times: int) -> Comparison:
    rng = np.random.default_rng(0)
    mod = parse(LOOP.replace("TIMES", str(times)))
    weight = np.abs(rng.normal(size=(16, 16)) / 4).astype(np.float32)
    values = {"x": rng.normal(size=(6, 16)).astype(np.float32), "labels": np.arange(6)}
    seen = {"x": rng.normal(size=(8, 16)).astype(np.float32)}
    return compare(
        mod,
        values,
        CompareOptions(strategies=["int8-minmax"], configs=["tiny"]),
        calibration=seen,
        params={"w": weight},
    )


def test_loops_cost_what_they_launch() -> None:
    """The weights stay on the device, so every turn but none costs the same."""
    cycles = {times: looped(times).rows[0].cost for times in (3, 5)}
    short, long = cycles[3], cycles[5]
    assert short is not None and long is not None
    assert short.cycles % 3 == 0 and long.cycles == short.cycles // 3 * 5
    assert (short.accel_macs, long.accel_macs) == (3 * 256, 5 * 256) and short.accel_share == 1.0
    assert long.energy.total == pytest.approx(short.energy.total / 3 * 5)


def test_area_comes_from_kept_results(plain: IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay_hw.accel.fpga.synth import CELLS, COUNTED, cache_folder, content_key
    from relay_hw.accel.sim.result_cache import seal

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments: dict[str, Any] = {"configs": ["tiny"], "area": True, "work": tmp_path / "work"}
    missing = compare(plain, data(3), CompareOptions(strategies=NAMES[:1], **arguments), calibration=calibration())
    assert not missing.rows[0].area and "No synthesis result yet for tiny" in missing.notes[0]
    assert missing.notes[0] in missing.to_text() and "scripts/area.py tiny" in missing.to_html()
    stage = cache_folder() / f"{content_key(load_config('tiny'))}-0"
    stage.mkdir(parents=True)
    counts = {"luts": 9876, "multipliers": 54, "block_rams": 3, "flip_flops": 2, "luts_as_memory": 1, "seconds": 0}
    (stage / CELLS).write_text(json.dumps(counts))
    seal(stage, COUNTED, [CELLS])
    found = compare(plain, data(3), CompareOptions(strategies=NAMES[:1], **arguments), calibration=calibration())
    assert found.notes == () and found.to_json()["strategies"][0]["lut"] == 9876
    for text in (found.to_text(), found.to_html(), found.to_csv()):
        assert "54" in text and ("9,876" in text or "9876" in text)
