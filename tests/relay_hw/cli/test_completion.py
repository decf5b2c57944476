"""Completion of command lines, as bash and zsh do it."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from relay_hw.cli.catalogue import names
from relay_hw.cli.completion import completion
from relay_hw.cli.main import main


def completed(words: str) -> set[str]:
    """What bash offers for the last word of a line."""
    parts = words.split(" ")
    line = f"COMP_WORDS=({shlex.join(parts)}); COMP_CWORD={len(parts) - 1}; _shtab_relay_hw"
    script = f'{completion("bash")}\n{line} relay-hw "${{COMP_WORDS[COMP_CWORD]}}"\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("relay-hw prof", {"profile"}),
        ("relay-hw compile m.onnx --quan", {"--quantize"}),
        ("relay-hw compile m.onnx --config ecp5w", {"ecp5w4"}),
        ("relay-hw compile m.onnx --memory st", {"standard"}),
        ("relay-hw compile m.onnx --board color", {"colorlight-i5"}),
        ("relay-hw export b --form viv", {"vivado"}),
        ("relay-hw list me", {"memories"}),
    ],
)
def test_bash(words: str, offered: set[str]) -> None:
    assert completed(words) == offered


def test_all_strategies_are_offered() -> None:
    assert completed("relay-hw compile m.onnx --quantize ") >= set(names("strategies"))


def test_zsh() -> None:
    script = completion("zsh")
    assert script.startswith("#compdef relay-hw") and "compadd -- int8 " in script
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    subprocess.run(["zsh", "-n", "-c", script], check=True)


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out.strip() == completion("bash").strip()
