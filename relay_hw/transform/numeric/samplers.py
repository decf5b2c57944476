"""Points to measure an expression at: floats of given ranges, or values that samples reach.

In: expressions, ranges of parameters, samples of inputs. Out: samplers of the arguments of terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.interp import evaluate
from relay_hw.ir.expr import Constant, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.numeric.error import Points, Sampler, bit_patterns
from relay_hw.transform.numeric.expressions import Expression
from relay_hw.transform.numeric.terms import Floats

Ranges = Mapping[str, tuple[float, float]]
Samples = Mapping[str, NDArray[np.float32]]
Seen = Mapping[Expr, Sequence[Floats]]

ALL: Final = (float(np.finfo(np.float32).min), float(np.finfo(np.float32).max))


def limits(leaf: Expr, ranges: Ranges) -> object:
    """Where a leaf's values come from, as something that compares."""
    if isinstance(leaf, Constant):
        return leaf
    return ranges.get(getattr(leaf, "name_hint", ""), ALL)


def from_ranges(one: Expression, ranges: Ranges) -> Sampler:
    """Floats of each leaf's range, or elements of the constant that it is."""

    def sample(count: int, random: np.random.Generator) -> Points:
        return {name: _values(leaf, ranges, count, random) for name, leaf in one.leaves.items()}

    return sample


def _values(leaf: Expr, ranges: Ranges, count: int, random: np.random.Generator) -> Floats:
    if isinstance(leaf, Constant) and leaf.data.size:
        return random.choice(leaf.data.reshape(-1), count)
    low, high = ranges.get(getattr(leaf, "name_hint", ""), ALL)
    return bit_patterns(count, low, high, random)


def observed(
    mod: IRModule, function: Function, found: Sequence[Expression], samples: Samples
) -> dict[Expr, list[Floats]]:
    """The values of all leaves, an entry for each evaluation, when `main` is evaluated on each of the samples."""
    wanted = {leaf for one in found for leaf in one.leaves.values()}
    seen: dict[Expr, list[Floats]] = {one: [one.data] for one in wanted if isinstance(one, Constant)}

    def observe(node: Expr, value: object) -> None:
        if node in wanted:
            seen.setdefault(node, []).append(np.asarray(value))

    count = min((len(values) for values in samples.values()), default=0)
    for index in range(count):
        inputs = {name: values[index] for name, values in samples.items()}
        if function is mod.functions.get("main"):
            for param in function.params:
                observe(param, inputs[param.name_hint])
        evaluate(mod, inputs, observe=observe)
    return seen


def from_samples(one: Expression, seen: Seen) -> Sampler | None:
    """Elements at the same place of all leaves, of drawn samples; None where samples do not reach all of them."""
    leaves = [seen.get(leaf, ()) for leaf in one.leaves.values()]
    times = max(map(len, leaves))
    if any(len(some) not in (times, 1) for some in leaves):
        return None
    rows = [np.broadcast_arrays(*(some[index % len(some)] for some in leaves)) for index in range(times)]
    flat = [np.concatenate([part.reshape(-1) for part in parts]) for parts in zip(*rows, strict=True)]
    if not flat or not flat[0].size:
        return None

    def sample(count: int, random: np.random.Generator) -> Points:
        chosen = random.integers(0, len(flat[0]), count)
        return dict(zip(one.leaves, (values[chosen] for values in flat), strict=True))

    return sample
