"""Models: functions with the hidden parameters that their calls need, trained by gradient descent.

In: functions decorated with `relay_model`. Out: models; each update changes a model in place, nothing else does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend.python.functions import RelayFunction, RelayModel, Runner
from relay_hw.frontend.python.translate import LEARNING_RATE
from relay_hw.ir.expr import Constant, Function, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import copy_with, substitute
from relay_hw.transform import (
    DeadCodeElimination,
    InferType,
    PartialEvaluate,
    RemoveUnusedFunctions,
    Sequential,
    gradient,
    gradient_module,
)

Array = NDArray[Any]


class Model:
    """A `relay_model` function and values for its hidden parameters. Call it like the function."""

    def __init__(self, function: RelayModel, params: Sequence[Array]) -> None:
        self.function = function
        self.params = list(params)
        self._runners: dict[int | None, Runner] = {}
        self._gradients: dict[tuple[RelayFunction, int | None], Runner] = {}

    @property
    def hidden(self) -> tuple[tuple[str, TensorType], ...]:
        """Names and types of the parameters."""
        return self.function.translated().hidden

    def __call__(self, *args: Any) -> Any:
        """The function's value; samples may come in batches, with one more axis in front."""
        batch = self._batch(self.function, args)
        if batch not in self._runners:
            name = self.function.name if batch is None else f"{self.function.name}_{batch}"
            self._runners[batch] = Runner(self.function.module(batch), name)
        return self._runners[batch](*args, *self.params)

    def gradients(self, loss: RelayModel, args: Sequence[Any]) -> tuple[Array, ...]:
        """The slope of `loss` at `args` for every parameter."""
        batch = self._batch(loss, args)
        key = (loss, batch)
        if key not in self._gradients:
            function = gradient_function(loss, self.function, batch)
            mod = InferType()(IRModule.from_expr(function))
            self._gradients[key] = Runner(mod, "main")
        return self._gradients[key](*args, *self.params)

    def _batch(self, function: RelayFunction, args: Sequence[Any]) -> int | None:
        declared = function.translated().function.params
        if len(args) != len(declared) - len(function.translated().hidden):
            return None
        sizes = {
            np.shape(arg)[0]
            for arg, param in zip(args, declared, strict=False)
            if isinstance(param.type_annotation, TensorType) and np.ndim(arg) == param.type_annotation.rank + 1
        }
        return sizes.pop() if len(sizes) == 1 else None

    def export(self) -> ExportedModel:
        """A callable with the parameters of now."""
        return ExportedModel(self.function, [np.array(param) for param in self.params])

    def __repr__(self) -> str:
        return f"<model of {self.function.name}, {sum(param.size for param in self.params)} parameters>"


class ExportedModel(Model):
    """A trained model: it can be called, and written as a Relay module."""

    def module(self, batch: int | None = None) -> IRModule:
        """A typed module whose `main` is the model with its parameters as constants."""
        name = self.function.name if batch is None else f"{self.function.name}_{batch}"
        whole = self.function.module(batch)[name]
        count = len(whole.params) - len(self.params)
        body = whole.body
        constants = {
            param: Constant(value, checked_type=param.type)
            for param, value in zip(whole.params[count:], self.params, strict=True)
        }
        main = copy_with(whole, params=whole.params[:count], body=substitute(body, dict(constants)), checked_type=None)
        mod = self.function.module(batch).with_functions({"main": main})
        return RemoveUnusedFunctions(["main"])(InferType()(mod))

    def __repr__(self) -> str:
        return f"<exported model of {self.function.name}>"


def create_model(function: RelayModel, seed: int = 0, sigma: float = 0.05) -> Model:
    """A model of `function`, its parameters drawn from a normal distribution of mean 0 and deviation `sigma`.

    Raises InputError for a function without hidden parameters.
    """
    if not isinstance(function, RelayModel):
        raise InputError(f"create_model must get a function decorated with relay_model, not {function!r}")
    rng = np.random.Generator(np.random.PCG64(seed))
    hidden = function.translated().hidden
    return Model(function, [rng.normal(0, sigma, ty.static_shape).astype(ty.dtype) for _, ty in hidden])


def grad(model: Model, loss: RelayModel, args: Sequence[Any]) -> tuple[Array, ...]:
    """The slope of `loss`, called with `args`, for every parameter of `model`. Raises UnsupportedError."""
    return model.gradients(loss, args)


def update_model_params(model: Model, grads: Sequence[Array], learning_rate: float = LEARNING_RATE) -> None:
    """One step against the gradients: the only thing that changes a model."""
    if len(grads) != len(model.params):
        raise InputError(f"gradients must be those of the {len(model.params)} parameters, not {len(grads)}")
    model.params = [p - p.dtype.type(learning_rate) * g for p, g in zip(model.params, grads, strict=True)]


def export_model(model: Model) -> ExportedModel:
    """The model as it is now, as a callable."""
    return model.export()


for _special in (create_model, grad, update_model_params, export_model):
    _special.relay_special = _special.__name__  # type: ignore[attr-defined]


def gradient_function(loss: RelayModel, model: RelayModel, batch: int | None) -> Function:
    """`fn (inputs of loss, parameters) -> slopes of the parameters`, as straight as the loss is.

    Raises UnsupportedError unless the hidden parameters of `loss` are those of one call of `model`.
    """
    translated = loss.translated(batch)
    wanted = [ty for _, ty in model.translated(batch).hidden]
    if [ty for _, ty in translated.hidden] != wanted or not wanted:
        raise UnsupportedError(
            f"loss {loss.name} must call the model {model.name} once, and nothing else with parameters"
        )
    name = loss.name if batch is None else f"{loss.name}_{batch}"
    straight = Sequential([PartialEvaluate(), DeadCodeElimination(), RemoveUnusedFunctions([name])])
    mod = straight(loss.module(batch))
    try:
        whole = gradient(mod[name], mod, mode="first_order")
    except UnsupportedError:
        whole = PartialEvaluate()(gradient_module(mod, name))[name]
    return _slopes_only(whole, len(wanted))


def _slopes_only(whole: Function, count: int) -> Function:
    """The last `count` partial derivatives."""
    result = Var("result")
    slopes = TupleGetItem(result, 1)
    first = len(whole.params) - count
    body = Let(result, whole.body, Tuple([TupleGetItem(slopes, first + at) for at in range(count)]))
    mod = InferType()(IRModule.from_expr(Function(whole.params, body)))
    return Sequential([PartialEvaluate(), DeadCodeElimination()])(mod)["main"]


__all__ = ["ExportedModel", "Model", "create_model", "export_model", "grad", "update_model_params"]
