"""Other targets beside ours: the same integers, instructions as in their own builds, reasons where there are none."""

from __future__ import annotations

import pytest

from relay_hw.compare import CompareOptions, compare
from relay_hw.compare.rows import read_row, row_content
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import find_strategy, quantize
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.vta import make
from relay_hw.vta.program import read_program
from relay_hw.vta.target import VtaTarget
from tests.relay_hw.compare.given import calibration, data, seen

STRATEGY = "int8-pow2"


def test_instructions_are_those_of_the_targets_own_build(plain: IRModule) -> None:
    names = ("vta", "vta:de10nano")
    found = compare(
        plain,
        data(5),
        CompareOptions(strategies=[STRATEGY], configs=["tiny"], targets=names),
        calibration=calibration(),
    )
    (row,) = found.rows
    assert row.cost is not None and [one.target for one in row.elsewhere] == [*names]
    mod = quantize(plain, find_strategy(STRATEGY), seen())
    for name, config, one in zip(names, (None, "de10nano"), row.elsewhere, strict=True):
        options = CompileOptions(target="vta", config=config, strategy=STRATEGY)
        built = compile_model(plain, options, quantized=mod)
        programs = [read_program(region.to_bytes()) for region in built.regions.values()]
        layers = [layer for program in programs for layer in program.head.layers]
        assert one.instructions == sum(layer.end - layer.begin for layer in layers) > 20, name
        assert one.layers == len(layers)
        assert 0 < one.share < 1 and one.host_layers
    assert read_row(row_content(row)) == row
    told = found.to_json()["strategies"][0]
    assert [one["instructions"] for one in told["targets"]] == [one.instructions for one in row.elsewhere]
    text, page = found.to_text(), found.to_html()
    assert "the same integers on other targets:" in text and "<h2>Other targets</h2>" in page
    lines = [line.split() for line in text.splitlines() if line.startswith(STRATEGY)]
    assert {line[1]: line[5] for line in lines if line[1] in names} == {
        one.target: f"{one.instructions:,}" for one in row.elsewhere
    }
    assert any(line[1] == "tiny" and line[5] == f"{row.cost.instructions:,}" for line in lines)


def test_without_other_targets_there_is_no_table(plain: IRModule) -> None:
    found = compare(plain, data(3), CompareOptions(strategies=[STRATEGY], configs=["tiny"]), calibration=calibration())
    assert "other targets" not in found.to_text() and "Other targets" not in found.to_html()


def test_a_target_without_a_program_says_why(plain: IRModule, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: object) -> None:
        raise UnsupportedError("programs must be short")

    monkeypatch.setattr(VtaTarget, "compile", compiled)
    options = CompareOptions(strategies=[STRATEGY], configs=["tiny"], targets=["vta"])
    found = compare(plain, data(3), options, calibration=calibration())
    assert found.rows[0].elsewhere[0].instructions == 0
    assert f"{STRATEGY}: vta: programs must be short" in found.to_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("accel", "target must be one of vta, not accel"),
        ("npu", "target must be one of vta, not npu"),
        ("vta:huge", "configuration .*huge"),
    ],
)
def test_what_is_no_other_target(name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        CompareOptions(strategies=[STRATEGY], targets=[name])
    with pytest.raises(InputError):
        make("huge")
