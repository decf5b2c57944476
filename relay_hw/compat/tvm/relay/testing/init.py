"""Random parameters for networks whose weights have no values yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay_hw.compat.tvm.module import IRModule
from relay_hw.compat.tvm.nd import NDArray
from relay_hw.ir.expr import Function
from relay_hw.ir.types import TensorType
from relay_hw.transform import InferType

Initializer = Callable[[str, np.ndarray], None]


class Xavier:
    """Fills weights so that the variance of activations stays: uniform or Gaussian, scaled by the fan."""

    def __init__(
        self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3.0, seed: int = 0
    ) -> None:
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = magnitude
        self._random = np.random.default_rng(seed)

    def __call__(self, name: str, array: np.ndarray) -> None:
        """Fill `array` for the parameter `name`: weights at random, statistics and factors neutrally."""
        if name.endswith(("gamma", "moving_var", "running_var")):
            array[...] = 1.0
        elif name.endswith("weight"):
            self._fill(array)
        else:
            array[...] = 0.0

    def _fill(self, array: np.ndarray) -> None:
        window = float(np.prod(array.shape[2:]))
        fan_out = array.shape[0] * window
        fan_in = (array.shape[1] if array.ndim > 1 else 1) * window
        fan = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = float(np.sqrt(self.magnitude / fan))
        if self.rnd_type == "uniform":
            array[...] = self._random.uniform(-scale, scale, array.shape)
        else:
            array[...] = self._random.normal(0.0, scale, array.shape)


def create_workload(
    net: Function, initializer: Initializer | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module of `net`, and values for all its parameters but `data`."""
    mod = InferType()(IRModule.from_expr(net))
    fill = initializer or Xavier(seed=seed)
    params: dict[str, NDArray] = {}
    for param in mod["main"].params:
        if param.name_hint == "data":
            continue
        ty = param.type
        assert isinstance(ty, TensorType)
        value = np.zeros(ty.static_shape, ty.dtype)
        fill(param.name_hint, value)
        params[param.name_hint] = NDArray(value)
    assert isinstance(mod, IRModule)
    return mod, params
