"""Crash-safe files and folders: written whole or not at all, whenever the process or the machine stops.

In: a path, contents. Out: a file or folder there, with all its bytes on the disk. Both are made beside their place
under a name that says whose they are, and put there in one step of the file system; what a dead process left is
removed, or put back where it was the only copy, before the next write to its folder and before reading what is missing.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import io
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from relay_hw.support.temporary import LONGEST, is_temporary, lock, short_name, strays, temporary_name

Contents = bytes | Callable[[BinaryIO], object]

# Linux's renameat2(2): two paths change places.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NO_EXCHANGE: Final = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
# Errors if another process was faster.
_LATE: Final = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY)
_TRIES: Final = 8
# Largest file that is read whole; sparse files take no disk space, whatever their size.
MOST_BYTES: Final = 8 << 30
# A hole of this many bytes costs no more than a network does.
_MAY_BE_HOLLOW: Final = 1 << 26


def write_file(path: Path, contents: Contents, mode: int = 0o666) -> None:
    """Write a file atomically; `contents`: bytes, or a function that writes them to a stream. Raises OSError.

    `mode`: who may do what with it, as far as the process' mask lets it.

    A device or a pipe is written to, not replaced.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            _put(stream, contents)
        return
    sweep(path.parent)
    temporary = path.parent / temporary_name(path.name, "tmp")
    handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    try:
        with io.BufferedRandom(_Raw(handle)) as stream:
            lock(handle)
            _put(stream, contents)
            stream.flush()
            os.fsync(handle)
            os.replace(temporary, path)
        sync(path.parent)
    except BaseException:
        _remove(temporary)
        raise


def _put(stream: BinaryIO, contents: Contents) -> None:
    if isinstance(contents, bytes):
        stream.write(contents)
    else:
        contents(stream)


@contextmanager
def new_folder(path: Path, is_ours: Callable[[str], bool] = lambda _name: True) -> Iterator[Path]:
    """A temporary folder beside `path` that replaces it when the block succeeds, and is deleted when it fails.

    Of a folder that is there, items that are not `is_ours` by name stay. Raises OSError.
    """
    path = Path(os.path.abspath(path))
    if path == Path.cwd():  # a process in it would be left in a deleted folder
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    recover(path)
    sweep(path.parent)
    with scratch_folder(path.parent, path.name) as work:
        yield work
        _sync_tree(work)
        _put_in_place(work, path, is_ours)


@contextmanager
def scratch_folder(folder: Path, name: str) -> Iterator[Path]:
    """A temporary folder in `folder` while the block runs; the next sweep removes it if this process dies."""
    work = folder / temporary_name(name, "tmp")
    os.mkdir(work)
    try:
        handle = os.open(work, os.O_RDONLY)
        try:
            lock(handle)
            yield work
        finally:
            os.close(handle)
    finally:
        _remove(work)


def rename(source: Path, target: Path) -> Path:
    """Rename within a private folder. Raises OSError."""
    os.rename(source, target)
    return target


def recover(path: Path) -> None:
    """Restore `path` if a writer died between renaming the old one away and putting a new one. Raises OSError."""
    path = Path(os.path.abspath(path))
    for stray in strays(path.parent):
        if stray.kind == "old" and stray.name == short_name(path.name) and stray.is_dead():
            _put_back(stray.path, path)


def sweep(folder: Path) -> None:
    """Remove what dead processes left in `folder`, or restore it if it was not replaced. Raises OSError."""
    for stray in strays(folder):
        if not stray.is_dead():
            continue
        if stray.kind == "old" and len(os.fsencode(stray.name)) <= LONGEST:
            _put_back(stray.path, folder / stray.name)
        elif stray.kind == "tmp":
            _remove(stray.path)


def is_plain(name: str) -> bool:
    """Whether a name is a plain file name, without a path."""
    return Path(name).name == name and name not in ("", "..") and "\0" not in name


def read_own(path: Path) -> tuple[bytes, os.stat_result]:
    """Bytes and status of a regular file, not a link or device. Raises OSError."""
    return _read(path, getattr(os, "O_NOFOLLOW", 0), MOST_BYTES)


def read_given(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Bytes of a file named by the user; it may be a link, but not a pipe or device. Raises OSError."""
    return _read(path, 0, most_bytes)[0]


def read_given_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Text of a UTF-8 file named by the user, with newlines normalised. Raises OSError, UnicodeDecodeError."""
    return io.StringIO(read_given(path, most_bytes).decode(), newline=None).read()


def _read(path: Path, flags: int, most_bytes: int) -> tuple[bytes, os.stat_result]:
    # Opening a pipe would wait for a writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | flags)
    with open(handle, "rb") as stream:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.ELOOP, "it must be a regular file", str(path))
        if about.st_size > most_bytes:
            sentence = f"it must be at most {most_bytes:,} bytes long, not {about.st_size:,}"
            raise OSError(errno.EFBIG, sentence, str(path))
        if about.st_size > _MAY_BE_HOLLOW and _is_hollow(handle, about.st_size):
            raise OSError(errno.EFBIG, "it must hold data, not be a hole of the file system", str(path))
        return stream.read(about.st_size), about


def _is_hollow(handle: int, size: int) -> bool:
    """Whether a file is sparse: less than an eighth of its bytes are on disk."""
    if not hasattr(os, "SEEK_DATA"):
        return False
    held = end = 0
    try:
        while held * 8 < size:
            begin = os.lseek(handle, end, os.SEEK_DATA)
            end = os.lseek(handle, begin, os.SEEK_HOLE)
            held += end - begin
    except OSError as error:
        return error.errno == errno.ENXIO  # no more data; other errors: the file system does not know
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    return False


def file_hash(path: Path) -> str:
    """SHA-256 of a file in hexadecimal. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _put_back(old: Path, path: Path) -> None:
    if os.path.lexists(path):
        _remove(old)
        return
    try:
        os.rename(old, path)
    except OSError as error:  # another process put it back, or something in its place
        if error.errno not in _LATE:
            raise
    sync(path.parent)


# Steps of the file system


class _Raw(io.FileIO):
    """An unbuffered file whose every write is a call of os.write."""

    def __init__(self, handle: int) -> None:
        super().__init__(handle, "r+")

    def write(self, data: Any, /) -> int:
        return os.write(self.fileno(), data)


def _put_in_place(work: Path, path: Path, is_ours: Callable[[str], bool]) -> None:
    for attempt in range(_TRIES):
        try:
            if not os.path.lexists(path):
                os.rename(work, path)
            else:
                _carry(path, work, is_ours)
                _exchange_or_replace(work, path)
            break
        except OSError as error:
            if error.errno not in _LATE or attempt == _TRIES - 1:
                raise
    sync(path.parent)
    if work.is_dir():
        # Items that appeared after the check.
        _carry(work, path, is_ours)


def _carry(old: Path, new: Path, is_ours: Callable[[str], bool]) -> None:
    """Copy foreign items of `old` that `new` lacks to `new`."""
    for name in sorted(os.listdir(old)):
        if not is_ours(name) and not is_temporary(name) and not os.path.lexists(new / name):
            _link(old / name, new / name)


def _link(source: Path, target: Path) -> None:
    """The same file under another name, or the same files in another folder."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, copy_function=_link_file)
    else:
        _link_file(source, target)


def _link_file(source: Any, target: Any) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(source, target, follow_symlinks=False)


def _exchange_or_replace(work: Path, path: Path) -> None:
    """Replace `path` by `work`: atomically if possible, else in two steps that `recover` can undo."""
    if _exchange(work, path):
        return
    old = path.parent / temporary_name(path.name, "old")
    os.rename(path, old)
    try:
        os.rename(work, path)
    except BaseException:
        os.rename(old, path)
        raise
    sync(path.parent)
    _remove(old)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two paths atomically; returns whether system and file system support that. Raises OSError."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    names = (os.fsencode(one), os.fsencode(other))
    if function(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems do not support fsync.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _sync_tree(folder: Path) -> None:
    for name in sorted(os.listdir(folder)):
        mode = os.lstat(folder / name).st_mode
        if stat.S_ISDIR(mode):
            _sync_tree(folder / name)
        elif stat.S_ISREG(mode):
            sync(folder / name)
    sync(folder)


def _remove(path: Path) -> None:
    """Remove a temporary file or folder; leftovers are removed by a later sweep."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)
