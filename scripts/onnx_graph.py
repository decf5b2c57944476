"""Writes a trained network as ONNX, node by node, in the operators that PyTorch's exporter gives.

In: calls with names of the caller. Out: a file of opset 17, float32, whose bytes depend on names and weights alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

OPSET = 17
IR_VERSION = 8


class Graph:
    """The nodes and constants of a network; each node has one output, which goes by the node's name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def add(self, operator: str, name: str, *inputs: str, **attributes: Any) -> str:
        """A node; what it gives."""
        self._nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: Tensor | np.ndarray[Any, Any]) -> str:
        """A constant, once for each name."""
        array = value.detach().numpy() if isinstance(value, Tensor) else value
        self._constants[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def number(self, name: str, value: float) -> str:
        return self.constant(name, np.asarray(value, np.float32))

    def matmul(self, name: str, value: str, weight: Tensor, bias: Tensor | None = None) -> str:
        """A layer whose `weight` [out, in] PyTorch multiplies by, transposed, and its bias."""
        product = self.add("MatMul", name, value, self.constant(f"{name}.weight", weight.t()))
        if bias is None:
            return product
        return self.add("Add", f"{name}_bias", self.constant(f"{name}.bias", bias), product)

    def reshape(self, name: str, value: str, shape: list[int]) -> str:
        return self.add("Reshape", name, value, self.constant(f"{name}.shape", np.asarray(shape, np.int64)))

    def slice(self, name: str, value: str, begin: int, end: int, axis: int = -1) -> str:
        """The elements from `begin` to `end` along an axis."""
        places = {"begin": begin, "end": end, "axis": axis}
        constants = [self.constant(f"{name}.{key}", np.asarray([place], np.int64)) for key, place in places.items()]
        return self.add("Slice", name, value, *constants)

    def write(self, path: Path, given: tuple[str, str, list[int]], result: tuple[str, str, list[int]]) -> None:
        """Write the file. `given`: name, type and shape of the input; `result`: a node, its name outside, its shape."""
        name, dtype, shape = given
        self._nodes[-1].output[0] = result[1]
        assert self._nodes[-1].name == result[0]
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)],
            [helper.make_tensor_value_info(result[1], TensorProto.FLOAT, result[2])],
            list(self._constants.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="relay-hw")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.SerializeToString(deterministic=True))
