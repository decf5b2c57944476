"""Writes build folders with a hash of every file, and reads them with every byte checked.

In: a manifest and the contents of its files. Out: a folder; and back, an `Artifact` ready for an executor.
"""

from __future__ import annotations

import errno
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program
from relay_hw.backend.check import check_functions
from relay_hw.backend.nodes import FlatFunction
from relay_hw.backend.store import ConstantPool, flat_from_json
from relay_hw.errors import ArtifactError, InputError, RelayHwError
from relay_hw.report import Network
from relay_hw.runtime.calls import Caller
from relay_hw.runtime.fit import check_form, check_inputs, check_outputs, check_region
from relay_hw.runtime.folder import MANIFEST, new_folder
from relay_hw.runtime.given import check_build
from relay_hw.runtime.manifest import Manifest, manifest_from_json, manifest_to_json
from relay_hw.runtime.static_report import static_report
from relay_hw.runtime.trust import SEAL, is_seal, new_seal
from relay_hw.support.documents import DocumentError, parse_json, read_record
from relay_hw.support.durable import file_hash, is_plain, read_own
from relay_hw.support.names import one_of
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import Steady, steady
from relay_hw.target.accel.target import AccelTarget, check_ports, read_program
from relay_hw.target.base import Target
from relay_hw.target.records import RegionInfo
from relay_hw.target.registry import find_target

WEIGHTS = "weights.bin"
NETWORK = "network.json"
# Written again by every profile, so they carry no hash.
UNHASHED = ("report.json", "report.html")
# Files that run on the host, or that such files read: names begin so.
_HOST_CODE = "host."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Artifact:
    """A build folder in memory. `functions`: reference semantics of every function, also of those on the device.

    `programs`: of target accel, by region; `images`: the bytes of any target's programs.

    `is_sealed`: it was built here, by this user; `trust`: the caller allows its code to run even if it was not.
    """

    path: Path
    manifest: Manifest
    main: FlatFunction
    functions: Mapping[str, FlatFunction]
    programs: Mapping[str, Program]
    images: Mapping[str, bytes]
    is_sealed: bool = False
    trust: bool = False

    def check_trust(self) -> None:
        """Raise ArtifactError if the build has host code that was neither built here nor declared trusted."""
        library = next((row for row in self.manifest.libraries if row.functions), None)
        if library is not None and not (self.is_sealed or self.trust):
            raise ArtifactError(
                f"host library {self.path / library.file} must have been built here by this user, not elsewhere: "
                "compile the model again, or give --trust (Python: trust=True) if you trust whoever built it"
            )

    @contextmanager
    def host_code(self) -> Iterator[Path]:
        """A private folder with the checked files of the host libraries, so that what was checked is what runs.

        Raises ArtifactError.
        """
        self.check_trust()
        with tempfile.TemporaryDirectory(prefix="relay-hw-") as folder:
            for name, digest in self.manifest.files.items():
                if name.startswith(_HOST_CODE):
                    (Path(folder) / name).write_bytes(_read_file(self.path, name, digest))
            yield Path(folder)

    @property
    def config(self) -> AccelConfig:
        """The accelerator configuration. Raises InputError for a build for another target than accel."""
        return self.manifest.sizes

    @property
    def target(self) -> Target:
        """The target that runs the regions. Raises InputError if it is not installed."""
        rows = self.manifest
        if rows.config is not None:
            return AccelTarget(rows.config, rows.memory_model, rows.board)
        return find_target(rows.target, rows.variant)

    @property
    def has_control_flow(self) -> bool:
        """Whether the segments that run depend on data: `main` is more than a sequence of calls."""
        return not self.caller.is_straight

    @property
    def caller(self) -> Caller:
        """The host's part of the build, which decides which regions an inference launches."""
        segments = frozenset(row.function for row in self.manifest.layers)
        regions = tuple(row.name for row in self.manifest.regions)
        return Caller(self.main, self.functions, segments, regions, self.manifest.batch)

    @property
    def launches(self) -> int | None:
        """Launches of one inference in steady state; None if control flow decides."""
        if self.has_control_flow:
            return None
        calls = self.manifest.calls
        return self.steady(calls).launches if self.manifest.config is not None else len(calls)

    def steady(self, calls: Sequence[str]) -> Steady:
        """The steady state of inferences that call these regions in this order."""
        return steady(Footprints(self.config), self.programs, calls)

    def region(self, name: str) -> RegionInfo | None:
        """The region of that name, or None for a host function."""
        return next((row for row in self.manifest.regions if row.name == name), None)

    @property
    def network(self) -> Network:
        """The operators with their operands, as reports draw them. Raises ArtifactError."""
        where = self.path / NETWORK
        try:
            network = read_record(Network, parse_json(_read_file(self.path, NETWORK, self.manifest.files[NETWORK])), "")
        except DocumentError as error:
            raise ArtifactError(f"{where} must describe a network; it is damaged ({error})") from None
        problem = network.problem(len(self.manifest.layers))
        if problem:
            raise ArtifactError(f"{where}: {problem}")
        return network

    def stage_text(self, stage: str) -> str:
        """Relay text of a stage. Raises InputError for an unknown stage."""
        for file in self.manifest.stages:
            if stage in (file, stage_name(file)):
                try:
                    return _read_file(self.path, file, self.manifest.files[file]).decode()
                except UnicodeDecodeError as error:
                    raise ArtifactError(f"{self.path / file} must be a readable text file: {error}") from None
        raise InputError(one_of("stage", [stage_name(file) for file in self.manifest.stages], stage))

    def __repr__(self) -> str:
        return f"<Artifact {self.path}>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks: where each operator runs, with the cycles that the compiler counted."""
        return static_report(self.manifest)._repr_html_()


def stage_name(file: str) -> str:
    """`2_quantized.relay` -> `quantized`."""
    return file.split("_", 1)[1].removesuffix(".relay")


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest file, which contains its own hash against edits."""
    row = manifest_to_json(manifest)
    return (json.dumps(row | {"sha256": _digest(row)}, indent=1, sort_keys=True) + "\n").encode()


def _digest(row: object) -> str:
    return hashlib.sha256(json.dumps(row, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write_artifact(
    path: Path,
    manifest: Manifest,
    files: Mapping[str, bytes],
    build_library: Callable[[Path], Manifest] | None = None,
) -> Manifest:
    """Write a build folder. `build_library` may add a library file to the folder and returns the manifest that says so;
    then it is sealed as built here.

    Files in UNHASHED get no hash. Raises InputError if the folder cannot be written.
    """
    with new_folder(path) as folder:
        if build_library is not None:
            manifest = build_library(folder)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        names = sorted(item.name for item in folder.iterdir() if item.name not in UNHASHED)
        manifest = replace(manifest, files={name: file_hash(folder / name) for name in names})
        (folder / MANIFEST).write_bytes(manifest_bytes(manifest))
        seal = None if not manifest.libraries else new_seal(_digest(manifest_to_json(manifest)))
        if seal is not None:
            (folder / SEAL).write_bytes(seal)
    return manifest


def load_artifact(path: str | Path, trust: bool = False) -> Artifact:
    """Read a build folder and check every hash. Raises ArtifactError with one sentence.

    `trust`: code in it may run on the host though it was not built here.
    """
    folder = Path(path)
    check_build(folder)
    manifest, digest = _read_manifest(folder / MANIFEST)
    contents = _read_files(folder, manifest)
    pool = ConstantPool(contents[WEIGHTS])
    images = {row.name: contents[row.program] for row in manifest.regions}
    programs: dict[str, Program] = {}
    for row in manifest.regions if manifest.config is not None else ():
        try:
            programs[row.name] = read_program(images[row.name], manifest.sizes)
        except ArtifactError as error:
            raise ArtifactError(f"{folder / row.program}: {error}") from None
    try:
        functions = {name: flat_from_json(entry, pool) for name, entry in manifest.functions.items()}
        main = flat_from_json(manifest.main, pool)
        results = check_functions(main, functions)
        check_inputs(manifest.inputs, main)
        check_outputs(manifest.outputs, results["main"])
        for row in manifest.regions:
            check_region(row, functions, results)
            if row.name in programs:
                check_ports(row, programs[row.name])
        for form in manifest.batched:
            check_form(form, functions, results)
    except RelayHwError as error:
        raise ArtifactError(f"{folder / MANIFEST}: {error}") from None
    return Artifact(folder, manifest, main, functions, programs, images, _is_sealed(folder, digest), trust)


def _is_sealed(folder: Path, digest: str) -> bool:
    try:
        return is_seal(read_own(folder / SEAL)[0], digest)
    except OSError:
        return False


def _read_manifest(file: Path) -> tuple[Manifest, str]:
    """The manifest of a build folder, and its hash, checked."""
    try:
        row = parse_json(read_own(file)[0])
    except (OSError, DocumentError) as error:
        raise ArtifactError(f"{file} must be a readable JSON file: {error}") from None
    try:
        manifest = manifest_from_json(row)
    except ArtifactError as error:
        raise ArtifactError(f"{file}: {error}") from None
    told, found = row.pop("sha256", None), _digest(row)
    if found != told:
        raise ArtifactError(f"{file} must match its own SHA-256 hash; it was changed after compiling")
    return manifest, found


def _read_files(folder: Path, manifest: Manifest) -> dict[str, bytes]:
    """Contents of the files that are needed at once, by name; the others are only checked."""
    needed = [WEIGHTS, *(row.program for row in manifest.regions)]
    listed = [*needed, NETWORK, *manifest.stages, *(library.file for library in manifest.libraries)]
    for name in listed:
        if name not in manifest.files:
            raise ArtifactError(f"{folder / MANIFEST} must list {name} among its files")
    found: dict[str, bytes] = {}
    for name, expected in manifest.files.items():
        if not is_plain(name):
            raise ArtifactError(f"{folder / MANIFEST} must list plain file names, not {name}")
        data = _read_file(folder, name, expected)
        if name in needed:
            found[name] = data
    return found


def _read_file(folder: Path, name: str, expected: str) -> bytes:
    """Read and check a file of a build. Raises ArtifactError."""
    file = folder / name
    try:
        data, _ = read_own(file)
    except FileNotFoundError:
        raise ArtifactError(f"{file} must exist: it belongs to the build") from None
    except OSError as error:
        what = "a link or no file at all" if error.errno == errno.ELOOP else error.strerror
        raise ArtifactError(f"{file} must be a file of the build's own, not {what}") from None
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise ArtifactError(f"{file} must have SHA-256 {expected[:16]}…, not {found[:16]}…; it is damaged")
    return data
