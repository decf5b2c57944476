"""Compiles host functions into a build's folder: one library for each processor or GPU.

In: a manifest, flat functions by host target, a folder. Out: the files, and the manifest that names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from relay_hw.backend.flat import FlatFunction
from relay_hw.backend.store import ConstantPool, flat_to_json
from relay_hw.backend.tvm.target import HostTarget
from relay_hw.runtime.manifest import HostLibrary, Manifest
from relay_hw.support import durable
from relay_hw.target.partition import HOST
from relay_hw.target.records import LayerInfo


def with_libraries(manifest: Manifest, parts: Mapping[HostTarget, Sequence[FlatFunction]], folder: Path) -> Manifest:
    """Compile the host functions into `folder`, and record what loading them needs."""
    for number, (target, functions) in enumerate(parts.items()):
        manifest = _with_library(manifest, functions, target, folder, f"host.{number}" if number else "host")
    return manifest


def _with_library(
    manifest: Manifest, host: Sequence[FlatFunction], target: HostTarget, folder: Path, stem: str
) -> Manifest:
    from relay_hw.backend.tvm import build_library, library_suffix

    plain = folder / f"{stem}{library_suffix(target)}"
    built = build_library(host, plain, target)
    # The system loads a path once a process: another library at the same path would not be seen.
    file = durable.rename(plain, folder / f"{stem}.{durable.file_hash(plain)[:8]}{plain.suffix}")
    pool = ConstantPool()
    packed = {name: flat_to_json(function, pool) for name, function in built.packed.items()}
    library = HostLibrary(file.name, str(target), built.cpu, built.functions, packed)
    layers = tuple(_note_numpy(row, built.left_to_numpy.get(row.function, ())) for row in manifest.layers)
    return replace(manifest, libraries=(*manifest.libraries, library), layers=layers)


def _note_numpy(row: LayerInfo, left: tuple[str, ...]) -> LayerInfo:
    """Add a note to the reasons of operators that TVM could not compile."""
    if row.where != HOST or row.operator not in left:
        return row
    return replace(row, reason=f"{row.reason}; by numpy, as Relax has no such {row.operator}")
