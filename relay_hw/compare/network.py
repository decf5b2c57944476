"""The network that a comparison runs: simplified, and without a final softmax.

In: a module as imported, parameters bound. Out: `Network`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import Call, Expr, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType
from relay_hw.ir.visit import copy_with
from relay_hw.support.names import one_of
from relay_hw.text import load_json, save_json
from relay_hw.transform.graph import is_op
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.one_sample import OneSample, one_sample
from relay_hw.transform.pipelines import simplify_pipeline

Array = NDArray[Any]

_NORMALIZING: Final = ("nn.softmax", "nn.log_softmax", "nn.fast_softmax")


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """`mod` is simplified and typed; output number `output`, called `name`, is compared; `is_logits`: a softmax behind
    it was left out. `batch`: how many samples the model takes at once, where `mod` computes one of them."""

    mod: IRModule
    output: int
    name: str
    is_logits: bool
    batch: int = 1

    def to_json(self) -> str:
        """The module as text."""
        return save_json(self.mod)

    def __reduce__(self) -> tuple[Callable[..., Network], tuple[object, ...]]:
        """Travels to other processes as text."""
        return read_network, (self.to_json(), self.output, self.name, self.is_logits, self.batch)


def prepare(mod: IRModule, output: str | None = None) -> Network:
    """Simplify `mod` and choose an output by name (default: the first). Raises InputError for an unknown name."""
    if "main" not in mod.functions:
        raise InputError(f"the module must have a function @main, not only {', '.join(mod.functions) or 'nothing'}")
    typed, batch = InferType()(mod), 1
    split = one_sample(typed)
    if isinstance(split, OneSample) and None not in split.inputs:
        typed, batch = split.mod, split.batch
    simple = simplify_pipeline()(typed)
    main = simple["main"]
    fields = list(main.body.fields) if isinstance(main.body, Tuple) else [main.body]
    count = len(main.body.type.fields) if isinstance(main.body.type, TupleType) else 1
    names = _names(mod, count)
    if output is not None and output not in names:
        raise InputError(one_of("output", names, output))
    number = 0 if output is None else names.index(output)
    bare = [_before_softmax(field) for field in fields]
    is_logits = len(bare) == count and bare[number] is not fields[number]
    if any(new is not old for new, old in zip(bare, fields, strict=True)):
        body: Expr = Tuple(bare) if isinstance(main.body, Tuple) else bare[0]
        new = copy_with(main, body=body, ret_type=None, checked_type=None)
        simple = InferType()(simple.with_functions({"main": new}))
    return Network(simple, number, names[number], is_logits, batch)


def read_network(text: str, output: int, name: str, is_logits: bool, batch: int = 1) -> Network:
    """The network that `Network.to_json` wrote."""
    return Network(InferType()(load_json(text, "network")), output, name, is_logits, batch)


def output_rows(values: Any, output: int, batch: int) -> Array:
    """Output number `output` of one run as [batch, D]."""
    value = np.asarray(values[output] if isinstance(values, (tuple, list)) else values)
    if value.size % batch:
        raise UnsupportedError(f"the compared output must have a row for each of {batch} samples, not {value.shape}")
    return value.reshape(batch, -1)


def _names(mod: IRModule, count: int) -> list[str]:
    default = ["output"] if count == 1 else [f"output_{k}" for k in range(count)]
    given = mod.attrs.get("output_names")
    return [str(name) for name in given] if isinstance(given, (tuple, list)) and len(given) == count else default


def _before_softmax(expr: Expr) -> Expr:
    """The operand of a softmax over one class axis; any other expression unchanged."""
    if not isinstance(expr, Call) or not is_op(expr, *_NORMALIZING):
        return expr
    ty = expr.args[0].type
    return expr.args[0] if isinstance(ty, TensorType) else expr
