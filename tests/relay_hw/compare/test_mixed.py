"""Mixed fronts: choices of widths by noise and exact cycles, beside uniform strategies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.compare import compare
from relay_hw.compare import main as steps
from relay_hw.compare.mixed import mixed_front
from relay_hw.compare.places import places
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Calibration, Strategy
from relay_hw.runtime.compile import bind_params
from relay_hw.runtime.models import load_model
from relay_hw.text import parse
from tests.relay_hw.small_models import CLASSES, images, save_plain

CALIBRATION = {"image": images(8, 99)}
TEST = {"image": images(9, 3), "labels": np.arange(9) % CLASSES}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> IRModule:
    model = load_model(save_plain(tmp_path_factory.mktemp("mixed") / "plain.onnx"))
    return bind_params(model.mod, model.params)


def test_no_uniform_strategy_beats_the_front(plain: IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> Any:
        return compare(
            plain, TEST, ["int8-gptq", "w4a8-gptq"], CALIBRATION, configs=["ecp5w4"], mixed=4, work=tmp_path,
            engine="numpy",
        )  # fmt: skip

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
            compare(plain, TEST, ["int8-gptq"], CALIBRATION, mixed=points)
    text = "def @main(%x: Tensor[(4), float32]) { if (sum(%x) > 0f) { nn.relu(%x) } else { %x } }"
    branches = parse(f'#[version = "0.0.5"]\n{text}')
    with pytest.raises(InputError, match="a mixed front must be of a network without control flow"):
        mixed_front(branches, CALIBRATION, places(["tiny"], None), 4)
    with pytest.raises(InputError, match="strategy mixed-cycles needs calibration data"):
        compare(plain, TEST, [Strategy("plain", calibration=Calibration.GLOBAL)], None, mixed=4)
