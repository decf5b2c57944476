"""Build folders on disk: written with every hash, read with every byte checked.

In: a manifest and the contents of its files. Out: a folder; and back, an `Artifact` ready for an executor.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from accel.documents import DocumentError, parse_json
from accel.durable import file_hash
from accel.isa.config import AccelConfig
from accel.isa.errors import AccelError
from accel.isa.program import Program
from relay_hw.backend.nodes import FlatFunction
from relay_hw.backend.store import ConstantPool, flat_from_json
from relay_hw.errors import ArtifactError, InputError, RelayHwError
from relay_hw.runtime.calls import Caller
from relay_hw.runtime.folder import MANIFEST, new_folder
from relay_hw.runtime.given import check_build
from relay_hw.runtime.holding import Footprints
from relay_hw.runtime.manifest import AccelFunction, Manifest, manifest_from_json, manifest_to_json
from relay_hw.runtime.steady import Steady, steady

WEIGHTS = "weights.bin"
# Written again by every profile, so they carry no hash.
UNHASHED = ("report.json", "report.html")


@dataclass(frozen=True, slots=True, eq=False)
class Artifact:
    """A build folder in memory. `functions` holds the numpy meaning of every function, those of the device too."""

    path: Path
    manifest: Manifest
    main: FlatFunction
    functions: Mapping[str, FlatFunction]
    programs: Mapping[str, Program]

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator that the build was made for."""
        return self.manifest.config

    @property
    def has_control_flow(self) -> bool:
        """Whether what runs depends on data: `main` does more than call segments one after the other."""
        return not self.caller.is_straight

    @property
    def caller(self) -> Caller:
        """The host's part: what decides which regions an inference launches."""
        segments = frozenset(row.function for row in self.manifest.layers)
        regions = tuple(row.name for row in self.manifest.accel)
        return Caller(self.main, self.functions, segments, regions, self.manifest.batch)

    @property
    def launches(self) -> int | None:
        """Launches of one inference in steady state; None where control flow decides."""
        return None if self.has_control_flow else self.steady(self.manifest.calls).launches

    def steady(self, calls: Sequence[str]) -> Steady:
        """The steady state of inferences that call these regions in this order."""
        return steady(Footprints(self.config), self.programs, calls)

    def accel(self, name: str) -> AccelFunction | None:
        """The accelerator function of that name, or None for a host function."""
        return next((row for row in self.manifest.accel if row.name == name), None)

    def stage_text(self, stage: str) -> str:
        """Relay text of a stage. Raises InputError for an unknown stage."""
        for file in self.manifest.stages:
            if stage in (file, stage_name(file)):
                try:
                    return (self.path / file).read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError) as error:
                    raise ArtifactError(f"{self.path / file} must be a readable text file: {error}") from None
        known = ", ".join(stage_name(file) for file in self.manifest.stages)
        raise InputError(f"stage must be one of {known}, not {stage}")


def stage_name(file: str) -> str:
    """`2_quantized.relay` -> `quantized`."""
    return file.split("_", 1)[1].removesuffix(".relay")


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest file; its own hash is its last line of defence against edits."""
    row = manifest_to_json(manifest)
    digest = hashlib.sha256(_canonical(row)).hexdigest()
    return (json.dumps(row | {"sha256": digest}, indent=1, sort_keys=True) + "\n").encode()


def _canonical(row: object) -> bytes:
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode()


def write_artifact(
    path: Path,
    manifest: Manifest,
    files: Mapping[str, bytes],
    build_library: Callable[[Path], Manifest] | None = None,
) -> Manifest:
    """Write a build folder. `build_library` may add a library file to the folder and returns the manifest that says so.

    Files in UNHASHED get no hash. Raises InputError where the folder cannot be written.
    """
    with new_folder(path) as folder:
        if build_library is not None:
            manifest = build_library(folder)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        names = sorted(item.name for item in folder.iterdir() if item.name not in UNHASHED)
        manifest = replace(manifest, files={name: file_hash(folder / name) for name in names})
        (folder / MANIFEST).write_bytes(manifest_bytes(manifest))
    return manifest


def read_manifest(path: Path) -> Manifest:
    """The manifest of a build folder, its hash checked. Raises ArtifactError."""
    check_build(path)
    file = path / MANIFEST
    try:
        row = parse_json(file.read_bytes())
    except (OSError, DocumentError) as error:
        raise ArtifactError(f"{file} must be a readable JSON file: {error}") from None
    try:
        manifest = manifest_from_json(row)
    except ArtifactError as error:
        raise ArtifactError(f"{file}: {error}") from None
    digest = row.pop("sha256", None)
    if hashlib.sha256(_canonical(row)).hexdigest() != digest:
        raise ArtifactError(f"{file} must match its own SHA-256 hash; it was changed after compiling")
    return manifest


def load_artifact(path: str | Path) -> Artifact:
    """Read a build folder and check every hash. Raises ArtifactError with one sentence."""
    folder = Path(path)
    manifest = read_manifest(folder)
    _check_files(folder, manifest)
    pool = ConstantPool((folder / WEIGHTS).read_bytes())
    programs: dict[str, Program] = {}
    for row in manifest.accel:
        try:
            programs[row.name] = Program.load(folder / row.program, manifest.config)
        except AccelError as error:
            raise ArtifactError(f"{folder / row.program}: {error}") from None
    try:
        functions = {name: flat_from_json(entry, pool) for name, entry in manifest.functions.items()}
        return Artifact(folder, manifest, flat_from_json(manifest.main, pool), functions, programs)
    except RelayHwError as error:
        raise ArtifactError(f"{folder / MANIFEST}: {error}") from None


def _check_files(folder: Path, manifest: Manifest) -> None:
    needed = [WEIGHTS, *(row.program for row in manifest.accel), *manifest.stages]
    needed += [manifest.library.file] if manifest.library else []
    for name in needed:
        if name not in manifest.files:
            raise ArtifactError(f"{folder / MANIFEST} must list {name} among its files")
    for name, expected in manifest.files.items():
        if Path(name).name != name:
            raise ArtifactError(f"{folder / MANIFEST} must list plain file names, not {name}")
        file = folder / name
        if not file.is_file():
            raise ArtifactError(f"{file} must exist: it belongs to the build")
        found = file_hash(file)
        if found != expected:
            raise ArtifactError(f"{file} must have SHA-256 {expected[:16]}…, not {found[:16]}…; it is damaged")
