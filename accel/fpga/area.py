"""What a configuration takes of a part without synthesis: multipliers and block RAMs counted, LUTs and flip-flops by a
model that is linear in a few things that circuits are made of, fitted to syntheses (`scripts/area_points.py`).

In: a configuration, a part. Out: `Area`. docs/explore.md says how near it comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from relay_hw.accel.fpga.multipliers import dsp_products, other_multipliers
from relay_hw.accel.fpga.parts import Part
from relay_hw.accel.isa.config import (
    PRM_LANE_BYTES,
    ROW_BUFFER_BYTES,
    TABLE_RECORD_BYTES,
    TAPS,
    UOP_BYTES,
    AccelConfig,
)
from relay_hw.accel.isa.spec import COF, PRM, UOP
from relay_hw.support.documents import parse_json

# Depths and widths of one block RAM (DP16KD, FPGA-TN-02204).
_SHAPES: Final = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
# Bits of a word that a block RAM writes together at most.
_LANE: Final = 9
FITTED: Final = Path(__file__).with_name("area.json")


@dataclass(frozen=True, slots=True)
class Area:
    """Cells of the accelerator alone, as `synth.py` counts them: LUT4 of logic and memory, block RAMs of 18 kbit."""

    luts: int
    flip_flops: int
    block_rams: int
    multipliers: int

    def share(self, part: Part) -> float:
        """Mean of its shares of the part's LUTs, block RAMs and multipliers: each kind takes a part of a chip."""
        shares = (
            self.luts / part.luts,
            self.block_rams / part.block_rams,
            self.multipliers / part.multipliers,
        )
        return sum(shares) / len(shares)


def area_of(config: AccelConfig, part: Part) -> Area:
    """The area on a part, whose multiplier blocks decide which products LUTs make."""
    return Area(
        luts=round(_predicted("luts", config, part)),
        flip_flops=round(_predicted("flip_flops", config, part)),
        block_rams=sum(memory.count * memory.block_rams for memory in memories(config)),
        multipliers=block_products(config, part) + other_multipliers(config),
    )


def terms(config: AccelConfig, part: Part) -> dict[str, float]:
    """The features of a configuration that LUTs and flip-flops are estimated from."""
    products = config.block_in * config.block_out
    return {
        "control": 1,
        "products": products,
        "products_by_luts": (products - block_products(config, part)) * config.wgt_bits,
        "accumulator_lanes": config.block_out,
        "bank_lanes": config.acc_banks * config.block_out,
        "output_lanes": config.out_lanes,
        "multiplier_bits": config.out_lanes * config.multiplier_bits,
        "bus_bits": config.axi_data_bits,
        "table_bits": config.out_lanes * _table_row_bits(config),
        **row_terms(config),
    }


def row_terms(config: AccelConfig) -> dict[str, float]:
    """Those of the row unit, which is synthesised alone."""
    return {"row_unit": min(config.row_lanes, 1), "row_lanes": config.row_lanes}


def block_products(config: AccelConfig, part: Part) -> int:
    """Number of the array's products that multiplier blocks compute."""
    return config.block_out * dsp_products(config, part.multipliers)


@dataclass(frozen=True, slots=True)
class Memory:
    """So many alike memories of block RAM: `depth` words of `width` bits. Of each `period` bits only the first `used`
    are not spare; 0: none is spare. `enabled`: bits that are written together, if not all of them."""

    name: str
    count: int
    width: int
    depth: int
    used: int = 0
    period: int = 0
    enabled: int = 0

    @property
    def block_rams(self) -> int:
        """Block RAMs of one such memory."""
        return min(-(-self.depth // depth) * self._columns(width) for depth, width in _SHAPES)

    def _columns(self, width: int) -> int:
        """Columns of `width` bits with a bit that is used. Bits that are written together begin a lane of a column."""
        lane, together = min(width, _LANE), self.enabled or self.width
        step = -(-together // lane) * lane
        used = filter(self._is_used, range(self.width))
        return len({(bit // together * step + bit % together) // width for bit in used})

    def _is_used(self, bit: int) -> bool:
        return not self.period or bit % self.period < self.used


def memories(config: AccelConfig) -> Iterator[Memory]:
    """Memories of the accelerator that are block RAM, as `accel/rtl/mem` cuts them."""
    bus = config.axi_data_bits
    row = max(config.inp_bytes, config.out_bytes, bus // 8)
    columns = TAPS * row // config.part_bytes
    yield Memory("inp", columns, 8 * config.part_bytes, config.inp_depth * config.inp_bytes // row // TAPS)
    row = max(config.wgt_bytes, bus // 4)
    yield Memory("wgt", 8 * row // bus, bus, config.wgt_depth * config.wgt_bytes // row)
    # LOAD widens a beat to four.
    row = max(8 * config.acc_bytes, 4 * bus)
    column = min(8 * config.acc_bytes, bus, 32 * config.out_lanes)
    bank = config.acc_bank_depth * 8 * config.acc_bytes // row
    yield Memory("acc", config.acc_banks * row // column, column, bank)
    row = max(UOP_BYTES, bus // 8)
    yield Memory("uop", 1, 8 * row, config.uop_depth * UOP_BYTES // row, UOP.fields[-1].hi + 1, UOP.width)
    yield from _parameters(config)
    yield from _tables(config)
    yield from _coefficients(config)
    row = max(config.out_bytes, bus // 8)
    yield Memory("out", row // config.out_bytes, 8 * config.out_bytes, config.out_depth * config.out_bytes // row)
    # Two rows of an image, word by word in turn.
    yield Memory("rows", 2, bus, 2 * ROW_BUFFER_BYTES // (bus // 8) // 2)


def _parameters(config: AccelConfig) -> Iterator[Memory]:
    """The parameters' memory: records cut by beats have block RAMs for each beat, whole ones share them."""
    bus, used = config.axi_data_bits, PRM.fields[-1].hi + 1
    row = max(config.out_lanes * PRM_LANE_BYTES, bus // 8)
    depth = config.prm_depth * config.prm_bytes // row
    if bus >= PRM.width:
        yield Memory("prm", 1, 8 * row, depth, used, PRM.width, bus)
        return
    for begin in range(0, min(used, PRM.width), bus):
        yield Memory("prm", 8 * row // PRM.width, min(used - begin, bus), depth)


def _tables(config: AccelConfig) -> Iterator[Memory]:
    """A copy of the tables for each two lanes of the output stage, as block RAMs have two ports."""
    if config.tables:
        depth = config.tab_depth * TABLE_RECORD_BYTES // config.bus_bytes
        yield Memory("tab", -(-config.out_lanes // 2), _table_row_bits(config), depth)


def _coefficients(config: AccelConfig) -> Iterator[Memory]:
    """Gains and biases for each lane of the row unit."""
    if config.cof_depth:
        for field in COF.fields:
            yield Memory("cof", config.row_lanes, field.width, config.cof_depth)


def _table_row_bits(config: AccelConfig) -> int:
    """Bits that a look-up reads, of which it takes eight: the results of a beat."""
    return 16 * config.bus_bytes // TABLE_RECORD_BYTES if config.tables else 0


@cache
def _fitted() -> Mapping[str, Mapping[str, float]]:
    """Cells for each of `terms`, by the kind of cell."""
    return parse_json(FITTED.read_bytes())


def _predicted(cell: str, config: AccelConfig, part: Part) -> float:
    fitted = _fitted()[cell]
    return sum(fitted.get(name, 0.0) * amount for name, amount in terms(config, part).items())
