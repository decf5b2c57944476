"""Small ONNX models made in place, and their comparison with onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper

from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate

Shape = Sequence[int | str | None]


@pytest.fixture
def make() -> Callable[..., ModelProto]:
    """`make(nodes, inputs, weights, outputs, opset)`: a model; inputs map names to (shape, dtype) or to arrays."""

    def build(
        nodes: Sequence[NodeProto],
        inputs: Mapping[str, Any],
        weights: Mapping[str, np.ndarray] | None = None,
        outputs: Sequence[str] = ("y",),
        opset: int = 17,
    ) -> ModelProto:
        def info(name: str, given: Any) -> Any:
            shape, dtype = (given.shape, given.dtype) if isinstance(given, np.ndarray) else given
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)

        graph = helper.make_graph(
            list(nodes),
            "small",
            [info(name, given) for name, given in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    return build


@pytest.fixture
def compare() -> Callable[..., list[np.ndarray]]:
    """`compare(model, inputs)`: the interpreter's outputs, which must be those of onnxruntime."""

    def run(model: ModelProto, inputs: Mapping[str, np.ndarray], rtol: float = 1e-4, atol: float = 1e-5) -> list[Any]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        want = session.run(None, dict(inputs))
        last: list[Any] = []
        for frozen in (False, True):
            module, params = from_onnx(model, freeze_params=frozen)
            assert not (frozen and params)
            found = evaluate(module, {**inputs, **params})
            last = list(found) if isinstance(found, tuple) else [found]
            assert len(last) == len(want)
            for got, expected in zip(last, want, strict=True):
                assert got.dtype == expected.dtype and got.shape == expected.shape
                np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
        return last

    return run
