"""Models read in a process of their own: the same result, and one sentence where that process dies, hangs or grows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw.cli.main import main
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.limits import DEFAULT, Limits
from relay_hw.runtime import untrusted
from relay_hw.runtime.models import load_model
from relay_hw.runtime.untrusted import run_apart
from relay_hw.text import print_module
from tests.relay_hw.small_models import save_plain, save_unsupported


def test_the_result_is_the_same(tmp_path: Path) -> None:
    path = save_plain(tmp_path / "plain.onnx")
    # What lies beside the model is not imported by the process that reads it.
    (tmp_path / "onnx.py").write_text("raise SystemExit(99)\n")
    ours, theirs = load_model(path), load_model(path, untrusted=True)
    assert print_module(ours.mod) == print_module(theirs.mod) and ours.name == theirs.name
    assert ours.mod.attrs == theirs.mod.attrs and ours.params.keys() == theirs.params.keys()
    assert all(np.array_equal(value, theirs.params[name]) for name, value in ours.params.items())


def test_refusals_come_back_as_they_are(tmp_path: Path) -> None:
    path = save_unsupported(tmp_path / "strange.onnx")
    with pytest.raises(UnsupportedError) as here:
        load_model(path)
    with pytest.raises(UnsupportedError) as there:
        load_model(path, untrusted=True)
    assert str(here.value) == str(there.value)


def test_a_reader_that_grows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_plain(tmp_path / "plain.onnx")
    assert main(["check", str(path), "--untrusted", "--limit", "memory_bytes=65536"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "internal error" not in said and "must be" in said


def test_other_files_have_no_reader_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_text('#[version = "0.0.5"]\ndef @main() { 1 }\n')
    with pytest.raises(InputError, match=r"untrusted must be given for an \.onnx model, not for .*f\.relay"):
        load_model(tmp_path / "f.relay", untrusted=True)


@pytest.mark.parametrize(
    ("command", "limits", "sentence"),
    [
        (["true"], DEFAULT, ""),
        (["false"], DEFAULT, "the reader ended with status 1"),
        (["sh", "-c", "kill -11 $$"], DEFAULT, "the reader was killed by signal 11"),
        (["sleep", "1000"], Limits(seconds=1), "the reader took more than 1 s; --limit seconds=NUMBER raises this"),
        (["sh", "-c", "kill -XCPU $$"], Limits(seconds=500),
         "the reader was killed after 500 s of CPU time; --limit seconds=NUMBER raises this"),
    ],
)  # fmt: skip
def test_why_a_reader_ended(command: list[str], limits: Limits, sentence: str) -> None:
    assert run_apart(command, "{}", limits) == sentence


def test_a_reader_that_says_nothing_or_nonsense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_plain(tmp_path / "plain.onnx")
    monkeypatch.setattr(untrusted, "_START", "pass")
    with pytest.raises(InputError, match="must be a model that can be imported: the reader wrote no result"):
        load_model(path, untrusted=True)
    monkeypatch.setattr(untrusted, "_START", "import os; os.abort()")
    with pytest.raises(InputError, match="must be a model that can be imported: the reader was killed by signal 6"):
        load_model(path, untrusted=True)
    write = "import json, sys; open(json.load(sys.stdin)['out'] + '/failure.json', 'w').write(%r)"
    for text in ("[", "[1]", '{"kind": "SystemExit"}', '{"kind": "InputError", "message": 1, "span": [1, 2]}'):
        monkeypatch.setattr(untrusted, "_START", write % text)
        with pytest.raises(InputError):
            load_model(path, untrusted=True)
