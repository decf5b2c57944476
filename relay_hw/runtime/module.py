"""A model that is ready to run: the result of `relay.build`, or a loaded build folder.

In: a compiled model or a build folder, the name of a device. Out: inputs by name or number, run, outputs by number.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.names import CYCLE
from relay_hw.backend.store import type_from_json
from relay_hw.errors import InputError
from relay_hw.interp.values import to_value
from relay_hw.ir.types import TensorType
from relay_hw.report import Profile
from relay_hw.runtime.artifact import Artifact, load_artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.explanation import Explanation
from relay_hw.runtime.folder import new_folder
from relay_hw.runtime.manifest import TensorInfo
from relay_hw.runtime.opened import open_session
from relay_hw.runtime.ports import single_output
from relay_hw.runtime.profile import profile
from relay_hw.runtime.result import Result
from relay_hw.runtime.stepper import Stepper
from relay_hw.runtime.why import explain
from relay_hw.support.names import one_of
from relay_hw.target.accel.changes import read_change
from relay_hw.target.base import Session


class Module:
    """One model with its inputs; a device is opened at the first run of a build that has something for it."""

    def __init__(self, model: CompiledModel | Artifact, device: str | None = None) -> None:
        """`device`: one of the target's, by default its default one; for target accel functional, cycle or rtl.

        Raises InputError for another one.
        """
        if device is not None and device not in model.target.devices:
            raise InputError(one_of("device", model.target.devices, device))
        self._model = model
        self._device_name = device
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._artifact: Artifact | None = model if isinstance(model, Artifact) else None
        self._executor: Executor | None = None
        self._session: Session | None = None
        self._inputs: dict[str, Any] = {}
        self._result: Result | None = None

    # What goes in and out

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs in order, without parameters that `build` was given values for."""
        return self._model.manifest.inputs if isinstance(self._model, Artifact) else self._model.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs in order."""
        return self._model.manifest.outputs if isinstance(self._model, Artifact) else self._model.outputs

    def get_num_inputs(self) -> int:
        """The number of inputs."""
        return len(self.inputs)

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.outputs)

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 for an unknown name."""
        return next((k for k, row in enumerate(self.inputs) if row.name == name), -1)

    def set_input(self, key: str | int | None = None, value: Any = None, **named: Any) -> None:
        """Set one input by name or number, and others by name. Raises InputError for one that does not fit."""
        given = dict(named) if key is None else {key: value, **named}
        for name, one in given.items():
            row = self._row(name)
            self._inputs[row.name] = _value(row, one)

    def get_input(self, key: str | int) -> Any:
        """An input that was set. Raises InputError."""
        name = self._row(key).name
        if name not in self._inputs:
            raise InputError(f"input {name} must be set before it is read")
        return self._inputs[name]

    def run(self, **named: Any) -> Any:
        """Compute, with `named` inputs set first: the output, or a tuple of them. Raises InputError, EvalError."""
        self.set_input(**named)
        missing = [row.name for row in self.inputs if row.name not in self._inputs]
        if missing:
            raise InputError(f"inputs {', '.join(missing)} must be set before run")
        self._result = self._ready().run({name: [value] for name, value in self._inputs.items()})
        found = tuple(self.get_output(k) for k in range(len(self.outputs)))
        return found[0] if len(found) == 1 else found

    def stepper(self, feeds: Sequence[tuple[str, str]], state: Mapping[str, Any] | None = None) -> Stepper:
        """A runner that keeps states between its steps. `feeds`: pairs of an output and the input that it is in the
        next step; `state`: the first ones by input, else zeros. Raises InputError.
        """
        return self._ready().stepper(feeds, state)

    def get_output(self, index: int = 0) -> Any:
        """An output of the last run. Raises InputError."""
        if self._result is None:
            raise InputError("outputs must be computed by run before they are read")
        if not 0 <= index < len(self.outputs):
            raise InputError(f"output must be in [0, {len(self.outputs)}), not {index}")
        row = self.outputs[index]
        return single_output(row, self._result.outputs[row.name])

    @property
    def result(self) -> Result | None:
        """Details of the last run: launches, cycles, seconds of each segment; None before the first run."""
        return self._result

    # Cycles

    def profile(self) -> Profile:
        """Cycles, bytes and lost cycles of each layer in an inference, from the cycle simulator; no data is needed.

        Raises InputError for another target than accel.
        """
        artifact = self.artifact
        memory = memory_model(artifact.manifest.memory_model)
        return profile(artifact, CycleDevice(artifact.config, memory, data=False), CYCLE)

    def explain(self, changes: Sequence[str] = ()) -> Explanation:
        """Why cycles are lost, and how many an inference would take on other hardware.

        `changes`: each such as `axi_data_bits=128,latency=50`; none: those that fit the losses. Raises InputError.
        """
        artifact = self.artifact
        memory = memory_model(artifact.manifest.memory_model)
        return explain(artifact, changes=[read_change(text, artifact.config, memory) for text in changes] or None)

    # Builds

    @property
    def artifact(self) -> Artifact:
        """The build; written to a temporary folder if it was not saved yet."""
        if self._artifact is None:
            assert isinstance(self._model, CompiledModel)
            self._folder = tempfile.TemporaryDirectory(prefix="relay-hw.")
            self._artifact = self._model.save(Path(self._folder.name) / "build")
        return self._artifact

    def save(self, path: str | Path) -> Artifact:
        """Write the build folder `path`. Raises InputError."""
        if isinstance(self._model, CompiledModel):
            return self._model.save(path)
        return copy_build(self._model, Path(path))

    @staticmethod
    def load(path: str | Path, device: str | None = None, trust: bool = False) -> Module:
        """Load a build folder; `trust`: run its host code even if it was not built here. Raises ArtifactError."""
        return Module(load_artifact(path, trust), device)

    def __repr__(self) -> str:
        return f"<Module {', '.join(row.name for row in self.inputs)} -> {', '.join(row.name for row in self.outputs)}>"

    def _repr_html_(self) -> str:
        """Rich display in notebooks: where each operator runs, with the cycles that the compiler counted."""
        return self._model._repr_html_()

    def close(self) -> None:
        """Close the device; the next run opens it again."""
        if self._session is not None:
            self._session.close()
        self._session, self._executor = None, None

    def _ready(self) -> Executor:
        if self._executor is None:
            artifact = self.artifact
            if artifact.images:
                self._session = open_session(artifact, self._device_name)
            self._executor = Executor(artifact, self._session)
        return self._executor

    def _row(self, key: str | int) -> TensorInfo:
        rows = {row.name: row for row in self.inputs}
        if isinstance(key, int) and 0 <= key < len(rows):
            return self.inputs[key]
        if key not in rows:
            raise InputError(one_of("input", rows, key))
        return rows[str(key)]


def _value(row: TensorInfo, given: Any) -> Any:
    """Convert `given` to the input's element type."""
    ty = TensorType(row.shape, row.dtype) if row.type is None else type_from_json(row.type)
    if isinstance(ty, TensorType):
        array = np.asarray(given)
        given = array.astype(ty.dtype, copy=False) if row.dtype else array
    return to_value(given, ty, f"input {row.name}")


def copy_build(artifact: Artifact, path: Path) -> Artifact:
    """Copy a build folder. Raises InputError, ArtifactError."""
    with new_folder(path) as folder:
        for item in artifact.path.iterdir():
            if item.is_file():
                (folder / item.name).write_bytes(item.read_bytes())
    return load_artifact(path, artifact.trust)
