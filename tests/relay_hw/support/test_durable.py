"""Files and folders are there whole, old or new, whatever step fails or is the last of its process; nothing stays."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from relay_hw.support import durable, temporary
from tests.faults import Fault, every_fault

FAULTS = pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.value)
OLD = {"a": b"old a", "b": b"old b" * 1000, "sub/c": b"old c"}
NEW = {"a": b"new a", "b": b"new b" * 2000, "d": b"new d"}
FOREIGN = {"notes.txt": b"mine", "data/table": b"mine too"}


def is_ours(name: str) -> bool:
    return name in ("a", "b", "sub", "d")


def fill(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def write_new(path: Path) -> None:
    with durable.new_folder(path, is_ours) as work:
        fill(work, NEW)


def fresh(folder: Path, files: dict[str, bytes] | None) -> None:
    """`folder` with nothing in it but, where it is given, a folder of `files`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if files is not None:
        fill(folder / "x", files)


@FAULTS
@pytest.mark.parametrize("can_exchange", [True, False], ids=["exchange", "two steps"])
@pytest.mark.parametrize("before", [None, OLD, OLD | FOREIGN], ids=["none", "old", "with others' files"])
def test_a_folder_is_old_or_new(
    tmp_path: Path, fault: Fault, can_exchange: bool, before: dict[str, bytes] | None
) -> None:
    root, path = tmp_path / "root", tmp_path / "root" / "x"
    others = {name: data for name, data in (before or {}).items() if name in FOREIGN}
    steps = 0
    for steps in every_fault(lambda: fresh(root, before), lambda: write_new(path), fault, can_exchange):
        durable.recover(path)
        found = contents(path) if path.exists() else None
        assert found in (before, NEW | others), steps
        write_new(path)
        assert (contents(path), os.listdir(root)) == (NEW | others, ["x"]), steps
    assert steps > 10


@FAULTS
@pytest.mark.parametrize("before", [None, b"old" * 5000], ids=["none", "old"])
def test_a_file_is_old_or_new(tmp_path: Path, fault: Fault, before: bytes | None) -> None:
    root, path, new = tmp_path / "root", tmp_path / "root" / "x", b"new" * 5000

    def prepare() -> None:
        fresh(root, None)
        if before is not None:
            path.write_bytes(before)

    for step in every_fault(prepare, lambda: durable.write_file(path, new), fault):
        assert (path.read_bytes() if path.exists() else None) in (before, new), step
        durable.write_file(path, new)
        assert (path.read_bytes(), os.listdir(root)) == (new, ["x"]), step


def test_a_writer_may_write_to_a_stream_and_go_back_in_it(tmp_path: Path) -> None:
    def write(stream: object) -> None:
        stream.write(b"0" * 100_000)  # type: ignore[attr-defined]
        stream.seek(5)  # type: ignore[attr-defined]
        stream.write(b"1")  # type: ignore[attr-defined]

    durable.write_file(tmp_path / "x", write)
    data = (tmp_path / "x").read_bytes()
    assert len(data) == 100_000 and data[4:7] == b"010"


def test_devices_are_written_to(tmp_path: Path) -> None:
    durable.write_file(Path(os.devnull), b"nothing")
    assert not Path(os.devnull).is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    durable.write_file(pipe, lambda stream: stream.write(b"through a pipe"))
    assert reader.communicate()[0] == b"through a pipe" and pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        durable.write_file(tmp_path, b"")


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        durable.write_file(tmp_path / "x", b"")
        write_new(tmp_path / "folder")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


CHILD = """
import sys, time
from pathlib import Path
from relay_hw.support import durable
with durable.scratch_folder(Path(sys.argv[1]), "x"):
    print("ready", flush=True)
    time.sleep(600)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    """A process that holds a folder in `folder` open."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    return child


def test_what_a_live_process_holds_stays(tmp_path: Path) -> None:
    child = start(tmp_path)
    try:
        (name,) = os.listdir(tmp_path)
        durable.sweep(tmp_path)
        assert os.listdir(tmp_path) == [name]
    finally:
        child.kill()
        child.wait()
    durable.sweep(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_process_that_nobody_waits_for_is_dead(tmp_path: Path) -> None:
    child = start(tmp_path)
    child.kill()
    until = time.monotonic() + 60
    while os.listdir(tmp_path) and time.monotonic() < until:
        durable.sweep(tmp_path)
    assert os.listdir(tmp_path) == []
    child.wait()


def renamed(tmp_path: Path, change: Callable[[str], str]) -> str:
    """The only name in a folder, changed."""
    (name,) = os.listdir(tmp_path)
    os.rename(tmp_path / name, tmp_path / change(name))
    return change(name)


def test_a_lock_is_kept_where_the_number_says_nothing(tmp_path: Path) -> None:
    """A process of another machine or container: its number is nobody's here, or somebody else's."""
    child = start(tmp_path)
    try:
        gone = renamed(tmp_path, lambda name: name.replace(f"-{child.pid}-", "-4194304000-"))
        durable.sweep(tmp_path)
        assert os.listdir(tmp_path) == [gone]
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    durable.sweep(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_number_may_have_been_given_away(tmp_path: Path) -> None:
    """The number is that of this process's parent, which started at another time."""
    own = temporary.started(os.getppid())
    if not own:
        pytest.skip("this system does not tell when processes started")
    (tmp_path / f".x.relay-hw-{os.getppid()}-{own}-00.tmp").mkdir()
    (tmp_path / f".x.relay-hw-{os.getppid()}-{own + 1}-00.tmp").mkdir()
    durable.sweep(tmp_path)
    assert os.listdir(tmp_path) == [f".x.relay-hw-{os.getppid()}-{own}-00.tmp"]


def test_what_was_renamed_away_is_put_back(tmp_path: Path) -> None:
    for name in ("x", "y" * 240):
        old = tmp_path / f".{temporary.short_name(name)}.relay-hw-4194304000-1-00.old"
        fill(old, OLD)
        durable.recover(tmp_path / name)
        assert os.listdir(tmp_path) == [name] and contents(tmp_path / name) == OLD
        shutil.rmtree(tmp_path / name)
        # A write elsewhere in the folder puts it back too, where the name says where.
        fill(old, OLD)
        durable.write_file(tmp_path / "other", b"")
        assert (tmp_path / name).exists() == (len(name) == 1)
        with durable.new_folder(tmp_path / name) as work:
            fill(work, NEW)
        assert sorted(os.listdir(tmp_path)) == sorted([name, "other"])
        assert contents(tmp_path / name) == NEW
        shutil.rmtree(tmp_path / name)
        (tmp_path / "other").unlink()


def test_names_of_any_length(tmp_path: Path) -> None:
    for name in ("x" * 255, "ö" * 127):
        durable.write_file(tmp_path / name, b"1")
        assert (tmp_path / name).read_bytes() == b"1" and os.listdir(tmp_path) == [name]
        (tmp_path / name).unlink()
        write_new(tmp_path / name)
        write_new(tmp_path / name)
        assert os.listdir(tmp_path) == [name]
        shutil.rmtree(tmp_path / name)


def test_other_names_are_left_alone(tmp_path: Path) -> None:
    names = [".x.tmp", "x.relay-hw-1-1-0.tmp", ".x.relay-hw-1-1-0.tmp.bak", ".x.relay-hw-a-1-0.tmp", ".x.old"]
    for name in names:
        (tmp_path / name).touch()
    durable.write_file(tmp_path / "y", b"")
    assert set(os.listdir(tmp_path)) == {*names, "y"}


def test_what_no_writer_makes_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link, a pipe, another user's file: in a folder for all, anybody may give them such a name."""
    (tmp_path / "secret").write_text("secret")
    names = [f".x.relay-hw-4194304000-1-0{k}.{kind}" for k, kind in enumerate(("old", "tmp", "tmp"))]
    (tmp_path / names[0]).symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / names[1])
    (tmp_path / names[2]).touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    durable.recover(tmp_path / "x")
    durable.sweep(tmp_path)
    assert set(os.listdir(tmp_path)) == {*names, "secret"}
    monkeypatch.undo()
    durable.recover(tmp_path / "x")
    durable.sweep(tmp_path)
    assert set(os.listdir(tmp_path)) == {*names[:2], "secret"}


def test_the_folder_that_one_stands_in_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="busy"), durable.new_folder(Path(".")):
        pass
    with durable.new_folder(Path("a")) as work:
        fill(work, NEW)
    assert contents(tmp_path / "a") == NEW


def test_two_writers_at_once(tmp_path: Path) -> None:
    """Each finds the other's work done in between: the last one stays, nothing else does."""
    for can_exchange in (True, False):
        path = tmp_path / f"x{can_exchange}"
        found = pytest.MonkeyPatch()
        if not can_exchange:
            found.setattr(durable, "_exchange", lambda _one, _other: False)
        with found.context(), durable.new_folder(path) as outer:
            fill(outer, OLD)
            with durable.new_folder(path) as inner:
                fill(inner, NEW)
            assert contents(path) == NEW
        found.undo()
        assert contents(path) == OLD
        shutil.rmtree(path)
    assert os.listdir(tmp_path) == []


def test_a_hole_is_no_file_to_read(tmp_path: Path) -> None:
    path = tmp_path / "given"
    with path.open("wb") as file:
        file.truncate(1 << 27)
    with pytest.raises(OSError, match="it must hold data, not be a hole of the file system"):
        durable.read_given(path)
    data = bytes(range(256)) * (1 << 19)
    path.write_bytes(data)
    assert durable.read_given(path) == data


def test_a_file_system_that_knows_no_holes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "given"
    with path.open("wb") as file:
        file.truncate(1 << 27)
    seek = os.lseek

    def without(handle: int, at: int, how: int) -> int:
        if how != os.SEEK_SET:
            raise OSError(errno.EINVAL, "Invalid argument")
        return seek(handle, at, how)

    monkeypatch.setattr(durable.os, "lseek", without)
    assert durable.read_given(path) == bytes(1 << 27)
