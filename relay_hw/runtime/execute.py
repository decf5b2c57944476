"""Runs a build: host steps by numpy or TVM, regions by launches of a device, sample by sample.

In: an `Artifact`, a device, arrays [N, ...] by input name. Out: outputs stacked on the first axis, cycles by launch.
Weights that stay on the device are loaded by a launch of their own, before the first one and whenever another program
overwrote them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.isa.program import Program, SectionKind
from accel.sim.device import Device, LaunchStats
from relay_hw.backend.flat import (
    FlatFunction,
    FlatInput,
    FlatInvoke,
    FlatNode,
    Value,
    as_array,
    evaluate,
    evaluate_node,
)
from relay_hw.backend.store import ConstantPool, flat_from_json, uses
from relay_hw.errors import InputError
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.holding import Holding
from relay_hw.runtime.manifest import AccelFunction, TensorInfo
from tensorize.layout import image_bytes, image_of, pack_activation, unpack_activation

Array = NDArray[Any]
Progress = Callable[[str, float], None]
# Samples that walk through the steps together: enough that programs are loaded rarely, few enough to hold in memory.
CHUNK = 64


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: which sample and region, and what the device measured."""

    sample: int
    function: str
    stats: LaunchStats


@dataclass(frozen=True, slots=True)
class Result:
    """Outputs by name, stacked on the first axis; launches in the order in which they ran; wall-clock seconds.

    `residents`: launches that loaded weights which stay; they belong to no sample. `regions`: outputs of each
    accelerator function by name, where they were asked for.
    """

    outputs: Mapping[str, Array]
    launches: tuple[Launch, ...]
    samples: int
    seconds: float
    regions: Mapping[str, tuple[Array, ...]] = field(default_factory=dict)
    residents: tuple[Launch, ...] = ()

    @property
    def resident_cycles(self) -> int | None:
        """Cycles of the launches that loaded weights which stay; None where the device has no time."""
        counts = [launch.stats.cycles for launch in self.residents]
        known = [count for count in counts if count is not None]
        return sum(known) if self.cycles is not None and len(known) == len(counts) else None

    @property
    def cycles(self) -> list[int] | None:
        """Cycles of each sample, segments added up; None where the device has no time."""
        total = [0] * self.samples
        for launch in self.launches:
            if launch.stats.cycles is None:
                return None
            total[launch.sample] += launch.stats.cycles
        return total if self.launches else None

    @property
    def device_seconds(self) -> float:
        """Wall-clock seconds inside launches."""
        return sum(launch.stats.seconds for launch in (*self.launches, *self.residents))

    @property
    def simulated_cycles_per_second(self) -> float | None:
        """Cycles of all launches over the seconds that they took."""
        cycles = self.cycles
        total = sum(cycles or ()) + (self.resident_cycles or 0)
        return total / self.device_seconds if total and self.device_seconds else None


class Executor:
    """A build on a device. `device` None computes the regions by their numpy meaning: the reference."""

    def __init__(self, artifact: Artifact, device: Device | None) -> None:
        """Raises ProgramError for a device of another configuration."""
        self._artifact = artifact
        self._device = device
        self._loaded: Program | None = None
        self._holding = Holding(artifact.config)
        self._library: Any = None
        self._in_library = frozenset(artifact.manifest.library.functions if artifact.manifest.library else ())
        if device is not None:
            for program in artifact.programs.values():
                program.check_config(device.config)

    def run(
        self,
        inputs: Mapping[str, Array],
        limit: int | None = None,
        progress: Progress | None = None,
        keep_regions: bool = False,
    ) -> Result:
        """Run the first `limit` samples (all by default).

        `inputs`: an array for each input by name, samples on the first axis; other keys are ignored. A sample has the
        input's shape, or that shape without its batch axis of 1. Raises InputError, Fault, AccelError.
        """
        rows = self._artifact.manifest
        samples, arrays = read_samples(rows.inputs, inputs)
        count = samples if limit is None else min(limit, samples)
        begin = time.perf_counter()
        launches: list[Launch] = []
        residents: list[Launch] = []
        finals: list[list[Array]] = []
        kept: dict[str, list[tuple[Array, ...]]] = {}
        for start in range(0, count, CHUNK):
            chunk = range(start, min(start + CHUNK, count))
            run = _Chunk(self, chunk, launches, residents, kept if keep_regions else None, progress, count)
            finals += [_leaves(value) for value in run.walk(arrays)]
        outputs = {row.name: np.concatenate([final[i] for final in finals]) for i, row in enumerate(rows.outputs)}
        regions = {name: tuple(np.concatenate(parts) for parts in zip(*v, strict=True)) for name, v in kept.items()}
        seconds = time.perf_counter() - begin
        return Result(outputs, tuple(launches), count, seconds, regions, tuple(residents))

    def host(self, name: str, args: Sequence[Value]) -> Value:
        """One host function on one sample."""
        if name in self._in_library:
            return self._tvm().call(name, args)
        return evaluate(self._artifact.functions[name], args)

    def settle(self, row: AccelFunction) -> LaunchStats | None:
        """Load the region's program where another one is loaded; the launch that made its weights stay, if it took one.

        The device must be used by this executor alone.
        """
        program = self._artifact.programs[row.name]
        if self._device is None or self._loaded is program:
            return None
        self._device.load(program)
        self._loaded = None
        needed = self._holding.needs(program)
        self._holding.take(program)
        stats = self._device.launch(SectionKind.RESIDENT) if needed else None
        self._holding.hold(program)
        self._loaded = program
        return stats

    def accelerate(self, row: AccelFunction, args: Sequence[Value]) -> tuple[Value, LaunchStats | None]:
        """One region, settled before, on one sample: its value and what the launch measured."""
        if self._device is None:
            return evaluate(self._artifact.functions[row.name], args), None
        config = self._device.config
        program = self._artifact.programs[row.name]
        assert self._loaded is program, "settle comes first"
        for port, value in zip(row.inputs, args, strict=True):
            data = pack_activation(value, config, program.tensor(port.tensor).layout)
            self._device.write(program.tensor_offset(port.tensor), data.view(np.uint8))
        stats = self._device.launch()
        outputs: list[Array] = []
        for port in row.outputs:
            size = image_bytes(image_of(port.shape), config)
            data = self._device.read(program.tensor_offset(port.tensor), size)
            outputs.append(unpack_activation(data, port.shape, config))
        return (outputs[0] if len(outputs) == 1 else tuple(outputs)), stats

    def invoke(self, name: str, args: Sequence[Value]) -> tuple[Value, LaunchStats | None]:
        """Any function of the build on one sample; a region must be settled before."""
        row = self._artifact.accel(name)
        return self.accelerate(row, args) if row is not None else (self.host(name, args), None)

    def _tvm(self) -> Any:
        if self._library is None:
            from relay_hw.backend.tvm import BuiltLibrary, load_library

            row = self._artifact.manifest.library
            assert row is not None
            pool = ConstantPool()
            packed = {name: flat_from_json(entry, pool) for name, entry in row.packed.items()}
            self._library = load_library(self._artifact.path / row.file, BuiltLibrary(row.cpu, packed))
        return self._library

    @property
    def artifact(self) -> Artifact:
        """The build that runs."""
        return self._artifact


class _Chunk:
    """Some samples on their way through the steps of `main`: each step runs for all of them before the next."""

    def __init__(
        self,
        executor: Executor,
        samples: range,
        launches: list[Launch],
        residents: list[Launch],
        kept: dict[str, list[tuple[Array, ...]]] | None,
        progress: Progress | None,
        count: int,
    ) -> None:
        self.executor = executor
        self.samples = samples
        self.launches = launches
        self.residents = residents
        self.kept = kept
        self.progress = progress
        self.count = count

    def walk(self, arrays: Mapping[str, Array]) -> list[Value]:
        """Results of `main`, one for each sample."""
        main = self.executor.artifact.main
        dead_after = _last_uses(main)
        values: list[list[Value] | None] = []
        for index, node in enumerate(main.nodes):
            values.append([self._node(node, k, values, arrays) for k in range(len(self.samples))])
            for dead in dead_after.get(index, ()):
                values[dead] = None
        result = values[main.result]
        assert result is not None
        return result

    def _node(self, node: FlatNode, k: int, values: Sequence[list[Value] | None], arrays: Mapping[str, Array]) -> Value:
        if isinstance(node, FlatInput):
            return arrays[node.name][self.samples[k]]
        view = _Column(values, k)
        if isinstance(node, FlatInvoke):
            return self._invoke(node.function, [view[i] for i in node.args], self.samples[k])
        return evaluate_node(node, view)

    def _invoke(self, name: str, args: list[Value], sample: int) -> Value:
        row = self.executor.artifact.accel(name)
        is_region = row is not None
        settled = self.executor.settle(row) if row is not None else None
        if settled is not None:
            self.residents.append(Launch(sample, name, settled))
        value, stats = self.executor.invoke(name, args)
        if stats is not None:
            self.launches.append(Launch(sample, name, stats))
        if is_region and self.kept is not None:
            self.kept.setdefault(name, []).append(tuple(_leaves(value)))
        if is_region and self.progress is not None:
            self.progress(f"sample {sample + 1} of {self.count}", (sample + 1) / self.count)
        return value


class _Column(Sequence[Value]):
    """Values of one sample, by node."""

    def __init__(self, values: Sequence[list[Value] | None], sample: int) -> None:
        self._values = values
        self._sample = sample

    def __getitem__(self, index: Any) -> Value:
        column = self._values[index]
        assert column is not None
        return column[self._sample]

    def __len__(self) -> int:
        return len(self._values)


def _last_uses(function: FlatFunction) -> dict[int, list[int]]:
    """By node: the earlier nodes whose value nobody needs after it."""
    last: dict[int, int] = {}
    for index, node in enumerate(function.nodes):
        for used in uses(node):
            last[used] = index
    last.pop(function.result, None)
    dead: dict[int, list[int]] = {}
    for used, index in last.items():
        dead.setdefault(index, []).append(used)
    return dead


def _leaves(value: Value) -> list[Array]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [as_array(value)]


def read_samples(rows: Sequence[TensorInfo], inputs: Mapping[str, Array]) -> tuple[int, dict[str, Array]]:
    """Number of samples, and for each input an array [N, *shape]. Raises InputError naming the input."""
    arrays: dict[str, Array] = {}
    for row in rows:
        if row.name not in inputs:
            given = ", ".join(sorted(inputs)) or "nothing"
            raise InputError(f"input {row.name} must be given; the data holds {given}")
        arrays[row.name] = _samples(row, np.asarray(inputs[row.name]))
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"all inputs must have the same number of samples, not {text}")
    count = next(iter(counts.values()), 1)
    if count == 0:
        raise InputError("the data must hold at least 1 sample, not 0")
    return count, arrays


def _samples(row: TensorInfo, array: Array) -> Array:
    """[N, *row.shape] from [N, *row.shape] or [N, *row.shape without its batch axis]."""
    inner = row.shape[1:] if row.shape[:1] == (1,) else row.shape
    wanted = f"(N, {', '.join(map(str, inner))})" if inner else "(N,)"
    if array.ndim == 0 or array.shape[1:] not in (inner, row.shape):
        raise InputError(f"input {row.name} must have shape {wanted}, samples first, not {array.shape}")
    dtype = np.dtype(row.dtype)
    if array.dtype != dtype and not (array.dtype.kind in "fiu" and dtype.kind == "f"):
        raise InputError(f"input {row.name} must be {row.dtype}, not {array.dtype}")
    return np.ascontiguousarray(array, dtype).reshape((len(array), *row.shape))
