"""Checks the quantized network on held-out calibration samples; layers that lose their signal go back to float.

In: a float module, a strategy, calibration data. Out: the quantized module, which layers stayed float and why, and what
is still wrong. A layer has lost its signal where a constant, the mean of the float tensor, is as near to that tensor as
the integers are (0 dB). Raises QuantizeError if NaN is left that the float network does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError, RelayHwError
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.quantize.calibration import check_data, flat_data
from relay_hw.quantize.choices import NumberFormat
from relay_hw.quantize.fragments import record
from relay_hw.quantize.main import Realized, realize_module
from relay_hw.quantize.methods.mixed import LayerCost
from relay_hw.quantize.number import QParams
from relay_hw.quantize.report import LayerNoise, decibel
from relay_hw.quantize.strategy import LayerChoice, Strategy
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.support.progress import SILENT, Progress
from relay_hw.transform.graph import dataflow_order, op_name

Array = NDArray[Any]
# One sample of this many is held out, at most MOST; all samples calibrate if there are fewer.
EVERY: Final = 16
MOST: Final = 8
# With fewer samples, all calibrate, and this many check.
OF_FEW: Final = 4
# How often layers are put back to float before the whole attempt is given up.
ROUNDS: Final = 8
# Give up after this many rounds in a row that improve no wrong tensor by this many dB.
STALLED: Final = 2
NEARER_DB: Final = 0.1
# Fewer values than these say nothing about how a tensor varies.
LEAST_VALUES: Final = 16
LOST_DB: Final = 0.0


@dataclass(frozen=True, slots=True)
class Kept:
    """A layer that stays float, and the reason."""

    layer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """`warnings`: what is still wrong, a sentence each. `noise`: of each layer's tensor on the samples that checked."""

    realized: Realized
    kept: tuple[Kept, ...] = ()
    warnings: tuple[str, ...] = ()
    noise: tuple[LayerNoise, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A tensor of the float graph and its counterpart; `params`, `layer` and `operator` if that is integer."""

    name: str
    reference: Expr
    realized: Expr
    params: QParams | None = None
    layer: str = ""
    operator: str = ""

    @property
    def is_layer(self) -> bool:
        """Whether it is the tensor of a quantized layer."""
        return self.params is not None


@dataclass(slots=True)
class _Noise:
    """Accumulates the quantization noise of a tensor over all samples."""

    pair: _Pair
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    noise: float = 0.0
    broken: int = 0

    def add(self, want: Array, got: Array) -> None:
        """Add a sample."""
        exact, value = np.asarray(want, np.float64), np.asarray(got, np.float64)
        if self.pair.params is not None:
            value = (value - self.pair.params.zero_point) * self.pair.params.scale
        is_sound = np.isfinite(exact)
        self.broken += int((is_sound & ~np.isfinite(value)).sum())
        is_sound &= np.isfinite(value)
        exact, value = exact[is_sound], value[is_sound]
        self.count += exact.size
        self.total += float(exact.sum())
        self.squares += float(np.square(exact).sum())
        self.noise += float(np.square(exact - value).sum())

    @property
    def sqnr_db(self) -> float:
        """Variance of the float tensor over the power of the difference, in dB."""
        return decibel(max(self.squares - self.total**2 / max(self.count, 1), 0.0), self.noise)

    @property
    def row(self) -> LayerNoise:
        """The noise record of reports: power of the float tensor over that of the difference."""
        pair = self.pair
        assert pair.params is not None
        ratio = decibel(self.squares, self.noise)
        return LayerNoise(pair.layer, pair.operator, ratio, pair.params.scale, pair.params.zero_point)

    @property
    def is_lost(self) -> bool:
        """Whether the signal is lost: a constant would be as good. A constant tensor has no signal to lose."""
        spread = self.squares - self.total**2 / max(self.count, 1)
        varies = self.count >= LEAST_VALUES and spread > 1e-9 * self.squares
        return varies and self.sqnr_db < LOST_DB

    def sentence(self, samples: str) -> str:
        """A sentence on what is wrong with it, if anything."""
        if self.broken:
            return f"{self.broken:,} of {self.broken + self.count:,} values are NaN or infinite on {samples}"
        return f"signal-to-noise {self.sqnr_db:.0f} dB on {samples}" if self.is_lost else ""


def realize_checked(
    mod: IRModule,
    strategy: str | Strategy = "int8",
    calibration: Mapping[str, Array] | None = None,
    progress: Progress = SILENT,
    cost: LayerCost | None = None,
    held_out: Mapping[str, Array] | None = None,
) -> Checked:
    """Like `realize_module`, but leaves layers that lose their signal in float.

    `held_out`: samples to check with. Without them one calibration sample of EVERY is held back for that; of fewer,
    which all calibrate, some are tried again.
    """
    chosen = find_strategy(strategy)
    if held_out is None:
        shown, held, samples = _split(mod["main"].params, calibration)
    else:
        shown, held, samples = calibration, *_first(mod["main"].params, held_out)
    first = realized = realize_module(mod, chosen, shown, progress, cost)
    if held is None or realized.strategy.number_format is not NumberFormat.INTEGER:
        return Checked(realized)
    kept: dict[str, str] = {}
    found = list(_measured(realized, held))
    if not found:
        # Nothing was quantized: a program of control flow alone, for instance.
        return Checked(realized)
    at_first = found
    was_broken = any(noise.broken for noise in found)
    stalled = 0
    for _ in range(ROUNDS):
        blamed = {name: why for name, why in _blamed(realized, found, samples).items() if name not in kept}
        if not blamed or stalled == STALLED:
            break
        kept |= blamed
        floats = tuple(LayerChoice(layer, quantized=False) for layer in kept)
        again = replace(realized.strategy, layers=first.strategy.layers + floats)
        realized = realize_module(mod, again, shown, cost=cost)
        before, found = found, list(_measured(realized, held))
        stalled = 0 if was_broken or _is_nearer(before, found) else stalled + 1
    _refuse_broken(realized, found, samples)
    wrong = [f"{one.pair.name}: {text}" for one in found if (text := one.sentence(samples))]
    if wrong and not was_broken:
        return Checked(first, (), (f"{wrong[0]}, however many layers stay float",), _rows(at_first))
    stays = tuple(Kept(layer, reason) for layer, reason in kept.items())
    return Checked(realized, stays, tuple(wrong[:1]), _rows(found))


def _rows(found: Sequence[_Noise]) -> tuple[LayerNoise, ...]:
    return tuple(one.row for one in found if one.pair.is_layer)


def _is_nearer(before: Sequence[_Noise], after: Sequence[_Noise]) -> bool:
    """Whether a tensor that lost its signal has more of it now, or is gone."""
    now = {one.pair.name: one.sqnr_db for one in after}
    lost = {one.pair.name: one.sqnr_db for one in before if one.is_lost}
    return any(name not in now or now[name] >= db + NEARER_DB for name, db in lost.items())


def _refuse_broken(realized: Realized, found: Sequence[_Noise], samples: str) -> None:
    """Raise QuantizeError for NaN or infinity in an output, or where it would be quantized."""
    fatal: set[Expr] = set()
    for part in _graphs(realized):
        fatal |= {leaf for leaf in _leaves(part.mod["main"].body)}
        for node in dataflow_order(part.mod["main"].body, "main"):
            if op_name(node) == "qnn.quantize":
                assert isinstance(node, Call)
                fatal.add(node.args[0])
    for one in found:
        if one.broken and one.pair.realized in fatal:
            raise QuantizeError(f"{one.pair.name} must stay finite as it is in float, but {one.sentence(samples)}")


def _blamed(realized: Realized, found: Sequence[_Noise], samples: str) -> dict[str, str]:
    """Layers with a wrong result for correct operands, by name, with the reason.

    That is the layer itself; of a float operator, the layers that it reads from through other float operators.
    """
    wrong = {one.pair.reference: (one, text) for one in found if (text := one.sentence(samples))}
    names = {probe.reference: probe.name for part in _graphs(realized) for probe in part.probes}
    blamed: dict[str, str] = {}
    for part in _graphs(realized):
        tainted: set[Expr] = set()
        for node in dataflow_order(part.reference["main"].body, "main"):
            if any(operand in tainted for operand in _operands(node)):
                tainted.add(node)
            elif node in wrong:
                tainted.add(node)
                one, text = wrong[node]
                if node in names:
                    blamed[names[node]] = text
                else:
                    blamed |= dict.fromkeys(_sources(node, names), f"{one.pair.name}: {text}")
    return blamed


def _sources(node: Expr, names: Mapping[Expr, str]) -> list[str]:
    """The quantized layers that a float operator depends on through floats only."""
    found: list[str] = []
    waiting, seen = list(_operands(node)), set[Expr]()
    while waiting:
        operand = waiting.pop()
        if operand in names:
            found.append(names[operand])
        elif operand not in seen:
            seen.add(operand)
            waiting += _operands(operand)
    return found


def _graphs(realized: Realized) -> list[Realized]:
    """The straight-line fragments of a program."""
    return [fragment.realized for fragment in realized.fragments.values()] or [realized]


def _operands(node: Expr) -> Sequence[Expr]:
    match node:
        case Call(args=args):
            return args
        case Tuple(fields=parts):
            return parts
        case TupleGetItem(tuple_value=value):
            return (value,)
        case _:
            return ()


def _leaves(body: Expr) -> Iterator[Expr]:
    if isinstance(body, Tuple):
        for part in body.fields:
            yield from _leaves(part)
    else:
        yield body


def _split(
    params: Sequence[Var], data: Mapping[str, Array] | None
) -> tuple[Mapping[str, Array] | None, Mapping[str, Array] | None, str]:
    """Data to calibrate with, data to check with, and a description of the latter."""
    if data is None or not all(isinstance(param.type, TensorType) for param in params):
        return data, None, ""
    flat = flat_data(params, data)
    try:
        count = len(check_data(params, flat))
    except RelayHwError:
        return data, None, ""  # what is wrong with the data is said by calibration
    if count < EVERY:
        held = np.unique(np.linspace(0, count - 1, min(count, OF_FEW)).astype(int))
        return data, _taken(params, flat, held, count), f"{len(held)} calibration sample(s)"
    step = max(EVERY, -(-count // MOST))
    held = np.arange(step - 1, count, step)
    rest = np.setdiff1d(np.arange(count), held)
    samples = f"{len(held)} held-back sample(s)"
    return _taken(params, flat, rest, count), _taken(params, flat, held, count), samples


def _first(params: Sequence[Var], data: Mapping[str, Array]) -> tuple[Mapping[str, Array] | None, str]:
    """At most MOST samples of `data`, and their description."""
    flat = flat_data(params, data)
    count = len(check_data(params, flat))
    index = np.arange(min(count, MOST))
    return _taken(params, flat, index, count), f"{len(index)} held-out sample(s)"


def _taken(params: Sequence[Var], data: Mapping[str, Array], index: Array, count: int) -> dict[str, Array]:
    """The inputs of some launches out of `count`."""
    found: dict[str, Array] = {}
    for param in params:
        array = np.asarray(data[param.name_hint])
        found[param.name_hint] = array.reshape(count, -1, *array.shape[1:])[index].reshape(-1, *array.shape[1:])
    return found


def _measured(realized: Realized, held: Mapping[str, Array]) -> Iterator[_Noise]:
    """The noise of every result of a layer or float operator, in order of evaluation."""
    if not realized.fragments:
        yield from _noises(realized, check_data(realized.reference["main"].params, held))
        return
    seen = record(realized.reference, list(realized.fragments), held)
    for name, data in seen.items():
        fragment = realized.fragments[name].realized
        yield from _noises(fragment, check_data(fragment.reference["main"].params, data))


def _noises(realized: Realized, batches: Sequence[Mapping[str, Array]]) -> list[_Noise]:
    main = realized.reference["main"]
    pairs = [
        _Pair(f"layer {one.name}", one.reference, one.integer, one.params, one.name, one.operator)
        for one in realized.probes
    ]
    pairs += [_Pair(_operator_name(one.reference), one.reference, one.realized) for one in realized.operators
              if isinstance(one.reference.type, TensorType)]  # fmt: skip
    if not pairs:
        return []
    order = {node: k for k, node in enumerate(dataflow_order(main.body, "main"))}
    found = [_Noise(pair) for pair in sorted(pairs, key=lambda pair: order[pair.reference])]
    float_side = _showing(realized.reference, [one.pair.reference for one in found])
    own_side = _showing(realized.mod, [one.pair.realized for one in found])
    for batch in batches:
        values = float_side.call_global("main", batch), own_side.call_global("main", batch)
        for one, want, got in zip(found, *values, strict=True):
            one.add(want, got)
    return found


def _showing(mod: IRModule, tensors: Sequence[Expr]) -> Interpreter:
    """An interpreter of a function that returns `tensors`, nodes over the parameters of `main`."""
    return Interpreter(IRModule({"main": Function(mod["main"].params, Tuple(tensors))}, mod.types))


def _operator_name(call: Call) -> str:
    return f"{op_name(call)} {call.span}" if call.span is not None else op_name(call)
