"""scripts/replay.py: which files of two builds differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import replay


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, replay.Case]:
    return {case.name: case for case in replay.cases(tmp_path_factory.mktemp("cases"))}


def test_only_what_differs_is_said() -> None:
    before = {"program.bin": b"1", "manifest.json": b"2", "gone": b"3"}
    now = {"program.bin": b"1", "manifest.json": b"4", "new": b"5"}
    assert replay.differing(before, now, {}) == ["gone", "manifest.json", "new"]


def test_names_that_changed_are_read_as_todays_in_texts_alone() -> None:
    before = {"2_quantized.relay": b"old.add(%x)", "program.bin": b"old.add"}
    assert (
        replay.differing(before, {"2_quantized.relay": b"new.add(%x)", "program.bin": b"old.add"}, {"old.": "new."})
        == []
    )
    assert replay.differing(before, before, {"old.": "new."}) == ["2_quantized.relay"]


def test_every_network_and_relay_example_is_a_case(found: dict[str, replay.Case]) -> None:
    for example in replay.NETWORKS:
        assert f"{example.name} default" in found
    programs = [p for p in (replay.ROOT / "examples" / "relay").glob("*.relay") if "def @main" in p.read_text()]
    assert programs and all(f"{path.stem} float" in found for path in programs)
    assert {f"resnet8 {kind}" for kind in replay.OPTIONS} <= found.keys()


def test_a_build_that_cannot_be_made_is_what_the_command_said(found: dict[str, replay.Case], tmp_path: Path) -> None:
    case = replay.Case("none", tmp_path / "none.onnx", ())
    built = replay.build(replay.ROOT, case, tmp_path / "out")
    assert list(built) == ["(error)"] and b"none.onnx" in built["(error)"]
