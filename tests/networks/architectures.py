"""What published architectures are made of, on small images with drawn weights: networks for tests that run whole ones.

In: a name of `ARCHITECTURES`. Out: a typed module with one input `image`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Expr, Function, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType

ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "relu": op.nn.relu,
    "relu6": lambda x: op.clip(x, 0, 6),
    "leaky": lambda x: op.nn.leaky_relu(x, 0.1),
    "none": lambda x: x,
}


class Net:
    """Layers by name; the channels of every tensor are known."""

    def __init__(self, channels: int, size: int) -> None:
        self._rng = np.random.default_rng(0)
        self.image = Var("image", TensorType((1, channels, size, size), "float32"))
        self._channels: dict[Expr, int] = {self.image: channels}

    def module(self, *results: Expr) -> IRModule:
        """The network with these results."""
        body = results[0] if len(results) == 1 else Tuple(results)
        return infer_type(IRModule({"main": Function([self.image], body)}))

    def channels(self, x: Expr) -> int:
        """Channels of a tensor made here."""
        return self._channels[x]

    def of(self, x: Expr, channels: int) -> Expr:
        """Note the channels of a tensor."""
        self._channels[x] = channels
        return x

    def vector(self, low: float, high: float, size: int) -> Expr:
        """Numbers between two."""
        return op.const(self._rng.uniform(low, high, size).astype(np.float32))

    def weight(self, *shape: int, fan_in: int) -> Expr:
        """Normal numbers that keep the deviation of what a ReLU leaves."""
        return op.const((self._rng.normal(size=shape) * np.sqrt(2 / fan_in)).astype(np.float32))

    def norm(self, x: Expr) -> Expr:
        """A batch norm."""
        count = self.channels(x)
        ranges = ((0.8, 1.2), (-0.1, 0.1), (-0.1, 0.1), (0.8, 1.2))
        values = (self.vector(*one, count) for one in ranges)
        return self.of(TupleGetItem(op.nn.batch_norm(x, *values), 0), count)

    def conv(
        self, x: Expr, out: int, kernel: int | tuple[int, int] = 3, stride: int = 1, act: str = "relu", **more: int
    ) -> Expr:
        """A convolution with its batch norm. `more`: groups, dilation; pad, by default what keeps the size."""
        high, wide = (kernel, kernel) if isinstance(kernel, int) else kernel
        groups, dilation = more.get("groups", 1), more.get("dilation", 1)
        inner = self.channels(x) // groups
        pads = [more.get("pad", dilation * (size - 1) // 2) for size in (high, wide)]
        weight = self.weight(out, inner, high, wide, fan_in=inner * high * wide)
        y = op.nn.conv2d(x, weight, (stride, stride), pads, (dilation, dilation), groups)
        return self.of(ACTIVATIONS[act](self.norm(self.of(y, out))), out)

    def plain(self, x: Expr, out: int, kernel: int = 1, stride: int = 1) -> Expr:
        """A convolution alone."""
        inner = self.channels(x)
        weight = self.weight(out, inner, kernel, kernel, fan_in=inner * kernel**2)
        return self.of(op.nn.conv2d(x, weight, (stride, stride), padding=kernel // 2), out)

    def larger(self, x: Expr, out: int) -> Expr:
        """A transposed convolution of 2x2."""
        inner = self.channels(x)
        return self.of(op.nn.conv2d_transpose(x, self.weight(inner, out, 2, 2, fan_in=inner), strides=(2, 2)), out)

    def join(self, *parts: Expr) -> Expr:
        """Channels one behind the other."""
        return self.of(op.concatenate(list(parts), 1), sum(map(self.channels, parts)))

    def add(self, x: Expr, y: Expr, act: str = "none") -> Expr:
        """A sum, and an activation."""
        return self.of(ACTIVATIONS[act](op.add(x, y)), self.channels(x))

    def like(self, x: Expr, y: Expr) -> Expr:
        """`y`, which has the channels of `x`."""
        return self.of(y, self.channels(x))

    def max(self, x: Expr, kernel: int = 2, stride: int = 2, pad: int = 0) -> Expr:
        """The largest of windows."""
        return self.like(x, op.nn.max_pool2d(x, (kernel, kernel), (stride, stride), padding=pad))

    def mean(self, x: Expr, kernel: int, stride: int, pad: int = 0, ceil_mode: bool = False) -> Expr:
        """The mean of windows, padding not counted."""
        return self.like(x, op.nn.avg_pool2d(x, (kernel, kernel), (stride, stride), padding=pad, ceil_mode=ceil_mode))

    def whole(self, x: Expr) -> Expr:
        """The mean of the image."""
        return self.like(x, op.nn.global_avg_pool2d(x))

    def classes(self, x: Expr, count: int = 10) -> Expr:
        """The mean of the image, a dense layer."""
        inner = self.channels(x)
        flat = op.nn.batch_flatten(self.whole(x))
        return op.nn.bias_add(op.nn.dense(flat, self.weight(count, inner, fan_in=inner)), self.vector(-1, 1, count))


def googlenet() -> IRModule:
    """Four paths side by side, one of them a pool with padding."""
    net = Net(3, 64)
    x = net.conv(net.max(net.conv(net.image, 16, 7, 2), 3, 2, 1), 32)
    for first, second, third in ((16, 32, 16), (32, 32, 16), (24, 20, 12)):
        pool = net.max(x, 3, 1, 1) if first == 16 else net.mean(x, 3, 1, 1)
        inner, small = net.conv(x, 16, 1), net.conv(x, 8, 1)
        x = net.join(net.conv(x, first, 1), net.conv(inner, second), net.conv(small, third, 5), net.conv(pool, 16, 1))
    return net.module(net.classes(x))


def inception() -> IRModule:
    """Long kernels one way and the other, layers without padding."""
    net = Net(3, 75)
    x = net.conv(net.conv(net.conv(net.image, 8, 3, 2, pad=0), 8, 3, pad=0), 16)
    x = net.conv(net.max(x, 3, 2), 32, 1)
    deep = net.conv(net.conv(net.conv(x, 16, 1), 16), 16)
    x = net.join(net.conv(x, 16, 1), net.conv(net.conv(x, 16, 1), 16, 5), deep, net.conv(net.mean(x, 3, 1, 1), 16, 1))
    x = net.join(net.conv(x, 16, 3, 2, pad=0), net.max(x, 3, 2))
    y = net.of(op.nn.pad(net.conv(x, 16, 1), ((0, 0), (0, 0), (0, 0), (3, 3))), 16)
    y = net.of(op.nn.pad(net.conv(y, 16, (1, 7), pad=0), ((0, 0), (0, 0), (3, 3), (0, 0))), 16)
    return net.module(net.classes(net.join(net.conv(x, 16, 1), net.conv(y, 16, (7, 1), pad=0))))


def shufflenet() -> IRModule:
    """Halves of the channels, depthwise layers, channels in another order."""
    net = Net(3, 64)
    x, size = net.max(net.conv(net.image, 24, 3, 2), 3, 2, 1), 16

    def shuffled(y: Expr) -> Expr:
        count = net.channels(y)
        parts = op.transpose(op.reshape(y, (1, 2, count // 2, size, size)), (0, 2, 1, 3, 4))
        return net.of(op.reshape(parts, (1, count, size, size)), count)

    def path(y: Expr, out: int, stride: int) -> Expr:
        y = net.conv(y, out, 1)
        return net.conv(net.conv(y, out, 3, stride, "none", groups=out), out, 1)

    for out in (64, 128):
        left = net.conv(x, net.channels(x), 3, 2, "none", groups=net.channels(x))
        x, size = net.join(net.conv(left, out // 2, 1), path(x, out // 2, 2)), size // 2
        x = shuffled(x)
        halves = [op.strided_slice(x, (0, at, 0, 0), (1, at + out // 2, size, size)) for at in (0, out // 2)]
        kept, worked = (net.of(half, out // 2) for half in halves)
        x = shuffled(net.join(kept, path(worked, out // 2, 1)))
    return net.module(net.classes(x))


def unet() -> IRModule:
    """Down and up again, each size joined with what it was on the way down."""
    net = Net(3, 32)
    first = net.conv(net.conv(net.image, 16), 16)
    second = net.conv(net.conv(net.max(first), 32), 32)
    x = net.larger(net.conv(net.conv(net.max(second), 64), 64), 32)
    x = net.larger(net.conv(net.join(x, second), 32), 16)
    return net.module(net.plain(net.conv(net.join(x, first), 16), 2))


def yolo() -> IRModule:
    """Leaky ReLUs, a pool of stride 1, results of two sizes."""
    net = Net(3, 64)
    x = net.conv(net.image, 8, act="leaky")
    for out in (16, 32, 64):
        x = net.conv(net.max(x), out, act="leaky")
    y = net.conv(net.max(x), 128, act="leaky")
    y = net.like(y, op.nn.max_pool2d(net.like(y, op.nn.pad(y, ((0, 0), (0, 0), (0, 1), (0, 1)))), (2, 2), (1, 1)))
    y = net.conv(y, 64, 1, act="leaky")
    z = net.conv(y, 32, 1, act="leaky")
    z = net.conv(net.join(net.like(z, op.nn.upsampling(z, 2, 2)), x), 64, act="leaky")
    return net.module(net.plain(net.conv(y, 128, act="leaky"), 24), net.plain(z, 24))


def squeezenet() -> IRModule:
    """Layers without batch norms, squeezed and expanded; classes are a mean of the image."""
    net = Net(3, 64)
    x = net.max(net.of(op.nn.relu(net.plain(net.image, 16, 3, 2)), 16), 3, 2)
    for out in (16, 16, 32):
        y = net.of(op.nn.relu(net.plain(x, out // 2)), out // 2)
        x = net.join(*(net.of(op.nn.relu(net.plain(y, out, kernel)), out) for kernel in (1, 3)))
    return net.module(net.whole(net.of(op.nn.relu(net.plain(x, 10)), 10)))


def resnext() -> IRModule:
    """Layers in groups."""
    net = Net(3, 32)
    x = net.conv(net.image, 32)
    for out, stride in ((64, 1), (128, 2)):
        y = net.conv(net.conv(net.conv(x, out, 1), out, 3, stride, groups=8), 2 * out, 1, act="none")
        x = net.add(y, net.conv(x, 2 * out, 1, stride, "none"), "relu")
    return net.module(net.classes(x))


def preactivated() -> IRModule:
    """Batch norm and ReLU in front of layers: no layer takes them in."""
    net = Net(3, 32)
    x = net.plain(net.image, 16, 3)

    def norm_relu(y: Expr) -> Expr:
        return net.like(y, op.nn.relu(net.norm(y)))

    for out, stride in ((16, 1), (32, 2), (64, 2)):
        y = norm_relu(x)
        short = x if out == net.channels(x) else net.plain(y, out, 1, stride)
        x = net.add(net.plain(norm_relu(net.plain(y, out, 3, stride)), out, 3), short)
    return net.module(net.classes(norm_relu(x)))


def zero_shortcuts() -> IRModule:
    """Shortcuts of the first residual networks: every other pixel, zeros for new channels."""
    net, size = Net(3, 32), 32
    x = net.conv(net.image, 16)
    for out in (32, 64):
        more = (out - net.channels(x)) // 2
        short = op.strided_slice(x, (0, 0, 0, 0), (1, net.channels(x), size, size), (1, 1, 2, 2))
        short = net.of(op.nn.pad(short, ((0, 0), (more, more), (0, 0), (0, 0))), out)
        x, size = net.add(net.conv(net.conv(x, out, 3, 2), out, act="none"), short, "relu"), size // 2
    return net.module(net.classes(x))


def deeplab() -> IRModule:
    """Dilated layers side by side, and the mean of the image in each pixel."""
    net = Net(3, 64)
    x = net.conv(net.conv(net.conv(net.image, 16, 3, 2), 32, 3, 2), 48, 3, 2)
    image = net.of(op.tile(net.conv(net.whole(x), 16, 1), (1, 1, 8, 8)), 16)
    parts = (net.conv(x, 16, 1), *(net.conv(x, 16, 3, dilation=step) for step in (2, 4)), image)
    return net.module(net.plain(net.conv(net.join(*parts), 32, 1), 5))


def pyramid() -> IRModule:
    """Sums of one size with the next smaller one, results of three."""
    net = Net(3, 64)
    sizes: list[Expr] = [net.image]
    for out in (16, 32, 64):
        sizes.append(net.conv(sizes[-1], out, 3, 2))
    levels = [net.plain(sizes[3], 32)]
    for x in (sizes[2], sizes[1]):
        levels.append(net.add(net.plain(x, 32), net.like(levels[-1], op.nn.upsampling(levels[-1], 2, 2))))
    return net.module(*(net.conv(level, 12) for level in levels))


def mean_shortcuts() -> IRModule:
    """Shortcuts that average before they stride, on maps of odd sizes."""
    net = Net(3, 58)
    x = net.max(net.conv(net.image, 16, 3, 2), 3, 2, 1)
    for out in (32, 64):
        y = net.conv(net.conv(x, out, 3, 2), out, act="none")
        x = net.add(y, net.conv(net.mean(x, 2, 2, ceil_mode=True), out, 1, act="none"), "relu")
    return net.module(net.classes(x))


def slopes() -> IRModule:
    """PReLUs."""
    net = Net(3, 32)
    x: Expr = net.image
    for out in (16, 32):
        x = net.conv(x, out, 3, 2, "none")
        x = net.of(op.nn.prelu(x, net.vector(0.1, 0.4, out)), out)
    return net.module(net.classes(x))


ARCHITECTURES: Sequence[Callable[[], IRModule]] = (
    googlenet, inception, shufflenet, unet, yolo, squeezenet, resnext, preactivated, zero_shortcuts, deeplab, pyramid,
    mean_shortcuts, slopes,
)  # fmt: skip
