"""Random numbers from keys: Threefry's published answers, streams that differ, and what the numbers look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import TypeCheckError
from relay_hw.op.random import threefry
from relay_hw.transform import EliminateCommonSubexpr, InferType
from tests.relay_hw.op.gradient_checks import check
from tests.relay_hw.op.test_image import run

random = op.random
KEY = random.threefry_key(7).data


def hexadecimal(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def test_the_answers_that_the_authors_of_threefry_publish() -> None:
    zeros, ones = np.zeros(4, np.uint64), np.full(4, 2**64 - 1, np.uint64)
    wanted = {
        (0, 0): "09218ebde6c85537 55941f5266d86105 4bd25e16282434dc ee29ec846bd2e40b",
        (1, 1): "29c24097942bba1b 0371bbfb0f6f4e11 3c231ffa33f83a1c cd29113fde32d168",
    }
    for (key, counter), words in wanted.items():
        found = threefry((zeros, ones)[key], (zeros, ones)[counter][None])
        assert found[0].tolist() == hexadecimal(words)


def test_keys_that_differ_give_numbers_that_differ() -> None:
    after, first = run(lambda k: random.threefry_generate(k, (3, 5)), KEY)
    again = run(lambda k: random.threefry_generate(k, (3, 5)), KEY)[1]
    assert np.array_equal(first, again) and first.shape == (3, 5) and first.dtype == np.uint64
    left, right = run(random.threefry_split, KEY)
    streams = [run(lambda k: random.threefry_generate(k, (64,)), key)[1] for key in (KEY, after, left, right)]
    assert len(set(np.concatenate(streams).tolist())) == 256


def test_uniform_and_normal_numbers() -> None:
    for dtype in ("float32", "float64"):
        numbers = run(lambda k, d=dtype: random.uniform(k, (100, 200), d, -2.0, 6.0), KEY)[1]
        assert numbers.dtype == dtype and numbers.min() >= -2 and numbers.max() < 6
        counts = np.histogram(numbers, 20, (-2, 6))[0]
        # Sums of squares over 1000, of 19 degrees of freedom.
        assert np.sum((counts - 1000) ** 2) / 1000 < 45
        bell = run(lambda k, d=dtype: random.normal(k, (100, 200), d, 1.0, 3.0), KEY)[1]
        assert abs(bell.mean() - 1) < 0.1 and abs(bell.std() - 3) < 0.1
        assert abs(np.mean(np.abs(bell - 1) < 3) - 0.6827) < 0.02


def test_indices_by_probabilities() -> None:
    probs = np.array([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]])
    found = run(lambda k, p: random.multinomial(k, p, 4000), KEY, probs)[1]
    assert found.shape == (2, 4000) and found.dtype == np.int32
    shares = np.bincount(found[0], minlength=3) / 4000
    assert shares[1] == 0 and abs(shares[2] - 0.75) < 0.03 and set(found[1].tolist()) == {1}
    assert run(lambda k, p: random.multinomial(k, p, 3), KEY, probs[0])[1].shape == (3,)


def test_calls_on_one_key_are_one_call() -> None:
    """Equal keys give equal numbers, so such calls may merge: no effect is lost."""
    key = relay.Var("k", relay.TensorType((10,), "uint64"))
    both = relay.Tuple([random.uniform(key, (2,))[1], random.uniform(key, (2,))[1]])
    mod = EliminateCommonSubexpr()(InferType()(relay.IRModule.from_expr(relay.Function([key], both))))
    assert mod.astext().count("random.uniform") == 1


def test_bounds_and_parameters_have_gradients() -> None:
    low, high = np.array(-1.5), np.array(2.5)
    key = relay.Constant(KEY)
    check(lambda a, b: random.uniform(key, (3, 2), "float64", a, b)[1], low, high)
    check(lambda a, b: random.normal(key, (3, 2), "float64", a, b)[1], low, high)


REFUSED: list[tuple[Any, tuple[Any, ...], str]] = [
    (
        lambda k: random.uniform(k, (2,)),
        (np.zeros(4, np.uint64),),
        r"must be Tensor\[\(10,\), uint64\], not Tensor\[\(4,\)",
    ),
    (lambda k: random.threefry_generate(k, (-1,)), (KEY,), "must be at least 0"),
    (lambda k, p: random.multinomial(k, p, 0), (KEY, np.ones(2)), "at least 1 sample"),
    (lambda k: random.normal(k, (1,), "float16"), (KEY,), "float32 or float64"),
]


@pytest.mark.parametrize(("build", "values", "sentence"), REFUSED)
def test_refusals(build: Any, values: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(TypeCheckError, match=sentence):
        run(build, *values)
