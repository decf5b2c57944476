"""Builds that were made here: those with code for the host carry a seal by a key that only this user has.

In: what names a build's bytes. Out: its seal, and whether a seal is of this user's key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from relay_hw.accel.sim.kept import locked
from relay_hw.support import durable

SEAL: Final = "seal.txt"
_KEY, _KEY_BYTES = "build.key", 32
_FOR_THE_OWNER: Final = 0o600
_PURPOSE: Final = b"relay-hw build\0"


def key_folder() -> Path:
    """Folder of the user's key, where the system has it: on Linux as `XDG_STATE_HOME` says."""
    from platformdirs import user_state_path

    return user_state_path("relay-hw", appauthor=False)


def new_seal(identity: str, folder: Path | None = None) -> bytes | None:
    """The file that says that a build was made here; the first one makes the key. None where no key can be kept."""
    try:
        key = _made_key(folder or key_folder())
    except (OSError, RuntimeError):  # a home that is not writable, or none at all
        return None
    return None if key is None else _seal(key, identity)


def is_seal(data: bytes, identity: str, folder: Path | None = None) -> bool:
    """Whether `data` is what `new_seal` gave for that build on this machine, for this user."""
    try:
        key = _read_key((folder or key_folder()) / _KEY)
    except RuntimeError:
        return False
    return key is not None and hmac.compare_digest(_seal(key, identity), data)


def _seal(key: bytes, identity: str) -> bytes:
    return hmac.new(key, _PURPOSE + identity.encode(), hashlib.sha256).hexdigest().encode() + b"\n"


def _made_key(folder: Path) -> bytes | None:
    path = folder / _KEY
    found = _read_key(path)
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f"{_KEY}.lock"):
        if _read_key(path) is None:
            durable.write_file(path, secrets.token_bytes(_KEY_BYTES), _FOR_THE_OWNER)
    return _read_key(path)


def _read_key(path: Path) -> bytes | None:
    """A key that nobody else can know; None where there is none."""
    try:
        data, about = durable.read_own(path)
    except OSError:
        return None
    is_private = about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & ~_FOR_THE_OWNER
    return data if is_private and len(data) == _KEY_BYTES else None
