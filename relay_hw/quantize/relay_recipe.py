"""Relay's own quantizer under its own names: `with qconfig(...): quantize(mod, params, dataset)`.

In: a float module, parameters, a dataset. Out: the module in integers by Relay's published recipe, or simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Constant, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with, substitute
from relay_hw.quantize.calibration import calibrate, given_data
from relay_hw.quantize.choices import Calibration, LayerPolicy
from relay_hw.quantize.layers import Layers, layer_names, plan_layers
from relay_hw.quantize.main import realize_module
from relay_hw.quantize.methods.simulate import simulate, simulated_integers
from relay_hw.quantize.number import layer_weights, spread
from relay_hw.quantize.plan import make_plan
from relay_hw.quantize.prequantized import ROUNDING
from relay_hw.quantize.realizer import float_weights, group_params
from relay_hw.quantize.steps import LinearStep
from relay_hw.quantize.strategy import LayerChoice, Strategy
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.support.names import one_of
from relay_hw.transform.graph import constant, is_op, op_name
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.pipelines import simplify_pipeline

Array = NDArray[Any]
Dataset = Iterable[Mapping[str, Any]]

_MODES: Final = {
    "global_scale": Calibration.GLOBAL,
    "kl_divergence": Calibration.KL,
    "percentile": Calibration.PERCENTILE,
}
_CHOICES: Final[Mapping[str, Sequence[object]]] = {
    "calibrate_mode": tuple(_MODES),
    "weight_scale": ("power2", "max"),
    "rounding": ("UPWARD", "TONEAREST"),
    "dtype_input": ("int8",),
    "dtype_weight": ("int8",),
    "dtype_activation": ("int32",),
    "partition_conversions": ("disabled", "enabled"),
}


@dataclass(slots=True)
class QConfig:
    """Relay's settings with Relay's defaults; `with` makes them those of `quantize` inside. Raises QuantizeError.

    Sums are always 32 bits wide, and `calibrate_chunk_by` changes nothing: calibration needs no memory for samples.
    Compilation partitions conversions in any case. The last layer gives out 8 bits like the others, the steps of
    `global_scale` included, where Relay makes floats of its 32-bit sums: no layer of the accelerator gives those out.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Sequence[int] | None = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: Sequence[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"
    _tokens: list[Token[QConfig]] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for key, words in _CHOICES.items():
            if getattr(self, key) not in words:
                raise QuantizeError(one_of(f"{key} of qconfig", map(str, words), getattr(self, key)))

    def __enter__(self) -> QConfig:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    def strategy(self) -> Strategy:
        """These settings as a strategy, exceptions for single layers left out. Raises QuantizeError."""
        return replace(
            find_strategy("tvm"),
            name="qconfig",
            weight_bits=self.nbit_weight,
            activation_bits=self.nbit_input,
            calibration=_MODES[self.calibrate_mode],
            global_scale=float(self.global_scale),
            percentile=99.999,
            # A global scale stays as given: only scales of weights are rounded.
            power_of_two=False,
            power_of_two_weights=self.weight_scale == "power2",
            rounding=ROUNDING[self.rounding] if self.round_for_shift else "floor",
            first_layer=LayerPolicy.SAME,
            dense_layers=LayerPolicy.FLOAT if self.skip_dense_layer else LayerPolicy.SAME,
        )


_CURRENT: ContextVar[QConfig] = ContextVar("qconfig")


def qconfig(**settings: Any) -> QConfig:
    """Settings for a `with` statement, under Relay's names. Raises QuantizeError for an unknown name."""
    known = [name for name in QConfig.__slots__ if not name.startswith("_")]
    for name in settings:
        if name not in known:
            raise QuantizeError(one_of("setting of qconfig", known, name))
    return QConfig(**settings)


def current_qconfig() -> QConfig:
    """The settings of the innermost `with qconfig(...)`, or Relay's defaults."""
    return _CURRENT.get(None) or QConfig()


def current_strategy(mod: IRModule) -> Strategy | None:
    """The settings of the innermost `with qconfig(...)` for the layers of a simplified module; None outside of one."""
    config = _CURRENT.get(None)
    return None if config is None else _with_skips(mod, config)


def in_qconfig() -> bool:
    """Whether a `with qconfig(...)` is open."""
    return _CURRENT.get(None) is not None


def quantize(
    mod: IRModule, params: Mapping[str, Any] | None = None, dataset: Dataset | Mapping[str, Array] | None = None
) -> IRModule:
    """`mod` by the current settings. `params` become constants; `dataset`: dictionaries of inputs, as Relay takes them,
    or one array for each input with samples on the first axis.

    By default the first convolution and all dense layers stay float, every tensor has the range of `global_scale`, and
    scales are powers of two. Raises QuantizeError for a dataset that is missing or does not fit.
    """
    config = current_qconfig()
    reference = simplify_pipeline()(InferType()(_bind(mod, params or {})))
    strategy = _with_skips(reference, config)
    data = None if dataset is None else arrays(dataset)
    if config.do_simulation:
        return _simulated(reference, strategy, data)
    return realize_module(reference, strategy, data).mod


def arrays(dataset: Dataset | Mapping[str, Array]) -> Mapping[str, Array]:
    """The samples of a dataset as one array for each input. Raises QuantizeError if batches differ."""
    return cast(Mapping[str, Array], dataset) if isinstance(dataset, Mapping) else stack(dataset)


def stack(dataset: Dataset) -> dict[str, Array]:
    """A dataset as one array for each input, samples on the first axis. Raises QuantizeError if batches differ."""
    batches = [{name: np.asarray(_plain(value)) for name, value in batch.items()} for batch in dataset]
    if not batches:
        raise QuantizeError("dataset must hold at least one batch, not none")
    if any(batch.keys() != batches[0].keys() for batch in batches):
        raise QuantizeError("every batch of a dataset must hold the same inputs")
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def _plain(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


def _bind(mod: IRModule, params: Mapping[str, Any]) -> IRModule:
    main = mod["main"]
    values = {v: Constant(np.asarray(_plain(params[v.name_hint]))) for v in main.params if v.name_hint in params}
    if not values:
        return mod
    rest = [var for var in main.params if var not in values]
    return mod.with_functions({"main": Function(rest, substitute(main.body, values), attrs=main.attrs, span=main.span)})


def _with_skips(mod: IRModule, config: QConfig) -> Strategy:
    """The strategy of `config`, with exceptions for the layers that it skips."""
    plan = make_plan(mod["main"].body)
    names = layer_names(plan)
    linear = [step for step in plan.steps if isinstance(step, LinearStep)]
    convolutions = [step for step in linear if not is_op(step.linear.anchor, "nn.dense")]
    skipped = {names[convolutions[i]] for i in config.skip_conv_layers or () if i < len(convolutions)}
    if config.debug_enabled_ops is not None:
        skipped |= {names[step] for step in linear if op_name(step.linear.anchor) not in config.debug_enabled_ops}
    return replace(config.strategy(), layers=tuple(LayerChoice(name, quantized=False) for name in sorted(skipped)))


def _simulated(reference: IRModule, strategy: Strategy, data: Mapping[str, Array] | None) -> IRModule:
    """The float network with simulated quantization in it, as Relay's annotation leaves it."""
    main = reference["main"]
    samples = given_data(strategy, data)
    layers = plan_layers(main.body, strategy)
    ranges = calibrate(reference, {t: layers.of_tensor(t) for t in layers.plan.integers}, samples)
    params = group_params(layers, ranges)
    weights: dict[Expr, dict[int, Expr]] = {}
    for step in layers.linear:
        anchor = step.linear.anchor
        weights[anchor] = {1: constant(_rounded(step, layers, params[step.inputs[0]]), anchor.args[1].span)}
    body, _ = simulate(main.body, layers, simulated_integers(params), weights)
    return InferType()(reference.with_functions({"main": copy_with(main, body=body, checked_type=None)}))


def _rounded(step: LinearStep, layers: Layers, given: Any) -> Array:
    weight, bias = float_weights(step)
    layer = layer_weights(weight, bias, given, layers.own[step].weights, layers.names[step])
    held = layer.weight * spread(layer.scales, 0, weight.ndim)
    return np.ascontiguousarray(np.moveaxis(held, 0, step.linear.weight_axis)).astype(weight.dtype)
