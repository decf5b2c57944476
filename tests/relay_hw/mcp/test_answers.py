"""Every figure of an answer is that of the command that prints it, and names stay below the served folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.cli.main import main
from relay_hw.errors import ArtifactError, InputError
from relay_hw.mcp.answers import Answers
from relay_hw.mcp.bounded import MOST_BYTES, text_of

ROOT = Path(__file__).parents[3]
MODEL = ROOT / "examples" / "mnist_cnn.onnx"
INPUT, SHAPE = "input", (1, 28, 28)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its build by `compile`, and a second one with weights of four bits."""
    root = tmp_path_factory.mktemp("served")
    (root / MODEL.name).write_bytes(MODEL.read_bytes())
    answers = Answers(root)
    samples = np.random.default_rng(0).uniform(0, 1, (4, *SHAPE)).astype(np.float32)
    np.savez(root / "some.npz", **{INPUT: samples})
    answers.compile(MODEL.name, "a", "some.npz", "tiny")
    answers.compile(MODEL.name, "b", "some.npz", "tiny", "w4a8")
    return root


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """What a command prints with --json."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_files_are_listed(folder: Path) -> None:
    assert Answers(folder).list_files() == {
        "models": [MODEL.name],
        "data": ["some.npz"],
        "builds": ["a", "b"],
    }


def test_why_and_what_if(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, found = printed(capsys, "why", folder / "a"), Answers(folder).why("a")
    assert found["cycles"] == whole["cycles"] > 0
    losses = {row["cause"]: row["cycles"] for row in whole["losses"]}
    assert found["losses"] and all(losses[row["cause"]] == row["cycles"] for row in found["losses"])
    cycles = {row["change"]: row["cycles"] for row in whole["changes"]}
    changes = found["changes_that_help"]
    assert changes[0]["cycles"] == min(filter(None, cycles.values())) < found["cycles"]
    assert all(cycles[row["change"]] == row["cycles"] for row in changes)
    (tried,) = Answers(folder).what_if("a", "latency=7")["changes"]
    (row,) = printed(capsys, "why", folder / "a", "--change", "latency=7")["changes"]
    assert (tried["change"], tried["cycles"], tried["more_by_cause"]) == (
        row["change"], row["cycles"], row["more_by_cause"],
    )  # fmt: skip


def test_layers_and_roofline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, answers = printed(capsys, "profile", folder / "a", "--device", "cycle"), Answers(folder)
    cycles = {row["name"]: row["cycles"] for row in whole["layers"]}
    top = answers.top_layers("a", 3)["layers"]
    assert [row["cycles"] for row in top] == sorted(filter(None, cycles.values()), reverse=True)[:3]
    assert all(cycles[row["layer"]] == row["cycles"] for row in top)
    roofline = answers.roofline("a")
    assert (roofline["cycles"], roofline["roofline_cycles"]) == (whole["cycles"], whole["roofline_cycles"])
    assert [row["cycles"] for row in roofline["bounds"]] == [row["cycles"] for row in whole["bounds"]]
    name = top[0]["layer"]
    (row,) = answers.layer("a", name)["rows"]
    (same,) = (one for one in whole["layers"] if one["name"] == name)
    assert (row["stalls"], row["dram_bytes"]) == (same["stalls"], same["bytes"]["total"])


def test_diff(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, found = printed(capsys, "diff", folder / "a", folder / "b"), Answers(folder).diff("a", "b")
    assert (found["gained"], found["matched"]) == (whole["gained"], whole["matched"])
    assert found["cycles"] == {"a": whole["a"]["cycles"], "b": whole["b"]["cycles"]}
    gained = {row["name"]: row["gained"] for row in whole["pairs"]}
    assert all(gained[row["layer"]] == row["gained"] for row in found["layers"])


def test_answers_say_where_they_come_from_and_are_short(folder: Path) -> None:
    answers = Answers(folder)
    for found in (answers.top_layers("a", 99), answers.why("a"), answers.roofline("a"), answers.diff("a", "b")):
        assert len(text_of(found).encode()) <= MOST_BYTES
        (source, *_) = found["from"] if isinstance(found["from"], list) else [found["from"]]
        assert source["build"] == "a" and source["config"] == "tiny" and source["memory"] == "standard"
        assert source["engine"].startswith("cycle simulator of relay-hw ")


@pytest.mark.parametrize("name", ["..", "/etc/passwd", "a/../../x", "", "."])
def test_names_stay_below_the_folder(folder: Path, name: str) -> None:
    for question in (Answers(folder).why, Answers(folder).top_layers):
        with pytest.raises(InputError, match="a file must lie below the served folder, not at"):
            question(name)
    with pytest.raises(InputError, match="a file must lie below the served folder, not at"):
        Answers(folder).compile(MODEL.name, name)


def test_the_folder_may_be_a_build_itself(folder: Path) -> None:
    answers = Answers(folder / "a")
    (name,) = answers.list_files()["builds"]
    outside, inside = Answers(folder).roofline("a"), answers.roofline(name)
    assert inside["from"]["build"] == name
    assert {**inside, "from": None} == {**outside, "from": None}
    with pytest.raises(InputError, match="a file must lie below the served folder, not at"):
        answers.compile(MODEL.name, name)


def test_a_link_does_not_lead_out(folder: Path, tmp_path: Path) -> None:
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(InputError, match="a file must lie below the served folder, not at out/build"):
        Answers(folder).why("out/build")


def test_what_is_not_there(folder: Path) -> None:
    with pytest.raises(ArtifactError):
        Answers(folder).why("nothing")
    with pytest.raises(InputError, match=r"layer must be one of .*, not nothing"):
        Answers(folder).layer("a", "nothing")
