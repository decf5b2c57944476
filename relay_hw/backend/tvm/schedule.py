"""TVM schedules of host operators on CPUs: rules for products, windows, reductions and everything else.

In: TIR functions. Out: TIR functions that use vectors and threads; TVM's own default code does neither well (two orders
of magnitude slower on convolutions).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from relay_hw.backend.tvm.api import ScheduleRule, cpu_pipeline, dlight, relax, s_tir, tirx, tvm
from relay_hw.backend.tvm.machine import Machine
from relay_hw.backend.tvm.products import JOIN, PRODUCT, STAGE, WINDOW

# Below this many element operations a second thread costs more than it gives.
ALONE = 1 << 14
# A last axis below this is no loop of its own.
SHORT = 16
MOST_UNROLLED = 32
SCHEDULE_ERRORS = (s_tir.ScheduleError, ValueError, tvm.error.InternalError)


class CpuRule(ScheduleRule):
    """Schedules every TIR function: register tiles for products, vectors and threads for other blocks."""

    def __init__(self, target: Machine) -> None:
        self.target = target
        self.plain: list[str] = []

    def apply(self, func: Any, target: Any, _tunable: bool) -> Any:
        """A schedule, or None for what is no TIR function."""
        if not isinstance(func, tirx.PrimFunc):
            return None
        try:
            return self.schedule(func)
        except SCHEDULE_ERRORS:
            # Plain loops are slow, and right.
            self.plain.append(str(func.attrs.get("global_symbol", "")))
            return None

    def schedule(self, func: Any) -> Any:
        """The schedule. Raises one of SCHEDULE_ERRORS where a step does not fit the function."""
        sch = s_tir.Schedule(func)
        root = sch.get_sblock("root")
        kernels = [block for block in sch.get_child_blocks(root) if name_of(sch, block) in (PRODUCT, WINDOW)]
        if len(kernels) == 1:
            rest = _kernel(sch, root, kernels[0])
        else:
            inline(sch, sch.get_child_blocks(root))
            rest = sch.get_child_blocks(root)
        for block in rest:
            spread(sch, block, self.target.lanes)
        return sch


def name_of(sch: Any, block: Any) -> str:
    """The block's name in its function."""
    return str(sch.get(block).name_hint)


def extents(sch: Any, block: Any) -> list[int]:
    """Extents of the loops around a block, 0 for one that is not a number."""
    found = [sch.get(loop).extent for loop in sch.get_loops(block)]
    return [int(extent) if isinstance(extent, (int, tirx.IntImm)) else 0 for extent in found]


def is_spatial(sch: Any, block: Any) -> bool:
    """Whether a block reduces nothing and has a loop for each of its axes."""
    axes = sch.get(block).iter_vars
    return len(axes) == len(sch.get_loops(block)) and all(axis.iter_type == 0 for axis in axes)


def inline(sch: Any, blocks: Sequence[Any]) -> None:
    """Inline elementwise blocks into their only reader, unless that is a reduction."""
    for block in blocks:
        readers = list(sch.get_consumers(block))
        if len(readers) == 1 and is_spatial(sch, block) and is_spatial(sch, readers[0]):
            sch.compute_inline(block)


def _kernel(sch: Any, root: Any, kernel: Any) -> list[Any]:
    """Tile a product or a window with what follows it; the blocks that are left to do."""
    blocks = list(sch.get_child_blocks(root))
    names = [name_of(sch, block) for block in blocks]
    position = names.index(name_of(sch, kernel))
    joins = [block for block in blocks[position + 1 : position + 2] if name_of(sch, block) == JOIN]
    after = position + 1 + len(joins)
    epilogue = _epilogue(sch, blocks[after:])
    for block in epilogue[:-1]:
        sch.compute_inline(block)
    last, rest = epilogue[-1], blocks[after + len(epilogue) :]
    if names[position] == PRODUCT:
        if joins:
            _tile_chunks(sch, kernel, joins[0], last)
        else:
            _tile_product(sch, kernel, last)
        return [*blocks[:position], *rest]
    own = _note(sch, kernel, "own")
    stages = [block for block in blocks[:position] if name_of(sch, block).startswith(STAGE)] if own else []
    _tile_window(sch, kernel, last, stages[-1] if own else None)
    done = {name_of(sch, block) for block in stages[-1:]}
    return [*(block for block in blocks[:position] if name_of(sch, block) not in done), *rest]


def _note(sch: Any, block: Any, key: str) -> int:
    return int(sch.get(block).annotations[key])


def _tile_product(sch: Any, kernel: Any, last: Any) -> None:
    """Registers hold pixels times vectors of channels; the epilogue follows each tile."""
    pixels, vectors, lead = (_note(sch, kernel, key) for key in ("pixels", "vectors", "lead"))
    work = prod(extents(sch, kernel))
    loops = sch.get_loops(kernel)
    spatial = sum(axis.iter_type == 0 for axis in sch.get(kernel).iter_vars)
    outer, reduce = loops[:spatial], loops[spatial:]
    group, vector = sch.split(outer[lead], [None, vectors])
    tile, pixel = sch.split(outer[-2], [None, pixels])
    head, chunk = [*outer[:lead], group, *outer[lead + 2 : -2]], outer[lead + 1]
    sch.reorder(*head, tile, chunk, *reduce, pixel, vector, outer[-1])
    _parallel(sch, head, work)
    sch.set_scope(kernel, 0, "local")
    sch.reverse_compute_at(last, tile)
    _unroll(sch, [pixel, vector], outer[-1])
    *unrolled, lane = sch.get_loops(sch.decompose_reduction(kernel, reduce[0]))[-3:]
    _unroll(sch, unrolled, lane)


def _tile_chunks(sch: Any, kernel: Any, join: Any, last: Any) -> None:
    """As `_tile_product`, with sums in chunks: each chunk's are added to integers when it is done."""
    pixels, vectors, lead = (_note(sch, kernel, key) for key in ("pixels", "vectors", "lead"))
    work = prod(extents(sch, kernel))
    *outer, chunk = sch.get_loops(join)
    group, vector = sch.split(outer[lead], [None, vectors])
    tile, pixel = sch.split(outer[-2], [None, pixels])
    head = [*outer[:lead], group, *outer[lead + 1 : -2]]
    sch.reorder(*head, tile, chunk, pixel, vector, outer[-1])
    _parallel(sch, head, work)
    sch.set_scope(join, 0, "local")
    sch.set_scope(kernel, 0, "local")
    sch.compute_at(kernel, chunk, preserve_unit_loops=True)
    sch.reverse_compute_at(last, tile)
    _unroll(sch, [pixel, vector], outer[-1])
    axes = sch.get(kernel).iter_vars
    inner = sch.get_loops(kernel)[-len(axes) :]
    reduce = [loop for axis, loop in zip(axes, inner, strict=True) if axis.iter_type == 2]
    own = [inner[len(axes) - len(reduce) - 2], inner[lead], inner[len(axes) - len(reduce) - 1]]
    sch.reorder(*reduce, *own)
    _unroll(sch, own[:-1], own[-1])
    for block, loop in ((kernel, reduce[0]), (join, chunk)):
        *unrolled, lane = sch.get_loops(sch.decompose_reduction(block, loop))[-3:]
        _unroll(sch, unrolled, lane)


def _unroll(sch: Any, loops: Sequence[Any], lane: Any) -> None:
    for loop in loops:
        sch.unroll(loop)
    sch.vectorize(lane)


def _tile_window(sch: Any, kernel: Any, last: Any, stage: Any | None) -> None:
    """Vectors of neighbouring columns; a row of them, then its epilogue. `stage`: data that one channel alone reads."""
    lanes = _note(sch, kernel, "lanes")
    work = prod(extents(sch, kernel))
    loops = sch.get_loops(kernel)
    spatial = sum(axis.iter_type == 0 for axis in sch.get(kernel).iter_vars)
    outer, reduce = loops[:spatial], loops[spatial:]
    column, lane = sch.split(outer[-1], [None, lanes])
    sch.reorder(*outer[:-1], column, *reduce, lane)
    plane = _parallel(sch, outer[:2], work)
    sch.set_scope(kernel, 0, "local")
    if stage is not None:
        sch.compute_at(stage, plane)
        sch.set_scope(stage, 0, "local")
    row = outer[-2] if spatial > 3 else plane
    sch.reverse_compute_at(last, row)
    sizes = [int(sch.get(loop).extent) for loop in reduce]
    for loop in reduce if prod(sizes) <= MOST_UNROLLED else reduce[-1:]:
        sch.unroll(loop)
    sch.vectorize(lane)
    init = sch.decompose_reduction(kernel, reduce[0])
    sch.vectorize(sch.get_loops(init)[-1])


def _parallel(sch: Any, loops: Sequence[Any], work: int) -> Any:
    """The loops as one, over threads where the work is worth it."""
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    if work >= ALONE:
        sch.parallel(fused)
    return fused


def _epilogue(sch: Any, after: Sequence[Any]) -> list[Any]:
    """The blocks behind a kernel that can follow each of its tiles: elementwise on its own pixels.

    A block on other pixels, such as padding, has places that no tile covers. What is left out must not read a block
    that goes into the tiles, but the last.
    """
    chosen: list[Any] = []
    for block in after:
        if not is_spatial(sch, block) or extents(sch, block) != extents(sch, after[0]):
            break
        chosen.append(block)
    while len(chosen) > 1:
        inside = {name_of(sch, block) for block in chosen}
        readers = {name_of(sch, reader) for block in chosen[:-1] for reader in sch.get_consumers(block)}
        if readers <= inside:
            break
        chosen.pop()
    return chosen


def spread(sch: Any, block: Any, lanes: int) -> None:
    """Threads over the leading spatial loops of a block; vectors over its last spatial axis, or over what it sums."""
    axes, loops, sizes = sch.get(block).iter_vars, list(sch.get_loops(block)), extents(sch, block)
    if len(axes) != len(loops) or not loops:
        return
    spatial = [loop for axis, loop in zip(axes, loops, strict=True) if axis.iter_type == 0]
    work = prod(sizes)
    if len(spatial) == len(loops):
        _spread_plain(sch, loops, sizes, work)
    elif spatial and [axis.iter_type for axis in axes] == [0] * len(spatial) + [2] * (len(loops) - len(spatial)):
        _spread_reduction(sch, block, len(spatial), work, lanes)


def _spread_plain(sch: Any, loops: Sequence[Any], sizes: Sequence[int], work: int) -> None:
    if len(loops) > 1 and sizes[-1] >= SHORT:
        _parallel(sch, loops[:-1], work)
    elif len(loops) > 1 and prod(sizes[-2:]) >= SHORT and len(loops) > 2:
        _parallel(sch, loops[:-2], work)
    elif work >= ALONE:
        fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
        sch.parallel(sch.split(fused, [None, 1 << 10])[0])


def _spread_reduction(sch: Any, block: Any, spatial: int, work: int, lanes: int) -> None:
    loops, sizes = sch.get_loops(block), extents(sch, block)
    writes = len(sch.get(block).writes)
    if writes == 1 and spatial > 1 and sizes[spatial - 1] >= 4:
        # Neighbouring results together, term by term.
        column, reduce = loops[spatial - 1], loops[spatial:]
        sch.reorder(*loops[: spatial - 1], *reduce, column)
        _parallel(sch, loops[: spatial - 1], work)
        sch.decompose_reduction(block, reduce[0])
        return
    terms = sizes[spatial:]
    if writes == 1 and prod(terms) >= 4 * lanes and prod(terms) % lanes == 0 and _is_sum(sch, block):
        last = sch.fuse(*loops[spatial:]) if len(terms) > 1 else loops[-1]
        _, lane = sch.split(last, [None, lanes])
        partial = sch.rfactor(lane, spatial)
        inner = sch.get_loops(partial)
        outer = _parallel(sch, inner[:spatial], work)
        sch.vectorize(inner[-1])
        init = sch.decompose_reduction(partial, inner[-2])
        sch.vectorize(sch.get_loops(init)[-1])
        sch.reverse_compute_at(block, outer)
        return
    _parallel(sch, loops[:spatial], work)


def _is_sum(sch: Any, block: Any) -> bool:
    """Whether a reduction is a sum, so that its terms may be grouped."""
    body = sch.get(block).body
    return isinstance(body, tirx.BufferStore) and isinstance(body.value, tirx.Add)


def pipeline(target: Any, machine: Machine) -> Any:
    """Relax passes from operators to virtual-machine code, with the rule above in place of TVM's default."""

    @tvm.transform.module_pass(opt_level=0)
    def run(mod: Any, _context: Any) -> Any:
        passes = [
            *cpu_pipeline.library_dispatch_passes(target),
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FoldConstant(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
            dlight.ApplyDefaultSchedule(CpuRule(machine)),
            *cpu_pipeline.dataflow_lower_passes(target),
            *cpu_pipeline.finalize_passes(target),
        ]
        with target:
            return tvm.transform.Sequential(passes)(mod)

    return run
