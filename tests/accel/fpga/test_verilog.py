"""Verilog as the FPGA tools get it: comments and layout are no part of a design, everything else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyverilog.vparser.lexer import VerilogLexer

from relay_hw.accel.fpga import synth
from relay_hw.accel.fpga.verilog import code_of
from relay_hw.accel.isa.config import load_config


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("wire a;  // one\n\n  wire b;\n", "wire a;\nwire b;\n"),
        ("/* two\n   lines */ wire a;\n", "wire a;\n"),
        ('assign a = "// no comment";\n', 'assign a = "// no comment";\n'),
        ('assign a = "\\"/*"; // a "string"\n', 'assign a = "\\"/*";\n'),
        ("a/**/b\n", "a b\n"),
        ("// /* \nwire a;\n// */\n", "wire a;\n"),
        ("`define A 1 // one\n(* keep *) reg a;\n", "`define A 1\n(* keep *) reg a;\n"),
        ("always @(*) // /*\n a = b /  c; // */\n", "always @(*)\na = b /  c;\n"),
    ],
)
def test_comments_and_layout_go(text: str, code: str) -> None:
    assert code_of(text) == code
    assert code_of(code) == code


def tokens(text: str) -> list[tuple[str, str]]:
    """What Pyverilog reads, and the directives, which it skips."""
    lexer = VerilogLexer(pytest.fail)
    lexer.build()
    lexer.input(text)
    read = [(token.type, token.value) for token in iter(lexer.token, None)]
    lines = (line.split("//")[0].split() for line in text.splitlines() if line.lstrip().startswith("`"))
    return read + [("directive", " ".join(words)) for words in lines]


@pytest.mark.parametrize("path", synth.core_sources(), ids=lambda path: path.name)
def test_the_accelerators_tokens_stay(path: Path) -> None:
    text = path.read_text()
    assert tokens(code_of(text)) == tokens(text) != []


def test_a_comment_is_no_other_design(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    paths = [tmp_path / path.name for path in synth.core_sources()]
    for copy, path in zip(paths, synth.core_sources(), strict=True):
        copy.write_text(path.read_text())
    config = load_config("tiny")
    before = synth.content_key(config)
    monkeypatch.setattr(synth, "core_sources", lambda: paths)
    assert synth.content_key(config) == before
    paths[0].write_text(f"// another word\n\n{paths[0].read_text()}")
    assert synth.content_key(config) == before
    paths[0].write_text(paths[0].read_text().replace("assign", "assign #1", 1))
    assert synth.content_key(config) != before
