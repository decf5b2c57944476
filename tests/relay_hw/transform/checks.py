"""What tests of passes ask again and again: same result, operators of a function, small modules."""

from __future__ import annotations

from collections import Counter

import numpy as np

from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Op, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.transform import Pass
from tests.relay_hw.random_cnn import random_cnn, random_input


def module(body: Expr, *params: Var) -> IRModule:
    return IRModule.from_expr(Function(params, body))


def var(name: str, *shape: int, dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


def operators(mod: IRModule, function: str = "main") -> list[str]:
    """Operator names in order of evaluation."""
    return [node.op.name for node in post_order(mod[function]) if isinstance(node, Call) and isinstance(node.op, Op)]


def count(mod: IRModule, function: str = "main") -> Counter[str]:
    return Counter(operators(mod, function))


def assert_close(wanted, found, what: str) -> None:
    """Floats within rounding of a few operations, integers exactly."""
    assert wanted.shape == found.shape and wanted.dtype == found.dtype, what
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6 * scale, err_msg=what)


def assert_keeps_result(step: Pass, seed: int) -> None:
    """`step` must not change what random network `seed` computes."""
    mod = random_cnn(seed)
    inputs = random_input(mod, seed)
    what = f"{step!r} on random_cnn({seed})"
    new = step(mod)
    assert all(function.checked_type is not None for function in new.functions.values()), what
    assert_close(evaluate(mod, inputs), evaluate(new, inputs), what)


def assert_same_module(step: Pass, mod: IRModule) -> None:
    """A module in which there is nothing to do comes back as the same object."""
    typed = step(mod)
    assert step(typed) is typed
