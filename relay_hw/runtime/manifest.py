"""The records of a build folder's `manifest.json`, and their JSON forms.

In: what compiling found. Out: frozen records; reading refuses what is not of this format with one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from relay_hw.accel.isa.config import AccelConfig, config_from_dict
from relay_hw.accel.isa.errors import ConfigError
from relay_hw.errors import ArtifactError, InputError
from relay_hw.quantize.inputs import Seen
from relay_hw.quantize.recipes import FLOAT
from relay_hw.support.documents import DocumentError, read_record
from relay_hw.target.accel.rules import NAME as ACCEL
from relay_hw.target.records import LayerInfo, RegionInfo
from relay_hw.tensorize.certificate import Certificate
from relay_hw.transform.batch_fragments import BatchedForm

FORMAT = 11
KIND = "relay-hw build"
Json = Any


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output of the model, one sample. `scale` and `zero_point` where it enters or leaves as int8.

    `batch_axis`: where the parts lie that the programs compute one by one, of a model whose samples are batches.
    `type`: its type as `relay_hw.backend.store` writes it, where it is no tensor of known shape.
    `seen`: an input of floats over the calibration data, part by part. `is_prefix`: of ones and then zeros only.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None
    zero_point: int | None = None
    type: Json = None
    batch_axis: int | None = None
    seen: Seen | None = None
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class HostLibrary:
    """Host functions compiled by TVM: file, target, CPU level, and what each packed function computes (JSON)."""

    file: str
    target: str
    cpu: str
    functions: tuple[str, ...]
    packed: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All metadata of a build.

    `target` and `variant`: what runs its regions, as `relay_hw.target.registry` finds it; `config`: sizes of our own
    accelerator. `memory_model`: what its programs are made for; `board`: the name of the board with that memory, if one
    was asked for; `files`: SHA-256 by file name; `main` and `functions`: flat functions; `calls`: regions in the order
    in which one inference launches them, and `calls_from`: how that is known; `reload_cycles`: of loads that come again
    in each; `proofs`: what programs were proved to compute when they were compiled, none where that was left out;
    `batched`: functions that compute others for many calls at once; `libraries`: one for each processor or GPU that
    host functions are compiled for.
    """

    model: str
    target: str
    variant: str
    config: AccelConfig | None
    strategy: Mapping[str, Json]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    regions: tuple[RegionInfo, ...]
    layers: tuple[LayerInfo, ...]
    main: Json
    functions: Mapping[str, Json]
    memory_model: str
    calls: tuple[str, ...]
    calls_from: str
    reload_cycles: int
    board: str | None = None
    libraries: tuple[HostLibrary, ...] = ()
    stages: tuple[str, ...] = ()
    memory: Mapping[str, Json] = field(default_factory=dict)
    proofs: tuple[Certificate, ...] = ()
    batched: tuple[BatchedForm, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def check_accel(self) -> None:
        """Raise InputError for a build for another target than accel."""
        if self.target != ACCEL:
            raise InputError(f"the build must be for target accel, not {self.target}: this is about its programs")

    @property
    def sizes(self) -> AccelConfig:
        """The accelerator configuration. Raises InputError for a build for another target than accel."""
        self.check_accel()
        assert self.config is not None
        return self.config

    @property
    def batch(self) -> int:
        """Batch size of the model: each sample is run as that many parts with launches of their own."""
        return next((row.shape[row.batch_axis] for row in self.inputs if row.batch_axis is not None), 1)

    @property
    def is_quantized(self) -> bool:
        """Whether the network quantizes floats anywhere."""
        return self.strategy["name"] != FLOAT


def manifest_to_json(manifest: Manifest) -> Json:
    """Plain JSON values."""
    return {
        "kind": KIND,
        "format": FORMAT,
        "model": manifest.model,
        "target": manifest.target,
        "variant": manifest.variant,
        "config": None if manifest.config is None else asdict(manifest.config),
        "config_hash": None if manifest.config is None else f"{manifest.config.hash32:#010x}",
        "strategy": dict(manifest.strategy),
        "inputs": [_tensor_json(row) for row in manifest.inputs],
        "outputs": [asdict(row) for row in manifest.outputs],
        "regions": [asdict(row) for row in manifest.regions],
        "layers": [asdict(row) for row in manifest.layers],
        "main": manifest.main,
        "functions": dict(manifest.functions),
        "memory_model": manifest.memory_model,
        "board": manifest.board,
        "calls": list(manifest.calls),
        "calls_from": manifest.calls_from,
        "reload_cycles": manifest.reload_cycles,
        "libraries": [asdict(library) for library in manifest.libraries],
        "stages": list(manifest.stages),
        "memory": dict(manifest.memory),
        "proofs": [asdict(row) for row in manifest.proofs],
        "batched": [asdict(row) for row in manifest.batched],
        "files": dict(sorted(manifest.files.items())),
    }


def manifest_from_json(row: Json) -> Manifest:
    """Inverse of `manifest_to_json`. Raises ArtifactError for another kind or format, or a damaged record."""
    if not isinstance(row, dict):
        raise ArtifactError(f"manifest must be an object, not {type(row).__name__}")
    if row.get("kind") != KIND:
        raise ArtifactError(f"manifest kind must be {KIND!r}, not {row.get('kind')!r}")
    if row.get("format") != FORMAT:
        raise ArtifactError(f"manifest format must be {FORMAT}, not {row.get('format')}: compile the model again")
    rest = {key: value for key, value in row.items() if key not in ("kind", "format", "config_hash", "sha256")}
    try:
        config = rest.get("config")
        if config is not None:
            name = config.get("name") if isinstance(config, dict) else None
            rest["config"] = config_from_dict(config, name if isinstance(name, str) else "")
        manifest = read_record(Manifest, rest, "manifest")
    except (DocumentError, ConfigError) as error:
        raise ArtifactError(f"manifest must describe a build; it is damaged ({error})") from None
    _check(manifest)
    return manifest


def _check(manifest: Manifest) -> None:
    """Check values of records whose types are right."""
    if not isinstance(manifest.strategy.get("name"), str):
        raise ArtifactError("manifest.strategy must have a name")
    if (manifest.target == ACCEL) != (manifest.config is not None):
        raise ArtifactError("manifest.config must be there for target accel, and for no other")
    known = {row.name for row in manifest.regions}
    if not known.issuperset(manifest.calls):
        raise ArtifactError(f"manifest.calls must name regions, not {sorted({*manifest.calls} - known)[0]}")
    for row in (*manifest.inputs, *manifest.outputs):
        if min(row.shape, default=0) < 0:
            raise ArtifactError(f"{row.name} must have sizes of at least 0, not {list(row.shape)}")
        if row.batch_axis is not None and not 0 <= row.batch_axis < len(row.shape):
            raise ArtifactError(
                f"{row.name} must have batch_axis within its {len(row.shape)} axes, not {row.batch_axis}"
            )


def _tensor_json(row: TensorInfo) -> Json:
    found = asdict(row)
    for feature in (found["seen"] or {"features": ()})["features"]:
        feature["kind"] = feature["kind"].value
    return found
