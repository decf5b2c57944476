"""Names and files that are wrong are answered before anything large is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relay_hw.cli.main import main
from relay_hw.runtime import given

LARGE = ("numpy", "onnx", "tvm", "jinja2", "relay_hw.ir", "relay_hw.runtime.compile", "relay_hw.runtime.execute")
PROGRAM = """
import json, sys
from relay_hw.cli.main import main
status = main(sys.argv[2:])
print(json.dumps({"status": status, "imported": [name for name in json.loads(sys.argv[1]) if name in sys.modules]}))
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that may be what their names say: nothing is read of them before imports."""
    path = tmp_path_factory.mktemp("early")
    (path / "net.onnx").write_bytes(b"a model")
    np.savez(path / "data.npz", x=np.zeros(1))
    (path / "text.npz").write_text("no archive")
    (path / "build").mkdir()
    (path / "build" / "manifest.json").write_text("{}")
    return path


COMPILE = "compile net.onnx -o out"
COMPARE = "compare net.onnx --strategies int8 -o report"
CASES = (
    ("compile none.onnx -o out", "model none.onnx must be an existing file"),
    ("compile data.npz -o out", "model data.npz must be an .onnx, .relay, .json, .tflite or .pt2 file, not .npz"),
    (f"{COMPILE} --calibration none.npz", "calibration data none.npz must be an existing .npz file"),
    (f"{COMPILE} --calibration text.npz", "calibration data text.npz must be an .npz file"),
    (f"{COMPILE} --config huge", "configuration must be one of "),
    (f"{COMPILE} --quantize int3", "strategy must be one of "),
    (f"{COMPILE} --memory fast", "memory model must be one of "),
    ("compile net.onnx -o data.npz", "build folder data.npz must be a new folder or an older build, not a file"),
    ("run none --input data.npz", "none must be a folder that `relay-hw compile` wrote, not a missing folder"),
    ("run data.npz --input data.npz", "data.npz must be a folder that `relay-hw compile` wrote, not a file"),
    ("run build --input none.npz", "input data none.npz must be an existing .npz file"),
    ("run build --input data.npz --output build", "output build must be a file, not a folder"),
    ("profile build --input none.npz", "input data none.npz must be an existing .npz file"),
    ("profile none", "none must be a folder that `relay-hw compile` wrote"),
    ("verify none", "none must be a folder that `relay-hw compile` wrote"),
    ("why none", "none must be a folder that `relay-hw compile` wrote"),
    ("export none -o out", "none must be a folder that `relay-hw compile` wrote"),
    ("disasm none", "none must be a folder that `relay-hw compile` wrote"),
    ("show none", "none must be a folder that `relay-hw compile` wrote"),
    ("show data.npz", "model data.npz must be an .onnx"),
    ("eval none.relay", "model none.relay must be an existing file"),
    ("convert none.relay new.json", "model none.relay must be an existing file"),
    ("check none.relay", "model none.relay must be an existing file"),
    (f"{COMPARE} --data none.npz", "test data none.npz must be an existing .npz file"),
    (f"{COMPARE} --data data.npz --calibration build", "calibration data build must be an existing .npz file"),
)


@pytest.mark.parametrize(("command", "sentence"), CASES, ids=[command for command, _ in CASES])
def test_a_wrong_name_is_answered_at_once(shared: Path, command: str, sentence: str) -> None:
    arguments = [sys.executable, "-c", PROGRAM, json.dumps(LARGE), *command.split()]
    done = subprocess.run(arguments, cwd=shared, capture_output=True, text=True)
    assert done.stderr.startswith(f"relay-hw: error: {sentence}"), done.stderr
    assert json.loads(done.stdout) == {"status": 2, "imported": []}


def test_what_cannot_be_read_is_refused(
    shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(given.os, "access", lambda path, mode: not str(path).endswith(("net.onnx", "data.npz")))
    for command, sentence in (
        (["check", shared / "net.onnx"], "model {} must be readable: permission denied"),
        (
            ["run", shared / "build", "--input", shared / "data.npz"],
            "input data {} must be readable: permission denied",
        ),
    ):
        assert main([str(word) for word in command]) == 2
        assert capsys.readouterr().err == f"relay-hw: error: {sentence.format(command[-1])}\n"
