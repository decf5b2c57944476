"""Slopes of a loss for the parameters of a model, as one function. In: decorated functions. Out: a Relay function."""

from __future__ import annotations

from relay_hw.analysis.call_graph import globals_used
from relay_hw.errors import UnsupportedError
from relay_hw.frontend.python.translated import Decorated
from relay_hw.ir.expr import Function, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.transform import (
    DeadCodeElimination,
    InferType,
    PartialEvaluate,
    RemoveUnusedFunctions,
    Sequential,
    gradient,
    gradient_module,
)


def gradient_function(loss: Decorated, model: Decorated, batch: int | None) -> Function:
    """`fn (inputs of loss, parameters) -> gradients of the parameters`; control flow only if the loss has it.

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
        if globals_used(whole):
            # What is called stays, since how often is not known: it is held inside.
            whole = gradient(mod[name], mod)
    return _slopes_only(whole, len(wanted), mod)


def _slopes_only(whole: Function, count: int, library: IRModule) -> Function:
    """The last `count` partial derivatives."""
    result = Var("result")
    slopes = TupleGetItem(result, 1)
    first = len(whole.params) - count
    body = Let(result, whole.body, Tuple([TupleGetItem(slopes, first + at) for at in range(count)]))
    mod = InferType()(IRModule({"main": Function(whole.params, body)}, library.types))
    return Sequential([PartialEvaluate(), DeadCodeElimination()])(mod)["main"]
