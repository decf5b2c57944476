"""docs/relay.md: every block is run. Text parses and has the promised values, Python runs, refusals are as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from relay_hw.analysis import structural_equal
from relay_hw.cli.main import main
from relay_hw.errors import RelayHwError
from relay_hw.text import parse

PAGE = Path(__file__).parents[3] / "docs" / "relay.md"
BLOCKS = re.findall(r"^```([^\n]*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
TEXTS = [body for kind, body in BLOCKS if kind == "relay"]
REFUSED = [body for kind, body in BLOCKS if kind == "relay refused"]


def test_every_block_has_a_kind_that_is_run() -> None:
    assert {kind for kind, _ in BLOCKS} == {"relay", "relay refused", "python", "console"}
    assert len(TEXTS) >= 11 and len(REFUSED) >= 5


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mod = parse(text)
    assert structural_equal(parse(mod.astext()), mod)
    file = tmp_path / "program.relay"
    file.write_text(text)
    for line in re.findall(r"^// > (.*)$", text, re.M):
        call, _, result = line.partition(" = ")
        entry, *args = shlex.split(call)
        assert main(["eval", str(file), "--entry", entry, "--", *args]) == 0
        assert " ".join(capsys.readouterr().out.split()) == result


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text: str) -> None:
    (wanted,) = re.findall(r"^// refused: (.*)$", text, re.M)
    with pytest.raises(RelayHwError) as caught:
        parse(text, "page")
    assert str(caught.value) == f"page:{wanted}"


def test_python_runs_from_top_to_bottom() -> None:
    names: dict[str, Any] = {"blocks": []}
    for kind, body in BLOCKS:
        if kind == "relay":
            names["blocks"].append(body)
        elif kind == "python":
            exec(compile(body, str(PAGE), "exec"), names)
    assert names["run"] is not None


def test_commands_of_the_page_exist(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {line.split()[1] for kind, body in BLOCKS if kind == "console" for line in body.splitlines()}
    for command in commands:
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
    capsys.readouterr()


def test_links_lead_somewhere() -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", PAGE.read_text(), flags=re.M | re.S)
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^## (.*)$", text, re.M)
    }
    for target in re.findall(r"\]\(([^)]*)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        else:
            assert (PAGE.parent / target).exists(), target
