"""The area model against syntheses: what is counted is exact, what is fitted is near, also where it was held back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from relay_hw.accel.fpga.area import FITTED, area_of, memories, terms
from relay_hw.accel.fpga.parts import ECP5_PARTS
from relay_hw.accel.isa.config import config_from_dict, load_config

ROOT = Path(__file__).parents[3]
RESULTS = json.loads((ROOT / "docs" / "results" / "area_points.json").read_text())
BOARDS = json.loads((ROOT / "docs" / "results" / "boards.json").read_text())
LARGEST = ECP5_PARTS[-1]
# What is asked of points that the model never saw.
WITHIN = 0.10


@pytest.mark.parametrize("point", RESULTS["points"], ids=lambda point: point["point"])
def test_block_rams_and_multipliers_are_counted_exactly(point: dict[str, object]) -> None:
    found = area_of(config_from_dict(point["sizes"], "point"), LARGEST)
    assert (found.block_rams, found.multipliers) == (point["block_rams"], point["multipliers"])


@pytest.mark.parametrize("name", ["ecp5", "ecp5w4", "ecp5x2"])
def test_they_are_those_of_the_boards_too(name: str) -> None:
    found = area_of(load_config(name), LARGEST)
    assert (found.block_rams, found.multipliers) == (BOARDS[name]["block_rams"], BOARDS[name]["multipliers"])


@pytest.mark.parametrize("point", RESULTS["points"], ids=lambda point: point["point"])
def test_cells_that_are_fitted_are_near(point: dict[str, float]) -> None:
    found = area_of(config_from_dict(point["sizes"], "point"), LARGEST)
    assert found.luts == pytest.approx(point["luts"], rel=WITHIN)
    assert found.flip_flops == pytest.approx(point["flip_flops"], rel=WITHIN)


def test_the_model_is_the_fit_of_the_results() -> None:
    sys.path.insert(0, str(ROOT))
    from scripts.area_points import agreement, fitted

    model = json.loads(FITTED.read_text())
    assert model == fitted(RESULTS["points"], RESULTS["row_units"])
    assert RESULTS["agreement"] == agreement(RESULTS["points"], model)
    assert all(amount >= 0 for cell in model.values() for amount in cell.values())
    assert list(model["luts"]) == list(terms(load_config("tiny"), LARGEST))


def test_the_row_unit_is_what_its_syntheses_say() -> None:
    """Beside those of the memories it looks up: multipliers as counted, other cells on a line."""
    for unit in RESULTS["row_units"]:
        config = replace(load_config("tiny"), block_out=4 * unit["lanes"])
        one, other = area_of(config, LARGEST), area_of(replace(config, cof_depth=0), LARGEST)
        assert config.row_multipliers == unit["multipliers"] == one.multipliers - other.multipliers
        assert abs(one.luts - other.luts - unit["luts"]) <= 1
        assert abs(one.flip_flops - other.flip_flops - unit["flip_flops"]) <= 1
    default = load_config("default")
    added = area_of(default, LARGEST).block_rams - area_of(replace(default, cof_depth=0), LARGEST).block_rams
    assert added == 2 * default.row_lanes


def test_a_smaller_part_makes_more_products_by_luts() -> None:
    small, large = (area_of(load_config("ecp5"), part) for part in (ECP5_PARTS[0], LARGEST))
    assert small.multipliers < large.multipliers and small.luts > large.luts
    assert small.share(ECP5_PARTS[0]) > large.share(LARGEST)


def test_memories_hold_what_scratchpads_hold() -> None:
    for name in ("tiny", "ecp5", "default", "wide", "w4"):
        config = load_config(name)
        bits = {memory.name: 0 for memory in memories(config)}
        for memory in memories(config):
            bits[memory.name] += memory.count * memory.width * memory.depth
        assert bits["inp"] == 8 * config.inp_depth * config.inp_bytes
        assert bits["wgt"] == 8 * config.wgt_depth * config.wgt_bytes
        assert bits["acc"] == 8 * config.acc_depth * config.acc_bytes
        assert bits["out"] == 8 * config.out_depth * config.out_bytes
