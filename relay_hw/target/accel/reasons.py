"""Explains why an operator outside of composites stays on the host, and what would change that."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from relay_hw.ir.expr import Call
from relay_hw.target.accel.move_groups import MOVES
from relay_hw.transform.graph import dtype_of, leaves, op_name

_NEEDS: Final = {
    "nn.conv2d": "its weight must be constant and its result must be read by one fixed.requantize only",
    "nn.dense": "its weight must be constant and its result must be read by one fixed.requantize only",
    "nn.batch_matmul": "its second operand must be transposed and its result read by one fixed.requantize only",
    "fixed.conv2d_transpose": "its weight must be constant and its result must be read by one fixed.requantize only",
    "fixed.sum_pool2d": "its result must be read by one fixed.requantize only",
    "fixed.softmax": "its table and its lengths must be constant",
    "fixed.layer_norm": "its gain and its bias must be constant",
    "fixed.rms_norm": "its gain and its bias must be constant",
    "fixed.requantize": "it must follow a convolution, dense layer or sum pooling that nothing else reads, "
    "with a constant bias",
    "qnn.conv2d": "its weight must be constant, without zero point where it has groups, and its result must be read by "
    "one qnn.requantize of constant scales",
    "qnn.dense": "its weight must be constant, and its result must be read by one qnn.requantize of constant scales",
    "nn.pad": "only a convolution or a max pooling behind it takes a pad in",
}


# Alternatives to operators without a quantization rule.
_INSTEAD: Final = {
    "nn.conv1d": "in layout NCW it would run there",
    "nn.matmul": "as an nn.dense with a constant weight it would run there",
    "nn.bias_add": "it goes where the layer before it goes",
    "nn.batch_norm": "behind a convolution with constant statistics it is folded into that",
    "nn.softmax": "where the order of scores is enough, the model can end before it",
    "nn.log_softmax": "where the order of scores is enough, the model can end before it",
}
_NO_RULE: Final = "another operator in its place, or a rule in relay_hw/quantize/rules.py, would change that"


def reason_for(call: Call, rules: Mapping[str, str] | None = MappingProxyType({})) -> str:
    """One sentence with the reason and what would change it, from the operator and its types alone.

    `rules`: by operator, what it needs to be quantized; None if the strategy quantizes nothing.
    """
    name = op_name(call) or "a function call"
    if name == "qnn.quantize":
        return "qnn.quantize makes integers for the accelerator from floats; an input that is int8 needs none"
    if name == "qnn.dequantize":
        return "qnn.dequantize makes floats from the accelerator's integers; an output that is int8 needs none"
    if name.startswith("qnn."):
        return f"{name} is part of no composite: {_NEEDS.get(name, 'its scales must be constants, one for the tensor')}"
    dtypes = sorted({ty.dtype for arg in call.args for ty in leaves(arg.type)} | {dtype_of(call)} - {""})
    for dtype in dtypes:
        if dtype.startswith(("float", "bfloat")):
            return _float_reason(name, dtype, rules)
    if name in _NEEDS:
        return f"{name} is part of no composite: {_NEEDS[name]}"
    if not {"int8", "uint8"} & {*dtypes}:
        return f"{name} computes in {dtypes[0] if dtypes else 'no tensor'}: only tensors of int8 go to the accelerator"
    if name in MOVES:
        return (
            f"{name} moves elements where the host converts them anyway; between layers in integers it would run there"
        )
    return (
        f"the accelerator has no {name}: it computes convolutions, dense layers, products of matrices, pools, sums, "
        "clips and moves of int8"
    )


def _float_reason(name: str, dtype: str, rules: Mapping[str, str] | None) -> str:
    """Why a value is float, while the accelerator takes int8."""
    if rules is None:
        return f"{name} is in {dtype}, which the strategy float leaves: compile with another one, such as int8"
    if dtype != "float32":
        return f"{name} is in {dtype}, and only float32 is quantized: export the model in float32"
    if name in rules:
        return f"{name} was left in float32; to be quantized {rules[name]}"
    return f"no rule quantizes {name}: {_INSTEAD.get(name, _NO_RULE)}"
