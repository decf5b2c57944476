"""How TVM compiles host operators for CPUs: a convolution with packed weights and two schedule rules.

In: TE tensors and TIR functions. Out: TIR functions that use vectors and threads; TVM's own default code does neither
well (two orders of magnitude slower on convolutions).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.tvm.api import ScheduleRule, cpu_pipeline, dlight, relax, s_tir, te, tirx, topi, tvm

CONV_BLOCK = "packed_conv2d"
# Output pixels that share one weight vector: accumulators must fit the vector registers.
MAX_PIXELS = 14


def vector_lanes(mcpu: str) -> int:
    """32-bit lanes of the widest vector that `mcpu` names."""
    return {"x86-64-v4": 16, "x86-64-v3": 8}.get(mcpu, 4)


def pack_weight(weight: NDArray[Any], lanes: int) -> NDArray[Any]:
    """OIHW -> (O/lanes) I H W lanes, output channels padded with zeros."""
    out, inner, height, width = weight.shape
    blocks = -(-out // lanes)
    padded = np.zeros((blocks * lanes, inner, height, width), weight.dtype)
    padded[:out] = weight
    return np.ascontiguousarray(padded.reshape(blocks, lanes, inner, height, width).transpose(0, 2, 3, 4, 1))


def packed_conv2d(
    data: Any,
    weight: Any,
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
    dilation: tuple[int, int],
    channels: int,
    dtype: str,
) -> Any:
    """TE convolution: data NCHW, weight from `pack_weight`, result NCHW of `channels` channels and `dtype`."""
    top, left, bottom, right = padding
    batch, inner, height, width = (int(d) for d in data.shape)
    blocks, _, kernel_h, kernel_w, lanes = (int(d) for d in weight.shape)
    source = topi.nn.pad(data, [0, 0, top, left], [0, 0, bottom, right], name="pad") if any(padding) else data
    out_h = (height + top + bottom - dilation[0] * (kernel_h - 1) - 1) // strides[0] + 1
    out_w = (width + left + right - dilation[1] * (kernel_w - 1) - 1) // strides[1] + 1
    rc = te.reduce_axis((0, inner), "rc")
    ry = te.reduce_axis((0, kernel_h), "ry")
    rx = te.reduce_axis((0, kernel_w), "rx")
    packed = te.compute(
        (batch, blocks, out_h, out_w, lanes),
        lambda n, o, y, x, v: te.sum(
            source[n, rc, y * strides[0] + ry * dilation[0], x * strides[1] + rx * dilation[1]].astype(dtype)
            * weight[o, rc, ry, rx, v].astype(dtype),
            axis=[rc, ry, rx],
        ),
        name=CONV_BLOCK,
    )
    return te.compute(
        (batch, channels, out_h, out_w),
        lambda n, o, y, x: packed[n, tirx.floordiv(o, lanes), y, x, tirx.floormod(o, lanes)],
        name="unpack",
    )


class PackedConvolution(ScheduleRule):
    """Registers hold a tile of pixels times one vector of output channels; the epilogue follows each tile."""

    def apply(self, func: Any, target: Any, _tunable: bool) -> Any:
        """A schedule, or None where the function holds no packed convolution."""
        if not isinstance(func, tirx.PrimFunc):
            return None
        sch = s_tir.Schedule(func)
        blocks = list(sch.get_child_blocks(sch.get_sblock("root")))
        names = [sch.get(block).name_hint for block in blocks]
        if names.count(CONV_BLOCK) != 1:
            return None
        position = names.index(CONV_BLOCK)
        for block in blocks[:position]:
            loops = sch.get_loops(block)
            sch.parallel(sch.fuse(*loops[:-1]))
        epilogue = _epilogue(sch, blocks[position + 1 :])
        for block in epilogue[:-1]:
            sch.compute_inline(block)
        self._tile(sch, blocks[position], epilogue[-1])
        for block in blocks[position + 1 + len(epilogue) :]:
            parallelise(sch, block)
        return sch

    @staticmethod
    def _tile(sch: Any, conv: Any, last: Any) -> None:
        batch, block, row, column, lane, rc, ry, rx = sch.get_loops(conv)
        width = int(sch.get(column).extent)
        pixels = max(tile for tile in range(1, MAX_PIXELS + 1) if width % tile == 0)
        tile, pixel = sch.split(column, [None, pixels])
        sch.reorder(batch, block, row, tile, rc, ry, rx, pixel, lane)
        sch.parallel(sch.fuse(batch, block, row))
        sch.set_scope(conv, 0, "local")
        sch.reverse_compute_at(last, tile)
        sch.unroll(pixel)
        sch.vectorize(lane)
        init = sch.decompose_reduction(conv, rc)
        sch.vectorize(sch.get_loops(init)[-1])


def _epilogue(sch: Any, after: Sequence[Any]) -> list[Any]:
    """The blocks behind a convolution that can follow each of its tiles: elementwise on its own pixels.

    A block on other pixels, such as padding, has places that no tile covers. What is left out must not read a block
    that goes into the tiles, but the last.
    """

    def extents(block: Any) -> list[int]:
        return [int(sch.get(loop).extent) for loop in sch.get_loops(block)]

    def name(block: Any) -> str:
        return str(sch.get(block).name_hint)

    chosen: list[Any] = []
    for block in after:
        elementwise = all(axis.iter_type == 0 for axis in sch.get(block).iter_vars)
        if not elementwise or extents(block) != extents(after[0]):
            break
        chosen.append(block)
    while len(chosen) > 1:
        inside = {name(block) for block in chosen}
        readers = {name(reader) for block in chosen[:-1] for reader in sch.get_consumers(block)}
        if readers <= inside:
            break
        chosen.pop()
    return chosen


class ParallelVector(ScheduleRule):
    """Everything else: threads over the outer spatial loops, vectors over the last where nothing is reduced."""

    def apply(self, func: Any, target: Any, _tunable: bool) -> Any:
        """A schedule, or None for what is no TIR function."""
        if not isinstance(func, tirx.PrimFunc):
            return None
        sch = s_tir.Schedule(func)
        for block in sch.get_child_blocks(sch.get_sblock("root")):
            parallelise(sch, block)
        return sch


def parallelise(sch: Any, block: Any) -> None:
    """Threads over the leading spatial loops of a block; vectors over the last loop if none of them reduces."""
    axes, loops = sch.get(block).iter_vars, sch.get_loops(block)
    if len(axes) != len(loops):
        return
    spatial = [axis.iter_type == 0 for axis in axes]
    lead = spatial.index(False) if False in spatial else len(loops)
    if lead < len(loops):
        if lead:
            sch.parallel(sch.fuse(*loops[:lead]) if lead > 1 else loops[0])
        return
    if lead > 1:
        sch.parallel(sch.fuse(*loops[:-1]) if lead > 2 else loops[0])
        sch.vectorize(loops[-1])


def pipeline(target: Any) -> Any:
    """Relax passes from operators to virtual-machine code, with the two rules above in place of TVM's default."""

    @tvm.transform.module_pass(opt_level=0)
    def run(mod: Any, _context: Any) -> Any:
        passes = [
            *cpu_pipeline.library_dispatch_passes(target),
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FoldConstant(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
            dlight.ApplyDefaultSchedule(PackedConvolution(), ParallelVector()),
            *cpu_pipeline.dataflow_lower_passes(target),
            *cpu_pipeline.finalize_passes(target),
        ]
        with target:
            return tvm.transform.Sequential(passes)(mod)

    return run
