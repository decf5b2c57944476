"""Kept results: made once, refused and made again where a byte is another one, by one process at a time."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relay_hw.accel.sim.result_cache import is_sealed, kept, read_row, seal, sealed, write_row
from relay_hw.support.temporary import is_temporary

FLIPS = 300


def flips(data: bytes, count: int = FLIPS) -> list[bytes]:
    """`data` with one bit changed, so often, at places spread over all of it."""
    draw = random.Random(7)
    found: list[bytes] = []
    for bit in draw.sample(range(8 * len(data)), min(count, 8 * len(data))):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        found.append(bytes(changed))
    return found


def test_a_result_is_made_once_and_again_where_a_bit_is_wrong(tmp_path: Path) -> None:
    made: list[int] = []
    content = bytes(range(256)) * 40

    def make(work: Path) -> None:
        made.append(1)
        (work / "library").write_bytes(content)
        (work / "sub").mkdir()
        (work / "sub" / "facts").write_text("facts")

    entry = kept(tmp_path, "key", make)
    assert kept(tmp_path, "key", make) == entry and len(made) == 1
    for changed in (*flips(content), content[:-1], b"", content + b"0"):
        (entry / "library").write_bytes(changed)
        before = len(made)
        assert (kept(tmp_path, "key", make) / "library").read_bytes() == content and len(made) == before + 1
    (entry / "sub" / "facts").unlink()
    assert (kept(tmp_path, "key", make) / "sub" / "facts").read_text() == "facts"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "key.lock"]


def test_whatever_the_seal_says_the_files_are_those_that_were_sealed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    seal(tmp_path, "done", ["a"])
    data = (tmp_path / "done").read_bytes()
    assert is_sealed(tmp_path, "done")
    for changed in (*flips(data), b"", data[:-1], b"[]", b'{"files": {}}', b'{"files": 1}', b"[" * 100_000):
        (tmp_path / "done").write_bytes(changed)
        assert not is_sealed(tmp_path, "done")
    # A seal of another step, and of another folder.
    (tmp_path / "other").write_bytes(data)
    shutil.copytree(tmp_path, tmp_path / "sub")
    (tmp_path / "sub" / "done").write_bytes(data)
    assert not is_sealed(tmp_path, "other") and not is_sealed(tmp_path / "sub", "done")
    (tmp_path / "done").write_bytes(data)
    (tmp_path / "a").write_bytes(b"contenu")
    assert not is_sealed(tmp_path, "done") and not is_sealed(tmp_path, "none")


def test_a_step_in_a_folder(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> None:
        made.append(1)
        (tmp_path / "a").write_bytes(b"content")

    for _ in range(2):
        sealed(tmp_path, "done", ["a"], make)
    assert len(made) == 1
    (tmp_path / "a").write_bytes(b"conten")
    sealed(tmp_path, "done", ["a"], make)
    assert len(made) == 2 and (tmp_path / "a").read_bytes() == b"content"

    def fail() -> None:
        raise RuntimeError("the tool failed")

    with pytest.raises(RuntimeError, match="the tool failed"):
        sealed(tmp_path, "next", ["b"], fail)
    assert not is_sealed(tmp_path, "next")


def test_rows_come_back_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    content = {"cycles": {2: 30, 10: 20}, "text": "\u202e\ud800", "number": 0.1}
    write_row(path, "key", content)
    want = {"cycles": {"2": 30, "10": 20}, "text": "\u202e\ud800", "number": 0.1}
    assert read_row(path, "key") == want and read_row(path, "other") is None
    data = path.read_bytes()
    for changed in (*flips(data), data[:-2], b"", b"[" * 100_000):
        path.write_bytes(changed)
        assert read_row(path, "key") is None
    path.unlink()
    assert read_row(path, "key") is None


SLOW = """
import sys, time
from pathlib import Path
from relay_hw.accel.sim.result_cache import kept
def make(work):
    print("made", flush=True)
    time.sleep(0.2)
    (work / "a").write_bytes(b"1")
print(kept(Path(sys.argv[1]), "key", make).name, flush=True)
"""


def test_processes_wait_for_one_another(tmp_path: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", SLOW, tmp_path], stdout=subprocess.PIPE, text=True) for _ in "abc"
    ]
    said = [process.communicate()[0].split() for process in started]
    assert sorted(len(words) for words in said) == [1, 1, 2] and all(words[-1] == "key" for words in said)
    assert not [path for path in tmp_path.iterdir() if is_temporary(path.name)]
