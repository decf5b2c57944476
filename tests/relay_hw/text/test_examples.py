"""The examples under examples/relay: every command on every file, and the values that their comments promise."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from relay_hw.analysis import structural_equal
from relay_hw.cli.main import main
from relay_hw.text import load_json, parse

FOLDER = Path(__file__).parents[3] / "examples" / "relay"
FILES = sorted(FOLDER.glob("*.relay"))


def promises(file: Path) -> list[tuple[str, list[str], str]]:
    """Entry, arguments and result of each comment line `// > entry argument... = result`."""
    found: list[tuple[str, list[str], str]] = []
    for line in file.read_text().splitlines():
        if line.startswith("// > "):
            call, _, result = line.removeprefix("// > ").partition(" = ")
            entry, *args = shlex.split(call)
            found.append((entry, args, result))
    return found


CASES = [(file, *promise) for file in FILES for promise in promises(file)]


def test_there_is_something_of_every_document() -> None:
    assert {file.stem for file in FILES} >= {
        "sketch", "lenet", "graphs", "detector", "shapes", "control", "recurrent"
    }  # fmt: skip
    assert len(CASES) >= 25


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_check_show_and_convert(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file)]) == 0
    assert 'version = "0.0.5"' in capsys.readouterr().out
    assert main(["show", str(file)]) == 0
    mod = parse(file.read_text(), str(file))
    assert structural_equal(parse(capsys.readouterr().out), mod)
    as_json, as_text = tmp_path / "program.json", tmp_path / "program.relay"
    assert main(["convert", str(file), str(as_json)]) == 0
    assert structural_equal(load_json(as_json.read_text()), mod)
    assert main(["convert", str(as_json), str(as_text)]) == 0
    assert structural_equal(parse(as_text.read_text()), mod)


@pytest.mark.parametrize(
    ("file", "entry", "args", "result"),
    CASES,
    ids=[f"{case[0].stem}-{case[1]}-{place}" for place, case in enumerate(CASES)],
)
def test_values(file: Path, entry: str, args: list[str], result: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(file), "--entry", entry, "--", *args]) == 0
    assert " ".join(capsys.readouterr().out.split()) == result
