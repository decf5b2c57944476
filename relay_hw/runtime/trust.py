"""Recognises builds that were made here: those with host code carry a seal made with a key of this user.

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

from relay_hw.accel.sim.result_cache import locked
from relay_hw.support import durable

SEAL: Final = "seal.txt"
_KEY, _KEY_BYTES = "build.key", 32
_FOR_THE_OWNER: Final = 0o600
_PURPOSE: Final = b"relay-hw build\0"


def key_folder() -> Path:
    """The folder of the user's key, in the system's usual place: on Linux by `XDG_STATE_HOME`."""
    from platformdirs import user_state_path

    return user_state_path("relay-hw", appauthor=False)


def new_seal(identity: str, folder: Path | None = None) -> bytes | None:
    """The seal of a build that was made here; the first call makes the key. None if no key can be stored."""
    try:
        key = _made_key(folder or key_folder())
    except (OSError, RuntimeError):  # a home that is not writable, or none at all
        return None
    return None if key is None else _seal(key, identity)


def is_seal(data: bytes, identity: str, folder: Path | None = None) -> bool:
    """Whether `data` is a seal that `new_seal` made for this build on this machine and for this user."""
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
    """Read the key, unless other users could read it; None if there is none."""
    try:
        data, about = durable.read_own(path)
    except OSError:
        return None
    is_private = about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & ~_FOR_THE_OWNER
    return data if is_private and len(data) == _KEY_BYTES else None
