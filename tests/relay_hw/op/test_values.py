"""Operators whose sizes, axes or places are values: against numpy on random data, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.interp import evaluate
from relay_hw.ir.types import ANY, TensorType
from relay_hw.text import load_json, save_json

RNG = np.random.default_rng(0)
INTS = st.integers(-7, 7)


def module(build: Callable[..., Any], *values: Any) -> relay.IRModule:
    """A typed module whose parameters have the types of `values`."""
    arrays = [np.asarray(value) for value in values]
    params = [relay.var(f"x{n}", TensorType(array.shape, str(array.dtype))) for n, array in enumerate(arrays)]
    return infer_type(relay.IRModule({"main": relay.Function(params, build(*params))}))


def run(build: Callable[..., Any], *values: Any) -> Any:
    """The value of `build`, also after a way through text and JSON, and of a type that it fits."""
    mod = module(build, *values)
    arrays = [np.asarray(value) for value in values]
    found = evaluate(mod, arrays)
    for back in (relay.fromtext(mod.astext()), load_json(save_json(mod), "module")):
        again = evaluate(back, arrays)
        pair = (value if isinstance(value, tuple) else (value,) for value in (found, again))
        assert all(one.tobytes() == two.tobytes() for one, two in zip(*pair, strict=True))
    ty = mod["main"].body.type
    if isinstance(ty, TensorType):
        assert found.dtype == ty.dtype and len(found.shape) == ty.rank
        assert all(dim is ANY or dim == size for dim, size in zip(ty.shape, found.shape, strict=True))
    return found


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@given(st.tuples(INTS, INTS), st.tuples(INTS, INTS), st.tuples(INTS.filter(bool), INTS.filter(bool)))
@settings(max_examples=60)
def test_slices_are_those_of_python(begin: Any, end: Any, step: Any) -> None:
    x = np.arange(60).reshape(4, 5, 3)
    wanted = x[tuple(slice(*part) for part in zip(begin, end, step, strict=True))]
    parts = [i64(*part) for part in (begin, end, step)]
    mod = module(op.dynamic.strided_slice, x, *parts)
    assert np.array_equal(evaluate(mod, [x, *parts]), wanted)


@pytest.mark.parametrize(
    ("build", "values", "wanted"),
    [
        (op.dynamic.reshape, (np.zeros((2, 6)), i64(3, -1)), np.zeros((3, 4))),
        (op.dynamic.reshape, (np.zeros((2, 6)), i64(0, 2, 3)), np.zeros((2, 2, 3))),
        (op.dynamic.squeeze, (np.zeros((2, 1, 3, 1)), i64(1, -1)), np.zeros((2, 3))),
        (op.dynamic.expand_dims, (np.zeros((2, 3)), np.int64(-1)), np.zeros((2, 3, 1))),
        (op.dynamic.broadcast_to, (np.ones((2, 1)), i64(4, 2, 3)), np.ones((4, 2, 3))),
        (op.dynamic.full, (np.float32(2), i64(2, 0)), np.full((2, 0), 2, np.float32)),
        (op.dynamic.tile, (np.arange(2), i64(2, 3)), np.tile(np.arange(2), (2, 3))),
        (op.dynamic.pad, (np.arange(4), np.array([[-1, 2]]), np.int64(7)), np.array([1, 2, 3, 7, 7])),
        (op.arange, (np.int64(5), np.int64(0), np.int64(-2)), np.array([5, 3, 1])),
        (op.arange, (np.int64(5), np.int64(9), np.int64(-2)), np.zeros(0, np.int64)),
        (op.arange, (np.float32(0), np.float32(1), np.float32(0.25)), np.arange(0, 1, 0.25, np.float32)),
        (lambda x, k: op.dynamic.topk(x, k, 0, "indices"), (np.array([3, 9, 9, 1]), i64(3)),
         np.array([1, 2, 0], np.int32)),
        (lambda i, on, off, d: op.dynamic.one_hot(i, on, off, d, 0, "int8"),
         (np.array([1, 5]), np.int8(2), np.int8(-1), np.int64(3)), np.array([[-1, -1], [2, -1], [-1, -1]], np.int8)),
        (lambda x, k: op.trilu(x, k, False), (np.ones((2, 3)), np.int64(-1)), np.tril(np.ones((2, 3)), -1)),
        (op.argwhere, (np.array([[0, 2], [3, 0]]),), np.array([[0, 1], [1, 0]], np.int32)),
        (lambda x: op.cumprod(x, 1, None, True), (np.array([[2, 3, 4]]),), np.array([[1, 2, 6]])),
    ],
)  # fmt: skip
def test_values(build: Callable[..., Any], values: tuple[Any, ...], wanted: np.ndarray) -> None:
    found = run(build, *values)
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], type[Exception], str]] = [
    (op.dynamic.reshape, (np.zeros(6), np.zeros(2)), TypeCheckError,
     r"the newshape of dyn\.reshape must be integers along one axis of known size"),
    (op.dynamic.reshape, (np.zeros(6), i64(4, 2)), EvalError, "reshape must keep the 6 elements"),
    (op.dynamic.squeeze, (np.zeros((2, 3)), i64(0)), EvalError, r"the axes of dyn\.squeeze must have size 1"),
    (op.dynamic.squeeze, (np.zeros(2), i64(0, 1)), TypeCheckError, r"of dyn\.squeeze must be at most 1, not 2"),
    (op.dynamic.expand_dims, (np.zeros(2), np.int64(3)), EvalError, r"must be in \[-2, 1\], not 3"),
    (op.dynamic.broadcast_to, (np.zeros(2), i64(3)), EvalError, r"one to which \(2,\) broadcasts, not \(3,\)"),
    (op.dynamic.full, (np.float32(1), i64(-1)), EvalError, r"sizes of dyn\.full must be at least 0, not \(-1,\)"),
    (op.dynamic.strided_slice, (np.zeros(4), i64(0), i64(2), i64(0)), EvalError, "must not be 0"),
    (op.dynamic.strided_slice, (np.zeros(4), i64(0, 0), i64(2), i64(1)), TypeCheckError, "at most 1 axes, not 2, 1, 1"),
    (op.dynamic.topk, (np.zeros(4), i64(5)), EvalError, "at most the 4 elements there are, not 5"),
    (op.dynamic.pad, (np.zeros((2, 2)), np.zeros((1, 2), np.int64), np.float64(0)), TypeCheckError, "must be 2 pairs"),
    (op.arange, (np.int64(0), np.int64(1), np.int64(0)), EvalError, "the step of arange must not be 0"),
    (op.contraction.cumulative, (np.zeros(2), np.int64(1)), EvalError, r"must be in \[-1, 1\), not 1"),
    (lambda x, a: op.contraction.reduce(x, a, "sum"), (np.zeros(2), i64(0, -1)), EvalError, "must differ and be in"),
    (lambda x, a: op.contraction.reduce(x, a, "median"), (np.zeros(2), i64(0)), TypeCheckError, "must be one of sum"),
    (lambda x: op.einsum([x], "ij->i"), (np.zeros(2),), TypeCheckError, "a term of einsum must name 1 axes, not 'ij'"),
    (lambda x, y: op.einsum([x, y], "i,i->i"), (np.zeros(2), np.zeros(3)), TypeCheckError, "must have one size"),
    (lambda x: op.einsum([x], "i->ij"), (np.zeros(2),), TypeCheckError, "must name axes of its terms once each"),
    (op.contraction.det, (np.zeros((2, 3)),), TypeCheckError, "must be square matrices, not"),
    (op.reverse_sequence, (np.zeros((2, 3)), i64(1, 2, 3)), TypeCheckError, "one length for each of axis 0"),
    (op.signal.dft_along, (np.zeros((2, 3, 1)), np.int64(-1)), EvalError, "must be one of 3 but the last, not -1"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "values", "kind", "sentence"), REFUSED)
def test_refused(build: Callable[..., Any], values: tuple[Any, ...], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        evaluate(module(build, *values), [np.asarray(value) for value in values])


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("kind", ["sum", "prod", "mean", "max", "min", "logsumexp"])
def test_reductions_over_axes_that_are_values(kind: str, keep: bool) -> None:
    x = RNG.normal(size=(2, 3, 4))
    found = run(lambda x, a: op.contraction.reduce(x, a, kind, keep), x, i64(-1, 0))
    plain = np.log(np.exp(x).sum((0, 2), keepdims=keep)) if kind == "logsumexp" else None
    wanted = getattr(np, kind)(x, axis=(0, 2), keepdims=keep) if plain is None else plain
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("kind", ["sum", "prod"])
def test_running_sums_along_an_axis_that_is_a_value(kind: str, exclusive: bool, reverse: bool) -> None:
    x = RNG.integers(1, 5, (2, 4))
    found = run(lambda x, a: op.contraction.cumulative(x, a, kind, exclusive, reverse), x, np.int64(1))
    for row, got in zip(x, found, strict=True):
        for at in range(4):
            part = row[at + exclusive :] if reverse else row[: at + 1 - exclusive]
            assert got[at] == (part.sum() if kind == "sum" else part.prod())


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("b...d,...de->b...e", [(2, 3, 4), (3, 4, 5)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
        ("ij->", [(2, 3)]),
        ("bij,bij->b", [(2, 3, 4), (2, 3, 4)]),
        ("...i,...i", [(2, 1, 3), (4, 3)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [RNG.normal(size=shape) for shape in shapes]
    mod = module(lambda *parts: op.einsum(list(parts), equation), *arrays)
    wanted = np.einsum(equation, *arrays)
    found = evaluate(mod, arrays)
    assert mod["main"].body.type == TensorType(wanted.shape, "float64")
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=1, max_size=8), st.booleans())
@settings(max_examples=60)
def test_unique_rows_give_the_data_back(rows: list[list[int]], in_order: bool) -> None:
    x = np.array(rows)
    found, first, inverse, counts = evaluate(module(lambda x: op.selection.unique_slices(x, 0, in_order), x), [x])
    assert np.array_equal(found[inverse], x) and np.array_equal(x[first], found)
    assert counts.sum() == len(x) and len({tuple(row) for row in found}) == len(found)
    assert in_order or np.all(np.diff(first) > 0)


@given(st.lists(st.integers(0, 5), min_size=3, max_size=3))
def test_reversing_twice_changes_nothing(lengths: list[int]) -> None:
    x = np.arange(15).reshape(5, 3)
    once = evaluate(module(lambda x, n: op.reverse_sequence(x, n, 0, 1), x, i64(*lengths)), [x, i64(*lengths)])
    twice = evaluate(module(lambda x, n: op.reverse_sequence(x, n, 0, 1), x, i64(*lengths)), [once, i64(*lengths)])
    assert np.array_equal(twice, x)
    for column, length in enumerate(lengths):
        assert np.array_equal(once[:length, column], x[:length, column][::-1])


def test_transforms_undo_each_other() -> None:
    x = RNG.normal(size=(2, 6, 2))
    there = run(op.signal.dft_along, x, np.int64(1))
    back = run(lambda x, a: op.signal.dft_along(x, a, True), there, np.int64(1))
    np.testing.assert_allclose(back, x, atol=1e-12)
    real, imaginary = run(lambda a, b: op.signal.dft(a, b), x[..., 0], x[..., 1])
    np.testing.assert_allclose(real + 1j * imaginary, np.fft.fft(x[..., 0] + 1j * x[..., 1]), atol=1e-12)


def test_gradients_of_shapes_that_are_values() -> None:
    x, sizes = np.arange(6.0).reshape(2, 3), i64(3, 2)
    for build, given_sizes in ((op.dynamic.reshape, sizes), (op.dynamic.broadcast_to, i64(4, 2, 3))):
        forward = module(lambda x, s, build=build: op.sum(op.multiply(build(x, s), build(x, s))), x, given_sizes)
        slope = infer_type(relay.IRModule({"main": relay.transform.gradient(forward["main"], forward)}))
        _, (found, _) = evaluate(slope, [x, given_sizes])
        np.testing.assert_allclose(found, 2 * x * (4 if build is op.dynamic.broadcast_to else 1))
