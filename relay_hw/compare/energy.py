"""Estimates the energy of a run: the cycle simulator's counters times published energies per operation.

In: a configuration, counters of launches, multiply-accumulates by width. Out: `Energy` in microjoules, by part.
Source of every figure but the derived ones: M. Horowitz, Computing's energy problem, ISSCC 2014: 45 nm, 0.9 V. What
the parts on the chip weigh against one another is fitted to what switches in netlists (scripts/energy_fit.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from relay_hw.accel.isa.config import UOP_BYTES, AccelConfig

SOURCE: Final = "M. Horowitz, Computing's energy problem (and what we can do about it), ISSCC 2014, 45 nm at 0.9 V"
CAVEAT: Final = (
    "An estimate, not measured: it ranks strategies, it predicts no battery. Operations have the figures of a chip of "
    "that process; parts on the chip are weighed against one another as in netlists for FPGAs, their sum left as it "
    "was. Leakage, hazards, the DRAM's own refresh and the host's processor are left out."
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Picojoules of one operation, or of one byte; `note` says how it was derived where it is not in the source."""

    key: str
    text: str
    picojoules: float
    note: str = ""


MULTIPLY_8: Final = Figure("multiply_8x8", "8-bit multiplication", 0.2)
MULTIPLY_4: Final = Figure("multiply_8x4", "8-bit by 4-bit multiplication", 0.1, "half as many partial products")
ADD_32: Final = Figure("add_32", "32-bit addition", 0.1)
MULTIPLY_32: Final = Figure("multiply_32", "32-bit multiplication (requantization)", 3.1)
FLOAT_MAC: Final = Figure("mac_float32", "float32 multiplication and addition (host)", 4.6, "3.7 and 0.9")
DRAM: Final = Figure("dram_byte", "byte moved to or from DRAM", 162.5, "lower end of 1.3 to 2.6 nJ for 64 bits")
FIGURES: Final = (MULTIPLY_8, MULTIPLY_4, ADD_32, MULTIPLY_32, FLOAT_MAC, DRAM)


@dataclass(frozen=True, slots=True)
class Shares:
    """Factors on the figures above, fitted to netlists; `registers` in picojoules per register and cycle."""

    products: float
    scratchpads: float
    output: float
    registers: float


# Fitted to docs/results/energy.json, like registers: `python scripts/energy_fit.py` computes the values.
SHARES: Final = Shares(products=5.13, scratchpads=0.234, output=2.44, registers=0.00285)
# Registers of an accelerator: a constant, plus this many per weight bit that the array reads in a cycle.
REGISTERS: Final = (8700, 12.1)
_WORKING: Final = ("LOAD_BUSY", "COMPUTE_BUSY", "OUTPUT_BUSY", "STORE_BUSY")
# 64-bit access of a cache: size in bytes and picojoules.
SRAM: Final = ((8 << 10, 10.0), (32 << 10, 20.0), (1 << 20, 100.0))
_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Energy:
    """Microjoules of one run: `products` of the array, `scratchpads`, `output` stage and row unit, `registers` of units
    while they work, `dram`, `host` layers."""

    products: float
    scratchpads: float
    output: float
    registers: float
    dram: float
    host: float

    @property
    def total(self) -> float:
        """Energy of all parts together."""
        return sum(asdict(self).values())

    @property
    def on_chip(self) -> float:
        """Energy of the parts in the accelerator's netlist."""
        return self.products + self.scratchpads + self.output + self.registers


def estimate(
    config: AccelConfig,
    counters: Mapping[str, int],
    macs: Mapping[int, float],
    host_macs: Mapping[int, float],
    shares: Shares = SHARES,
) -> Energy:
    """Energy of launches with these `counters`, summed. `macs` on the accelerator, `host_macs`: by bits of weights."""
    products = sum(count * _mac(bits, config.wgt_bits) for bits, count in macs.items())
    host = sum(count * _mac(bits, 8) for bits, count in host_macs.items())
    vectors = counters["OUTPUT_VECTORS"]
    output = vectors * config.block_out * (MULTIPLY_32.picojoules + ADD_32.picojoules)
    # Elements of a row are multiplied by its inverse and by a gain, those of a quarter entry a cycle.
    rows = counters.get("ROW_BUSY", 0)
    output += rows * config.row_lanes * (2 * MULTIPLY_32.picojoules + ADD_32.picojoules)
    moved = counters["READ_BYTES"] + counters["WRITE_BYTES"] + counters["FETCH_BYTES"]
    clocked = registers(config) * (rows + sum(counters[unit] for unit in _WORKING))
    parts = (
        products * shares.products,
        _scratchpads(config, counters) * shares.scratchpads,
        output * shares.output,
        clocked * shares.registers,
        moved * DRAM.picojoules,
        host,
    )
    return Energy(*(part * 1e-6 for part in parts))


def registers(config: AccelConfig) -> float:
    """Approximate number of registers in an accelerator's netlist."""
    begin, bit = REGISTERS
    return begin + bit * config.macs_per_cycle * config.wgt_bits


def access(size: int, width: int) -> float:
    """Picojoules of one access to a scratchpad of `size` bytes, `width` bytes wide: memories of 64 bits side by side.

    Between the sizes of the source and beyond them, on straight lines through its logarithms.
    """
    words = -(-width // _WORD)
    each = size / words
    (low, low_pj), (high, high_pj) = SRAM[:2] if each <= SRAM[1][0] else SRAM[1:]
    slope = math.log(high_pj / low_pj) / math.log(high / low)
    return words * low_pj * (each / low) ** slope


def _scratchpads(config: AccelConfig, counters: Mapping[str, int]) -> float:
    """Products read INP and WGT and turn ACC over; the output stage reads ACC and parameters; DRAM fills and drains."""
    inp = access(config.inp_depth * config.inp_bytes, config.inp_bytes)
    wgt = access(config.wgt_depth * config.wgt_bytes, config.wgt_bytes)
    acc = access(config.acc_depth * config.acc_bytes, config.acc_bytes)
    out = access(config.out_depth * config.out_bytes, config.out_bytes)
    prm = access(config.prm_depth * config.prm_bytes, config.prm_bytes)
    uop = access(config.uop_depth * UOP_BYTES, UOP_BYTES)
    entries = config.block_in * config.inp_bits // 8 // config.inp_bytes
    products = counters["GEMM_UOPS"] * (entries * inp + wgt + 2 * acc + uop)
    adds = counters["ALU_UOPS"] * (2 * acc + uop + config.block_out * ADD_32.picojoules)
    vectors = counters["OUTPUT_VECTORS"] * (acc + prm + out)
    filled = counters["READ_BYTES"] / config.inp_bytes * inp + counters["WRITE_BYTES"] / config.out_bytes * out
    # In four cycles three reads and a write of an entry.
    cof = access(config.cof_depth * config.cof_bytes, config.cof_bytes) if config.cof_depth else 0
    rows = counters.get("ROW_BUSY", 0) * (acc + cof)
    return products + adds + vectors + filled + rows


def _mac(bits: int, lane_bits: int) -> float:
    """Picojoules of one multiply-accumulate; 8-bit weights pass through 4-bit lanes twice."""
    if bits > 8:
        return FLOAT_MAC.picojoules
    if lane_bits == 4:
        return (MULTIPLY_4.picojoules + ADD_32.picojoules) * (1 if bits <= 4 else 2)
    return MULTIPLY_8.picojoules + ADD_32.picojoules


def share_rows() -> tuple[tuple[str, str], ...]:
    """Sentences that explain `SHARES`."""
    begin, bit = REGISTERS
    return (
        ("operations of a multiply-accumulate", f"times {SHARES.products:g}"),
        ("accesses on chip", f"times {SHARES.scratchpads:g}"),
        ("operations of the output stage", f"times {SHARES.output:g}"),
        (
            f"register, a cycle of each unit that works: {begin:,} and {bit:g} for each bit of a weight in the array",
            f"{SHARES.registers:g} pJ",
        ),
    )


def table() -> dict[str, object]:
    """The figures with source, shares and caveat, as reports print them."""
    rows = [{"operation": f.text, "picojoules": f.picojoules, "note": f.note} for f in FIGURES]
    rows += [
        {"operation": f"64-bit access of {size >> 10} KiB on chip", "picojoules": pj, "note": "a cache's"}
        for size, pj in SRAM
    ]
    shares = [{"of": what, "share": share} for what, share in share_rows()]
    return {"source": SOURCE, "caveat": CAVEAT, "rows": rows, "shares": shares}
