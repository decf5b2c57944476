"""Draws networks: `draw(seed)` is a recipe of two to nine layers of every kind, and of the hardware that it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from random import Random
from typing import Final

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import ConfigError
from tests.networks.recipe import Kind, Layer, Recipe, Shape
from tests.networks.shapes import Impossible, extent, shape_of

# Sizes of small configurations, few enough that their Verilog is built once for all networks.
IN_VERILOG: Final[tuple[tuple[tuple[str, int], ...], ...]] = (
    (),
    (("acc_banks", 16), ("burst_beats", 1), ("queue_depth", 2), ("read_outstanding", 1), ("write_outstanding", 1)),
    (("acc_banks", 1), ("burst_beats", 4), ("queue_depth", 2), ("out_lanes", 4)),
)
_BASES: Final = ("default", "tiny", "ecp5", "w4", "wide", "ecp5w4", "ecp5x2")
_CHANGES: Final[dict[str, tuple[int, ...]]] = {
    "acc_banks": (1, 2, 4, 8, 16),
    "burst_beats": (1, 2, 16),
    "queue_depth": (2, 4),
    "read_outstanding": (1, 2),
    "write_outstanding": (1, 4),
    "inp_depth": (512, 2048),
    "wgt_depth": (256, 2048),
    "acc_depth": (512, 1024),
    "out_depth": (256,),
    "uop_depth": (256, 1024),
    "prm_depth": (16, 32),
    "axi_data_bits": (64, 128),
}
_STRATEGIES: Final = ("int8", "int8", "int8-symmetric", "int8-percentile", "int8-tensor", "int8-pow2", "w4a8")
# Maps of more elements grow no further.
_MOST_ELEMENTS: Final = 4000
_TRIES: Final = 20

Drawn = tuple[Kind, tuple[str, ...], dict[str, Shape]]


def draw(seed: int) -> Recipe:
    """The network of this seed."""
    return _Drawing(Random(seed)).recipe(seed)


class _Drawing:
    """Adds layers to the values that there are; one that cannot be is drawn again."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        channels = rng.choice((rng.randint(1, 4), rng.randint(1, 40), rng.choice((8, 16, 32))))
        self.shape: Shape = (1, channels, rng.randint(3, 13), rng.randint(3, 13))
        if rng.random() < 0.12:
            self.shape = (1, rng.randint(1, 12), 16 * rng.randint(1, 3))
        self.values: dict[str, Shape] = {"x": self.shape}
        self.layers: list[Layer] = []

    def recipe(self, seed: int) -> Recipe:
        for _ in range(self.rng.randint(2, 9)):
            self._grow()
        names = list(self.values)
        results = {names[-1], *self.rng.sample(names[1:], self.rng.choice((0, 0, 1)))}
        base, changes = self._hardware()
        return Recipe(
            seed,
            base,
            changes,
            self.rng.choice(_STRATEGIES),
            self.rng.choice(("auto", "auto", "off")),
            self.rng.random() < 0.25,
            self.shape,
            tuple(self.layers),
            tuple(sorted(results, key=names.index)),
        )

    def _hardware(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        if self.rng.random() < 0.35:
            return "tiny", self.rng.choice(IN_VERILOG)
        base = self.rng.choice(_BASES)
        for _ in range(_TRIES):
            names = self.rng.sample(sorted(_CHANGES), self.rng.randint(0, 4))
            changes = {name: self.rng.choice(_CHANGES[name]) for name in names}
            try:
                replace(load_config(base), **changes)
            except ConfigError:
                continue
            return base, tuple(sorted(changes.items()))
        return base, ()

    def _grow(self) -> None:
        """Add one layer, or a short run of them that belong together."""
        for _ in range(_TRIES):
            names = list(self.values)
            x = self.rng.choice((names[-1], names[-1], self.rng.choice(names[-4:])))
            kept = len(self.layers), dict(self.values)
            try:
                for kind, inputs, sizes in self.rng.choice(_OF_RANK[len(self.values[x])])(self, x):
                    self._add(kind, inputs, sizes)
            except Impossible:
                del self.layers[kept[0] :]
                self.values = kept[1]
                continue
            return

    def _add(self, kind: Kind, inputs: tuple[str, ...], sizes: dict[str, Shape]) -> None:
        layer = Layer(f"t{len(self.layers) + 1}", kind, inputs, tuple(sizes.items()))
        shape = shape_of(layer, [self.values[name] for name in inputs])
        if prod(shape) > _MOST_ELEMENTS:
            raise Impossible("too large")
        self.layers.append(layer)
        self.values[layer.name] = shape

    @property
    def last(self) -> str:
        return next(reversed(self.values))

    def _pair(self, low: int, high: int) -> Shape:
        """Two sizes, equal ones twice out of three times."""
        first = self.rng.randint(low, high)
        return (first, first if self.rng.random() < 0.67 else self.rng.randint(low, high))

    def _window(self, kernel: Shape, most_stride: int, dilated: float) -> dict[str, Shape]:
        dilation = self._pair(1, 3) if self.rng.random() < dilated else (1, 1)
        most = extent(kernel, dilation)
        match self.rng.randrange(3):
            case 0:
                pads: Shape = (0, 0, 0, 0)
            case 1:
                pads = (most[0] // 2, most[1] // 2) * 2
            case _:
                pads = tuple(self.rng.randint(0, most[at % 2] - 1) for at in range(4))
        return {"kernel": kernel, "strides": self._pair(1, most_stride), "dilation": dilation, "pads": pads}

    def _twin(self, x: str, axis: int | None = None) -> str:
        """Another value of the same shape, but for one axis. Raises Impossible."""

        def alike(name: str) -> bool:
            shape = self.values[name]
            return len(shape) == len(self.values[x]) and all(
                mine == other or at == axis for at, (mine, other) in enumerate(zip(self.values[x], shape, strict=True))
            )

        found = [name for name in self.values if name != "x" and alike(name)]
        if not found or x == "x":
            raise Impossible("no twin")
        return self.rng.choice(found)

    # Layers of images

    def conv(self, x: str) -> Iterator[Drawn]:
        window = self._window(self._pair(1, 4), 3, 0.25)
        yield Kind.CONV, (x,), {"channels": (self.rng.randint(1, 50),), "groups": (1,), **window}
        yield from self._then()

    def depthwise(self, x: str) -> Iterator[Drawn]:
        channels = self.values[x][1]
        many = channels * self.rng.choice((1, 1, 1, 2, 3))
        window = self._window(self._pair(1, 6), 3, 0.3)
        yield Kind.CONV, (x,), {"channels": (many,), "groups": (channels,), **window}
        yield from self._then()

    def grouped(self, x: str) -> Iterator[Drawn]:
        groups = [count for count in range(2, self.values[x][1] + 1) if self.values[x][1] % count == 0]
        if not groups:
            raise Impossible("one channel")
        count = self.rng.choice(groups)
        window = self._window(self._pair(1, 3), 2, 0.2)
        yield Kind.CONV, (x,), {"channels": (count * self.rng.randint(1, 6),), "groups": (count,), **window}
        yield from self._then()

    def transposed(self, x: str) -> Iterator[Drawn]:
        strides = self._pair(1, 3)
        more = (self.rng.randrange(strides[0]), self.rng.randrange(strides[1]))
        window = {**self._window(self._pair(1, 5), 1, 0.1), "strides": strides, "more": more}
        yield Kind.TRANSPOSED, (x,), {"channels": (self.rng.randint(1, 24),), **window}
        yield from self._then()

    def max_pool(self, x: str) -> Iterator[Drawn]:
        yield Kind.MAX_POOL, (x,), self._window(self._pair(1, 4), 3, 0.15)

    def mean_pool(self, x: str) -> Iterator[Drawn]:
        window = self._window(self._pair(1, 4), 3, 0)
        yield Kind.MEAN_POOL, (x,), {**window, "padded": (int(self.rng.random() < 0.8),)}

    def whole_mean(self, x: str) -> Iterator[Drawn]:
        yield Kind.WHOLE_MEAN, (x,), {}

    def pad_conv(self, x: str) -> Iterator[Drawn]:
        yield (
            self.rng.choice((Kind.PAD, Kind.PAD, Kind.MIRROR)),
            (x,),
            {"pads": tuple(self.rng.randint(0, 2) for _ in range(4))},
        )
        yield from self.rng.choice((self.conv, self.depthwise))(self.last)

    def residual(self, x: str) -> Iterator[Drawn]:
        channels = self.values[x][1]
        window: dict[str, Shape] = {"kernel": (3, 3), "strides": (1, 1), "dilation": (1, 1), "pads": (1, 1, 1, 1)}
        yield Kind.CONV, (x,), {"channels": (channels,), "groups": (1,), **window}
        yield Kind.ADD, self.rng.choice(((self.last, x), (x, self.last))), {}
        yield from self._then()

    def gate(self, x: str) -> Iterator[Drawn]:
        """A factor for each channel, computed from the whole map."""
        window: dict[str, Shape] = {"kernel": (1, 1), "strides": (1, 1), "dilation": (1, 1), "pads": (0, 0, 0, 0)}
        yield Kind.WHOLE_MEAN, (x,), {}
        yield Kind.CONV, (self.last,), {"channels": (self.values[x][1],), "groups": (1,), **window}
        yield self.rng.choice((Kind.SIGMOID, Kind.SIGMOID, Kind.TANH)), (self.last,), {}
        yield Kind.MULTIPLY, (x, self.last), {}
        yield from self._then()

    def upsample(self, x: str) -> Iterator[Drawn]:
        yield Kind.UPSAMPLE, (x,), {"times": self._pair(1, 3)}

    def spread(self, x: str) -> Iterator[Drawn]:
        yield Kind.SPREAD, (x,), {"block": (2,)}

    def shuffle(self, x: str) -> Iterator[Drawn]:
        batch, channels, height, width = self.values[x]
        if channels % 2:
            raise Impossible("no two groups")
        yield Kind.RESHAPE, (x,), {"shape": (batch, 2, channels // 2, height, width)}
        yield Kind.TRANSPOSE, (self.last,), {"axes": (0, 2, 1, 3, 4)}
        yield Kind.RESHAPE, (self.last,), {"shape": (batch, channels, height, width)}

    def flatten(self, x: str) -> Iterator[Drawn]:
        yield Kind.FLATTEN, (x,), {}
        yield from self.dense(self.last)

    def tokens(self, x: str) -> Iterator[Drawn]:
        batch, channels, height, width = self.values[x]
        yield Kind.RESHAPE, (x,), {"shape": (batch, channels, height * width)}
        yield Kind.TRANSPOSE, (self.last,), {"axes": (0, 2, 1)}
        yield from self.dense(self.last)

    def channels_last(self, x: str) -> Iterator[Drawn]:
        yield Kind.TRANSPOSE, (x,), {"axes": (0, 2, 3, 1)}
        yield from self.rng.choice((self.relu, self.reverse, self.tile))(self.last)
        yield Kind.TRANSPOSE, (self.last,), {"axes": (0, 3, 1, 2)}
        yield from self.conv(self.last)

    # Layers of rows

    def dense(self, x: str) -> Iterator[Drawn]:
        yield Kind.DENSE, (x,), {"units": (self.rng.choice((self.rng.randint(1, 40), 16, 32, 48)),)}
        yield from self._then()

    def image(self, x: str) -> Iterator[Drawn]:
        """A vector as an image; rows as one of one row."""
        shape = self.values[x]
        size = shape[-1]
        heights = [count for count in (1, 2, 3, 4) if size % count == 0]
        if len(shape) == 2:
            height = self.rng.choice(heights)
            yield Kind.RESHAPE, (x,), {"shape": (1, size // height, height, 1)}
            return
        yield Kind.TRANSPOSE, (x,), {"axes": (0, 2, 1)}
        batch, depth, rows = self.values[self.last]
        if batch > 1:
            raise Impossible("a batch")
        yield Kind.RESHAPE, (self.last,), {"shape": (1, depth, 1, rows)}
        yield from self.conv(self.last)

    def attention(self, x: str) -> Iterator[Drawn]:
        """Products of heads with one another, then with themselves."""
        batch, _, _ = self.values[x]
        if batch > 1:
            raise Impossible("a batch")
        heads, depth = self.rng.choice((1, 1, 2, 3)), self.rng.choice((16, 16, 32, 12, self.rng.randint(1, 40)))
        sides: list[str] = []
        for _ in range(3):
            yield from self._heads(x, heads, depth)
            sides.append(self.last)
        yield Kind.PRODUCT, (sides[0], sides[1]), {}
        if self.rng.random() < 0.7:
            yield from self.softmax(self.last)
        scores, rows = self.last, self.values[self.last][1]
        yield Kind.TRANSPOSE, (sides[2],), {"axes": (0, 2, 1)}
        yield Kind.PRODUCT, (scores, self.last), {}
        if heads > 1:
            yield Kind.TRANSPOSE, (self.last,), {"axes": (1, 0, 2)}
            yield Kind.RESHAPE, (self.last,), {"shape": (1, rows, heads * depth)}
        yield from self.dense(self.last)

    def _heads(self, x: str, heads: int, depth: int) -> Iterator[Drawn]:
        yield Kind.DENSE, (x,), {"units": (heads * depth,)}
        rows = self.values[self.last][1]
        if heads > 1:
            shape = (rows, heads, depth)
            four = self.rng.random() < 0.4
            yield Kind.RESHAPE, (self.last,), {"shape": (1, *shape) if four else shape}
            yield Kind.TRANSPOSE, (self.last,), {"axes": (0, 2, 1, 3) if four else (1, 0, 2)}
            if four:
                yield Kind.RESHAPE, (self.last,), {"shape": (heads, rows, depth)}

    def softmax(self, x: str) -> Iterator[Drawn]:
        rows, columns = self.values[x][-2:]
        causal = int(len(self.values[x]) > 2 and rows <= columns and self.rng.random() < 0.4)
        yield Kind.SOFTMAX, (x,), {"tenths": (self.rng.choice((10, 3, 25)),), "causal": (causal,)}

    def norm(self, x: str) -> Iterator[Drawn]:
        if self.values[x][-1] < 2:
            raise Impossible("one column")
        yield self.rng.choice((Kind.LAYER_NORM, Kind.RMS_NORM)), (x,), {}
        yield from self.dense(self.last)

    def squeezed(self, x: str) -> Iterator[Drawn]:
        if len(self.values[x]) > max(_OF_RANK) - 1:
            raise Impossible("an axis too many")
        axis = self.rng.randint(0, len(self.values[x]))
        yield Kind.UNSQUEEZE, (x,), {"axis": (axis,)}
        yield from self.rng.choice((self.relu, self.clip, self.reverse))(self.last)
        yield Kind.SQUEEZE, (self.last,), {"axis": (axis,)}

    # Layers of any rank

    def relu(self, x: str) -> Iterator[Drawn]:
        yield Kind.RELU, (x,), {}

    def clip(self, x: str) -> Iterator[Drawn]:
        yield Kind.CLIP, (x,), {"tenths": self.rng.choice(((-3, 5), (0, 60), (0, 4), (-10, 0)))}

    def add(self, x: str) -> Iterator[Drawn]:
        yield Kind.ADD, (x, self._twin(x)), {}
        yield from self._then()

    def multiply(self, x: str) -> Iterator[Drawn]:
        yield Kind.MULTIPLY, (x, self._twin(x)), {}
        yield from self._then()

    def activation(self, x: str) -> Iterator[Drawn]:
        yield self.rng.choice((Kind.SIGMOID, Kind.TANH, Kind.HARD_SWISH)), (x,), {}

    def silu(self, x: str) -> Iterator[Drawn]:
        yield Kind.SIGMOID, (x,), {}
        yield Kind.MULTIPLY, (x, self.last), {}

    def join(self, x: str) -> Iterator[Drawn]:
        rank = len(self.values[x])
        axis = self.rng.choice((1, 1, rank - 1, min(2, rank - 1)))
        others = tuple(self._twin(x, axis) for _ in range(self.rng.choice((1, 1, 2))))
        yield Kind.JOIN, (x, *others), {"axis": (axis,)}

    def slice(self, x: str) -> Iterator[Drawn]:
        axis = self.rng.randrange(1, len(self.values[x]))
        size = self.values[x][axis]
        begin = self.rng.randrange(size)
        end = self.rng.randint(begin + 1, size)
        yield Kind.SLICE, (x,), {"range": (axis, begin, end, self.rng.choice((1, 1, 1, 2)))}

    def reverse(self, x: str) -> Iterator[Drawn]:
        axis = self.rng.randrange(len(self.values[x]))
        yield Kind.SLICE, (x,), {"range": (axis, self.values[x][axis] - 1, -1, -1)}

    def tile(self, x: str) -> Iterator[Drawn]:
        yield Kind.TILE, (x,), {"repeat": (self.rng.randrange(1, len(self.values[x])), 2)}

    def _then(self) -> Iterator[Drawn]:
        """An activation, or none."""
        match self.rng.randrange(8):
            case 0 | 1 | 2:
                yield from self.relu(self.last)
            case 3:
                yield from self.clip(self.last)
            case 4:
                yield from self.rng.choice((self.activation, self.silu))(self.last)
            case _:
                pass


_Draw = Callable[[_Drawing, str], Iterator[Drawn]]
_D = _Drawing
_ANY: Final[tuple[_Draw, ...]] = (
    _D.clip, _D.activation, _D.add, _D.multiply, _D.join, _D.slice, _D.reverse, _D.tile, _D.squeezed,
)  # fmt: skip
_IMAGE: Final[tuple[_Draw, ...]] = (
    _D.conv, _D.conv, _D.conv, _D.depthwise, _D.depthwise, _D.grouped, _D.grouped, _D.transposed, _D.transposed,
    _D.max_pool, _D.max_pool, _D.mean_pool, _D.whole_mean, _D.pad_conv, _D.residual, _D.residual, _D.gate, _D.add,
    _D.join, _D.upsample, _D.spread, _D.shuffle, _D.flatten, _D.tokens, _D.channels_last, *_ANY,
)  # fmt: skip
_ROWS: Final[tuple[_Draw, ...]] = (_D.dense, _D.dense, _D.dense, _D.image, _D.image, _D.norm, _D.softmax, *_ANY)
_OF_RANK: Final[dict[int, tuple[_Draw, ...]]] = {
    2: _ROWS,
    3: (*_ROWS, _D.attention, _D.attention, _D.attention),
    4: _IMAGE,
    5: _ANY,
}
