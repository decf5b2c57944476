"""The object `relay` of decorated programs, decorator and library: `@relay`, `relay.conv2d`, `relay.grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay_hw import op
from relay_hw.frontend.python import datasets, models
from relay_hw.frontend.python.functions import RelayFunction, RelayModel
from relay_hw.frontend.python.library import LAYERS, Layer
from relay_hw.interp import create_executor
from relay_hw.ir.expr import Expr
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import copy_with


class Intrinsic:
    """An operator: Relay's inside of decorated functions; outside it computes on arrays at once."""

    def __init__(self, name: str, intrinsic: Any) -> None:
        self.__name__ = name
        self.intrinsic = intrinsic

    def __call__(self, *args: Any, **options: Any) -> Any:
        build = self.intrinsic.build if isinstance(self.intrinsic, Layer) else self.intrinsic
        if any(isinstance(arg, Expr) for arg in args):
            return build(*args, **options)
        return create_executor("debug").evaluate(build(*map(_constant, args), **options))

    def __repr__(self) -> str:
        return f"<relay operator {self.__name__}>"


def _constant(value: Any) -> Expr:
    made = op.const(value)
    return copy_with(made, checked_type=TensorType(made.data.shape, str(made.data.dtype)))


class Namespace:
    """Operators whose names begin alike: `relay.nn`, `relay.image`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Intrinsic:
        builders = getattr(op, self.__name__)
        build = getattr(builders, name, None)
        if name.startswith("_") or not callable(build) or not build.__module__.startswith("relay_hw.op"):
            raise AttributeError(f"relay.{self.__name__} has no operator {name!r}")
        return Intrinsic(f"{self.__name__}.{name}", build)

    def __repr__(self) -> str:
        return f"<operators relay.{self.__name__}>"


class Relay:
    """`@relay` decorates a function without hidden parameters; attributes are the library."""

    datasets = datasets
    image, nn, qnn, random, vision = map(Namespace, ("image", "nn", "qnn", "random", "vision"))
    create_model = staticmethod(models.create_model)
    grad = staticmethod(models.grad)
    update_model_params = staticmethod(models.update_model_params)
    export_model = staticmethod(models.export_model)

    def __call__(self, function: Callable[..., Any]) -> RelayFunction:
        """`function` as Relay. Raises UnsupportedError for parameters without annotation."""
        return RelayFunction(function)

    def __getattr__(self, name: str) -> Intrinsic:
        if name in LAYERS:
            return Intrinsic(name, LAYERS[name])
        build = getattr(op, name, None) if name in op.__all__ else getattr(op.nn, name, None)
        if name.startswith("_") or not callable(build):
            raise AttributeError(f"relay has no operator {name!r}")
        return Intrinsic(name, build)


relay = Relay()


def relay_model(function: Callable[..., Any]) -> RelayModel:
    """`function` as Relay, with hidden parameters for its layers; `relay.create_model` makes a model of it."""
    return RelayModel(function)
