"""How TVM compiles sums of products for GPUs: channels side by side in a warp, a row of pixels in each thread.

In: TIR functions. Out: TIR functions with blocks and threads. Functions without such sums take TVM's own GPU rules.
"""

from __future__ import annotations

from typing import Any

from relay_hw.backend.tvm.api import ScheduleRule, s_tir, tirx
from relay_hw.backend.tvm.products import PRODUCT, WINDOW

KERNELS = (PRODUCT, WINDOW)
# Output pixels of one thread: each weight that it reads serves all of them.
MAX_PIXELS = 8
# Tiles of pixels that share a block, and with it the weights in the first cache.
TILES = 4
# Kernel columns up to this many are written out, so that neighbouring pixels share what they read.
MAX_UNROLL = 7
# Threads of a block that does elementwise work.
THREADS = 256


class Product(ScheduleRule):
    """Three kinds of kernels: what prepares the operands, the product itself, and what follows it elementwise."""

    def apply(self, func: Any, target: Any, _tunable: bool) -> Any:
        """A schedule, or None where the function is anything but one product between elementwise blocks."""
        if not isinstance(func, tirx.PrimFunc):
            return None
        sch = s_tir.Schedule(func)
        root = sch.get_sblock("root")
        blocks = list(sch.get_child_blocks(root))
        products = [block for block in blocks if _name(sch, block) in KERNELS]
        others = [block for block in blocks if _name(sch, block) not in KERNELS]
        if len(products) != 1 or not all(_is_spatial(sch, block) for block in others):
            return None
        for block in others:
            readers = list(sch.get_consumers(block))
            if len(readers) == 1 and _name(sch, readers[0]) not in KERNELS:
                sch.compute_inline(block)
        for block in sch.get_child_blocks(root):
            if _name(sch, block) == PRODUCT:
                _bind_product(sch, block)
            elif _name(sch, block) == WINDOW:
                _bind_window(sch, block)
            else:
                _bind_plain(sch, block)
        return sch


def _name(sch: Any, block: Any) -> str:
    return str(sch.get(block).name_hint)


def _is_spatial(sch: Any, block: Any) -> bool:
    axes = sch.get(block).iter_vars
    return len(axes) == len(sch.get_loops(block)) and all(axis.iter_type == 0 for axis in axes)


def _bind_plain(sch: Any, block: Any) -> None:
    loops = sch.get_loops(block)
    whole = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    group, thread = sch.split(whole, [None, THREADS])
    sch.bind(group, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")


def _bind_window(sch: Any, window: Any) -> None:
    """One result a thread; neighbouring threads read neighbouring columns."""
    loops = sch.get_loops(window)
    count = sum(axis.iter_type == 0 for axis in sch.get(window).iter_vars)
    local = sch.cache_write(window, 0, "local")
    whole = sch.fuse(*loops[:count])
    group, thread = sch.split(whole, [None, min(THREADS, int(sch.get(whole).extent))])
    sch.bind(group, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.reverse_compute_at(local, thread)
    sch.decompose_reduction(window, loops[count])


def _bind_product(sch: Any, product: Any) -> None:
    loops = sch.get_loops(product)
    count = sum(axis.iter_type == 0 for axis in sch.get(product).iter_vars)
    *outer, column, lane = loops[:count]
    reduce = loops[count:]
    local = sch.cache_write(product, 0, "local")
    width = int(sch.get(column).extent)
    pixels = -(-width // -(-width // MAX_PIXELS))
    tile, pixel = sch.split(column, [None, pixels])
    sch.reorder(*outer, tile, lane, *reduce, pixel)
    whole = sch.fuse(*outer, tile)
    # Without a rest: threads that have nothing to compute would still write.
    neighbours = max(count for count in range(1, TILES + 1) if int(sch.get(whole).extent) % count == 0)
    group, neighbour = sch.split(whole, [None, neighbours])
    sch.bind(group, "blockIdx.x")
    sch.bind(neighbour, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")
    sch.reverse_compute_at(local, lane, preserve_unit_loops=True)
    if len(reduce) > 1 and int(sch.get(reduce[-1]).extent) <= MAX_UNROLL:
        sch.unroll(reduce[-1])
    sch.unroll(pixel)
    sch.unroll(sch.get_loops(local)[-2])
    sch.decompose_reduction(product, reduce[0])
