"""LSTM, GRU and RNN against onnxruntime: directions, states, lengths, peepholes, activations; their form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from relay_hw.errors import UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, GlobalVar, If
from relay_hw.ir.visit import post_order
from relay_hw.transform.graph import op_name

T, B, N, H = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
MODELS = Path(__file__).parents[3].parent / "shared" / "models"


def values(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.7, 0.7, shape).astype(np.float32)


def parts(operator: str, directions: int) -> dict[str, np.ndarray]:
    gates = GATES[operator]
    return {
        "W": values(1, directions, gates * H, N),
        "R": values(2, directions, gates * H, H),
        "B": values(3, directions, 2 * gates * H),
        "h": values(4, directions, B, H),
        "c": values(5, directions, B, H),
        "P": values(6, directions, 3 * H),
    }


def activated(*names: str, alpha: float, beta: float) -> dict[str, Any]:
    return {"activations": list(names), "activation_alpha": [alpha], "activation_beta": [beta]}


CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("LSTM", "WR", {}),
    ("LSTM", "WRB", {"direction": "reverse"}),
    ("LSTM", "WRBhc", {"direction": "bidirectional"}),
    ("LSTM", "WRBshcP", {"direction": "bidirectional"}),
    ("LSTM", "WRBhcP", {"input_forget": 1}),
    ("LSTM", "WRB", {"clip": 0.3}),
    ("LSTM", "WRB", activated("HardSigmoid", "Relu", "Softsign", alpha=0.3, beta=0.4)),
    ("LSTM", "WRBs", {"direction": "reverse"}),
    ("GRU", "WR", {}),
    ("GRU", "WRB", {"linear_before_reset": 1}),
    ("GRU", "WRBh", {"direction": "reverse"}),
    ("GRU", "WRBsh", {"direction": "bidirectional", "linear_before_reset": 1}),
    ("GRU", "WRB", {"clip": 0.25}),
    ("GRU", "WRBh", activated("Sigmoid", "ScaledTanh", alpha=0.8, beta=0.6)),
    ("RNN", "WR", {}),
    ("RNN", "WRBh", {"direction": "bidirectional"} | activated("Relu", "Affine", alpha=0.7, beta=0.1)),
    ("RNN", "WRBsh", {"direction": "reverse"}),
    ("RNN", "WRB", {"activations": ["LeakyRelu"], "activation_alpha": [0.2]}),
    ("RNN", "WRB", {"activations": ["Elu"], "activation_alpha": [0.9]}),
    ("RNN", "WRB", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.2]}),
    ("RNN", "WRB", {"activations": ["Softplus"]}),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "given", "attrs"), CASES)
@pytest.mark.parametrize("fed", [False, True])
def test_against_onnxruntime(
    make: Callable[..., Any], compare: Callable[..., Any], operator: str, given: str, attrs: dict[str, Any], fed: bool
) -> None:
    """`fed`: weights are inputs of the model."""
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    weights = parts(operator, directions)
    order = {"LSTM": "WRBshcP", "GRU": "WRBsh", "RNN": "WRBsh"}[operator]
    names = ["x", *(key if key in given else "" for key in order)]
    inputs: dict[str, np.ndarray] = {"x": values(0, T, B, N)}
    if "s" in given:
        inputs["s"] = np.array([T, 2, 3], np.int32)
    known = {key: value for key, value in weights.items() if key in given}
    if fed:
        inputs, known = {**inputs, **known}, {}
    outputs = ["y", "y_h", "y_c"][: 3 if operator == "LSTM" else 2]
    while names[-1] == "":
        names.pop()
    node = helper.make_node(operator, names, outputs, name="cell", hidden_size=H, **attrs)
    compare(make([node], inputs, known, outputs, 14), inputs)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_that_onnxruntime_quantized(
    tmp_path: Path, make: Callable[..., Any], direction: str, per_channel: bool
) -> None:
    """DynamicQuantizeLSTM: int8 weights, and data that is quantized step by step.

    Its activations are approximations, so that a state's integers may differ by one from the second step on.
    """
    import onnx
    import onnxruntime
    from onnxruntime.quantization import quantize_dynamic

    count = 2 if direction == "bidirectional" else 1
    weights = {key: value for key, value in parts("LSTM", count).items() if key in "WRB"}
    names = ["x", "W", "R", "B"]
    node = helper.make_node("LSTM", names, ["y", "", "c"], name="cell", hidden_size=H, direction=direction)
    x = values(0, T, B, N)
    onnx.save(make([node], {"x": x}, weights, ["y", "c"], 14), tmp_path / "float.onnx")
    # 7 bits: where a processor has no VNNI, onnxruntime cuts off sums of two products that do not fit 16.
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "int8.onnx", per_channel=per_channel, reduce_range=True)
    assert [item.op_type for item in onnx.load(tmp_path / "int8.onnx").graph.node] == ["DynamicQuantizeLSTM"]
    want = onnxruntime.InferenceSession(str(tmp_path / "int8.onnx")).run(None, {"x": x})
    module, params = from_onnx(tmp_path / "int8.onnx")
    y, c = (np.asarray(value) for value in evaluate(module, {"x": x, **params}))
    np.testing.assert_allclose(y[0, 0], want[0][0, 0], rtol=1e-5, atol=1e-6)
    if count == 2:
        np.testing.assert_allclose(y[-1, 1], want[0][-1, 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, want[0], atol=3e-3)
    np.testing.assert_allclose(c, want[1], atol=6e-3)


def test_one_step_and_outputs_left_out(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    weights = parts("LSTM", 1)
    node = helper.make_node("LSTM", ["x", "W", "R"], ["", "y"], name="cell", hidden_size=H)
    compare(
        make([node], {"x": values(0, 1, 1, N)}, {k: weights[k] for k in "WR"}, ["y"], 14), {"x": values(0, 1, 1, N)}
    )


def test_the_loop_is_a_tail_call_around_one_product(make: Callable[..., Any]) -> None:
    weights = parts("LSTM", 1)
    node = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], name="cell", hidden_size=H)
    module, _ = from_onnx(make([node], {"x": values(0, T, B, N)}, {k: weights[k] for k in "WRB"}, ["y"], 14))
    assert set(module.functions) == {"main", "lstm"}
    loop = module["lstm"]
    assert isinstance(loop.body, If) and isinstance(loop.body.true_branch, Call)
    assert loop.body.true_branch.op.name_hint == "lstm" and isinstance(loop.body.true_branch.op, GlobalVar)  # type: ignore[attr-defined]
    assert [op_name(node) for node in post_order(loop.body)].count("nn.dense") == 1
    assert [op_name(node) for node in post_order(module["main"].body)].count("nn.dense") == 1


def test_refusals(make: Callable[..., Any]) -> None:
    weights = {k: parts("RNN", 1)[k] for k in "WR"}
    for attrs, reason in (
        ({"activations": ["Sine"]}, "activation must be one of Sigmoid, Tanh, .*, not Sine"),
        ({"direction": "sideways"}, "direction must be forward, reverse or bidirectional, not sideways"),
    ):
        node = helper.make_node("RNN", ["x", "W", "R"], ["y"], name="cell", hidden_size=H, **attrs)
        with pytest.raises(UnsupportedError, match=reason):
            from_onnx(make([node], {"x": values(0, T, B, N)}, weights, ["y"], 14))


def test_mnist_lstm() -> None:
    import onnxruntime

    folder = MODELS / "mnist_lstm"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    module, params = from_onnx(folder / "model.onnx")
    for x in np.load(folder / "test.npz")["input"][:3]:
        want = session.run(None, {"input": x[None]})[0]
        np.testing.assert_allclose(
            np.asarray(evaluate(module, {"input": x[None], **params})), want, rtol=1e-4, atol=1e-6
        )
