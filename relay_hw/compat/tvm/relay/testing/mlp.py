"""A multilayer perceptron: 128, 64, classes."""

from __future__ import annotations

import relay_hw as relay
from relay_hw.compat.tvm.module import IRModule
from relay_hw.compat.tvm.nd import NDArray
from relay_hw.compat.tvm.relay.testing.init import create_workload
from relay_hw.compat.tvm.relay.testing.layers import dense_add_bias
from relay_hw.ir.expr import Function


def get_net(
    batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32"
) -> Function:
    """The network; weights are parameters without type."""
    x = relay.nn.batch_flatten(relay.var("data", shape=(batch_size, *image_shape), dtype=dtype))
    for number, units in enumerate((128, 64), start=1):
        x = relay.nn.relu(dense_add_bias(x, units=units, name=f"fc{number}"))
    out = relay.nn.softmax(dense_add_bias(x, units=num_classes, name="fc3"))
    return Function(relay.analysis.free_vars(out), out)


def get_workload(
    batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32"
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with random weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
