"""Temporary names, each of which says whose process made it, and whether that process is gone.

In: a name, or a folder. Out: a temporary name for it; what lies in the folder under such names.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STRAY: Final = re.compile(r"\.(?P<name>.+)\.relay-hw-(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]+\.(?P<kind>tmp|old)")
# Names of files have 255 bytes at most; longer ones are known by their hash.
LONGEST: Final = 150


@dataclass(frozen=True, slots=True)
class Stray:
    """A file or folder under a temporary name; `name`: that of its place, or its short form."""

    path: Path
    name: str
    pid: int
    start: int
    kind: str

    def is_dead(self) -> bool:
        """Whether its process is gone: no process with that number and start time here, and its lock is free.

        The lock is for processes that another machine or container runs.
        """
        if self.pid == os.getpid() or (started(self.pid) is not None and started(self.pid) in (self.start, 0)):
            return False
        try:
            handle = os.open(self.path, os.O_RDONLY)
        except OSError:
            return False
        try:
            return lock(handle)
        finally:
            os.close(handle)


def strays(folder: Path) -> list[Stray]:
    """What lies in a folder under temporary names of this user, in order of names; nothing where there is no folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    matches = (_STRAY.fullmatch(name) for name in sorted(names))
    found = ((folder / m.string, m) for m in matches if m)
    return [Stray(path, m["name"], int(m["pid"]), int(m["start"]), m["kind"]) for path, m in found if _is_own(path)]


def _is_own(path: Path) -> bool:
    """Whether a file or folder belongs to this user: in shared folders, others may use such names too."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    return about.st_uid == os.geteuid() and (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode))


def is_temporary(name: str) -> bool:
    """Whether this is the name of a writer's temporary file."""
    return _STRAY.fullmatch(name) is not None


def temporary_name(name: str, kind: str) -> str:
    """A new temporary name for `name`; `kind`: "tmp" for what is being made, "old" for what was renamed away."""
    pid = os.getpid()
    return f".{short_name(name)}.relay-hw-{pid}-{started(pid) or 0}-{os.urandom(4).hex()}.{kind}"


def short_name(name: str) -> str:
    """`name`, or a hash in its place where a temporary name could not hold it."""
    data = os.fsencode(name)
    return name if len(data) <= LONGEST else hashlib.sha256(data).hexdigest() + "-" * (LONGEST + 1 - 64)


def started(pid: int) -> int | None:
    """The start time of a process in ticks; 0 if unknown, None for one that has ended."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state == "Z" else int(rest[18])
    except (OSError, ValueError, IndexError):
        return 0


def lock(handle: int) -> bool:
    """Lock an open file or folder until it is closed; returns whether that succeeded."""
    try:
        import fcntl
    except ImportError:  # where there are no such locks, numbers of processes must do
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
