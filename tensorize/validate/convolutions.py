"""The meaning of operators that multiply: convolutions, dense layers, products of activations.

In: attributes and the terms of the arguments, data as N, C, H, W. Out: terms of the sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Attrs, Call, Constant
from relay_hw.tensorize.validate.terms import PRIME, Numbers, Terms, constants, plus, product, wide_product


def pair(value: object) -> tuple[int, int]:
    """One or two numbers as (height, width)."""
    numbers = _numbers(value)
    return (numbers[0], numbers[-1])


def four(value: object) -> tuple[int, int, int, int]:
    """One, two or four numbers of padding as (top, left, bottom, right)."""
    numbers = _numbers(value)
    if len(numbers) == 4:
        return (numbers[0], numbers[1], numbers[2], numbers[3])
    return (numbers[0], numbers[-1], numbers[0], numbers[-1])


def _numbers(value: object) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)  # type: ignore[arg-type]


def padded(data: Terms, padding: Sequence[int], fill: int) -> Terms:
    """Data with constants around rows and columns."""
    widths = ((0, 0), (0, 0), (padding[0], padding[2]), (padding[1], padding[3]))
    parts = ((data.numbers, fill % PRIME), (data.low, fill), (data.high, fill))
    return Terms(*(np.pad(part, widths, constant_values=value) for part, value in parts))


def windows(data: Terms, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Terms:
    """[taps, N, C, rows, columns] of the data under each tap of each window."""
    counts = [
        (size - (extent - 1) * step - 1) // stride + 1
        for size, extent, stride, step in zip(data.shape[2:], kernel, strides, dilation, strict=True)
    ]
    taps = [(row * dilation[0], column * dilation[1]) for row in range(kernel[0]) for column in range(kernel[1])]

    def under(part: Numbers) -> Numbers:
        height, width = ((count - 1) * stride + 1 for count, stride in zip(counts, strides, strict=True))
        cut = [part[:, :, row : row + height : strides[0], col : col + width : strides[1]] for row, col in taps]
        return np.stack(cut)

    return Terms(under(data.numbers), under(data.low), under(data.high))


def conv2d(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    """Sums over taps and the group's channels; layouts NCHW and OIHW."""
    _layouts(attrs, "NCHW", "OIHW")
    data = padded(args[0], four(attrs.padding), 0)
    weights = args[1].low
    outputs, depth, height, width = weights.shape
    groups = int(attrs.groups)
    numbers = _group_sums(data.numbers, weights, attrs)
    # Bounds: of each channel over all pixels.
    taps = weights.reshape(groups, outputs // groups, depth, height * width)
    up, down = (part.sum(axis=3) for part in (np.maximum(taps, 0), np.minimum(taps, 0)))
    low = data.low.min(axis=(0, 2, 3)).reshape(groups, 1, depth).astype(np.int64)
    high = data.high.max(axis=(0, 2, 3)).reshape(groups, 1, depth).astype(np.int64)
    least, most = (low * up + high * down).sum(axis=2), (high * up + low * down).sum(axis=2)
    return _bounded(numbers, least.reshape(1, -1, 1, 1), most.reshape(1, -1, 1, 1))


def _group_sums(data: Numbers, weights: Numbers, attrs: Attrs) -> Numbers:
    """[1, O, rows, columns] sums modulo the prime."""
    outputs, depth, height, width = weights.shape
    groups, strides, dilation = int(attrs.groups), pair(attrs.strides), pair(attrs.dilation)
    # [groups, depth, rows, columns]; a tap at a time, its pixels times its matrix.
    x = data.reshape(groups, depth, *data.shape[2:])
    w = weights.reshape(groups, outputs // groups, depth, height, width)
    rows = (x.shape[2] - (height - 1) * dilation[0] - 1) // strides[0] + 1
    cols = (x.shape[3] - (width - 1) * dilation[1] - 1) // strides[1] + 1
    total = np.zeros((groups, rows * cols, outputs // groups), np.int64)
    for row in range(height):
        for col in range(width):
            top, left = row * dilation[0], col * dilation[1]
            cut = x[:, :, top : top + (rows - 1) * strides[0] + 1 : strides[0]]
            cut = cut[:, :, :, left : left + (cols - 1) * strides[1] + 1 : strides[1]]
            pixels = cut.reshape(groups, depth, rows * cols).transpose(0, 2, 1)
            total += product(pixels, w[:, :, :, row, col].transpose(0, 2, 1))
    return (total % PRIME).transpose(0, 2, 1).reshape(1, outputs, rows, cols)


def dense(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    """Rows times the weights' rows."""
    data, weights = args[0], args[1].low
    up, down = np.maximum(weights, 0), np.minimum(weights, 0)
    rows = tuple(range(len(data.shape) - 1))
    low, high = data.low.min(axis=rows).astype(np.int64), data.high.max(axis=rows).astype(np.int64)
    return _bounded(product(data.numbers, weights.T), up @ low + down @ high, up @ high + down @ low)


def batch_matmul(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    """For each matrix, its rows times the rows of the second one."""
    if attrs.transpose_a or not attrs.transpose_b:
        raise TensorizeError("batch_matmul must transpose its second operand alone")
    left, right = args
    numbers = wide_product(left.numbers, right.numbers.transpose(0, 2, 1))
    bound = np.array(128 * 128 * left.shape[2])
    return _bounded(numbers, -bound, bound)


def conv2d_transpose(attrs: Attrs, args: Sequence[Terms]) -> Terms:
    """Every pixel less the zero point, times the weights, added to the window that it is spread over."""
    _layouts(attrs, "NCHW", "IOHW")
    if attrs.groups != 1:
        raise TensorizeError(f"groups must be 1, not {attrs.groups}")
    data = plus(args[0], constants(np.array(-attrs.input_zero_point)))
    weights = args[1].low
    _, outputs, height, width = weights.shape
    strides, dilation, extra = pair(attrs.strides), pair(attrs.dilation), pair(attrs.output_padding)
    padding = four(attrs.padding)
    sizes = [
        (size - 1) * stride + (kernel - 1) * step + 1 + more
        for size, stride, kernel, step, more in zip(
            data.shape[2:], strides, (height, width), dilation, extra, strict=True
        )
    ]
    spread = np.zeros((outputs, *sizes), np.int64)
    depth, rows, cols = data.shape[1:]
    pixels = data.numbers.reshape(depth, rows * cols).T
    for row in range(height):
        for col in range(width):
            part = product(pixels, weights[:, :, row, col]).T.reshape(outputs, rows, cols)
            top, left = row * dilation[0], col * dilation[1]
            down = slice(top, top + (rows - 1) * strides[0] + 1, strides[0])
            right = slice(left, left + (cols - 1) * strides[1] + 1, strides[1])
            spread[:, down, right] += part
    cut = spread[:, padding[0] : sizes[0] - padding[2], padding[1] : sizes[1] - padding[3]]
    # Each sum has some of the products.
    reach = np.maximum(np.abs(data.low), np.abs(data.high)).max(axis=(0, 2, 3)).astype(np.int64)
    bound = np.tensordot(reach, np.abs(weights).sum(axis=(2, 3)), axes=(0, 0)).reshape(1, -1, 1, 1)
    return _bounded(cut[None] % PRIME, -bound, bound)


def constant_part(call: Call, shape: Sequence[int]) -> Numbers:
    """Of a transposed convolution [1, O, rows, columns] what the zero point adds to each sum, whatever the data."""
    attrs, weight = call.attrs, call.args[1]
    assert isinstance(weight, Constant)
    padding = four(attrs.padding)
    met: list[Numbers] = []
    for axis, (stride, step) in enumerate(zip(pair(attrs.strides), pair(attrs.dilation), strict=True)):
        place = np.arange(shape[2 + axis], dtype=np.int64)[:, None] + padding[axis]
        taps = np.arange(weight.data.shape[2 + axis], dtype=np.int64) * int(step)
        met.append(np.where(np.mod(place - taps, int(stride)), 0, 1))
    sums = np.einsum("iohw,rh,cw->orc", weight.data.astype(np.int64), *met)
    return -attrs.input_zero_point * sums[None]


def _layouts(attrs: Attrs, data: str, kernel: str) -> None:
    if (attrs.data_layout, attrs.kernel_layout) != (data, kernel):
        raise TensorizeError(f"layouts must be {data} and {kernel}, not {attrs.data_layout} and {attrs.kernel_layout}")


def _bounded(numbers: Numbers, low: Numbers, high: Numbers) -> Terms:
    return Terms(numbers, np.broadcast_to(low, numbers.shape), np.broadcast_to(high, numbers.shape))
