"""Arithmetic on dimensions: the normal form means what the numbers mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.ir.dims import (
    ANY,
    Dim,
    DimExpr,
    DimVar,
    dim_add,
    dim_floordiv,
    dim_mod,
    dim_mul,
    dim_sub,
    dim_text,
    dim_vars,
    is_at_least,
    substitute_dim,
)

N, M, K = DimVar("n"), DimVar("m"), DimVar("k")
VARS = (N, M, K)

# A dimension together with the Python function of (n, m, k) that it must be.
Pair = tuple[Dim, Any]


def combine(children: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def sums(pair: tuple[Pair, Pair]) -> list[Pair]:
        (a, f), (b, g) = pair
        return [
            (dim_add(a, b), lambda *v: f(*v) + g(*v)),
            (dim_sub(a, b), lambda *v: f(*v) - g(*v)),
            (dim_mul(a, b), lambda *v: f(*v) * g(*v)),
        ]

    def quotients(given: tuple[Pair, int]) -> list[Pair]:
        (a, f), number = given
        return [
            (dim_floordiv(a, number), lambda *v: f(*v) // number),
            (dim_mod(a, number), lambda *v: f(*v) % number),
        ]

    return st.one_of(
        st.tuples(children, children).flatmap(lambda pair: st.sampled_from(sums(pair))),
        st.tuples(children, st.integers(1, 5)).flatmap(lambda given: st.sampled_from(quotients(given))),
    )


LEAVES: st.SearchStrategy[Pair] = st.one_of(
    st.integers(-3, 6).map(lambda number: (number, lambda *v: number)),
    st.sampled_from(range(3)).map(lambda index: (VARS[index], lambda *v: v[index])),
)
PAIRS = st.recursive(LEAVES, combine, max_leaves=6)
SIZES = st.tuples(*[st.integers(0, 7)] * 3)


@given(PAIRS, SIZES)
@settings(max_examples=400)
def test_the_normal_form_evaluates_to_what_the_arithmetic_gives(pair: Pair, sizes: tuple[int, ...]) -> None:
    dim, meaning = pair
    values = dict(zip(VARS, sizes, strict=True))
    assert substitute_dim(dim, values.__getitem__) == meaning(*sizes)


@given(PAIRS, PAIRS, PAIRS)
@settings(max_examples=200)
def test_laws_of_arithmetic_are_equalities_of_values(a: Pair, b: Pair, c: Pair) -> None:
    x, y, z = a[0], b[0], c[0]
    assert dim_add(x, y) == dim_add(y, x)
    assert dim_mul(x, dim_add(y, z)) == dim_add(dim_mul(x, y), dim_mul(x, z))
    assert dim_sub(dim_add(x, y), y) == x
    assert hash(dim_mul(x, y)) == hash(dim_mul(y, x))


@given(PAIRS, st.integers(-2, 3), SIZES)
@settings(max_examples=200)
def test_a_bound_that_is_claimed_holds(pair: Pair, bound: int, sizes: tuple[int, ...]) -> None:
    dim, meaning = pair
    if is_at_least(dim, bound):
        assert meaning(*sizes) >= bound


def test_one_variable_and_a_number_are_themselves() -> None:
    assert dim_add(N, 0) is N
    assert dim_mul(N, 1) is N
    assert dim_sub(dim_add(N, 3), N) == 3
    assert isinstance(dim_add(N, 1), DimExpr)


def test_two_variables_of_one_name_differ() -> None:
    assert dim_sub(N, DimVar("n")) != 0


def test_an_unknown_dimension_absorbs() -> None:
    for operation in (dim_add, dim_sub, dim_mul, dim_floordiv):
        assert operation(N, ANY) is ANY
        assert operation(ANY, 2) is ANY


def test_quotients_take_out_what_divides() -> None:
    assert dim_floordiv(dim_add(dim_mul(4, N), 2), 2) == dim_add(dim_mul(2, N), 1)
    assert dim_mod(dim_mul(6, N), 3) == 0
    assert dim_floordiv(dim_mul(N, M), M) is N
    assert set(dim_vars(dim_floordiv(dim_add(N, M), 3))) == {N, M}
    with pytest.raises(ZeroDivisionError, match="divisor of a dimension must be at least 1"):
        dim_floordiv(N, 0)


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (dim_add(dim_mul(K, N), 1), "k * n + 1"),
        (dim_sub(N, M), "n - m"),
        (dim_sub(3, N), "3 - n"),
        (dim_sub(dim_mul(-2, N), 1), "-2 * n - 1"),
        (dim_mul(N, N, 3), "3 * n * n"),
        (dim_floordiv(dim_add(N, 3), 2), "floordiv(n + 1, 2) + 1"),
    ],
)
def test_text(dim: Dim, text: str) -> None:
    assert dim_text(dim) == text
