"""What a proof that a mutant changes nothing takes for granted of the surroundings of a module.

A premise is an expression that holds in every cycle in which the module's outputs count, with the place that says so.
Modules that are apart are not looked into: what comes out of them is taken as equal where all that goes in is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Premise:
    """An expression of a module's signals that is true, and why."""

    rule: str
    origin: str


PREMISES = {
    "vta_dma_merge": (
        Premise("y_i != 16'd0", "vta_decode P3: counts of a transfer begin at 1"),
        Premise("y_i != 16'd1 || all_beats_i == row_beats_i", "vta_dispatch: all beats are y times those of a row"),
    ),
    "vta_exec": (Premise("stop_i[0] == stop_i[1]", "vta_stop P2: bits of stop_o are registers of one signal"),),
    "vta_fetch": (
        # Where there is a request: the room is 128 beats on a bus of 64 bits, the margin lies between -32 and 127.
        Premise(
            "AXI_DATA_BITS != 64 || !(inside_q || outside_q) || margin_q[8] == margin_q[7]",
            "vta_fetch P8: the margin is the room less what was asked for and the beats at hand, one at least",
        ),
    ),
    "vta_read_arb": (Premise("any || !m_axi_rvalid", "AXI: data come for bursts that were asked for"),),
    "vta_requant_lane": (
        Premise("!en_i[7] || $signed(clip_lo_i) <= $signed(clip_hi_i)", "vta_decode P7: bounds are in order"),
    ),
    "vta_update": (
        Premise("!valid_i || is_alu_i || op_i == `VTA_ALUOP_MAX", "vta_uop_walk: a GEMM comes with the operation MAX"),
    ),
}
APART = {
    "vta_compute": ("vta_dot", "vta_uop_walk", "vta_update"),
    "vta_exec": ("vta_compute", "vta_output", "vta_scratchpads"),
    "vta_fetch": ("vta_fifo",),
    "vta_output": ("vta_requant_lane",),
    "vta_update": ("vta_alu_mul",),
}
