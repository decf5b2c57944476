"""Random inputs of the networks of this folder.

In: a model, how many samples, a seed. Out: an array for each input, samples on the first axis: images, words, masks of
sentences that end before the last place, states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from examples.models.builder import INPUT, images

Array = NDArray[Any]


def samples(model: onnx.ModelProto, count: int, seed: int = 0) -> dict[str, Array]:
    """`count` samples of every input of the network."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for given in model.graph.input:
        shape = tuple(axis.dim_value for axis in given.type.tensor_type.shape.dim)[1:]
        match given.name:
            case "attention_mask":
                lengths = rng.integers(shape[0] // 2, shape[0] + 1, (count, 1))
                found[given.name] = (np.arange(shape[0]) < lengths).astype(np.int64)
            case "position_ids":
                found[given.name] = np.full((count, *shape), _positions(model), np.int64)
            case _ if given.type.tensor_type.elem_type == onnx.TensorProto.INT64:
                # Words.
                found[given.name] = rng.integers(0, _rows(model, given.name), (count, *shape))
            case name if name == INPUT:
                found[name] = images(shape, count, seed)
            case _:
                found[given.name] = rng.standard_normal((count, *shape)).astype(np.float32)
    return found


def _positions(model: onnx.ModelProto) -> int:
    """How many positions caches have: that of the next word."""
    return next(axes.type.tensor_type.shape.dim[2].dim_value for axes in model.graph.input if "past" in axes.name)


def _rows(model: onnx.ModelProto, name: str) -> int:
    """Rows of the table that an input picks from."""
    table = next(node.input[0] for node in model.graph.node if node.op_type == "Gather" and node.input[1] == name)
    return next(tensor.dims[0] for tensor in model.graph.initializer if tensor.name == table)
