"""TVM schedules for reductions on GPUs: products with channels across a warp, windows with one result per thread.

In: TIR functions. Out: TIR functions with blocks and threads. Long sums take TVM's own GPU rules.
"""

from __future__ import annotations

from math import prod
from typing import Any

from relay_hw.backend.tvm.api import ScheduleRule, s_tir, tirx
from relay_hw.backend.tvm.products import PRODUCT

# Output pixels of one thread: each weight that it reads serves all of them.
MAX_PIXELS = 8
# Tiles of pixels that share a block, and with it the weights in the first cache.
TILES = 4
# Up to this many kernel columns are unrolled, so that neighbouring pixels share their loads.
MAX_UNROLL = 7
# Threads of a block that does elementwise work.
THREADS = 256
# A thread sums up to this many elements alone; more are better shared among threads.
MAX_ALONE = 128


class ShortSum(ScheduleRule):
    """Three kinds of kernels: what prepares the operands, the sum itself, and what follows it elementwise."""

    def apply(self, func: Any, target: Any, _tunable: bool) -> Any:
        """A schedule, or None if the function is anything but one product or short sum among elementwise blocks."""
        if not isinstance(func, tirx.PrimFunc):
            return None
        sch = s_tir.Schedule(func)
        root = sch.get_sblock("root")
        blocks = list(sch.get_child_blocks(root))
        sums = [block for block in blocks if not _is_spatial(sch, block)]
        if len(sums) != 1 or not (_name(sch, sums[0]) == PRODUCT or _is_short(sch, sums[0])):
            return None
        name = _name(sch, sums[0])
        for block in blocks:
            readers = list(sch.get_consumers(block))
            if len(readers) == 1 and name not in (_name(sch, block), _name(sch, readers[0])):
                sch.compute_inline(block)
        for block in sch.get_child_blocks(root):
            if _name(sch, block) != name:
                _bind_plain(sch, block)
            elif name == PRODUCT:
                _bind_product(sch, block)
            else:
                _bind_window(sch, block)
        return sch


def _name(sch: Any, block: Any) -> str:
    return str(sch.get(block).name_hint)


def _is_spatial(sch: Any, block: Any) -> bool:
    axes = sch.get(block).iter_vars
    return len(axes) == len(sch.get_loops(block)) and all(axis.iter_type == 0 for axis in axes)


def _is_short(sch: Any, block: Any) -> bool:
    """Whether a block sums few elements for each of its results, and has a loop for each axis, those summed last."""
    axes, loops = sch.get(block).iter_vars, sch.get_loops(block)
    kinds = [int(axis.iter_type) for axis in axes]
    if len(axes) != len(loops) or kinds != sorted(kinds) or set(kinds) != {0, 2} or len(sch.get(block).writes) != 1:
        return False
    extents = [sch.get(loop).extent for loop in loops[kinds.index(2) :]]
    return all(isinstance(e, (int, tirx.IntImm)) for e in extents) and prod(int(e) for e in extents) <= MAX_ALONE


def _bind_plain(sch: Any, block: Any) -> None:
    loops = sch.get_loops(block)
    whole = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    group, thread = sch.split(whole, [None, THREADS])
    sch.bind(group, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")


def _bind_window(sch: Any, window: Any) -> None:
    """One result per thread; neighbouring threads read neighbouring columns."""
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
    # Without a remainder: idle threads would still write.
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
