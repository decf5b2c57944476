"""The samples of a comparison: inputs by name, with labels or targets.

In: arrays from users. Out: `Samples` cut to what the network takes at once. Every refusal is one sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.ir.expr import Var
from relay_hw.ir.types import TensorType
from relay_hw.quantize.finite import check_samples
from relay_hw.quantize.inputs import shape_hint
from relay_hw.runtime.labels import LABELS, read_labels

Array = NDArray[Any]

TARGETS = "targets"


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """`inputs`: by name, [launches, *shape of the input], `batch` samples in each launch; `labels` int64 [N] or None;
    `targets` float64 [N, D] or None."""

    inputs: Mapping[str, Array]
    batch: int
    labels: Array | None = None
    targets: Array | None = None

    @property
    def launches(self) -> int:
        """Number of times that the network runs."""
        return len(next(iter(self.inputs.values())))

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.launches * self.batch

    def take(self, start: int, stop: int) -> Iterator[dict[str, Array]]:
        """The inputs of launches `start` to `stop`."""
        for index in range(start, min(stop, self.launches)):
            yield {name: array[index] for name, array in self.inputs.items()}

    def part(self, start: int, stop: int) -> Samples:
        """Launches `start` to `stop`, without labels and targets."""
        return Samples({name: array[start:stop] for name, array in self.inputs.items()}, self.batch)

    def split(self, every: int) -> tuple[Samples, Samples]:
        """Split into all launches except every `every`-th, and those."""
        index = np.arange(self.launches)
        held = index % every == every - 1
        return self._at(~held), self._at(held)

    def _at(self, mask: Array) -> Samples:
        return Samples({name: array[mask] for name, array in self.inputs.items()}, self.batch)

    def digest(self) -> str:
        """Hash of all samples, labels and targets."""
        total = hashlib.sha256(str(self.batch).encode())
        extra = {LABELS: self.labels, TARGETS: self.targets}
        for name, array in sorted((dict(self.inputs) | extra).items()):
            if array is not None:
                total.update(f"{name} {array.dtype} {array.shape}".encode())
                total.update(np.ascontiguousarray(array).data)
        return total.hexdigest()


def read_samples(params: Sequence[Var], data: Mapping[str, Array], what: str, limit: int | None = None) -> Samples:
    """The first `limit` samples of `data` (all by default) for a network with these parameters.

    `data` has an array for each input, samples on the first axis; `labels` and `targets` are read where they are there.
    `what` names the data in refusals. Raises InputError.
    """
    if not params:
        raise InputError("the network must have an input to be compared, not none")
    types = {param.name_hint: _static(param) for param in params}
    batches = {name: ty.static_shape[0] if ty.static_shape else 1 for name, ty in types.items()}
    batch = next(iter(batches.values()))
    if len(set(batches.values())) > 1:
        raise InputError(f"all inputs must have the same batch size, not {_listed(batches)}")
    arrays = {name: _input(name, ty, batch, data, what) for name, ty in types.items()}
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"{what}: all inputs must have the same number of samples, not {_listed(counts)}")
    found = next(iter(counts.values()))
    count = found if limit is None else min(limit, found)
    count -= count % batch
    if not count:
        raise InputError(f"{what} must hold at least {batch} sample(s), not {found}")
    return Samples(
        {n: array[:count].reshape(-1, *types[n].static_shape) for n, array in arrays.items()},
        batch,
        _labels(data, found, count, what),
        _targets(data, found, count, what),
    )


def single_samples(params: Sequence[Var], data: Mapping[str, Array], batch: int) -> dict[str, Array]:
    """Data of a model that takes `batch` samples at once, [N, batch, ...], as its samples; others as they are."""
    found = {name: np.asarray(array) for name, array in data.items()}
    for param in params:
        array = found.get(param.name_hint)
        if array is not None and array.shape[1:] == (batch, *_static(param).static_shape[1:]):
            found[param.name_hint] = array.reshape(-1, *array.shape[2:])
            for name in (LABELS, TARGETS):
                answers = found.get(name)
                if answers is not None and answers.shape[:2] == array.shape[:2]:
                    found[name] = answers.reshape(-1, *answers.shape[2:])
    return found


def _static(param: Var) -> TensorType:
    ty = param.type
    if not isinstance(ty, TensorType) or not all(isinstance(size, int) for size in ty.shape):
        raise InputError(f"input {param.name_hint} must be a tensor of known shape to be compared, not {ty}")
    return ty


def _input(name: str, ty: TensorType, batch: int, data: Mapping[str, Array], what: str) -> Array:
    """[N, *shape without the batch] from that, or from [N, 1, ...] where the batch is 1."""
    if name not in data:
        raise InputError(f"{what} must hold input {name}, not only {', '.join(sorted(data)) or 'nothing'}")
    array, shape = np.asarray(data[name]), ty.static_shape
    rest = shape[1:]
    if array.ndim and batch == 1 and array.shape[1:] == shape:
        array = array.reshape(len(array), *rest)
    if array.ndim == 0 or array.shape[1:] != rest:
        wanted = ", ".join(str(size) for size in ("N", *rest)) + ("," if not rest else "")
        hint = shape_hint(array.shape[1:], rest)
        raise InputError(f"{what}: input {name} must have the shape ({wanted}), not {array.shape}{hint}")
    dtype = np.dtype(ty.dtype)
    if array.dtype != dtype and not (array.dtype.kind in "fiub" and dtype.kind == "f"):
        raise InputError(f"{what}: input {name} must be {ty.dtype}, not {array.dtype}")
    with np.errstate(over="ignore"):  # what does not fit becomes infinity, and is refused as such
        array = array.astype(dtype, copy=False)
    check_samples(f"{what}: input {name}", array)
    return array


def _labels(data: Mapping[str, Array], found: int, count: int, what: str) -> Array | None:
    if LABELS not in data:
        return None
    return read_labels(data[LABELS], found, what)[:count]


def _targets(data: Mapping[str, Array], found: int, count: int, what: str) -> Array | None:
    if TARGETS not in data:
        return None
    targets = np.asarray(data[TARGETS])
    if targets.ndim == 0 or len(targets) != found or targets.dtype.kind not in "fiub":
        text = f"{targets.dtype}{list(targets.shape)}"
        raise InputError(f"{what}: targets must be {found} rows of numbers, one for each sample, not {text}")
    check_samples(f"{what}: targets", targets)
    return targets[:count].reshape(count, -1).astype(np.float64)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
