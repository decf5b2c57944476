"""Mixed fronts: choices of widths by noise and exact cycles, beside uniform strategies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.compare import CompareOptions, compare
from relay_hw.compare import main as steps
from relay_hw.compare import mixed as fronts
from relay_hw.compare.mixed import mixed_front
from relay_hw.compare.places import places
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Calibration, Strategy, find_strategy
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.methods.mixed import measure_all
from relay_hw.runtime.compile import bind_params
from relay_hw.runtime.models import load_model
from tests.relay_hw import recurrent
from tests.relay_hw.small_models import CLASSES, images, save_plain

CALIBRATION = {"image": images(8, 99)}
TEST = {"image": images(9, 3), "labels": np.arange(9) % CLASSES}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> IRModule:
    model = load_model(save_plain(tmp_path_factory.mktemp("mixed") / "plain.onnx"))
    return bind_params(model.mod, model.params)


def test_no_uniform_strategy_beats_the_front(plain: IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> Any:
        names = ["int8-gptq", "w4a8-gptq"]
        options = CompareOptions(strategies=names, configs=["ecp5w4"], mixed=4, work=tmp_path, engine="numpy")
        return compare(plain, TEST, options, calibration=CALIBRATION)

    rows = {row.name: row for row in ask().rows}
    mixed = [row for name, row in rows.items() if name.startswith("mixed-ecp5w4-")]
    assert len(mixed) >= 2
    cycles = [row.cost.cycles for row in mixed]
    assert cycles[0] <= rows["w4a8-gptq"].cost.cycles and cycles[-1] <= rows["int8-gptq"].cost.cycles
    quality = [row.test.sqnr_db for row in mixed]
    for name in ("int8-gptq", "w4a8-gptq"):
        uniform = rows[name]
        beaten = [uniform.cost.cycles < c and uniform.test.sqnr_db > q for c, q in zip(cycles, quality, strict=True)]
        assert not all(beaten)
    assert "layers with 4-bit weights" in mixed[0].summary and "on ecp5w4 on standard" in mixed[0].summary
    # What was chosen is kept: the next comparison asks no network.
    monkeypatch.setattr(steps, "mixed_front", lambda *_: pytest.fail("chosen again"))
    assert [row.name for row in ask().rows] == list(rows)


def test_what_is_no_front(plain: IRModule) -> None:
    for points in (1, 33):
        with pytest.raises(InputError, match=f"points of a mixed front must be from 2 to 32, not {points}"):
            mixed_front(plain, CALIBRATION, places(["tiny"], None), points)
        with pytest.raises(InputError, match=f"points of a mixed front must be from 2 to 32, not {points}"):
            compare(plain, TEST, CompareOptions(strategies=["int8-gptq"], mixed=points), calibration=CALIBRATION)
    with pytest.raises(InputError, match="strategy mixed-cycles needs calibration data"):
        compare(plain, TEST, CompareOptions(strategies=[Strategy("plain", calibration=Calibration.GLOBAL)], mixed=4))


def test_methods_are_those_that_are_judged_best(plain: IRModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "prices_at", lambda *_: lambda _layer, bits: bits)
    liked = {"w4a8-gptq": 3.0, "w4a8-twins": 1.0, "w4a8-mixed": 2.0, "int8-kl": 5.0, "int8-twins": 4.0}
    found = mixed_front(plain, CALIBRATION, places(["ecp5w4"], None), 2, lambda one: liked.get(one.name, 0.0))
    narrow, wide = found[0], found[-1]
    assert "as w4a8-gptq: " in narrow.summary and narrow.equalize == find_strategy("w4a8-gptq").equalize
    # Twins take as long and are judged worse at both ends: that way is left out.
    assert not any(one.twins for one in found)
    assert "0 of" in wide.summary and "as int8-kl: 100% of" in wide.summary
    assert wide.calibration is Calibration.KL and all(one.weight_bits == 8 for one in wide.layers)


def test_a_way_that_is_better_somewhere_stays(plain: IRModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "prices_at", lambda *_: lambda _layer, bits: bits)
    liked = {"w4a8-mixed": 9.0, "int8-twins": -1.0}
    found = mixed_front(plain, CALIBRATION, places(["ecp5w4"], None), 2, lambda one: liked.get(one.name, 0.0))
    assert {one.twins for one in found} == {False, True}
    assert len({one.name for one in found}) == len(found)


def test_layers_in_loops_have_widths_too() -> None:
    mod, weights = recurrent.lstm(16, 8, 3)
    data = {"x": recurrent.sequences(4, 3, 16).reshape(-1, 1, 16)}
    program = bind_params(mod, weights)
    options = measure_all(reference_of(program), replace(find_strategy("mixed-cycles"), budget=None), data)
    assert options and all([one.bits for one in some] == [4, 8] for some in options.values())
    assert all(some[0].noise > some[1].noise > 0 for some in options.values())
    found = mixed_front(program, data, places(["w4"], None), 2)
    assert {one.layer for one in found[-1].layers} == set(options)
