"""The tile that each kind of kernel is lowered with, and why a composite cannot run: it has no kernel or no tile."""

from __future__ import annotations

from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Function
from relay_hw.tensorize.kernel import (
    ConvKernel,
    GateKernel,
    KernelSpec,
    MoveKernel,
    PairsKernel,
    PoolKernel,
    ProductKernel,
    RowKernel,
    SelectKernel,
    SwapKernel,
    TransposeKernel,
)
from relay_hw.tensorize.lower.gate import choose_gate
from relay_hw.tensorize.lower.move import choose_move
from relay_hw.tensorize.lower.pairs import choose_pairs
from relay_hw.tensorize.lower.product import choose_product
from relay_hw.tensorize.lower.rows import choose_rows
from relay_hw.tensorize.lower.select import choose_select
from relay_hw.tensorize.match.composite import match
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import choose_conv, choose_pool
from relay_hw.tensorize.tiles.depthwise import choose_depthwise, depthwise_shape
from relay_hw.tensorize.tiles.geometry import pool_shape
from relay_hw.tensorize.tiles.im2col import shapes_of
from relay_hw.tensorize.tiles.sizes import Tile, TransposeTile


def why_not(composite: Function, config: Target) -> str | None:
    """The reason why `config` cannot run the composite function, one sentence; None when it can."""
    try:
        plan_tile(match(composite, config).kernel, config)
    except TensorizeError as error:
        return error.message
    return None


def plan_tile(kernel: KernelSpec, config: Target) -> Tile:
    """The tile that the kernel is lowered with. Raises TensorizeError when none fits."""
    match kernel:
        case ConvKernel() if kernel.groups > 1:
            return choose_depthwise(depthwise_shape(kernel, config), config)
        case TransposeKernel():
            return TransposeTile(tuple(choose_conv(shapes_of(phase, config), config) for phase in kernel.phases))
        case ConvKernel():
            return choose_conv(shapes_of(kernel, config), config)
        case MoveKernel():
            return choose_move(kernel, config)
        case SelectKernel():
            return choose_select(kernel, config)
        case ProductKernel() | SwapKernel():
            return choose_product(kernel, config)
        case PoolKernel():
            return _pool_tile(kernel, config)
        case GateKernel():
            return choose_gate(kernel, config)
        case RowKernel():
            return choose_rows(kernel, config)
        case PairsKernel():
            return choose_pairs(kernel, config)


def _pool_tile(kernel: PoolKernel, config: Target) -> Tile:
    """Through GEMM's lines, or through the ALU where no tile of lines fits."""
    try:
        return choose_depthwise(depthwise_shape(kernel, config), config)
    except TensorizeError:
        return choose_pool(pool_shape(kernel, config), config)
