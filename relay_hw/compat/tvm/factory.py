"""The result of TVM's `relay.build`, on top of `relay_hw.runtime.Module`: a model with parameters, and its file.

In: a module, parameters, a target. Out: a factory of modules; a `.tar` with the module as JSON and its parameters.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from relay_hw import build_module
from relay_hw.build_module import bind_params_by_name
from relay_hw.compat.tvm.byoc.regions import compile_partitioned, compilers_of
from relay_hw.compat.tvm.device import Device, device
from relay_hw.compat.tvm.module import IRModule, as_module
from relay_hw.compat.tvm.nd import NDArray, unwrap
from relay_hw.compat.tvm.params import load_param_dict, save_param_dict
from relay_hw.compat.tvm.target import Target
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule as RelayModule
from relay_hw.runtime.module import Module
from relay_hw.support import durable
from relay_hw.support.documents import parse_json
from relay_hw.text import load_json, save_json
from relay_hw.transform import (
    CanonicalizeOps,
    EliminateCommonSubexpr,
    FoldConstant,
    FoldScaleAxis,
    PassContext,
    RemoveUnusedFunctions,
    Sequential,
    SimplifyInference,
)
from relay_hw.transform.plan_devices import names_devices

_FORMAT: Final = "relay-hw library"
_VERSION: Final = 1
_MEMBERS: Final = ("meta.json", "module.json", "model.params")


def optimize(mod: IRModule, params: Mapping[str, Any]) -> RelayModule:
    """`mod` with the parameters of `main` bound, after the passes that the context's level enables.

    A program that names devices stays as it is: its build optimizes what each device runs.
    """
    bound = mod.with_functions({"main": bind_params_by_name(mod["main"], {k: unwrap(v) for k, v in params.items()})})
    if names_devices(bound):
        return bound
    passes = Sequential(
        [
            RemoveUnusedFunctions(),
            SimplifyInference(),
            FoldConstant(),
            FoldScaleAxis(),
            CanonicalizeOps(),
            EliminateCommonSubexpr(),
            FoldConstant(),
        ],
        name="relay.build",
    )
    return passes(bound)


class ExecutorFactory:
    """`factory["default"](device)` is a runtime for `GraphModule`; also what `graph, lib, params` unpack from."""

    def __init__(
        self, mod: IRModule, params: Mapping[str, Any], target: Target | Mapping[str, Target], opt_level: int
    ) -> None:
        """`target`: one, or by kind of device where several share the program."""
        self.ir_mod = mod
        self.params = {name: NDArray(value) for name, value in params.items()}
        self.target = target
        self.opt_level = opt_level
        self.optimized = optimize(mod, self.params)
        self._runtime: Module | None = None

    def __getitem__(self, name: str) -> Callable[..., Module]:
        if name != "default":
            raise InputError(f"entry of a library must be default, not {name}")
        return self.runtime

    def runtime(self, *devices: Device) -> Module:
        """The model, compiled at the first call."""
        if self._runtime is None:
            if not isinstance(self.target, Target):
                machines = {name: target.machine for name, target in self.target.items()}
                self._runtime = build_module.build(self.optimized, machines)
                return self._runtime
            host = "numpy" if self.target.kind == "numpy" else "llvm"
            if compilers_of(self.optimized):
                self._runtime = Module(compile_partitioned(self.optimized, None if host == "llvm" else host))
            else:
                self._runtime = build_module.build(self.optimized, host)
        return self._runtime

    def get_params(self) -> dict[str, NDArray]:
        """The parameters that were given to `build`."""
        return dict(self.params)

    def get_lib(self) -> ExecutorFactory:
        """This factory, which contains the code."""
        return self

    def get_graph_json(self) -> str:
        """The optimized model as JSON."""
        return save_json(self.optimized)

    @property
    def graph_json(self) -> str:
        return self.get_graph_json()

    def __iter__(self) -> Iterator[Any]:
        return iter((self.get_graph_json(), self, self.get_params()))

    def export_library(self, file_name: str | Path, **options: Any) -> None:
        """Write one file that `load_module` reads. The same model gives the same bytes."""
        target = str(self.target) if isinstance(self.target, Target) else {k: str(v) for k, v in self.target.items()}
        meta = {"format": _FORMAT, "version": _VERSION, "target": target, "opt_level": self.opt_level}
        parts = (json.dumps(meta).encode(), save_json(self.ir_mod).encode(), save_param_dict(self.params))

        def write(stream: BinaryIO) -> None:
            with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
                for name, data in zip(_MEMBERS, parts, strict=True):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))

        durable.write_file(Path(file_name), write)


def build(
    ir_mod: Any,
    target: Any = "llvm",
    target_host: Any = None,
    executor: Any = None,
    runtime: Any = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> ExecutorFactory:
    """`ir_mod` optimized at the level of the pass context, for the host's processor.

    `target` "numpy" evaluates with numpy; every other one compiles with TVM where it is installed, else numpy does the
    work. Functions for a compiler go to the target of its name (`relay_hw.target`, or `relay.ext.NAME`). A mapping of
    devices to several targets runs each operator where `on_device` puts it: `{"cpu": "llvm", "ext_dev": "accel"}`.
    """
    level = PassContext.current().opt_level
    return ExecutorFactory(as_module(ir_mod), params or {}, _targets(target or "llvm"), level)


def _targets(given: Any) -> Target | Mapping[str, Target]:
    """A target, or several by kind of device; keys may be devices or TVM's codes of their kinds."""
    if not isinstance(given, Mapping) or "kind" in given:
        return _target(given)
    found = {(key if isinstance(key, Device) else device(key)).kind: _target(one) for key, one in given.items()}
    return found if len(found) > 1 else next(iter(found.values()))


def _target(given: Any) -> Target:
    return given if isinstance(given, Target) else Target(given)


def load_module(path: str | Path, fmt: str = "") -> ExecutorFactory:
    """Load a file of `export_library`. Raises InputError for another file."""
    try:
        with tarfile.open(path) as archive:
            found = {name: archive.extractfile(name) for name in _MEMBERS}
            meta, module, params = (part.read() if part is not None else b"" for part in found.values())
        record = parse_json(meta)
    except (tarfile.TarError, KeyError, ValueError, OSError) as error:
        raise InputError(f"library must be a file that export_library wrote, not {path}: {error}") from None
    if not isinstance(record, dict) or record.get("format") != _FORMAT or record.get("version") != _VERSION:
        raise InputError(f"library must be of format {_FORMAT} {_VERSION}, not {meta[:80].decode(errors='replace')}")
    mod = as_module(load_json(module.decode()))
    return ExecutorFactory(mod, load_param_dict(params), _targets(record["target"]), int(record["opt_level"]))
