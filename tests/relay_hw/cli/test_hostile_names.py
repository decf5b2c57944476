"""Every command on models whose names are a stranger's: a terminal gets text and ends of lines, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

from relay_hw.cli.data import save_npz
from relay_hw.cli.main import main
from relay_hw.runtime.artifact import load_artifact
from tests.hostile import MARK, NAMES, SAMPLE
from tests.relay_hw.small_models import images, save_plain

Captured = pytest.CaptureFixture[str]
# What a network of `save_plain` has to name beside its weights: tensors, which are nodes too.
NAMED = ("image", "conv_a", "relu1", "pool", "conv_b", "flatten4", "fc", "scores")
# No tensor of ONNX is called "".
USABLE = tuple(name for name in NAMES if name)


def hostile_model(path: Path, names: Sequence[str]) -> tuple[Path, dict[str, str]]:
    """A small network with those names for its tensors, nodes and graph; and its new names by the old."""
    model = onnx.load(save_plain(path))
    graph = model.graph
    old = dict.fromkeys([*(item.name for item in graph.input), *(out for node in graph.node for out in node.output)])
    new = dict(zip(old, names, strict=False))
    for node in graph.node:
        node.name = new.get(node.name, node.name)
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for item in (*graph.input, *graph.output):
        item.name = new.get(item.name, item.name)
    graph.name = names[0]
    onnx.save(model, path)
    return path, new


def obeyed(text: str) -> set[str]:
    """What a terminal would obey, or a reader not see."""
    return {letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}


class Terminal:
    """Runs commands and looks at all that they say."""

    def __init__(self, capsys: Captured) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path, status: int = 0) -> str:
        """Standard output; the command is run again for JSON."""
        texts = [self._run([str(item) for item in arguments], status)]
        json.loads(self._run([*(str(item) for item in arguments), "--json"], status))
        return texts[0]

    def _run(self, arguments: Iterable[str], status: int) -> str:
        given = list(arguments)
        got = main(given)
        said = self._capsys.readouterr()
        assert got == status, (given, said.err)
        assert "internal error" not in said.err
        for text in (said.out, said.err):
            assert not obeyed(text), given
            assert not [line for line in text.split("\n") if line.startswith(f"relay-hw: error: {MARK}")], given
        return said.out


def use(names: Sequence[str], folder: Path, terminal: Terminal) -> None:
    """Every command that prints names of a model or a build."""
    model, new = hostile_model(folder / "net.onnx", names)
    image, build = new["image"], folder / "build"
    data, test = folder / "data.npz", folder / "test.npz"
    save_npz(data, {image: images(8, 99)})
    save_npz(test, {image: images(8, 98), "labels": np.arange(8) % 5})
    terminal("check", model)
    terminal("compile", model, "-o", build, "--calibration", data, "--config", "tiny")
    assert next(iter(load_artifact(build).manifest.inputs)).name == image
    terminal("run", build, "--input", data, "--output", folder / "out.npz")
    terminal("profile", build, "--input", data)
    terminal("profile", build, "--wide", "--trace", folder / "trace.json")
    terminal("why", build)
    terminal("diff", build, build, "-o", folder / "diff.html")
    terminal("verify", build, "--samples", "1")
    terminal("disasm", build)
    for stage in ("imported", "quantized", "partitioned"):
        terminal("show", build, "--stage", stage)
    terminal("convert", model, folder / "net.relay")
    terminal("convert", model, folder / "net.json")
    terminal("check", folder / "net.json")
    terminal("compare", model, "--data", test, "--calibration", data, "--strategies", "int8", "-o", folder / "report",
             "--processes", "1", "--engine", "numpy", "--config", "tiny")  # fmt: skip
    # What goes wrong says names too.
    save_npz(data, {name: images(2, 1) for name in names[1:3]})
    terminal("run", build, "--input", data, status=2)
    terminal("compile", model, "-o", build, "--calibration", data, status=2)
    terminal("run", folder / names[0].replace("/", "_").replace("\0", "_"), "--input", data, status=2)
    terminal("compile", model, "-o", build, "--quantize", names[0], status=2)
    terminal("show", build, "--stage", names[1] or "x", status=2)
    assert not [path for path in folder.rglob("*") if path.name == MARK]


def test_commands_on_names_of_every_kind(tmp_path: Path, capsys: Captured) -> None:
    use(SAMPLE[: len(NAMED)], tmp_path, Terminal(capsys))


def test_names_of_files_in_a_locale_of_ascii(tmp_path: Path) -> None:
    """Names of files reach Python as surrogates there; what is written has the same bytes as elsewhere."""
    plain = save_plain(tmp_path / "plain.onnx")
    model = tmp_path / os.fsdecode("mö del \x1b[31m".encode() + b"\xff.onnx")
    model.write_bytes(plain.read_bytes())
    save_npz(tmp_path / "data.npz", {"image": images(4, 1)})
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    program = [sys.executable, "-m", "relay_hw.cli"]

    def run(*arguments: str | Path) -> str:
        done = subprocess.run([*program, *arguments], cwd=tmp_path, env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
        said = done.stdout + done.stderr
        assert said.isascii() and not obeyed(said.decode())
        return done.stdout.decode()

    build = tmp_path / "bü"
    run("compile", model, "-o", build, "--calibration", tmp_path / "data.npz", "--config", "tiny")
    run("run", build, "--input", tmp_path / "data.npz", "--output", tmp_path / "öut.npz")
    assert "m\\xf6 del" in run("profile", build)
    run("export", build, "-o", tmp_path / "expört")
    name = "mö del \\x1b[31m\\xff"
    assert load_artifact(build).manifest.model == "mö del \x1b[31m\\xff"
    assert f"the build of {name}: do not edit" in (tmp_path / "expört" / "model.h").read_text(encoding="utf-8")
    assert f"<title>{name} on tiny" in (build / "report.html").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, len(USABLE), len(NAMED)))
def test_commands_on_all_names(first: int, tmp_path: Path, capsys: Captured) -> None:
    names = (USABLE * 2)[first : first + len(NAMED)]
    use(names, tmp_path, Terminal(capsys))
