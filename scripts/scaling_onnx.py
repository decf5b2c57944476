"""ONNX models of any size for scripts/scaling.py. In: a number of parts. Out: the bytes of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relay_hw.frontend import from_onnx
from relay_hw.limits import Limits, OnnxOptions

# More nodes than are allowed where nobody says otherwise: time is to grow with them beyond, too.
_LIMITS: Final = Limits(nodes=1 << 24, string_bytes=1 << 30)
# Elements of a weight of half a megabyte.
_ELEMENTS: Final = 1 << 17


def read(path: Path) -> object:
    """Import the file."""
    return from_onnx(path, shape={"x": (2,)}, options=OnnxOptions(limits=_LIMITS))


def chain(n: int) -> bytes:
    """Nodes one after the other."""
    names = ["x", *(f"t{number}" for number in range(n - 1)), "y"]
    return _bytes([helper.make_node("Relu", [names[k]], [names[k + 1]], f"n{k}") for k in range(n)], [])


def comb(n: int) -> bytes:
    """Nodes that all read the input and a weight of their own, and the sum of them."""
    weights = [numpy_helper.from_array(np.ones(2, np.float32), f"w{k}") for k in range(n)]
    teeth = [helper.make_node("Add", ["x", f"w{k}"], [f"s{k}"], f"n{k}") for k in range(n)]
    return _bytes([*teeth, helper.make_node("Sum", [f"s{k}" for k in range(n)], ["y"])], weights)


def weights(n: int) -> bytes:
    """Weights of half a megabyte, 64 parts each."""
    count = max(1, n // 64)
    given = [numpy_helper.from_array(np.full((_ELEMENTS // 2, 2), n, np.float32), f"w{k}") for k in range(count)]
    names = ["x", *(f"t{number}" for number in range(count - 1)), "y"]
    return _bytes([helper.make_node("Add", [names[k], f"w{k}"], [names[k + 1]]) for k in range(count)], given)


def _bytes(nodes: Sequence[onnx.NodeProto], given: Sequence[onnx.TensorProto]) -> bytes:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    graph = helper.make_graph(nodes, "net", [x], [y], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
