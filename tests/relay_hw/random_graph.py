"""Random float networks of every kind of layer that the accelerator runs: branches, joins, slices, several results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod, sqrt

import numpy as np

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType

# Maps of more pixels grow no further.
MOST_PIXELS = 100


@dataclass(frozen=True)
class Value:
    """A tensor [1, channels, height, width]."""

    expr: Expr
    channels: int
    height: int
    width: int

    @property
    def size(self) -> tuple[int, int]:
        return self.height, self.width


class RandomGraph:
    """Adds layers to values at random; what does not fit adds nothing."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        channels, height, width = self._int(1, 40), self._int(4, 15), self._int(4, 15)
        self.shape = (channels, height, width)
        self.input = Var("x", TensorType((1, *self.shape), "float32"))
        self.values = [Value(self.input, *self.shape)]

    def module(self) -> IRModule:
        """Two to seven layers; a dense one behind them, or one or two of their results."""
        kinds: tuple[Callable[[Value], Iterator[Value]], ...] = (
            self._conv, self._depthwise, self._grouped, self._transposed, self._max_pool, self._mean_pool,
            self._join, self._slice, self._upsample, self._add, self._clip, self._whole_mean,
        )  # fmt: skip
        for _ in range(self._int(2, 8)):
            recent = self.values[-3:]
            layer = kinds[self._int(0, len(kinds))]
            self.values += layer(recent[self._int(0, len(recent))])
        last = self.values[-1]
        results = [value.expr for value in self.values[-self._int(1, 3) :]]
        if self.rng.random() < 0.3:
            size = last.channels * last.height * last.width
            results = [op.nn.dense(op.nn.batch_flatten(last.expr), self._weight(7, size))]
        body = results[0] if len(results) == 1 else Tuple(results)
        return infer_type(IRModule.from_expr(Function([self.input], body)))

    def _int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def _weight(self, *shape: int) -> Expr:
        return op.const((self.rng.uniform(-1, 1, shape) / sqrt(prod(shape[1:]))).astype("float32"))

    def _relu(self, x: Expr) -> Expr:
        return op.nn.relu(x) if self.rng.random() < 0.6 else x

    def _windows(self, x: Value, extent: int, stride: int, padding: int) -> tuple[int, int] | None:
        height, width = ((size + 2 * padding - extent) // stride + 1 for size in x.size)
        return (height, width) if min(height, width) >= 1 else None

    def _conv(self, x: Value) -> Iterator[Value]:
        kernel, stride, channels = self._int(1, 4), self._int(1, 3), self._int(1, 50)
        padding = self._int(0, kernel)
        size = self._windows(x, kernel, stride, padding)
        if size is not None:
            weight = self._weight(channels, x.channels, kernel, kernel)
            y = op.nn.conv2d(x.expr, weight, strides=(stride, stride), padding=(padding, padding))
            bias = op.const(self.rng.uniform(-1, 1, channels).astype("float32"))
            yield Value(self._relu(op.nn.bias_add(y, bias)), channels, *size)

    def _depthwise(self, x: Value) -> Iterator[Value]:
        kernel, stride, dilation, many = self._int(1, 6), self._int(1, 3), self._int(1, 3), self._int(1, 3)
        extent = (kernel - 1) * dilation + 1
        padding = self._int(0, extent)
        size = self._windows(x, extent, stride, padding)
        if size is not None:
            y = op.nn.conv2d(
                x.expr,
                self._weight(x.channels * many, 1, kernel, kernel),
                strides=(stride, stride),
                padding=(padding, padding),
                dilation=(dilation, dilation),
                groups=x.channels,
            )
            yield Value(self._relu(y), x.channels * many, *size)

    def _grouped(self, x: Value) -> Iterator[Value]:
        groups = [count for count in range(2, x.channels + 1) if x.channels % count == 0]
        if groups:
            count = groups[self._int(0, len(groups))]
            channels = count * self._int(1, 6)
            weight = self._weight(channels, x.channels // count, 3, 3)
            y = op.nn.conv2d(x.expr, weight, padding=(1, 1), groups=count)
            yield Value(self._relu(y), channels, *x.size)

    def _transposed(self, x: Value) -> Iterator[Value]:
        kernel, stride, padding, channels = self._int(2, 5), self._int(1, 3), self._int(0, 2), self._int(1, 30)
        extra = self._int(0, stride)
        height, width = ((size - 1) * stride - 2 * padding + kernel + extra for size in x.size)
        if min(height, width) >= 1 and prod(x.size) <= MOST_PIXELS:
            y = op.nn.conv2d_transpose(
                x.expr,
                self._weight(x.channels, channels, kernel, kernel),
                strides=(stride, stride),
                padding=(padding, padding),
                output_padding=(extra, extra),
            )
            yield Value(self._relu(y), channels, height, width)

    def _max_pool(self, x: Value) -> Iterator[Value]:
        kernel, stride, padding = self._int(2, 4), self._int(1, 3), self._int(0, 2)
        size = self._windows(x, kernel, stride, padding)
        if size is not None:
            y = op.nn.max_pool2d(x.expr, (kernel,) * 2, (stride,) * 2, padding=(padding,) * 2)
            yield Value(y, x.channels, *size)

    def _mean_pool(self, x: Value) -> Iterator[Value]:
        kernel, stride, padding = self._int(2, 4), self._int(1, 3), self._int(0, 2)
        size = self._windows(x, kernel, stride, padding)
        if size is not None:
            y = op.nn.avg_pool2d(x.expr, (kernel,) * 2, (stride,) * 2, padding=(padding,) * 2, count_include_pad=True)
            yield Value(y, x.channels, *size)

    def _whole_mean(self, x: Value) -> Iterator[Value]:
        yield Value(op.nn.global_avg_pool2d(x.expr), x.channels, 1, 1)

    def _twin(self, x: Value, channels: bool) -> Value | None:
        """Another value of the same size."""
        others = [v for v in self.values[1:] if v.size == x.size and (not channels or v.channels == x.channels)]
        return others[self._int(0, len(others))] if others and x.expr is not self.input else None

    def _join(self, x: Value) -> Iterator[Value]:
        other = self._twin(x, channels=False)
        if other is not None:
            yield Value(op.concatenate(Tuple([x.expr, other.expr]), axis=1), x.channels + other.channels, *x.size)

    def _add(self, x: Value) -> Iterator[Value]:
        other = self._twin(x, channels=True)
        if other is not None:
            yield Value(self._relu(op.add(x.expr, other.expr)), x.channels, *x.size)

    def _slice(self, x: Value) -> Iterator[Value]:
        begin = self._int(0, x.channels)
        end = self._int(begin + 1, x.channels + 1)
        yield Value(op.strided_slice(x.expr, (0, begin), (1, end), axes=(0, 1)), end - begin, *x.size)

    def _upsample(self, x: Value) -> Iterator[Value]:
        if prod(x.size) <= MOST_PIXELS:
            yield Value(op.nn.upsampling(x.expr, 2, 2), x.channels, 2 * x.height, 2 * x.width)

    def _clip(self, x: Value) -> Iterator[Value]:
        yield Value(op.clip(x.expr, -0.3, 0.5), x.channels, *x.size)
