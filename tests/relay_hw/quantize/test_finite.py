"""The rule for NaN and infinity: where it refuses, what it says, what it lets pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import InputError, QuantizeError
from relay_hw.interp.values import ConstructorValue
from relay_hw.ir.expr import Constant, Constructor, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import GlobalTypeVar, TensorType
from relay_hw.quantize.finite import check_constants, check_samples, check_value, nan_outputs
from relay_hw.span import Span


@pytest.mark.parametrize(("bad", "shown"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_first_bad_number_is_named(bad: float, shown: str, dtype: str) -> None:
    x = np.zeros((4, 3, 2), dtype)
    x[2, 1, 0] = x[3, 0, 0] = bad
    with pytest.raises(InputError) as refused:
        check_samples("input a", x)
    assert str(refused.value) == f"input a must hold finite numbers, not {shown} (sample 2, index (1, 0))"
    with pytest.raises(QuantizeError, match=r"\(sample 0, index 1\)"):
        check_samples("input a", x[2, :, :1].T, QuantizeError)
    with pytest.raises(InputError, match=r"\(sample 7, index \(2, 1, 0\)\)"):
        check_value("what q reads", x, 7)


def test_values_made_of_tensors_are_looked_into() -> None:
    nil, cons = (Constructor(name, (), GlobalTypeVar("List")) for name in ("Nil", "Cons"))
    value: Any = ConstructorValue(nil)
    for number in (np.ones(2), np.array([1, np.inf]), np.zeros(2)):
        value = ConstructorValue(cons, (number, (np.int32(3), value)))
    with pytest.raises(InputError, match=r"input a must hold finite numbers, not infinity \(sample 5, index 1\)"):
        check_value("input a", (np.float32(1), value), 5)
    check_value("input a", (np.float32(1), value.fields[0]), 5)


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool", "float32"])
def test_finite_numbers_pass(dtype: str) -> None:
    check_samples("input a", np.ones((2, 3), dtype))
    check_samples("input a", np.full((2, 3), np.finfo(np.float32).max))
    check_samples("input a", np.ones((0, 3), dtype))


def module(body: Expr, x: Var) -> IRModule:
    return infer_type(IRModule({"main": Function([x], body)}))


def test_a_constant_with_nan_is_refused_by_name_and_infinity_passes() -> None:
    x = Var("x", TensorType((1, 4), "float32"))
    bad = np.ones(4, np.float32)
    bad[2] = np.nan
    for named, sentence in (
        (Constant(bad, span=Span("gain")), "constant gain must hold numbers, not NaN"),
        (Constant(bad), "a constant must hold numbers, not NaN"),
    ):
        with pytest.raises(InputError) as refused:
            check_constants(module(op.multiply(x, named), x))
        assert str(refused.value) == f"{sentence} (index 2)"
    check_constants(module(op.add(x, op.const(np.array([0, -np.inf, 0, 0], np.float32))), x))
    check_constants(module(op.add(x, op.cast(op.const(np.ones(4, np.int32)), "float32")), x))


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        (np.array([[1.0, np.nan], [np.nan, 2.0]]), ["output y: 2 of 4 values are NaN"]),
        (np.array([1.0, np.inf]), []),
        (np.arange(4), []),
        ([np.array([np.nan]), (np.array([1.0]), np.arange(2))], ["output y: 1 of 4 values are NaN"]),
        ([object()], []),
    ],
)
def test_nan_in_outputs_is_counted(value: Any, lines: list[str]) -> None:
    assert nan_outputs({"y": value}) == lines
