"""Chosen schedules of small layers against the best of all legal ones, by the cycle simulator.

In: a configuration, a number of layers. Out: a table and build/schedules.json; 1 where a choice is more than 3 % off.
Every tile of the documented space (docs/schedules.md) is compiled as a program of this layer alone and timed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw import op
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.analysis import infer_type
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.report import number, table
from relay_hw.target.accel.clock import target_of
from relay_hw.tensorize import compile_function
from relay_hw.tensorize.kernel import ConvKernel, KernelSpec
from relay_hw.tensorize.match.region import read_region
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.im2col import shapes_of
from relay_hw.tensorize.tiles.inputs import fold_inputs
from relay_hw.tensorize.tiles.sizes import ConvTile, Tile
from relay_hw.tensorize.tiles.tile_space import conv_tiles

OUTPUT = Path(__file__).resolve().parents[1] / "build" / "schedules.json"
MEMORY = memory_model("standard")
# Percent that a choice may be slower than the best schedule of the space.
LIMIT = 3.0


@dataclass(frozen=True, slots=True)
class Small:
    """A convolution; `size`: (height, width) of its input. Dense layers are 1x1 on one pixel."""

    inputs: int
    outputs: int
    size: tuple[int, int] = (1, 1)
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padding: int = 0

    def __str__(self) -> str:
        if self.size == (1, 1):
            return f"dense {self.inputs} -> {self.outputs}"
        window = f"{self.kernel[0]}x{self.kernel[1]}" + (f"/{self.stride}" if self.stride > 1 else "")
        return f"conv {window} {self.inputs}x{self.size[0]}x{self.size[1]} -> {self.outputs}"

    def function(self, config: Target) -> Function:
        """A region of this layer alone, with random weights."""
        rng = np.random.default_rng(0)
        dense = self.size == (1, 1)
        x = Var("x", TensorType((1, self.inputs) if dense else (1, self.inputs, *self.size), "int8"))
        shape = (self.outputs, self.inputs) if dense else (self.outputs, self.inputs, *self.kernel)
        weight = Constant(rng.integers(-127, 128, shape).astype(np.int8))
        typed = infer_type(IRModule.from_expr(Function([x], self._scaled(x, weight, rng, config))))["main"]
        attrs = {"Primitive": 1, "Composite": "accel.dense" if dense else "accel.conv2d"}
        inner = Function(typed.params, typed.body, typed.ret_type, attrs=attrs)
        outer = Var("input", inner.params[0].type_annotation)
        region = Function([outer], Call(inner, [outer]), attrs={"Compiler": "accel", "global_symbol": "layer"})
        return infer_type(IRModule.from_expr(region))["main"]

    def _scaled(self, x: Expr, weight: Constant, rng: np.random.Generator, config: Target) -> Expr:
        if self.size == (1, 1):
            sums = op.nn.dense(x, weight, out_dtype="int32")
        else:
            pads = (self.padding,) * 4
            sums = op.nn.conv2d(x, weight, strides=(self.stride,) * 2, padding=pads, out_dtype="int32")
        bits = config.multiplier_bits
        bias = Constant(rng.integers(-5000, 5000, self.outputs).astype(np.int32))
        multipliers = tuple(rng.integers(1 << bits - 1, 1 << bits, self.outputs).tolist())
        shifts = (bits + 8,) * self.outputs
        return op.fixed.requantize(sums, bias, multipliers, shifts, a_min=0, multiplier_bits=bits)


def conv(inputs: int, outputs: int, size: int, kernel: int, stride: int = 1) -> Small:
    """A square convolution with padding that keeps the size."""
    return Small(inputs, outputs, (size, size), (kernel, kernel), stride, kernel // 2)


LAYERS = (
    *(Small(*sizes) for sizes in ((64, 10), (100, 256), (256, 64), (400, 120), (512, 128), (784, 32))),
    *(Small(*sizes) for sizes in ((1024, 48), (2048, 16), (128, 1000))),
    *(conv(*c, 1) for c in ((16, 16, 16), (16, 64, 8), (64, 16, 8), (64, 64, 8), (128, 32, 6), (32, 128, 6))),
    *(conv(*c, 1) for c in ((64, 48, 14), (24, 40, 12), (256, 64, 5), (96, 96, 7), (48, 32, 20))),
    *(conv(*c, 1, 2) for c in ((32, 64, 16), (64, 64, 14), (128, 64, 8), (16, 48, 20))),
    *(conv(*c, 3) for c in ((16, 16, 32), (16, 32, 16), (32, 32, 16), (32, 64, 8), (64, 32, 8), (64, 64, 8))),
    *(conv(*c, 3) for c in ((128, 32, 7), (32, 128, 7), (24, 24, 12), (48, 48, 10), (96, 48, 6), (128, 64, 4))),
    *(conv(*c, 3, 2) for c in ((16, 32, 32), (32, 64, 16), (64, 64, 8), (48, 64, 12), (64, 128, 6))),
    *(conv(*c, 5) for c in ((16, 16, 14), (32, 16, 10), (16, 48, 8))),
    conv(32, 32, 12, 5, 2),
    conv(16, 32, 14, 7, 2),
    Small(64, 64, (1, 64), (1, 3), 1, 0),
    Small(64, 32, (49, 5), (3, 3), 1, 1),
    Small(16, 64, (25, 5), (10, 4), 2, 0),
    Small(32, 32, (20, 6), (5, 1), 1, 0),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One layer: what was chosen, and the best of all `tiles`; percent `off`."""

    layer: str
    tiles: int
    chosen: str
    cycles: int
    best: str
    best_cycles: int
    off: float


@dataclass(frozen=True, slots=True)
class Given:
    """Chooses the same tile for every layer."""

    tile: Tile

    def __call__(self, kernel: KernelSpec, config: Target) -> Tile:
        return self.tile

    def reason(self, kernel: KernelSpec, tile: Tile, config: Target) -> str:
        """None."""
        return ""


def legal_tiles(function: Function, config: Target) -> list[ConvTile]:
    """The space of the region's one layer."""
    region = fold_inputs(read_region(function, config, "layer"), config)
    kernel = region.layers[0].kernel
    assert isinstance(kernel, ConvKernel)
    return [tile for shape in shapes_of(kernel, config) for tile, _ in conv_tiles(shape, config)]


def measured(function: Function, config: Target, tile: ConvTile | None) -> tuple[int, str] | None:
    """Cycles and tile of the layer as it is compiled, or with `tile`; None where its buffers find no places."""
    try:
        chosen = None if tile is None else Given(tile)
        segment = compile_function(function, config, "layer", resident=False, on_chip=False, choose=chosen)
    except TensorizeError:
        return None
    device = CycleDevice(config, MEMORY, data=False)
    device.load(segment.program)
    cycles = device.launch().cycles
    assert cycles is not None
    return cycles, segment.layers[0].tile


def check(job: tuple[Small, str, int | None]) -> Row:
    """Choose, then try all tiles (or `sample` of them)."""
    layer, name, sample = job
    config = target_of(load_config(name), MEMORY)
    function = layer.function(config)
    tiles = legal_tiles(function, config)
    if sample is not None and len(tiles) > sample:
        tiles = random.Random(0).sample(tiles, sample)
    chosen = measured(function, config, None)
    assert chosen is not None, f"{layer} must compile"
    found = [chosen, *(m for tile in tiles if (m := measured(function, config, tile)) is not None)]
    best = min(found)
    return Row(str(layer), len(found) - 1, chosen[1], chosen[0], best[1], best[0], 100 * (chosen[0] / best[0] - 1))


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all layers; 1 where one is off."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", default="default", help="accelerator configuration (default: default)")
    parser.add_argument("--layers", type=int, default=len(LAYERS), help="only the first so many layers")
    parser.add_argument("--sample", type=int, help="at most so many tiles a layer, drawn with a seed (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to write the JSON file")
    args = parser.parse_args(arguments)
    jobs = [(layer, args.config, args.sample) for layer in LAYERS[: args.layers]]
    rows: list[Row] = []
    with multiprocessing.Pool(args.jobs) as pool:
        for row in pool.imap(check, jobs):
            rows.append(row)
            print(f"{row.off:5.1f} %  {row.cycles:9,}  {row.layer} ({row.tiles} tiles)", file=sys.stderr, flush=True)
    header = ("layer", "tiles", "chosen", "cycles", "best", "cycles", "% off")
    cells = [
        (r.layer, number(r.tiles), r.chosen, number(r.cycles), r.best, number(r.best_cycles), f"{r.off:.1f}")
        for r in rows
    ]
    print(table(header, cells, frozenset({"tiles", "cycles", "% off"})))
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    late = [row for row in rows if row.off > LIMIT]
    print(f"\n{len(rows)} layers, {sum(r.tiles for r in rows):,} schedules; {len(late)} choices over {LIMIT} % off")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
