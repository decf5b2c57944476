"""What a proof that a mutant changes nothing takes for granted of the surroundings of a module.

A premise is an expression that holds in every cycle, with the place that says so; `past_NAME` is what a signal was in
the cycle before. An output may count in some cycles only. Modules that are apart are not looked into: what comes out of
them is anything, and equal where all that goes in is. Every run begins in reset.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Premise:
    """An expression of a module's signals that is true, and why."""

    rule: str
    origin: str


@dataclass(frozen=True, slots=True)
class Care:
    """When an output of a module counts, and why not else."""

    output: str
    counts: str
    origin: str


_GRANTED = Premise("!start_i || want_o", "vta_sems P4: no unit is granted that does not ask")
PREMISES = {
    "vta_core": (
        Premise(
            "f_started || !(awake_front_q || awake_load_q || awake_exec_q || awake_store_q || awake_core_q)",
            "every run begins in reset: here that of the units",
        ),
    ),
    "vta_dma_merge": (
        Premise("y_i != 16'd0", "vta_decode P3: counts of a transfer begin at 1"),
        Premise("y_i != 16'd1 || all_beats_i == row_beats_i", "vta_dispatch: all beats are y times those of a row"),
    ),
    "vta_exec": (
        Premise("stop_i[0] == stop_i[1]", "vta_stop P2: bits of stop_o are registers of one signal"),
        Premise("COF_DEPTH == 0 || stop_i[2] == stop_i[1]", "vta_stop P2: so is ROW's, where there is a row unit"),
    ),
    "vta_fetch": (
        # Where there is a request: the room is 128 beats on a bus of 64 bits, the margin lies between -32 and 127.
        Premise(
            "AXI_DATA_BITS != 64 || !(inside_q || outside_q) || margin_q[8] == margin_q[7]",
            "vta_fetch P8: the margin is the room less what was asked for and the beats at hand, one at least",
        ),
    ),
    "vta_load": (_GRANTED,),
    "vta_read_arb": (Premise("any || !m_axi_rvalid", "AXI: data come for bursts that were asked for"),),
    "vta_requant_lane": (
        Premise("!en_i[7] || $signed(clip_lo_i) <= $signed(clip_hi_i)", "vta_decode P7: bounds are in order"),
    ),
    "vta_store": (_GRANTED,),
    "vta_update": (
        Premise("!valid_i || is_alu_i || op_i == `VTA_ALUOP_MAX", "vta_uop_walk: a GEMM comes with the operation MAX"),
    ),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A module that is looked at with those below it, or with those named; the others are apart."""

    outer: str
    whole: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.outer if self.whole is None else f"{self.outer} with {', '.join(self.whole) or 'none'}"


_STOPPED = "vta_stop P1, P2; vta_csr P9: behind a stop no report counts"
_FIRST = "vta_fault P2: sources count as they were in the cycle of the first fault"
_READ = "vta_inp_mem, vta_wgt_mem: an address counts with a read alone"
_WRITTEN = "vta_scratchpads: a beat counts with a bit of we_o alone"
CARES = {
    "vta_compute": (
        Care("fault_o", "!stop_i", _STOPPED),
        Care("inp_window_o", "inp_re_o", _READ),
        Care("inp_raddr_o", "inp_re_o", _READ),
        Care("wgt_raddr_o", "wgt_re_o", _READ),
    ),
    "vta_fetch": (Care("range_fault_o", "run_i", "vta_fault P6: nothing is reported while run_i is low"),),
    "vta_load": (Care("range_index_o", "range_fault_o && !past_range_fault_o", _FIRST),),
    "vta_load_data": tuple(Care(output, "|we_o", _WRITTEN) for output in ("be_o", "waddr_o", "wdata_o")),
    "vta_output_walk": (Care("fault_o", "!stop_i", _STOPPED),),
    "vta_requant_lane": (Care("result_d_o", "en_i[7]", "vta_output: tables are looked up for a slot in stage 7"),),
    "vta_store": (Care("range_index_o", "range_fault_o && !past_range_fault_o", _FIRST),),
}
# Modules of which less than all must be seen, or is too much: scenes to try, the smallest first.
SCENES = {
    "vta_compute": (
        Scene("vta_compute", ("vta_uop_walk",)),
        Scene("vta_compute", ("vta_uop_walk", "vta_dot", "vta_multiples", "vta_nibble")),
    ),
    "vta_core": (Scene("vta_core", ()),),
    "vta_exec": (Scene("vta_exec", ()),),
    "vta_fetch": (Scene("vta_fetch", ()),),
    # LOAD does not look at all of its opcode.
    "vta_front": (Scene("vta_core", ("vta_front", "vta_read_side", "vta_load")),),
    "vta_load": (
        Scene("vta_load", ("vta_dma_walk",)),
        Scene("vta_load", ("vta_dma_walk", "vta_load_data", "vta_load_place")),
    ),
    "vta_load_data": (Scene("vta_load_data", ("vta_load_place",)),),
    "vta_output": (Scene("vta_output", ("vta_requant_lane",)),),
    "vta_store": (Scene("vta_store", ("vta_dma_walk",)),),
    "vta_update": (Scene("vta_update", ()),),
}
