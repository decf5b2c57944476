"""The plan of a GPU build: host functions as lists of kernel launches over numbered tensors.

In: JSON from a build folder, or values from the compiler. Out: `Plan`; and JSON again, the same for the same plan.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relay_hw.backend.tvm.target import HostTarget, read_host
from relay_hw.errors import ArtifactError, InputError
from relay_hw.support import durable
from relay_hw.support.documents import parse_json

KIND = "relay-hw gpu plan"
Json = Any
Tree = Any  # the number of a tensor, or a tuple of trees
Dims = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class PlanTensor:
    """A tensor of a function. It lives in buffer `slot`, or is the constant that `constant` describes."""

    dtype: str
    shape: tuple[int, ...]
    slot: int | None = None
    constant: Mapping[str, Json] | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One kernel over `grid` blocks of `block` threads; `args`: tensors, all by address. `shared`: bytes at launch."""

    kernel: str
    grid: Dims
    block: Dims
    args: tuple[int, ...]
    shared: int = 0


@dataclass(frozen=True, slots=True)
class NumpyCall:
    """A call of a packed function on numpy: tensors read, tensors written."""

    function: str
    args: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlanFunction:
    """`inputs`: the tensors of the parameters, left to right; `slots`: bytes of each buffer."""

    name: str
    tensors: tuple[PlanTensor, ...]
    slots: tuple[int, ...]
    inputs: tuple[int, ...]
    steps: tuple[KernelLaunch | NumpyCall, ...]
    result: Tree


@dataclass(frozen=True, slots=True)
class Plan:
    """`source`, `binary` (where a compiler made one) and `constants` are files beside the plan."""

    target: HostTarget
    source: str
    binary: str | None
    constants: str
    functions: Mapping[str, PlanFunction] = field(default_factory=dict)


def plan_bytes(plan: Plan) -> bytes:
    """The file of a plan."""
    row = {
        "kind": KIND,
        "target": str(plan.target),
        "source": plan.source,
        "binary": plan.binary,
        "constants": plan.constants,
        "functions": [_function_to_json(function) for function in plan.functions.values()],
    }
    return (json.dumps(row, indent=1) + "\n").encode()


def read_plan(path: Path) -> Plan:
    """Inverse of `plan_bytes`. Raises ArtifactError for a file that holds no plan."""
    try:
        row = parse_json(durable.read_given(path))
        if row["kind"] != KIND:
            raise ValueError(row["kind"])
        functions = [_function_from_json(entry) for entry in row["functions"]]
        target = read_host(row["target"])
        for name in (row["source"], row["binary"] or "none", row["constants"]):
            if not durable.is_plain(name):
                raise ValueError(f"{name!r} is no file beside it")
        return Plan(target, row["source"], row["binary"], row["constants"], {f.name: f for f in functions})
    except (OSError, KeyError, TypeError, ValueError, IndexError, InputError) as error:
        raise ArtifactError(f"{path} must be a plan of kernel launches; it is damaged ({error!r})") from None


def place(
    sizes: Sequence[int | None], used: Sequence[Sequence[int]], inputs: Sequence[int], results: Sequence[int]
) -> tuple[list[int], dict[int, int]]:
    """Sizes of slots, and the slot of each tensor of known size, exclusive from its first use to its last.

    `used`: the tensors that each step reads or writes; inputs are there before the first, results after the last.
    """
    last = {i: k for k, args in enumerate(used) for i in args} | {i: len(used) for i in results}
    slots: list[int] = []
    free: list[int] = []
    places: dict[int, int] = {}

    def take(index: int) -> None:
        size = sizes[index]
        if size is None or index in places:
            return
        fitting = [slot for slot in free if slots[slot] >= size]
        slot = min(fitting, key=slots.__getitem__) if fitting else max(free, key=slots.__getitem__, default=len(slots))
        if slot == len(slots):
            slots.append(0)
        else:
            free.remove(slot)
        slots[slot] = max(slots[slot], size)
        places[index] = slot

    for index in inputs:
        take(index)
    for k, args in enumerate(used):
        for index in args:
            take(index)
        free += [places[i] for i in dict.fromkeys(args) if i in places and last[i] == k]
    for index in results:
        take(index)
    return slots, places


def _function_to_json(function: PlanFunction) -> Json:
    def tensor(row: PlanTensor) -> Json:
        place = {"slot": row.slot} if row.constant is None else {"constant": dict(row.constant)}
        return {"dtype": row.dtype, "shape": list(row.shape)} | place

    def step(row: KernelLaunch | NumpyCall) -> Json:
        if isinstance(row, NumpyCall):
            return {"numpy": row.function, "args": list(row.args), "results": list(row.results)}
        launch = {"kernel": row.kernel, "grid": list(row.grid), "block": list(row.block), "args": list(row.args)}
        return launch | ({"shared": row.shared} if row.shared else {})

    return {
        "name": function.name,
        "tensors": [tensor(row) for row in function.tensors],
        "slots": list(function.slots),
        "inputs": list(function.inputs),
        "steps": [step(row) for row in function.steps],
        "result": function.result,
    }


def _function_from_json(row: Json) -> PlanFunction:
    tensors = tuple(PlanTensor(t["dtype"], tuple(t["shape"]), t.get("slot"), t.get("constant")) for t in row["tensors"])
    slots = tuple(row["slots"])
    for tensor in tensors:
        if (tensor.slot is None) == (tensor.constant is None):
            raise ValueError("a tensor must have a slot or be a constant")
        if tensor.slot is not None and not (0 <= tensor.slot < len(slots) and tensor.size <= slots[tensor.slot]):
            raise ValueError("a tensor must lie in its slot")
    steps = tuple(_step(entry, len(tensors)) for entry in row["steps"])
    result = _tree(row["result"], len(tensors))
    return PlanFunction(row["name"], tensors, slots, _indices(row["inputs"], len(tensors)), steps, result)


def _step(row: Json, count: int) -> KernelLaunch | NumpyCall:
    if "numpy" in row:
        return NumpyCall(row["numpy"], _indices(row["args"], count), _indices(row["results"], count))
    grid_x, grid_y, grid_z = row["grid"]
    block_x, block_y, block_z = row["block"]
    args = _indices(row["args"], count)
    return KernelLaunch(
        row["kernel"], (grid_x, grid_y, grid_z), (block_x, block_y, block_z), args, row.get("shared", 0)
    )


def _indices(rows: Json, count: int) -> tuple[int, ...]:
    if not all(isinstance(index, int) and 0 <= index < count for index in rows):
        raise ValueError("a step must name tensors")
    return tuple(rows)


def _tree(row: Json, count: int) -> Tree:
    return tuple(_tree(item, count) for item in row) if isinstance(row, list) else _indices([row], count)[0]
