"""Masks as exporters write them become lengths; masks that mean something else are refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.prefix_masks import check_prefixes, could_be_lengths, prefix_masks
from tests.relay_hw.transform.checks import operators, var

COLUMNS = 7
SCORES = var("scores", 1, 2, 5, COLUMNS)
LEAST = op.const(np.float32(np.finfo(np.float32).min))
ONE = op.const(np.float32(1))


def _wide(mask: Expr) -> Expr:
    return op.reshape(mask, (1, 1, 1, COLUMNS))


def _less_one(mask: Expr) -> Expr:
    """(1 - mask) * least, as BERT's exporter writes it."""
    return op.add(SCORES, op.multiply(op.subtract(ONE, op.cast(_wide(mask), "float32")), LEAST))


def _float(mask: Expr) -> Expr:
    return op.add(op.multiply(op.subtract(_wide(mask), ONE), op.const(np.float32(1e4))), SCORES)


def _above_zero(mask: Expr) -> Expr:
    return op.where(op.greater(_wide(mask), op.const(np.int32(0))), SCORES, LEAST)


def _infinity(mask: Expr) -> Expr:
    return op.add(SCORES, op.where(_wide(mask), op.const(np.float32(0)), op.const(np.float32(-np.inf))))


FORMS: dict[str, tuple[str, Callable[[Expr], Expr]]] = {
    "one less the mask": ("int64", _less_one),
    "in front of the scores": ("int64", lambda mask: op.add(_less_one(mask).args[1], SCORES)),
    "a mask of floats": ("float32", _float),
    "chosen": ("bool", lambda mask: op.where(_wide(mask), SCORES, LEAST)),
    "where it is above zero": ("int32", _above_zero),
    "infinity": ("bool", _infinity),
}


def _module(dtype: str, form: Callable[[Expr], Expr], last: Callable[[Expr], Expr] = op.nn.softmax) -> IRModule:
    mask = var("mask", 1, COLUMNS, dtype=dtype)
    return InferType()(IRModule.from_expr(Function([SCORES, mask], last(form(mask)))))


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    dtype, form = FORMS[name]
    mod = _module(dtype, form)
    new = prefix_masks(mod, ["mask"])
    assert {"less", "sum"} <= set(operators(new)) and not {"less", "sum"} & set(operators(mod))
    scores = np.random.default_rng(1).normal(0, 3, (1, 2, 5, COLUMNS)).astype(np.float32)
    for length in range(1, COLUMNS + 1):
        mask = (np.arange(COLUMNS) < length).astype(dtype)[None]
        np.testing.assert_allclose(evaluate(new, [scores, mask]), evaluate(mod, [scores, mask]), atol=1e-6)


def test_a_mask_that_many_layers_share() -> None:
    mask = var("mask", 1, COLUMNS, dtype="int64")
    beyond = _less_one(mask).args[1]
    both = op.add(op.nn.softmax(op.add(SCORES, beyond)), op.nn.softmax(op.add(op.multiply(SCORES, ONE), beyond)))
    mod = InferType()(IRModule.from_expr(Function([SCORES, mask], both)))
    assert operators(prefix_masks(mod, ["mask"])).count("where") == 2


def test_inputs_that_could_be_lengths_are_named() -> None:
    mod = _module(*FORMS["chosen"])
    assert could_be_lengths(mod) == (
        "softmaxes are masked on the host by mask: where that is always ones and then zeros, --prefix-mask mask leaves "
        "it to the accelerator"
    )
    assert could_be_lengths(prefix_masks(mod, ["mask"]), ["mask"]) == ""
    assert could_be_lengths(_module("int64", _less_one, op.nn.relu)) == ""


def test_no_names() -> None:
    mod = _module(*FORMS["chosen"])
    assert prefix_masks(mod, []) is mod


def _in_between(mask: Expr) -> Expr:
    """Adds the least number times the mask times one less the mask: nothing, for ones and zeros."""
    return op.add(SCORES, op.multiply(op.subtract(ONE, _wide(mask)), op.multiply(LEAST, _wide(mask))))


def _inverted(mask: Expr) -> Expr:
    return op.where(op.logical_not(_wide(mask)), SCORES, LEAST)


REFUSED: dict[str, tuple[str, Callable[[Expr], Expr], Callable[[Expr], Expr]]] = {
    "hides what it should show": ("bool", _inverted, op.nn.softmax),
    "hides too little": ("float32", lambda mask: op.add(SCORES, op.subtract(_wide(mask), ONE)), op.nn.softmax),
    "hides nothing": ("float32", _in_between, op.nn.softmax),
    "no softmax": ("int64", _less_one, op.nn.relu),
    "another axis": ("int64", _less_one, lambda x: op.nn.softmax(x, axis=2)),
    "multiplied": ("float32", lambda mask: op.multiply(SCORES, _wide(mask)), op.nn.softmax),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(InputError, match="mask mask must hide columns of a softmax behind its last one, and nothing"):
        prefix_masks(_module(*REFUSED[name]), ["mask"])


def test_a_name_of_no_input() -> None:
    with pytest.raises(InputError, match="mask words must be one of the inputs scores, mask"):
        prefix_masks(_module(*FORMS["chosen"]), ["words"])


@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1, max_size=3))
def test_which_masks_are_prefixes(rows: list[list[int]]) -> None:
    mask = np.array(rows, np.int64)
    good = all(re.fullmatch("1+0*", "".join(map(str, row))) for row in rows)
    if good:
        check_prefixes("mask", mask)
        return
    with pytest.raises(
        InputError, match="input mask must be one or more ones and then zeros, as the model was compiled"
    ):
        check_prefixes("mask", mask)
