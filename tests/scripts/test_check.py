"""`make check`: which tests a change touches, a sample of every room, and no test begun too late."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import check

ROOT = Path(check.__file__).parents[1]
# Folders whose tests all take too long for a sample: `make test` and longer targets run them.
LONG = {"tests/cost_of_change", "tests/e2e", "tests/networks", "tests/relay_hw/attacks"}


def test_every_folder_of_tests_has_its_sample() -> None:
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    sampled = {Path(name.split("::")[0]).parent.as_posix() for name in check.sample()}
    assert sampled | LONG == folders and not sampled & LONG
    assert len(set(check.sample())) == len(check.sample())


@pytest.mark.parametrize("name", check.sample())
def test_samples_are_there(name: str) -> None:
    file, _, function = name.partition("::")
    assert f"def {function}" in (ROOT / file).read_text()


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("relay_hw/text/parser.py", "tests/relay_hw/text/test_parser.py"),
        ("relay_hw/limits.py", "tests/relay_hw/test_limits.py"),
        ("accel/isa/program.py", "tests/accel/isa/test_program.py"),
        ("tensorize/match/reader.py", "tests/tensorize/test_match.py"),
        ("accel/rtl/vta_dot.v", "tests/accel/rtl/test_lint.py"),
        ("docs/memory.md", "tests/house/test_documents.py"),
        ("tests/relay_hw/op/test_traits.py", "tests/relay_hw/op/test_traits.py"),
        ("scripts/check.py", "tests/scripts/test_check.py"),
    ],
)
def test_what_a_change_touches(changed: str, touched: str) -> None:
    assert touched in check.touched_tests([changed])


def test_what_imports_a_changed_file_comes_last() -> None:
    found = check.touched_tests(["relay_hw/limits.py", "tests/relay_hw/op/test_traits.py"])
    assert found[:2] == ["tests/relay_hw/op/test_traits.py", "tests/relay_hw/test_limits.py"] and len(found) > 2


def test_nothing_is_touched_by_what_no_test_knows() -> None:
    assert check.touched_tests(["LICENSE", "docs/results/energy.json"]) == []


def test_no_test_begins_after_the_time(tmp_path: Path) -> None:
    (tmp_path / "test_late.py").write_text("def test_one(): pass\n\n\ndef test_two(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "scripts.check_deadline", "-p", "no:cacheprovider"]
    for within, summary in (("1e6", "2 passed"), ("-1", "2 skipped")):
        words = [*command, "--begin-within", within, "--rootdir", str(tmp_path), str(tmp_path)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        assert summary in done.stdout
        assert ("make test runs it" in done.stdout) == (within == "-1")
