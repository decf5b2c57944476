"""Quantizes programs with control flow: each straight-line fragment by its recorded inputs.

In: a float module outlined into fragments, calibration data. Out: the module with its fragments in integers; tensors
that pass from fragment to fragment stay float.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.calibration import CALIBRATING, check_data
from relay_hw.quantize.layers import layer_names
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.strategy import Strategy
from relay_hw.support.names import one_of
from relay_hw.support.progress import SILENT, Progress
from relay_hw.transform.fragments import fragments_of
from relay_hw.transform.infer_type import InferType

Array = NDArray[Any]
# Of a fragment that runs more often, or on more data, every second, fourth, ... call is kept.
KEPT_CALLS = 4096
KEPT_BYTES = 1 << 28


def fragment_modules(mod: IRModule) -> dict[str, IRModule]:
    """Each fragment with something to quantize, as the `main` of a module of its own."""
    found: dict[str, IRModule] = {}
    for name in fragments_of(mod):
        function = mod[name]
        is_static = all(isinstance(p.type, TensorType) and _is_static(p.type) for p in function.params)
        if is_static and make_plan(function.body).integers:
            found[name] = IRModule({"main": function}, mod.types)
    return found


def _is_static(ty: TensorType) -> bool:
    return all(isinstance(dim, int) for dim in ty.shape)


def own_layers(mod: IRModule, strategy: Strategy) -> Strategy:
    """`strategy` with only the exceptions that name a layer of this fragment."""
    names = layer_names(make_plan(mod["main"].body)).values()
    return replace(strategy, layers=tuple(c for c in strategy.layers if any(map(c.matches, names))))


def check_layers(modules: Mapping[str, IRModule], strategy: Strategy) -> None:
    """Raise QuantizeError for an exception that names no layer of any fragment."""
    names = [name for mod in modules.values() for name in layer_names(make_plan(mod["main"].body)).values()]
    for choice in strategy.layers:
        if not any(map(choice.matches, names)):
            raise QuantizeError(one_of(f"strategy {strategy.name}: layer", names, choice.layer))


def record(
    mod: IRModule,
    names: Sequence[str],
    data: Mapping[str, Any],
    progress: Progress = SILENT,
) -> dict[str, dict[str, Array]]:
    """Record the arguments of each function of `names` over `data`: arrays with all calls on the first axis.

    A function that no sample reaches is left out. An input of `main` that is no tensor of known shape takes a sequence
    of values, one a sample. Raises QuantizeError for data that does not fit.
    """
    samples = _samples(mod["main"].params, data)
    calls = {name: _Calls([param.name_hint for param in mod[name].params]) for name in names}
    watched: dict[Expr, tuple[_Calls, int]] = {}
    for name in names:
        watched.update({param: (calls[name], k) for k, param in enumerate(mod[name].params)})

    def observe(node: Expr, value: Any) -> None:
        found = watched.get(node)
        if found is not None:
            found[0].take(found[1], value)

    interpreter = Interpreter(mod, observe)
    progress.started(CALIBRATING, len(samples))
    for number, sample in enumerate(samples, 1):
        interpreter.call_global("main", sample)
        progress.advanced(CALIBRATING, number)
    return {name: one.arrays() for name, one in calls.items() if one.count}


@dataclass(slots=True)
class _Calls:
    """Records the arguments of all calls of a function; parameters are bound in order."""

    names: Sequence[str]
    count: int = 0
    step: int = 1
    size: int = 0  # bytes of one call
    kept: list[list[Array]] = field(default_factory=list[list[Array]])

    def take(self, index: int, value: Array) -> None:
        """Record an argument of the current call."""
        if index == 0:
            if self.count % self.step == 0:
                most = min(KEPT_CALLS, max(2, KEPT_BYTES // self.size if self.size else KEPT_CALLS))
                if len(self.kept) >= most:
                    self.kept, self.step = self.kept[::2], self.step * 2
                if self.count % self.step == 0:
                    self.kept.append([])
            self.count += 1
        if (self.count - 1) % self.step == 0:
            self.kept[-1].append(value)
        if self.count == 1:
            self.size += value.nbytes

    def arrays(self) -> dict[str, Array]:
        """All recorded values of each parameter, batches concatenated."""
        columns = zip(*self.kept, strict=True)
        return {n: np.concatenate([np.atleast_1d(v) for v in c]) for n, c in zip(self.names, columns, strict=True)}


def _samples(params: Sequence[Var], data: Mapping[str, Any]) -> list[dict[str, Any]]:
    tensors = [p for p in params if isinstance(p.type, TensorType) and _is_static(p.type)]
    others = [p.name_hint for p in params if p not in tensors]
    if not others:
        return list(check_data(params, data))
    for name in others:
        if name not in data:
            given = ", ".join(sorted(data)) or "nothing"
            raise QuantizeError(f"calibration data must hold input {name}, not only {given}")
    columns = {name: list(data[name]) for name in others}
    if tensors:
        for number, batch in enumerate(check_data(tensors, data)):
            for name, value in batch.items():
                columns.setdefault(name, []).append(value)
                assert len(columns[name]) == number + 1
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise QuantizeError(f"calibration data must hold as many samples for each input, not {listed}")
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def replace_fragments(mod: IRModule, new: Mapping[str, Function]) -> IRModule:
    """`mod`, typed, with the bodies of `new`; every function keeps its attributes."""
    functions = {name: copy_with(f, attrs=mod[name].attrs) for name, f in new.items()}
    return InferType()(mod.with_functions(functions))
