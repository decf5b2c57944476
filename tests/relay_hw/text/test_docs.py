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


GRAMMAR = (PAGE.parent / "relay-text.md").read_text()


def test_the_grammar_names_what_the_parser_knows() -> None:
    from relay_hw.analysis.unify import MAX_TYPE_DEPTH, MAX_TYPE_SIZE
    from relay_hw.ir.dims import MAX_TERMS
    from relay_hw.ir.types import Comparison
    from relay_hw.text.cursor import MAX_NESTING
    from relay_hw.text.lexer import KEYWORDS
    from relay_hw.text.strict import INFIX

    (line,) = re.findall(r"^Keywords: (.*)$", GRAMMAR, re.M)
    assert set(re.findall(r"`([^`]*)`", line)) == KEYWORDS
    (line,) = re.findall(r"^Operators bind to the left: (.*)\.$", GRAMMAR, re.M)
    groups = [re.findall(r"`([^`]*)`", group) for group in line.split(", then ")]
    strengths = [{INFIX[sign][1] for sign in group} for group in groups]
    assert all(len(strength) == 1 for strength in strengths)
    assert [max(strength) for strength in strengths] == sorted({s for _, s in INFIX.values()}, reverse=True)
    (line,) = re.findall(r"^comparison  (.*)$", GRAMMAR, re.M)
    assert line.split(" | ") == [comparison.value for comparison in Comparison]
    limits = " ".join(GRAMMAR.split("## Limits")[1].split())
    for number in (MAX_NESTING, MAX_TYPE_DEPTH, MAX_TYPE_SIZE, MAX_TERMS):
        assert f"{number:,}" in limits


@pytest.mark.parametrize(
    "text",
    [
        "def @main() { (1, (2, 3)).1.0 }",
        "def @main(%x: (int32)) { match (%x) { (%y) => %y } }",
        "def @main(%x: Tensor[(n, floordiv(n + 3, 2) * 2 - 1), int8x4, NC]) { () } extern type Handle",
        "type P[A, B] { Of(A, B), } def @main(%f: fn [n: Dim](Tensor[(n), bool]) -> bool where (n > 0)) { Of(1, %f) }",
        "free_var %x: int32; %x; %x + 1 * 2 < 3 == True",
        "def @main(%x: int32, Primitive=1, name=\"a\", list=[1, 2f, None]) { /* a /* b */ c */ %x } // end",
    ],
)  # fmt: skip
def test_forms_of_the_grammar(text: str) -> None:
    mod = parse(text if text.startswith("free_var") else f'#[version = "0.0.5"]\n{text}')
    assert structural_equal(parse(mod.astext()), mod)
