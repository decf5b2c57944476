"""Typing errors in commands, options and names: each is answered with what was meant, before anything heavy loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from relay_hw.cli.main import main

COMPILE = "compile m.onnx -o new/b"
# A command line, and what was meant by the wrong word in it.
TYPOS = (
    ("complie m.onnx -o b", "compile"),
    ("profil b", "profile"),
    ("dissasm b", "disasm"),
    ("bitsteam --board ulx3s-85f", "bitstream"),
    ("compair m.onnx", "compare"),
    ("explor m.onnx -o r", "explore"),
    ("--verison", "--version"),
    (f"{COMPILE} --quantise int8", "--quantize"),
    (f"{COMPILE} --calibraton c.npz", "--calibration"),
    (f"{COMPILE} --confg tiny", "--config"),
    (f"{COMPILE} --no-acel", "--no-accel"),
    ("run b --inputs x.npz", "--input"),
    ("run b --input x.npz --devise rtl", "--device"),
    ("profile b --trase t.json", "--trace"),
    ("why b --chagne latency=3", "--change"),
    ("compare m.onnx --strategy int8", "--strategies"),
    (f"{COMPILE} --config tinny", "tiny"),
    (f"{COMPILE} --config ecp5w", "ecp5w4"),
    (f"{COMPILE} --config Default", "default"),
    (f"{COMPILE} --quantize int8-gtpq", "int8-gptq"),
    (f"{COMPILE} --quantize w4a8_adaround", "w4a8-adaround"),
    (f"{COMPILE} --quantize mxpf4", "mxfp4"),
    (f"{COMPILE} --memory standart", "standard"),
    (f"{COMPILE} --memory ulx3", "ulx3s"),
    (f"{COMPILE} --memory standard,latncy=50", "latency"),
    (f"{COMPILE} --board ulx3s-85", "ulx3s-85f"),
    (f"{COMPILE} --board colorlight-i6", "colorlight-i5"),
    (f"{COMPILE} --target acel", "accel"),
    ("demo --device cylce", "cycle"),
    ("profile b --device functionl", None),
    ("bitstream --part lfe5u-45 -o out", "lfe5u-45f"),
    ("bitstream --board ulx3s85f -o out", "ulx3s-85f"),
    ("explore m.onnx -o r --objectives cycels,area", "cycles"),
    ("explore m.onnx -o r --axis block_inn=4,8", "block_in"),
    ("explore m.onnx -o r --search gird", "grid"),
    ("export b --form vivdo -o x", "vivado"),
    ("isa gemmm", "gemm"),
    ("list confgs", "configs"),
    ("completion bsh", "bash"),
)


@pytest.mark.parametrize(("words", "meant"), TYPOS, ids=[words for words, _ in TYPOS])
def test_what_was_meant(words: str, meant: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    if meant is None:
        assert "did you mean" not in line
    else:
        assert f"did you mean {meant}?" in line


def test_at_least_thirty() -> None:
    assert sum(meant is not None for _, meant in TYPOS) >= 30


@pytest.mark.parametrize("words", ["complie", f"{COMPILE} --config tinny", f"{COMPILE} --quantize int9", "list confgs"])
def test_nothing_heavy_is_loaded_for_an_answer(words: str) -> None:
    code = (
        "import sys; from relay_hw.cli.main import main; main(sys.argv[1:])\n"
        "sys.exit(sorted({'numpy', 'onnx', 'tvm', 'scipy'} & sys.modules.keys()) != [])"
    )
    assert subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True).returncode == 0


@pytest.mark.parametrize("words", ["eval m.relay -- --x", "eval m.relay --entry f -3 -0.5"])
def test_arguments_that_look_like_options_stay(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert "there is no option" not in capsys.readouterr().err
