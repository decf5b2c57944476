"""Splits the products of the multiplier array between a part's multiplier blocks and its LUTs.

In: a configuration, the number of blocks. Out: the parameters of vta_top for that part. What is computed, and when,
does not depend on it.
"""

from __future__ import annotations

from typing import Final

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.gen_verilog import verilog_parameters

# Bits of both operands of a block (MULT18X18D, FPGA-TN-02205).
_BLOCK_BITS: Final = 18
# Blocks that the dispatcher takes for lengths of transfers.
_DISPATCHER: Final = 5
# Taps are multiplied by blocks always.
_LEAST: Final = 4


def core_parameters(config: AccelConfig, multipliers: int) -> dict[str, int]:
    """Parameters of vta_top for a part with so many multiplier blocks."""
    return verilog_parameters(config, dsp_products(config, multipliers))


def dsp_products(config: AccelConfig, multipliers: int) -> int:
    """Products of a lane that multiplier blocks make, where a part has `multipliers` of them."""
    return max(_LEAST, min((multipliers - other_multipliers(config)) // config.block_out, config.block_in))


def other_multipliers(config: AccelConfig) -> int:
    """Blocks beside the array: of the output stage, of MUL (its 32 lower bits), row unit and dispatcher."""
    parts = -(-32 // _BLOCK_BITS)
    scale = parts * -(-(config.multiplier_bits + 1) // _BLOCK_BITS)
    return config.out_lanes * (scale + parts * (parts + 1) // 2) + config.row_multipliers + _DISPATCHER
