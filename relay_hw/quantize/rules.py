"""Operators that the quantizer has an integer form for, and what each needs for it."""

from __future__ import annotations

from typing import Final

from relay_hw.ir.expr import Trait
from relay_hw.op import get, with_trait

# Data-movement operators: outputs keep the first argument's scale and zero point; other arguments say how to move.
MOVES: Final = frozenset(name for name in with_trait(Trait.MOVES) if get(name).num_inputs == 1)
# Layers that have a form in integers.
LAYERS: Final = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense")
AVERAGES: Final = ("nn.avg_pool2d", "nn.global_avg_pool2d")
# Axes that a product of two tensors must have at least; with fewer they are states of recurrent networks.
GATED: Final = 3
ACTIVATIONS: Final = ("nn.relu", "clip")
_WITH_LAYER: Final = "its data must come from a layer in integers"
# Operators with a quantization rule, and what each needs.
RULES: Final = {
    **dict.fromkeys(
        LAYERS,
        "its weight and bias must be constants in float32, and neither the strategy nor the check after quantization "
        "may keep it in float",
    ),
    **dict.fromkeys(
        AVERAGES,
        "its windows must have no dilation, and at most 16 sizes where padding is not counted",
    ),
    "multiply": "it must be of a layer's result in integers with a constant that has one number for each channel, or "
    "with another image or rows of tokens of its shape, or an image of one pixel",
    **dict.fromkeys(
        ("divide", "subtract"),
        "an operand must be a constant with one number for each channel of an image, the other one from a layer in "
        "integers",
    ),
    **dict.fromkeys(
        ("negative", "abs", "nn.leaky_relu", "nn.prelu", "nn.global_max_pool2d"),
        "its data must be an image from a layer in integers",
    ),
    **dict.fromkeys(
        ("max", "mean", "sum"), "it must run over rows and columns of an image that comes from a layer in integers"
    ),
    **dict.fromkeys((*ACTIVATIONS, *sorted(MOVES), "nn.pad", "concatenate"), _WITH_LAYER),
    **dict.fromkeys(
        ("sigmoid", "tanh", "erf", "exp", "power", "sqrt", "rsqrt", "log"),
        "it must be part of a function of one tensor from a layer in integers, whose result such a layer reads",
    ),
    "add": "its operands must be two tensors of one shape, one of them from a layer in integers",
    "nn.layer_norm": "it must be of the last axis of what a layer in integers makes or is added to, with constants, "
    "and such a layer must read it",
    "nn.batch_matmul": "its operands must be tensors with as many matrices each, one of them from a layer in integers",
    "nn.max_pool2d": "its shape must be known",
}
