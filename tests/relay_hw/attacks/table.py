"""An attack: a name that says which advisory or case it is, and what it does in a folder. Models for them.

In: a folder. Out: words of a command line, or a call, that must be refused in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Words for `relay-hw`, or a call that must raise an error of ours.
Deed = list[str] | Callable[[], object]
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


@dataclass(frozen=True, slots=True)
class Attack:
    """`make` writes what it needs into a folder of its own."""

    name: str
    make: Callable[[Path], Deed]


def node(operator: str, inputs: Sequence[str], output: str, **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(operator, list(inputs), [output], name=f"make_{output}", **attrs)


def weight(name: str, value: Any, dtype: str = "int64") -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(value, dtype), name)


def info(name: str, shape: Sequence[int] | None = (2,), kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    inputs: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.ModelProto:
    """From x to y."""
    graph = helper.make_graph(list(nodes), "net", list(inputs) or [info("x")], [info("y", None)], list(weights))
    return helper.make_model(graph, functions=list(functions), opset_imports=OPSETS, ir_version=8)


def folded(nodes: Sequence[onnx.NodeProto], weights: Sequence[onnx.TensorProto] = ()) -> onnx.ModelProto:
    """A model that adds the largest element of the last constant to x."""
    last = nodes[-1].output[0]
    ends = [node("ReduceMax", [last], "m", keepdims=0), node("Cast", ["m"], "f", to=1), node("Add", ["x", "f"], "y")]
    return model([*nodes, *ends], weights)


def checked(folder: Path, given: onnx.ModelProto, *words: str) -> list[str]:
    """The command that reads a model."""
    path = folder / "net.onnx"
    path.write_bytes(given.SerializeToString())
    return ["check", str(path), *words]


def of_model(name: str, make: Callable[[], onnx.ModelProto]) -> Attack:
    """An attack that is a model."""
    return Attack(name, lambda folder: checked(folder, make()))
