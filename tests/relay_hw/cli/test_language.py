"""relay-hw eval and convert: values, files, and one sentence for everything that does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.analysis import structural_equal
from relay_hw.cli.main import main
from relay_hw.interp import evaluate
from relay_hw.text import load_json, parse
from tests.relay_hw.cli.test_bad_input import refuse
from tests.relay_hw.small_models import images, save_plain

Captured = pytest.CaptureFixture[str]

PROGRAM = """#[version = "0.0.5"]
type Shape { Round(float32), Square, Many(List[Shape]) }
type Knot { Tie(ref(Knot)), End }
def @main(%x: Tensor[(2, 3), float32], %s: float32) { (multiply(%x, %s), add(%x, %x)) }
def @fact(%n: int32) -> int32 { if (%n <= 1) { 1 } else { %n * @fact(%n - 1) } }
def @lists(%xs: List[int32], %f: fn(int32) -> int32) { @map(%f, %xs) }
def @count(%n: int32) -> List[int32] {
  @unfoldr(fn (%i: int32) -> Option[(int32, int32)] { if (%i <= 0) { None } else { Some((%i - 1, %i)) } }, %n)
}
def @pair(%p: (int8, bool)) { (%p.1, %p.0) }
def @none() { () }
def @cell(%x: int32) { (ref(%x), %x) }
def @single(%x: float64) { (%x,) }
def @function(%x: int32) { fn () { %x } }
def @shapes(%s: Shape) { %s }
def @knot() { let %r = ref(End); let %_ = ref_write(%r, Tie(%r)); ref_read(%r) }
def @anything[A](%x: A) -> A { %x }
def @bytes(%x: Tensor[(2), uint8]) { %x }
def @flags(%x: Tensor[(2), bool]) { %x }
def @divide(%x: float32) { divide(1f, %x) }
def @large(%x: int32) { broadcast_to(%x, shape=[40, 50]) }
def @head(%xs: List[int32]) { @hd(%xs) }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("language")
    (path / "p.relay").write_text(PROGRAM)
    np.savez(path / "x.npz", x=np.arange(6, dtype="float32").reshape(2, 3))
    save_plain(path / "net.onnx")
    return path


def evaluated(capsys: Captured, folder: Path, *arguments: object) -> str:
    capsys.readouterr()
    assert main(["eval", str(folder / "p.relay"), "--import", "prelude", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.removesuffix("\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--entry", "fact", "5"], "120"),
        (["--entry", "fact", "(4 - 1) * 2"], "720"),
        (["--entry", "fact", "-3"], "1"),
        (["5", "--entry", "fact"], "120"),
        (["--entry", "fact", "--", "-3 + 6"], "6"),
        (
            ["--entry", "lists", "Cons(1, Cons(2, Nil))", "fn (%y: int32) -> int32 { %y * 10 }"],
            "Cons(10, Cons(20, Nil))",
        ),
        (["--entry", "lists", "@count(2)", "@fact"], "Cons(2, Cons(1, Nil))"),
        (["--entry", "pair", "(-128, True)"], "(True, -128)"),
        (["--entry", "none"], "()"),
        (["--entry", "cell", "7"], "(ref(7), 7)"),
        (["--entry", "single", "0.1"], "(0.1,)"),
        (["--entry", "function", "1"], "<function>"),
        (
            ["--entry", "shapes", "Many(Cons(Round(2.5f), Cons(Square, Nil)))"],
            "Many(Cons(Round(2.5), Cons(Square, Nil)))",
        ),
        (["--entry", "knot"], "Tie(ref(Tie(ref(...))))"),
        (["--entry", "anything", "(1, 2f)"], "(1, 2.0)"),
        (["--entry", "bytes", "[1, 255]"], "[  1, 255]"),
        (["--entry", "flags", "[True, False]"], "[ True, False]"),
        (["--entry", "divide", "0"], "inf"),
        (
            ["[[1, 2, 3], [4, 5, 6]]", "2"],
            "([[ 2.,  4.,  6.],\n [ 8., 10., 12.]], [[ 2.,  4.,  6.],\n [ 8., 10., 12.]])",
        ),
    ],
)
def test_values(folder: Path, capsys: Captured, arguments: list[str], text: str) -> None:
    assert evaluated(capsys, folder, *arguments) == text


def test_long_lists_and_large_tensors(folder: Path, capsys: Captured) -> None:
    text = evaluated(capsys, folder, "--entry", "count", 3000)
    assert text.startswith("Cons(3000, Cons(2999, ") and text.endswith("Cons(1, Nil" + ")" * 3000)
    assert "..." in evaluated(capsys, folder, "--entry", "large", 7)


def as_json(capsys: Captured, *arguments: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_json(folder: Path, capsys: Captured) -> None:
    program = [folder / "p.relay", "--import", "prelude"]
    row = as_json(capsys, "eval", *program, "--entry", "fact", "3")
    assert row == {"entry": "fact", "type": "int32", "text": "6", "value": 6}
    assert as_json(capsys, "eval", *program, "--entry", "divide", "0")["value"] == "inf"
    assert as_json(capsys, "eval", *program, "--entry", "pair", "(1, True)")["value"] == [True, 1]
    row = as_json(capsys, "eval", *program, "--entry", "count", "1")
    assert row["value"] is None and row["text"] == "Cons(1, Nil)" and row["type"] == "List[int32]"


def test_files(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    evaluated(capsys, folder, "--input", folder / "x.npz", "0.5", "--output", tmp_path / "out.npz")
    x = np.arange(6, dtype="float32").reshape(2, 3)
    with np.load(tmp_path / "out.npz") as found:
        assert sorted(found) == ["output_0", "output_1"]
        np.testing.assert_array_equal(found["output_0"], x / 2)
        np.testing.assert_array_equal(found["output_1"], x + x)
    evaluated(capsys, folder, "--entry", "fact", "4", "--output", tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as found:
        assert int(found["output"]) == 24


def test_refusals(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    program = ["eval", folder / "p.relay", "--import", "prelude"]
    refuse(capsys, "entry must be one of id, compose", *program, "--entry", "man")
    refuse(capsys, "@main must have arguments for x: Tensor[(2, 3), float32], s: float32", *program)
    refuse(capsys, "there is no option --foo", *program, "--foo", "5")
    refuse(capsys, "unrecognized arguments: 5", "isa", "mem", "5")
    refuse(capsys, "arguments must be at most 1, not 2", *program, "--entry", "fact", "1", "2")
    refuse(capsys, "argument n must be int32, not Tensor[(2), int32]", *program, "--entry", "fact", "[1, 2]")
    refuse(capsys, "argument n must hold values of int32, not 2.5", *program, "--entry", "fact", "2.5")
    refuse(capsys, "argument n must hold values of int32, not True", *program, "--entry", "fact", "True")
    refuse(capsys, "argument n must hold values of int32, not 5000000000", *program, "--entry", "fact", "5000000000")
    refuse(capsys, "argument x must hold values of uint8, not [1, -1]", *program, "--entry", "bytes", "[1, -1]")
    refuse(capsys, "argument x must hold values of bool, not [1, 0]", *program, "--entry", "flags", "[1, 0]")
    refuse(capsys, "argument p.0 must hold values of int8, not 128", *program, "--entry", "pair", "(128, True)")
    refuse(capsys, "argument n must be int32, not 'one'", *program, "--entry", "fact", "'one'")
    refuse(
        capsys, "argument n:1:1: text must have an expression here, not end of text", *program, "--entry", "fact", ""
    )
    refuse(capsys, "argument n:1:5: %x must be bound", *program, "--entry", "fact", "1 + %x")
    refuse(capsys, "argument n:1:1: value of %n must be int32, not float32", *program, "--entry", "fact", "1f + 2f")
    refuse(capsys, "argument xs:1:1: value of %xs must be List[int32], not int32", *program, "--entry", "head", "3")
    refuse(capsys, "prelude.relay:", *program, "--entry", "head", "Nil")
    refuse(capsys, "must be an existing .npz file", *program, "--input", tmp_path / "none.npz")
    np.savez(tmp_path / "y.npz", y=np.zeros(3))
    refuse(
        capsys,
        "inputs of @main must be x, s, not y",
        *program,
        "--input",
        tmp_path / "y.npz",
        "[[1, 2, 3], [4, 5, 6]]",
        "2",
    )
    refuse(
        capsys,
        "result must be a tensor or a tuple of tensors to be written to a file, not Cons of List",
        *program, "--entry", "count", "1", "--output", tmp_path / "no.npz",
    )  # fmt: skip
    assert not (tmp_path / "no.npz").exists()
    refuse(
        capsys,
        "library must be one of prelude, nat, sequence, containers, gradient, core, not lists",
        *program[:3],
        "lists",
    )
    refuse(capsys, "None must be an operator or a constructor", *program[:2])
    refuse(capsys, "must be an .onnx, .relay, .json, .tflite or .pt2 file, not .md", "eval", tmp_path / "a.md")


def test_check_knows_libraries_too(folder: Path, capsys: Captured) -> None:
    assert main(["check", str(folder / "p.relay")]) == 1
    assert main(["check", str(folder / "p.relay"), "--import", "prelude"]) == 0
    assert "fn (int32) -> int32" in capsys.readouterr().out


def test_convert_both_ways(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["convert", str(folder / "p.relay"), str(tmp_path / "p.json"), "--import", "prelude.rly"]) == 0
    assert "p.json: 41 function(s), 5 data type(s)" in capsys.readouterr().out
    row = as_json(capsys, "convert", tmp_path / "p.json", tmp_path / "sub" / "again.relay")
    assert row["functions"] == 41 and row["types"] == 5
    mod = load_json((tmp_path / "p.json").read_text())
    assert structural_equal(mod, parse((tmp_path / "sub" / "again.relay").read_text()))
    assert main(["eval", str(tmp_path / "p.json"), "--entry", "fact", "5"]) == 0
    assert capsys.readouterr().out == "120\n"


def test_convert_onnx(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    data = images(1)
    (name,) = [param.name_hint for param in load(folder / "net.onnx", tmp_path / "net.json")["main"].params]
    for file in ("net.json", "net.relay"):
        mod = load(folder / "net.onnx", tmp_path / file)
        (found,) = (evaluate(mod, {name: data}),)
        np.savez(tmp_path / "in.npz", **{name: data})
        arguments = ["--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")]
        assert main(["eval", str(folder / "net.onnx"), *arguments]) == 0
        with np.load(tmp_path / "out.npz") as direct:
            np.testing.assert_array_equal(direct["output"], found)


def load(source: Path, target: Path) -> Any:
    assert main(["convert", str(source), str(target)]) == 0
    return (load_json if target.suffix == ".json" else parse)(target.read_text())


def test_convert_refusals(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    program = folder / "p.relay"
    refuse(capsys, "must be a .relay or .json file, not .onnx", "convert", program, tmp_path / "a.onnx")
    refuse(capsys, "must be a .relay or .json file, not a file without suffix", "convert", program, tmp_path / "a")
    refuse(capsys, "must be an existing file", "convert", tmp_path / "no.json", tmp_path / "a.relay")
    (tmp_path / "bad.json").write_text('{"format": 1}')
    refuse(
        capsys,
        "bad.json: document: format must be a string, not 1",
        "convert",
        tmp_path / "bad.json",
        tmp_path / "a.relay",
    )
    (tmp_path / "cut.json").write_text('{"format"')
    refuse(capsys, "cut.json:1:10: file must be JSON", "eval", tmp_path / "cut.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "cut.json"]


OLD_TEXT = "def @main(%x: int32) {\n  %1 = mul(%x, 2)\n  sub(%1, 1)\n}\n"


def test_check_tolerant_says_what_it_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old.relay"
    file.write_text(OLD_TEXT)
    assert main(["check", str(file)]) == 1
    capsys.readouterr()
    assert main(["check", str(file), "--tolerant"]) == 0
    captured = capsys.readouterr()
    assert "multiply(%x, 2)" in captured.out
    assert f"{file}:2:8: mul is called multiply" in captured.err


def test_convert_tolerant_writes_text_that_parses(tmp_path: Path) -> None:
    file, output = tmp_path / "old.relay", tmp_path / "new.relay"
    file.write_text(OLD_TEXT)
    assert main(["convert", str(file), str(output), "--tolerant"]) == 0
    assert main(["eval", str(output), "5"]) == 0


def test_convert_tolerant_keeps_what_has_no_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, output = tmp_path / "old.relay", tmp_path / "new.relay"
    file.write_text(OLD_TEXT.replace("%x: int32", "%x"))
    assert main(["convert", str(file), str(output), "--tolerant"]) == 0
    assert "type of %x must be annotated" in capsys.readouterr().err
    assert "def @main(%x)" in output.read_text()
    assert main(["convert", str(file), str(tmp_path / "new.json"), "--tolerant"]) == 2


def test_convert_runs_passes(tmp_path, capsys):
    """In the order in which they are named; the second one names the values of what the first one made."""
    source, target = tmp_path / "p.relay", tmp_path / "q.relay"
    source.write_text('#[version = "0.0.5"]\ndef @main(%x: float32) {\n  sqrt(%x + 1f) - sqrt(%x)\n}\n')
    assert main(["convert", str(source), str(target), "--pass", "rewrite-numerics", "--pass", "ToANormalForm"]) == 0
    text = target.read_text()
    assert "divide" in text and "subtract" not in text and text.count("let ") >= 4
    refuse(capsys, "pass must be one of InferType, ", "convert", source, target, "--pass", "Nothing")
