"""What one fused function computes: the value that the matcher hands to tiling and lowering.

In: nothing of Relay, nothing of a configuration. Out: windows and integer weights, with the numbers of `stages.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.spec import RowKind
from relay_hw.tensorize.stages import AddStage, Int64, MulStage, Requantize, RowStage, Table

Int8 = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Image:
    """Logical size of one activation; a vector of n channels is 1 x 1 x n."""

    height: int
    width: int
    channels: int

    @property
    def pixels(self) -> int:
        return self.height * self.width

    def __str__(self) -> str:
        return f"{self.height}x{self.width}x{self.channels}"


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window: (height, width) pairs; padding is (top, left, bottom, right) pixels of `pad_value`."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    pad_value: int = 0

    @property
    def extent(self) -> tuple[int, int]:
        """Pixels from the first to the last that one window meets."""
        return (self.kernel[0] - 1) * self.dilation[0] + 1, (self.kernel[1] - 1) * self.dilation[1] + 1

    @property
    def taps(self) -> int:
        """Pixels that one window reads."""
        return self.kernel[0] * self.kernel[1]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the results of one part of a layer lie in a whole `image`: pixels from `first`, every `step`-th, and
    their channels from `channel` on. `plane_blocks`: blocks of channels in a plane; the planes, each with all pixels,
    lie behind each other. 0: all channels of a pixel lie together.
    """

    image: Image
    first: tuple[int, int]
    step: tuple[int, int]
    channel: int = 0
    plane_blocks: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the pixels of a tensor lie in a larger one, in bytes: the first, and the steps of rows and columns.

    `block_stride`: from one block of a pixel's channels to the next; 0 where they follow each other.
    """

    begin: int
    row_stride: int
    col_stride: int
    block_stride: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ConvKernel:
    """Convolution or dense layer. weights: int8 [out channels, kernel height, kernel width, in channels of a group].

    `residual`: the second input is added behind the requantized sum, or multiplied with it. `flat`: the window is the
    whole input (dense). `rows`: the input lies as plain rows of bytes, see `fold`. `place`: where it computes a part of
    the result only. `origin`: where it reads a part of an activation.
    """

    source: Image
    target: Image
    window: Window
    weights: Int8
    requantize: Requantize
    residual: AddStage | MulStage | None = None
    rows: bool = False
    groups: int = 1
    place: Place | None = None
    origin: Origin | None = None

    @property
    def flat(self) -> bool:
        """True where one window covers the whole unpadded input, so that its bytes are one long vector."""
        whole = self.window.kernel == (self.source.height, self.source.width)
        return whole and self.window.padding == (0, 0, 0, 0) and self.target.pixels == 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layer, without any padding of channels."""
        return self.target.pixels * self.weights.size


@dataclass(frozen=True, slots=True, eq=False)
class TransposeKernel:
    """Transposed convolution as convolutions of stride 1 on one input, each for every n-th row and column."""

    source: Image
    target: Image
    phases: tuple[ConvKernel, ...]
    macs: int


class PoolKind(Enum):
    """How a pool combines the pixels of a window."""

    MAX = "max"
    SUM = "sum"


@dataclass(frozen=True, slots=True, eq=False)
class PoolKernel:
    """Max pool (requantize None) or sum pool."""

    source: Image
    target: Image
    window: Window
    kind: PoolKind
    requantize: Requantize | None = None
    place: Place | None = None
    origin: Origin | None = None

    @property
    def macs(self) -> int:
        """Pools multiply nothing."""
        return 0


@dataclass(frozen=True, slots=True)
class Leaf:
    """An operand that a layer reads: input number `source`, its channels in another order where `select` says so."""

    source: int
    select: SelectKernel | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A sum or a product of two operands, each of which may be another one."""

    stage: AddStage | MulStage
    y: Leaf | Pair
    r: Leaf | Pair

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """What is read, in order; one more than there are pairs."""
        return tuple(leaf for side in (self.y, self.r) for leaf in ((side,) if isinstance(side, Leaf) else side.leaves))

    @property
    def stages(self) -> tuple[AddStage | MulStage, ...]:
        """In the order of computing: operands first."""
        return (*(stage for side in (self.y, self.r) if isinstance(side, Pair) for stage in side.stages), self.stage)


@dataclass(frozen=True, slots=True)
class PairsKernel:
    """Requantizing sums and products of activations of the same size, one inside the other, `root` the last.

    `planes`: the result lies as planes, one block of channels of all pixels behind the other.
    """

    source: Image
    root: Pair
    planes: bool = False

    @property
    def select(self) -> SelectKernel | None:
        """What reorders the channels of an operand: of one at most."""
        return next((leaf.select for leaf in self.root.leaves if leaf.select is not None), None)

    @property
    def target(self) -> Image:
        """Size of the result."""
        return self.source

    @property
    def macs(self) -> int:
        """The output stage's products are not counted."""
        return 0


@dataclass(frozen=True, slots=True)
class GateKernel:
    """Requantizing product of an activation and a single pixel."""

    source: Image
    stage: MulStage

    @property
    def target(self) -> Image:
        """Size of the result."""
        return self.source

    @property
    def macs(self) -> int:
        """The output stage's products are not counted."""
        return 0


@dataclass(frozen=True, slots=True)
class Move:
    """A copy of `size` (rows, columns, channel blocks) of input number `source`, to every `step`-th pixel from `first`.

    `begin` and the strides are bytes of the input, `block` the result's first channel block. Blocks are contiguous.
    """

    source: int
    begin: int
    row_stride: int
    col_stride: int
    size: tuple[int, int, int]
    first: tuple[int, int]
    step: tuple[int, int]
    block: int


@dataclass(frozen=True, slots=True)
class MoveKernel:
    """Copies that together make the whole result, every value kept in `bounds`, then through `table`."""

    sources: tuple[Image, ...]
    target: Image
    moves: tuple[Move, ...]
    bounds: tuple[int, int] = (-128, 127)
    table: Table | None = None

    @property
    def only_moves(self) -> bool:
        """Whether every value stays what it is."""
        return self.bounds == (-128, 127) and self.table is None

    @property
    def macs(self) -> int:
        """Nothing is multiplied."""
        return 0


@dataclass(frozen=True, slots=True, eq=False)
class ProductKernel:
    """For each head the rows of `left` times those of `right`: sums over channels. Rows are an image's columns.

    `origins`: where the left and the right operand lie in other activations; `place`: where the result does. `tiled`:
    the right operand lies as tiles of weights. `rest`: a third operand, whose channels follow those of the right one.
    """

    left: Image
    right: Image
    target: Image
    requantize: Requantize
    origins: tuple[Origin | None, Origin | None] = (None, None)
    place: Origin | None = None
    tiled: bool = False
    rest: Image | None = None

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.target.pixels * self.target.channels * self.left.channels


@dataclass(frozen=True, slots=True)
class SwapKernel:
    """For each head a matrix with rows and columns swapped; `identity` is a constant of BLOCK_IN rows.

    Row r of head h begins at byte `begins[h]` + r `row_stride` of the input, its blocks are `block_stride` apart, or
    follow each other where that is 0. `place`: where the result lies.
    """

    source: Image
    identity: Image
    target: Image
    begins: tuple[int, ...]
    row_stride: int
    block_stride: int = 0
    place: Origin | None = None

    @property
    def macs(self) -> int:
        """Products with the identity are no work."""
        return 0


@dataclass(frozen=True, slots=True)
class SelectKernel:
    """Each pixel's channels from the same pixel of the inputs: `picks` are (input, channel), one for each channel."""

    sources: tuple[Image, ...]
    target: Image
    picks: tuple[tuple[int, int], ...]

    @property
    def macs(self) -> int:
        """Products with one and zero are no work."""
        return 0


@dataclass(frozen=True, slots=True, eq=False)
class RowKernel:
    """Softmax or a norm of each pixel's channels.

    `gain`, `bias`: int64 [channels] of a norm's channels; of softmax `gain` has an entry for each distance from the
    largest channel. `visible`: int64 [pixels], how many channels of each pixel take part in its softmax. `bound`: where
    no more take part than an input says, the inputs behind the first one: that number's bytes, and the exponentials.
    """

    source: Image
    kind: RowKind
    stage: RowStage
    gain: Int64
    bias: Int64
    visible: Int64
    bound: tuple[Image, ...] = ()

    @property
    def target(self) -> Image:
        """Size of the result."""
        return self.source

    @property
    def macs(self) -> int:
        """The row unit's products are not counted."""
        return 0


KernelSpec = (
    ConvKernel
    | TransposeKernel
    | PoolKernel
    | PairsKernel
    | GateKernel
    | MoveKernel
    | ProductKernel
    | SwapKernel
    | SelectKernel
    | RowKernel
)


def kernel_tables(kernel: KernelSpec) -> tuple[Table, ...]:
    """Tables of the output stage that the kernel's results go through."""
    match kernel:
        case ConvKernel():
            found = [kernel.requantize.table, None if kernel.residual is None else kernel.residual.table]
        case PoolKernel():
            found = [None if kernel.requantize is None else kernel.requantize.table]
        case TransposeKernel():
            found = [phase.requantize.table for phase in kernel.phases]
        case PairsKernel():
            found = [stage.table for stage in kernel.root.stages]
        case GateKernel():
            found = [kernel.stage.table]
        case MoveKernel():
            found = [kernel.table]
        case ProductKernel():
            found = [kernel.requantize.table]
        case SwapKernel() | SelectKernel() | RowKernel():
            found = []
    return tuple(dict.fromkeys(table for table in found if table is not None))


def kernel_inputs(kernel: KernelSpec) -> tuple[Image, ...]:
    """Sizes of the activations that the kernel reads, in the order of its parameters."""
    match kernel:
        case ConvKernel():
            return (kernel.source,) if kernel.residual is None else (kernel.source, kernel.target)
        case PoolKernel() | TransposeKernel():
            return (kernel.source,)
        case RowKernel():
            return (kernel.source, *kernel.bound)
        case PairsKernel():
            return (kernel.source,) * (1 + max(leaf.source for leaf in kernel.root.leaves))
        case GateKernel():
            return (kernel.source, Image(1, 1, kernel.source.channels))
        case MoveKernel() | SelectKernel():
            return kernel.sources
        case ProductKernel():
            return (kernel.left, kernel.right, *([kernel.rest] if kernel.rest else []))
        case SwapKernel():
            return (kernel.source, kernel.identity)
