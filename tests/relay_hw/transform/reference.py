"""What a program means: its value, and what it prints, in order. In: a module. Out: something to compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay_hw.analysis import infer_type
from relay_hw.backend.python_code import to_python
from relay_hw.interp import ConstructorValue, evaluate
from relay_hw.interp.values import RefValue
from relay_hw.ir.expr import Call, Expr, Op, Trait
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import Type
from relay_hw.transform import Pass
from tests.relay_hw.programs import INPUTS


def plain(value: Any) -> Any:
    """A value as something that compares: arrays as type, shape and bytes; zeros of both signs and all NaNs alike."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, ConstructorValue):
        return (value.name, plain(value.fields))
    if isinstance(value, RefValue):
        return ("ref", plain(value.value))
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array + array.dtype.type(0))
    return (str(array.dtype), array.shape, array.tobytes())


def reference_result(mod: IRModule, entry: str = "main", args: Sequence[Any] | None = None) -> tuple[Any, list[Any]]:
    """The value of `@entry`, and every value that operators with an effect have got, in order."""
    log: list[Any] = []

    def observe(node: Expr, value: Any) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.has(Trait.EFFECT):
            log.append(plain(value))

    given = [INPUTS[param.name_hint] for param in mod[entry].params] if args is None else args
    return plain(evaluate(mod, given, entry, observe)), log


def result_type(mod: IRModule) -> Type:
    return mod["main"].func_type.ret_type


def assert_keeps_semantics(steps: Sequence[Pass], mod: IRModule, what: str) -> IRModule:
    """No step changes the type, the value, or the order of effects, and Python computes the same from the last one."""
    typed = infer_type(mod)
    expected, ty = reference_result(typed), result_type(typed)
    done: list[str] = []
    for step in steps:
        typed = step(typed)
        done.append(repr(step))
        told = f"{what} after {', '.join(done)}"
        assert result_type(typed) == ty, told
        assert reference_result(typed) == expected, told
    python = to_python(typed).run("main", [INPUTS[param.name_hint] for param in typed["main"].params])
    assert plain(python) == expected[0], f"{what} after {', '.join(done)}, as Python"
    return typed
