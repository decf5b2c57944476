"""Quantizes what a program has on the target: each fragment by itself, by the values that the program gives it.

In: a module outlined by device, names of its fragments on the target, samples of `main`. Out: `PlacedNumbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.flat import Machine, Value, evaluate, flatten
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with, post_order
from relay_hw.quantize import Strategy
from relay_hw.quantize.prequantized import is_prequantized
from relay_hw.quantize.recipes import FLOAT
from relay_hw.runtime.ports import inputs_of, read_samples
from relay_hw.runtime.prices import Compile
from relay_hw.runtime.quantized import Quantized, Settled, quantize_network
from relay_hw.support.progress import Progress
from relay_hw.target.placed import CONVERTS, alone
from relay_hw.transform.graph import is_float
from relay_hw.transform.pipelines import simplify_pipeline

Samples = Mapping[str, NDArray[Any]]
_NOTHING: Final = Strategy(FLOAT)


@dataclass(frozen=True, slots=True)
class Quantizer:
    """How fragments become integers. `settled`: by which strategy; `given`: samples of `main`; `price`: how layers of a
    fragment are timed."""

    settled: Settled
    given: Samples | None
    price: Callable[[IRModule], Compile]
    progress: Progress

    @property
    def is_off(self) -> bool:
        """Whether floats stay as they are."""
        return self.given is None or self.settled.strategy.name == FLOAT

    def quantize(self, mod: IRModule, names: Collection[str]) -> Quantized:
        """`mod` with fragments `names` in integers, where they have numbers to be made integers.

        A fragment that no sample reaches stays as it is. Raises RelayHwError.
        """
        parts = {name: alone(mod[name], mod) for name in names}
        theirs = {name for name, one in parts.items() if is_prequantized(one)}
        floats = set() if self.is_off else {name for name, one in parts.items() if _has_floats(one["main"])} - theirs
        given = _given(mod, floats, self.given) if floats and self.given is not None else {}
        made = {name: self._one(parts[name], given.get(name)) for name in names if name in theirs or given.get(name)}
        new = {name: copy_with(one.mod["main"], attrs={**mod[name].attrs, CONVERTS: 1}) for name, one in made.items()}
        return _joined(mod.with_functions(new), list(made.values()))

    def _one(self, mod: IRModule, samples: Samples | None) -> Quantized:
        simplified = simplify_pipeline()(mod)
        return quantize_network(mod, simplified, self.settled, samples, self.price(simplified), self.progress)


def _has_floats(function: Function) -> bool:
    return any(map(is_float, post_order(function.body)))


def _given(mod: IRModule, names: Collection[str], samples: Samples) -> dict[str, Samples]:
    """The arguments that fragments get when `main` runs on samples."""
    flat = {name: flatten(function, name) for name, function in mod.functions.items()}
    machine = Machine({name: function for name, function in flat.items() if name not in names})
    seen: dict[str, list[Sequence[Value]]] = {}

    def invoke(name: str, args: list[Value]) -> Value:
        seen.setdefault(name, []).append(list(args))
        return evaluate(flat[name], args)

    count, inputs = read_samples(inputs_of(mod), samples, is_quantized=True)
    for number in range(count):
        machine.call(flat["main"], [inputs[param.name][number] for param in flat["main"].params], invoke)
    return {name: _stacked(mod[name], calls) for name, calls in seen.items()}


def _stacked(function: Function, calls: Sequence[Sequence[Value]]) -> Samples:
    return {param.name_hint: np.stack([args[k] for args in calls]) for k, param in enumerate(function.params)}


def _joined(mod: IRModule, parts: Sequence[Quantized]) -> Quantized:
    """All fragments as one result."""
    strategy = replace(
        parts[0].strategy if parts else _NOTHING, layers=tuple(row for one in parts for row in one.strategy.layers)
    )
    return Quantized(
        mod,
        strategy,
        tuple(row for one in parts for row in one.kept),
        tuple(row for one in parts for row in one.noise),
        tuple(row for one in parts for row in one.warnings),
        tuple(dict.fromkeys(row for one in parts for row in one.notes)),
    )
