"""Models: functions with hidden parameters of their layers, trained by gradient descent.

In: functions decorated with `relay_model`. Out: models; each update changes a model in place, nothing else does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relay_hw.errors import InputError
from relay_hw.frontend.python.functions import Array, ExportedModel, Model, RelayModel
from relay_hw.frontend.python.translate import LEARNING_RATE


def create_model(function: RelayModel, seed: int = 0, sigma: float = 0.05) -> Model:
    """A model of `function`, its parameters drawn from a normal distribution of mean 0 and deviation `sigma`.

    Raises InputError for a function without hidden parameters.
    """
    if not isinstance(function, RelayModel):
        raise InputError(f"create_model must get a function decorated with relay_model, not {function!r}")
    return Model(function, function.initial(seed, sigma))


def grad(model: Model, loss: RelayModel, args: Sequence[Any]) -> tuple[Array, ...]:
    """The gradient of `loss`, called with `args`, for every parameter of `model`. Raises UnsupportedError."""
    return model.gradients(loss, args)


def update_model_params(model: Model, grads: Sequence[Array], learning_rate: float = LEARNING_RATE) -> None:
    """One gradient-descent step: the only function that changes a model."""
    if len(grads) != len(model.params):
        raise InputError(f"gradients must be those of the {len(model.params)} parameters, not {len(grads)}")
    model.params = [p - p.dtype.type(learning_rate) * g for p, g in zip(model.params, grads, strict=True)]


def export_model(model: Model) -> ExportedModel:
    """The model as it is now, as a callable."""
    return model.export()


for _special in (create_model, grad, update_model_params, export_model):
    _special.relay_special = _special.__name__  # type: ignore[attr-defined]
