"""Why an operator that is no part of a composite stays on the host, in one sentence."""

from __future__ import annotations

from typing import Final

from relay_hw.ir.expr import Call
from relay_hw.transform.graph import dtype_of, leaves, op_name

# One meaning in numpy, exact wherever it runs: what stands between float and integer, and what ends a classifier.
BORDER_OPERATORS: Final = frozenset(
    {
        "qnn.quantize",
        "qnn.dequantize",
        "qnn.requantize",
        "nn.softmax",
        "nn.log_softmax",
        "argmax",
        "argmin",
    }
)

# These only move elements: they go with whatever they stand next to on the host.
MOVING_OPERATORS: Final = frozenset(
    {"reshape", "nn.batch_flatten", "squeeze", "expand_dims", "transpose", "copy", "layout_transform"}
)

_NEEDS: Final = {
    "nn.conv2d": "its weight must be constant and its result must be read by one accel.requantize only",
    "nn.dense": "its weight must be constant and its result must be read by one accel.requantize only",
    "nn.batch_matmul": "its second operand must be transposed and its result read by one accel.requantize only",
    "accel.conv2d_transpose": "its weight must be constant and its result must be read by one accel.requantize only",
    "accel.sum_pool2d": "its result must be read by one accel.requantize only",
    "accel.requantize": "it must follow a convolution, dense layer or sum pooling that nothing else reads, "
    "with a constant bias",
    "qnn.conv2d": "its weight must be constant, without zero point where it has groups, and its result must be read by "
    "one qnn.requantize of constant scales",
    "qnn.dense": "its weight must be constant, and its result must be read by one qnn.requantize of constant scales",
    "nn.pad": "only a convolution or a max pooling behind it takes a pad in",
}


def reason_for(call: Call) -> str:
    """The reason, from the operator and its types alone."""
    name = op_name(call) or "a function call"
    if name == "qnn.quantize":
        return "qnn.quantize makes integers from floats; the accelerator reads integers only"
    if name == "qnn.dequantize":
        return "qnn.dequantize makes floats from integers; the accelerator writes integers only"
    if name.startswith("qnn."):
        return f"{name} is part of no composite: {_NEEDS.get(name, 'its scales must be constants, one for the tensor')}"
    dtypes = sorted({ty.dtype for arg in call.args for ty in leaves(arg.type)} | {dtype_of(call)} - {""})
    for dtype in dtypes:
        if dtype.startswith(("float", "bfloat")):
            return f"{name} computes in {dtype}; the accelerator computes in integers only"
    if name in _NEEDS:
        return f"{name} is part of no composite: {_NEEDS[name]}"
    return f"no composite of the accelerator computes {name}"
