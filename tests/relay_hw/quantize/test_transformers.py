"""Transformers of exporters' files become one chain of integers; what stays float stands at its ends."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
import pytest

from examples.models import small
from examples.models.samples import samples
from relay_hw.frontend import from_onnx
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.visit import post_order
from relay_hw.quantize.calibration import check_data
from relay_hw.quantize.main import Realized, realize_module
from relay_hw.quantize.report import decibel
from relay_hw.runtime.compile import bind_params
from relay_hw.transform.graph import dtype_of, op_name
from relay_hw.transform.infer_type import InferType

# What is left in float, and the least signal-to-noise ratio: words are looked up in front, a mask of any numbers is
# added to scores, a norm that ends a network has no layer behind it; caches leave as floats.
LEFT: dict[str, tuple[dict[str, int], int]] = {
    "deit_tiny": ({"qnn.quantize": 1, "qnn.dequantize": 1}, 25),
    "mobilevit_xxs": ({"qnn.quantize": 1, "qnn.dequantize": 1}, 25),
    "bert": (
        {"take": 2, "add": 3, "cast": 1, "subtract": 1, "multiply": 1, "nn.layer_norm": 2}
        | {"nn.softmax": 1, "reshape": 1, "qnn.quantize": 2, "qnn.dequantize": 2},
        25,
    ),
    "kwt_1": ({"reshape": 1, "transpose": 1, "qnn.quantize": 1, "qnn.dequantize": 1}, 22),
    "conformer": ({"nn.layer_norm": 1, "qnn.quantize": 1, "qnn.dequantize": 1}, 25),
    "llama_prefill": ({"take": 1, "qnn.quantize": 1, "qnn.dequantize": 5}, 19),
    "llama_decode": (
        {"take": 3, "reshape": 2, "multiply": 1, "broadcast_to": 2, "qnn.quantize": 7, "qnn.dequantize": 5},
        17,
    ),
}


@lru_cache
def realized(name: str) -> Realized:
    model = small(name)
    mod, params = from_onnx(model)
    return realize_module(InferType()(bind_params(mod, params)), "int8", samples(model, 16, seed=1))


def floats(body: Expr) -> Counter[str]:
    """Operators that make floats or read them."""
    calls = (node for node in post_order(body) if isinstance(node, Call) and isinstance(node.op, Op))
    return Counter(op_name(call) for call in calls if dtype_of(call) == "float32" or op_name(call) == "qnn.quantize")


@pytest.mark.parametrize("name", LEFT)
def test_floats_are_at_the_ends_alone(name: str) -> None:
    assert floats(realized(name).mod["main"].body) == Counter(LEFT[name][0])


@pytest.mark.parametrize("name", LEFT)
def test_noise_is_that_of_eight_bits(name: str) -> None:
    found = realized(name)
    exact, integer = Interpreter(found.reference), Interpreter(found.mod)
    signal = noise = 0.0
    for batch in check_data(found.reference["main"].params, samples(small(name), 4, seed=2)):
        want, have = (_first(one.call_global("main", batch)) for one in (exact, integer))
        signal += float(np.square(want).sum())
        noise += float(np.square(want - have).sum())
    assert decibel(signal, noise) > LEFT[name][1]


def _first(value: object) -> np.ndarray:
    return np.asarray(value[0] if isinstance(value, tuple) else value, np.float64)


@pytest.mark.parametrize("name", LEFT)
def test_the_reference_is_the_model(name: str) -> None:
    """What rewrites floats for integers changes no value, on samples that calibration has not seen."""
    model = small(name)
    mod, params = from_onnx(model)
    data = {key: array[:1] for key, array in samples(model, 1, seed=5).items()}
    want = Interpreter(InferType()(bind_params(mod, params))).call_global("main", data)
    have = Interpreter(realized(name).reference).call_global("main", data)
    assert np.abs(_first(want) - _first(have)).max() < 1e-4 * np.abs(_first(want)).max()


def test_weights_of_four_bits_are_fitted_where_samples_come_one_by_one() -> None:
    """Rotary factors are an operand for one sample and none for a batch, so the two have other plans."""
    model = small("llama_prefill")
    mod, params = from_onnx(model)
    found = realize_module(InferType()(bind_params(mod, params)), "w4a8", samples(model, 4, seed=1))
    assert floats(found.mod["main"].body) == Counter(LEFT["llama_prefill"][0])
