"""ONNX operators of algebra and signals: Einsum, Det, Hardmax, Fourier transforms, mel weights, optimizers' steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relay_hw import op
from relay_hw.errors import UnsupportedError
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, known_inputs
from relay_hw.ir.expr import Expr
from relay_hw.op import const

TRAINING = "ai.onnx.preview.training"


def _einsum(node: Node, args: Arguments) -> Expr:
    return op.einsum(args.all(), node.attr("equation"))


def _det(node: Node, args: Arguments) -> Expr:
    return op.contraction.det(args[0])


def _hardmax(node: Node, args: Arguments) -> Expr:
    """1 at the first largest element of an axis; before opset 13 everything from the axis on was one axis."""
    shape = args.shape(args[0])
    axis = node.attr("axis", 1 if node.opset < 13 else -1) % max(len(shape), 1)
    data = args[0]
    if node.opset < 13:
        data, axis = op.reshape(data, (int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))), 1
    depth, dtype = args.shape(data)[axis], args.dtype(data)
    ones = op.one_hot(op.argmax(data, axis), const(1, dtype), const(0, dtype), depth, axis, dtype)
    return op.reshape(ones, shape) if node.opset < 13 else ones


def _dft(node: Node, args: Arguments) -> Expr:
    length = 0
    if node.has_input(1):
        known = args.array(1)
        if known is None:
            raise UnsupportedError(f"input 1 ({node.inputs[1]}) must be a constant")
        length = int(np.ravel(known)[0])
    if node.opset >= 20:
        axis = args[2] if node.has_input(2) else const(np.int64(-2))
    else:
        axis = const(np.int64(node.attr("axis", 1)))
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    return op.signal.dft_along(args[0], axis, inverse, onesided, length)


def _stft(node: Node, args: Arguments) -> Expr:
    window = args.get(2)
    if window is None:
        size = op.reshape(op.cast(args[3], "int64"), (1,))
        window = op.dynamic.full(args.scalar(1, args[0]), size)
    return op.signal.frames(args[0], args[1], window, bool(node.attr("onesided", 1)))


def _mel_weights(node: Node, args: Arguments) -> Expr:
    """Mel filter bank: a triangle over the frequencies for each band; sizes are known, so it is a constant."""
    from relay_hw.frontend.onnx.cast import DTYPES

    bands, length, rate, low, high = (np.ravel(np.asarray(args.array(index)))[0].item() for index in range(5))
    args.reserve((length // 2 + 1, bands + 2), "float64")
    least, most = (2595 * np.log10(1 + hertz / 700) for hertz in (low, high))
    mels = least + np.arange(bands + 2) * (most - least) / (bands + 2)
    bins = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    found = np.zeros((length // 2 + 1, bands))
    for band in range(bands):
        left, center, right = bins[band : band + 3]
        if center == left:
            found[center, band] = 1
        else:
            found[left : center + 1, band] = np.arange(center - left + 1) / (center - left)
        if right > center:
            found[center:right, band] = (right - np.arange(center, right)) / (right - center)
    return const(found.astype(DTYPES[node.attr("output_datatype", 1)]))


UpdateRule = Callable[[Node, Arguments, Expr, Expr, Sequence[Expr]], Sequence[Expr]]


def _steps(states: int, step: UpdateRule) -> Callable[[Node, Arguments], Sequence[Expr]]:
    """An optimizer's step. Inputs: all tensors, all gradients, then each state of all; outputs without gradients."""

    def convert(node: Node, args: Arguments) -> Sequence[Expr]:
        tensors = args.all()[2:]
        count = len(tensors) // (2 + states)
        rows = [step(node, args, tensors[at], tensors[count + at], tensors[2 * count + at :: count])
                for at in range(count)]  # fmt: skip
        return [row[part] for part in range(1 + states) for row in rows]

    return convert


def _regularized(node: Node, args: Arguments, tensor: Expr, gradient: Expr) -> Expr:
    return op.add(op.multiply(args.scalar(node.attr("norm_coefficient", 0.0), tensor), tensor), gradient)


def _weighted(args: Arguments, factor: float, tensor: Expr) -> Expr:
    return op.multiply(args.scalar(factor, tensor), tensor)


def _adagrad(node: Node, args: Arguments, x: Expr, g: Expr, states: Sequence[Expr]) -> Sequence[Expr]:
    decay = _weighted(args, node.attr("decay_factor", 0.0), op.cast(args[1], args.dtype(x)))
    rate = op.divide(op.cast(args[0], args.dtype(x)), op.add(args.scalar(1, x), decay))
    slope = _regularized(node, args, x, g)
    total = op.add(states[0], op.multiply(slope, slope))
    scale = op.add(op.sqrt(total), args.scalar(node.attr("epsilon", 1e-6), x))
    return [op.subtract(x, op.divide(op.multiply(rate, slope), scale)), total]


def _adam(node: Node, args: Arguments, x: Expr, g: Expr, states: Sequence[Expr]) -> Sequence[Expr]:
    alpha, beta = node.attr("alpha", 0.9), node.attr("beta", 0.999)
    slope, dtype, one = _regularized(node, args, x, g), args.dtype(x), args.scalar(1, x)
    first = op.add(_weighted(args, alpha, states[0]), _weighted(args, 1 - alpha, slope))
    second = op.add(_weighted(args, beta, states[1]), _weighted(args, 1 - beta, op.multiply(slope, slope)))
    rate, time = op.cast(args[0], dtype), op.cast(args[1], dtype)
    powers = [op.subtract(one, op.power(args.scalar(factor, x), time)) for factor in (alpha, beta)]
    corrected = op.divide(op.multiply(rate, op.sqrt(powers[1])), powers[0])
    rate = op.where(op.greater(time, args.scalar(0, time)), corrected, rate)
    scale = op.add(op.sqrt(second), args.scalar(node.attr("epsilon", 1e-6), x))
    moved = op.subtract(x, op.divide(op.multiply(rate, first), scale))
    post = node.attr("norm_coefficient_post", 0.0)
    return [_weighted(args, 1 - post, moved) if post else moved, first, second]


def _momentum(node: Node, args: Arguments, x: Expr, g: Expr, states: Sequence[Expr]) -> Sequence[Expr]:
    slope, dtype = _regularized(node, args, x, g), args.dtype(x)
    alpha, beta = args.scalar(node.attr("alpha"), x), args.scalar(node.attr("beta"), x)
    first = op.greater(op.cast(args[1], dtype), args.scalar(0, x))
    factor = op.where(first, beta, args.scalar(1, x))
    speed = op.add(op.multiply(alpha, states[0]), op.multiply(factor, slope))
    way = op.add(slope, op.multiply(alpha, speed)) if node.attr("mode") == "nesterov" else speed
    return [op.subtract(x, op.multiply(op.cast(args[0], dtype), way)), speed]


def _check_momentum(node: Node, known: Known) -> str | None:
    mode = node.attr("mode")
    return None if mode in ("standard", "nesterov") else f"mode must be standard or nesterov, not {mode}"


CONVERTERS = (
    Converter("DFT", _dft),
    Converter("Det", _det),
    Converter("Einsum", _einsum),
    Converter("Hardmax", _hardmax),
    Converter("MelWeightMatrix", _mel_weights, known_inputs(0, 1, 2, 3, 4)),
    Converter("STFT", _stft),
    Converter("Adagrad", _steps(1, _adagrad), None, TRAINING),
    Converter("Adam", _steps(2, _adam), None, TRAINING),
    Converter("Momentum", _steps(1, _momentum), _check_momentum, TRAINING),
)
