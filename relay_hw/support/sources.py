"""Hashes the sources of packages, as part of the keys of stored results that depend on their code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

_KINDS = (".py", ".json")


def sources_hash(*packages: ModuleType, without: Iterable[str] = ()) -> str:
    """Hash of all Python and JSON files of `packages` and of every folder inside, by name and content.

    `without` names files and folders, relative to their package, that results do not depend on.
    """
    return _hash(tuple(str(package.__path__[0]) for package in packages), frozenset(without))


@cache
def _hash(folders: tuple[str, ...], without: frozenset[str]) -> str:
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            name = path.relative_to(folder)
            left_out = any(str(part) in without for part in (name, *name.parents))
            if path.suffix in _KINDS and not left_out:
                data = path.read_bytes()
                total.update(f"{name.as_posix()}\0{len(data)}\0".encode() + data)
    return total.hexdigest()
