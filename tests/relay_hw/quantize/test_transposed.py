"""Transposed convolutions in integers: close to the float network, whatever the zero point; and on the device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.config import load_config
from relay_hw.analysis import infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Op, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize import quantize, strategy_names
from relay_hw.runtime import CompileOptions, compile_model

# These leave out a good part of the values where samples are few.
CLIPPING = ("int8-kl", "int8-average")


def _values(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype("float32")


def _network(rng: np.random.Generator, groups: int = 1, **attrs: object) -> IRModule:
    """A convolution, a transposed one with bias and ReLU, another."""
    x = Var("x", TensorType((1, 3, 5, 6), "float32"))
    y: Expr = op.nn.relu(op.nn.conv2d(x, op.const(_values(rng, 8, 3, 3, 3)), padding=(1, 1)))
    y = op.nn.conv2d_transpose(y, op.const(_values(rng, 8, 6 // groups, 4, 4)), groups=groups, **attrs)
    y = op.nn.relu(op.nn.bias_add(y, op.const(_values(rng, 6))))
    return infer_type(IRModule.from_expr(Function([x], op.nn.conv2d(y, op.const(_values(rng, 2, 6, 1, 1))))))


def _operators(mod: IRModule) -> list[str]:
    nodes = post_order(mod["main"].body)
    return [node.op.name for node in nodes if isinstance(node, Call) and isinstance(node.op, Op)]


@pytest.mark.parametrize(
    "strategy", [name for name in strategy_names() if name.startswith("int8") and name not in CLIPPING]
)
def test_close_to_floats(strategy: str) -> None:
    rng = np.random.default_rng(0)
    mod = _network(rng, strides=(2, 2), padding=(1, 1))
    data = {"x": _values(rng, 8, 3, 5, 6)}
    found = quantize(mod, strategy, data)
    assert _operators(found).count("fixed.conv2d_transpose") == 1
    assert "nn.conv2d_transpose" not in _operators(found)
    inputs = {"x": data["x"][:1]}
    want, have = evaluate(mod, inputs), evaluate(found, inputs)
    assert np.abs(want - have).max() < 0.05 * np.abs(want).max()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(0, 2))
def test_integers_are_those_of_the_sum(seed: int, strides: tuple[int, int], padding: int) -> None:
    """The operation against its definition: every input, less its zero point, spreads the weight."""
    rng = np.random.default_rng(seed)
    x, w = rng.integers(-128, 128, (1, 2, 4, 3)).astype(np.int8), rng.integers(-128, 128, (2, 3, 3, 4)).astype(np.int8)
    zero = int(rng.integers(-128, 128))
    data = Var("x", TensorType(x.shape, "int8"))
    call = op.fixed.conv2d_transpose(data, op.const(w), strides, (padding, 1), input_zero_point=zero)
    full = np.zeros((1, 3, 3 * strides[0] + 3, 2 * strides[1] + 4), np.int64)
    for i, r, c in np.ndindex(2, 4, 3):
        y, z = r * strides[0], c * strides[1]
        full[0, :, y : y + 3, z : z + 4] += (int(x[0, i, r, c]) - zero) * w[i].astype(np.int64)
    want = full[:, :, padding : full.shape[2] - padding, 1:-1]
    have = evaluate(infer_type(IRModule.from_expr(Function([data], call))), [x])
    assert have.dtype == np.int32 and np.array_equal(have, want)


def test_runs_on_the_device() -> None:
    rng = np.random.default_rng(1)
    mod = _network(rng, strides=(2, 2), padding=(1, 0, 2, 1), output_padding=(1, 0))
    compiled = compile_model(
        mod, CompileOptions(config=load_config("tiny")), calibration={"x": _values(rng, 4, 3, 5, 6)}
    )
    host = {row.operator for row in compiled.layers if row.where == "host"}
    assert host == {"qnn.quantize", "qnn.dequantize"}
    # Of four taps on either axis two stand on an input for each of 10 x 13 outputs.
    macs = [row.macs for row in compiled.layers if row.operator == "accel.conv2d_transpose"]
    assert macs == [8 * 6 * (10 * 2) * (13 * 2)]


def test_groups_stay_floats() -> None:
    rng = np.random.default_rng(2)
    mod = _network(rng, groups=2)
    assert "nn.conv2d_transpose" in _operators(quantize(mod, calibration={"x": _values(rng, 2, 3, 5, 6)}))
