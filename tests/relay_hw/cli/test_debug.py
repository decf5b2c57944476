"""`relay-hw debug`: a scripted terminal run of each command, and a history that is the same both ways."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

import relay_hw as relay
from relay_hw.cli.debugger.history import History, Recorder
from relay_hw.cli.debugger.session import COMMANDS
from relay_hw.cli.main import main
from relay_hw.errors import EvalError
from relay_hw.interp.evaluate import evaluate
from tests.relay_hw.programs import INPUTS, modules
from tests.relay_hw.transform.reference import plain

PROGRAM = """#[version = "0.0.5"]
def @double(%a: Tensor[(2), float32]) -> Tensor[(2), float32] {
  let %b = add(%a, %a);
  %b
}
def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {
  let %r = ref(0);
  let %y = @double(%x);
  let %u = ref_write(%r, 7);
  let %z = multiply(%y, 3f);
  @double(%z)
}
def @fails(%n: int32) -> int32 { let %m = %n - 1; 6 / %m }
"""
X = "6:11: %x of @main: Tensor[(2), float32] = [1., 2.]"
A = "2:13: %a of @double: Tensor[(2), float32] = [1., 2.]"
ADD = "3:12: add(...): Tensor[(2), float32] = [2., 4.]"
B = "3:7: %b: Tensor[(2), float32] = [2., 4.]"
CALL = "8:12: @double(...): Tensor[(2), float32] = [2., 4.]"
MULTIPLY = "10:12: multiply(...): Tensor[(2), float32] = [ 6., 12.]"
LAST = "11:3: @double(...): Tensor[(2), float32] = [12., 24.]"
RUNS = [
    ("step", ["s", "step 2"], ["7:7: %r: ref(int32) = ref(0)", ADD]),
    ("next", ["next", "n 2"], ["7:7: %r: ref(int32) = ref(0)", "8:7: %y"]),
    ("finish", ["b @double", "c", "finish"], ["breakpoint 1: function @double", "breakpoint 1", A, CALL]),
    (
        "continue",
        ["b multiply", "continue", "c"],
        ["breakpoint 1: operator multiply", "breakpoint 1", MULTIPLY, "the program ended: [12., 24.]"],
    ),
    ("reverse-step", ["c", "rs", "reverse-step"], ["the program ended: [12., 24.]", "11:3: @double(...)", "3:7: %b: "]),
    (
        "reverse-next",
        ["b 10", "c", "rn", "reverse-next 2"],
        ["breakpoint 1: line 10", "breakpoint 1", MULTIPLY, "9:7: %u: () = ()", "8:7: %y"],
    ),
    (
        "reverse-continue",
        ["b %b", "c", "c", "rc", "reverse-continue"],
        [
            "breakpoint 1: variable %b",
            "breakpoint 1",
            B,
            "breakpoint 1",
            "3:7: %b: Tensor[(2), float32] = [12., 24.]",
            "breakpoint 1",
            B,
            "this is the first value",
        ],
    ),
    (
        "break",
        ["b multiply", "break %z", "b @main", "b 3"],
        [
            "breakpoint 1: operator multiply",
            "breakpoint 2: variable %z",
            "breakpoint 3: function @main",
            "breakpoint 4: line 3",
        ],
    ),
    (
        "delete",
        ["b multiply", "b %z", "delete 1", "i", "d 1", "d"],
        [
            "breakpoint 1",
            "breakpoint 2",
            "breakpoint 2: variable %z",
            "error: breakpoint to delete must be one of 2, not 1",
            "error: breakpoint to delete must be one of 2, not nothing",
        ],
    ),
    ("info", ["info", "b 3", "i"], ["no breakpoints", "breakpoint 1: line 3", "breakpoint 1: line 3"]),
    (
        "print",
        ["p", "b %z", "c", "print %y + %z * 2f", "p %r", "rc", "n", "p %r"],
        [
            "Tensor[(2), float32] = [1., 2.]",
            "breakpoint 1",
            "breakpoint 1",
            "10:7: %z",
            "Tensor[(2), float32] = [14., 28.]",
            "ref(int32) = ref(7)",
            "this is the first value",
            "7:7: %r",
            "ref(int32) = ref(0)",
        ],
    ),
    ("whatis", ["whatis", "whatis %x", "whatis sum(%x)"], ["Tensor[(2), float32]", "Tensor[(2), float32]", "float32"]),
    (
        "backtrace",
        ["b @double", "c", "backtrace"],
        ["breakpoint 1", "breakpoint 1", A, "#0 @double, called at", "#1 @main"],
    ),
    (
        "list",
        ["b 10", "c", "list"],
        [
            "breakpoint 1",
            "breakpoint 1",
            MULTIPLY,
            "      6 def @main",
            "      7 ",
            "      8 ",
            "      9 ",
            "->   10   let %z",
            "     11 ",
            "     12 }",
            "     13 ",
        ],
    ),
    ("help", ["help"], [f"  {one.name}" for one in COMMANDS]),
    ("quit", ["quit", "step"], []),
]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "p.relay").write_text(PROGRAM)
    return tmp_path / "p.relay"


def dialogue(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: Path,
    *arguments: str,
    typed: list[str],
) -> list[str]:
    """What the debugger says to the lines, without what was typed; file names left out."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{text}\n" for text in typed)))
    assert main(["debug", str(program), *arguments]) == 0
    said = capsys.readouterr().out.replace(f"{program}:", "").splitlines()
    obeyed = typed[: typed.index("quit") + 1] if "quit" in typed else typed
    assert [text.removeprefix("(relay) ") for text in said if text.startswith("(relay) ")] == obeyed
    return [text for text in said if not text.startswith("(relay) ")]


@pytest.mark.parametrize(("name", "typed", "expected"), RUNS, ids=[name for name, _, _ in RUNS])
def test_each_command_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: Path,
    name: str,
    typed: list[str],
    expected: list[str],
) -> None:
    said = dialogue(monkeypatch, capsys, program, "[1, 2]", typed=typed)
    assert len(said) == len(expected) + 1, said
    for text, start in zip(said, [X, *expected], strict=True):
        assert text.startswith(start), said


def test_every_command_has_such_a_run() -> None:
    assert [name for name, _, _ in RUNS] == [one.name for one in COMMANDS]


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("foo", "command must be one that help lists, not foo"),
        (
            "b nowhere",
            "breakpoint must be an operator, %variable, @function or source line of the program, not nowhere",
        ),
        ("b", "breakpoint must be an operator, %variable, @function or source line of the program, not nothing"),
        ("s 0", "number of steps must be a whole number from 1 to 999,999,999, not 0"),
        ("n x", "number of steps must be a whole number from 1 to 999,999,999, not x"),
        ("d 1", "breakpoint to delete must be set before, not 1"),
        ("p %q", "%q must have a value here: there are %x"),
        ("p (", "expression:1:"),
        ("whatis %x + true", "expression:1:"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: Path, typed: str, sentence: str
) -> None:
    said = dialogue(monkeypatch, capsys, program, "[1, 2]", typed=[typed])
    assert len(said) == 2 and said[1].startswith(f"error: {sentence}")


def test_a_program_that_fails_can_be_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: Path
) -> None:
    said = dialogue(monkeypatch, capsys, program, "--entry", "fails", "1", typed=["c", "p %m", "rs", "p"])
    assert said[1].startswith("the program failed: ") and "must not be 0" in said[1]
    assert said[2] == "int32 = 0" and ": %m: int32 = 0" in said[3] and said[4] == "int32 = 0"


def test_an_empty_line_repeats_the_last_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: Path
) -> None:
    said = dialogue(monkeypatch, capsys, program, "[1, 2]", typed=["s", "", ""])
    assert [text.split(" ")[0] for text in said] == ["6:11:", "7:7:", "2:13:", "3:12:"]


def test_programs_read_the_transcript_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("c\n"))
    assert main(["debug", str(program), "[1, 2]", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["transcript"][1:] == ["(relay) c", "the program ended: [12., 24.]"] and len(row["transcript"]) == 3


@settings(max_examples=25)
@given(modules())
def test_the_history_is_the_evaluation_both_ways(mod: relay.IRModule) -> None:
    """Its events are those of an evaluation, its end is the result, and going back meets the same values."""
    recorder = Recorder(mod)
    history = History(recorder, recorder.events("main", list(INPUTS.values())))
    forth: list[tuple[object, str]] = []
    while history.forward():
        assert history.here is not None
        forth.append((history.here.node, repr(history.then(history.here.value))))
    observed: list[object] = []
    try:
        value = evaluate(recorder.mod, list(INPUTS.values()), observe=lambda node, value: observed.append(node))
    except EvalError as error:
        assert history.failure is not None and history.failure.message == error.message
    else:
        assert plain(value) == plain(recorder.result)
    assert [node for node, _ in forth] == observed
    back: list[tuple[object, str]] = []
    while history.backward():
        assert history.here is not None
        back.append((history.here.node, repr(history.then(history.here.value))))
    assert [(node, _plain(text)) for node, text in reversed(back)] == [(node, _plain(text)) for node, text in forth]


def _plain(text: str) -> str:
    """Without the addresses of objects."""
    return re.sub(r"0x[0-9a-f]+", "", text)
