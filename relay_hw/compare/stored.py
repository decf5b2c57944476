"""Bytes of weights as an accelerator stores them.

In: a quantized module, a configuration. Out: bytes, as the tensorizer stores weights but without the padding of blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.nibbles import FACTOR_BITS
from relay_hw.compare.network_work import layer_work, product_calls
from relay_hw.ir.expr import Call, Constant
from relay_hw.ir.module import IRModule
from relay_hw.quantize.factors import image_pixels
from relay_hw.tensorize.tiles.operands import WeightForm, input_rows, weight_form
from relay_hw.transform.graph import is_op

Array = NDArray[Any]


def stored_bytes(mod: IRModule, config: AccelConfig) -> int:
    """Bytes of the weights of all layers, their factors included."""
    return sum(_bytes(call, config) for call in product_calls(mod))


def _bytes(call: Call, config: AccelConfig) -> int:
    layer, weight = layer_work(call), call.args[1]
    if not isinstance(weight, Constant) or weight.data.dtype != np.int8 or not layer.weights:
        return -(-layer.weights * layer.bits // 8)
    inputs, rows = _inputs_last(call, weight.data)
    form = weight_form(inputs, config, rows)
    bits = {
        WeightForm.BYTES: 8, WeightForm.HALVES: 8, WeightForm.PACKED: 4, WeightForm.NARROW: 4, WeightForm.QUARTERS: 2,
        WeightForm.FACTORED: config.wgt_bits // 2,
    }[form]  # fmt: skip
    factors = len(input_rows(inputs, config)) if form is WeightForm.FACTORED else 0
    return -(-(layer.weights * bits + factors * FACTOR_BITS) // 8)


def _inputs_last(call: Call, weight: Array) -> tuple[Array, bool]:
    """The weight with its input channels on the last axis, and whether they lie so in memory."""
    if is_op(call, "nn.dense"):
        pixels = image_pixels(call.args[0])
        return weight.reshape(len(weight), -1, pixels).swapaxes(1, 2), True
    layout = getattr(call.attrs, "kernel_layout", "")
    if "I" not in layout:
        return weight, False
    return np.moveaxis(weight, layout.index("I"), -1), call.attrs.groups == 1
