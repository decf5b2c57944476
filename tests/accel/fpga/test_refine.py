"""Refinement of a placement: it keeps nextpnr's rules, prices a move as an analysis of the whole does, and helps."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.place.around import MARGIN, TILE_PRICE, price_of
from relay_hw.accel.fpga.place.placed import LOGIC, Placed, read_placed, with_sites
from relay_hw.accel.fpga.place.refine import PASSES, Mover, refined
from relay_hw.accel.fpga.place.slices import LANES, Tiles, read_groups
from relay_hw.accel.fpga.place.timing import SETUP, analysed, read_arcs, wire_delay
from relay_hw.accel.fpga.tools import run_tool, run_yosys
from relay_hw.support.progress import SILENT
from tests.accel.fpga.extra import needs_tools
from tests.told import told

# Chains of adders, a memory in LUTs, enables, resets, wide choices and registers without a gate before them.
MIXED = """
module mixed (input wire clk_i, input wire rst_i, input wire en_i, input wire [7:0] a_i, output reg [15:0] x_o);
  reg [15:0] sum_q, mask_q, old_q;
  reg [7:0] a_q, b_q;
  reg [15:0] mem_q[0:15];
  wire [15:0] read = mem_q[b_q[3:0]];
  reg [15:0] chosen;
  always @* case (b_q[6:4])
    0: chosen = sum_q; 1: chosen = mask_q; 2: chosen = read; 3: chosen = old_q;
    4: chosen = ~sum_q; 5: chosen = {sum_q[7:0], old_q[15:8]}; 6: chosen = sum_q & old_q;
    default: chosen = read ^ old_q;
  endcase
  always @(posedge clk_i) begin
    a_q <= a_i;
    b_q <= a_q;
    old_q <= sum_q;
    x_o <= chosen;
    if (en_i) mask_q <= {mask_q[14:0], ^sum_q};
    if (b_q[7]) mem_q[a_q[3:0]] <= sum_q ^ mask_q;
    if (rst_i) sum_q <= 16'd0;
    else if (en_i) sum_q <= sum_q + chosen + {8'd0, a_q};
  end
endmodule
"""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """MIXED as nextpnr places it."""
    folder: Path = tmp_path_factory.mktemp("mixed")
    (folder / "mixed.v").write_text(MIXED)
    run_yosys(folder, ["read_verilog mixed.v", "synth_ecp5 -top mixed -json mixed.json"])
    words = ["--85k", "--json", "mixed.json", "--write", "placed.json", "--no-route", "--placer", "static"]
    run_tool(folder, "nextpnr-ecp5", [*words, "--lpf-allow-unconstrained", "--seed", "1"])
    return json.loads((folder / "placed.json").read_text())


def scattered(document: dict[str, Any], seed: int) -> tuple[dict[str, Any], Placed]:
    """The document with its groups anywhere that has room, in tiles that are used."""
    placed = read_placed(document)
    tiles, rng = Tiles(placed), random.Random(seed)
    for cells in read_groups(placed):
        first = cells[0]
        for _ in range(40):
            other = rng.choice([cell for cell, fixed in enumerate(placed.fixed) if not fixed])
            columns, rows = placed.x[other] - placed.x[first], placed.y[other] - placed.y[first]
            lanes = rng.randrange(LANES) - placed.lane[first] if len(cells) == 1 else 0
            tiles.take(cells)
            if tiles.has_room(cells, columns, rows, lanes):
                for cell in cells:
                    placed.x[cell] += columns
                    placed.y[cell] += rows
                    placed.lane[cell] += lanes
            tiles.put(cells)
    return with_sites(document, placed), placed


@needs_tools
def test_nextpnr_keeps_the_rules_and_its_sites_are_written_as_they_were_read(document: dict[str, Any]) -> None:
    placed = read_placed(document)
    kinds = {placed.kind(cell) for cell in range(len(placed.cells))}
    modes = {placed.mode(cell) for cell in range(len(placed.cells))}
    assert kinds >= set(LOGIC) and modes >= {"LOGIC", "CCU2", "DPRAM"}
    assert Tiles(placed).is_valid()
    assert with_sites(document, placed) == document


@needs_tools
@pytest.mark.parametrize("seed", range(3))
def test_refinement_shortens_what_is_late_and_changes_sites_alone(document: dict[str, Any], seed: int) -> None:
    spoiled, placed = scattered(document, seed)
    assert Tiles(placed).is_valid()
    period = Mover(placed, 1.0).late()[1] * 0.6
    said: list[str] = []
    better, latest = refined(spoiled, period, told(said))
    after = read_placed(better)
    assert Tiles(after).is_valid()
    assert latest == Mover(after, period).late()[1] < 0.8 * Mover(placed, period).late()[1]
    assert said[0] == f"refinement: 0 of {PASSES}" and "late signals stay later than" in said[-1]
    assert with_sites(better, read_placed(spoiled)) == spoiled
    for cell, fixed in enumerate(placed.fixed):
        if fixed:
            assert (after.x[cell], after.y[cell]) == (placed.x[cell], placed.y[cell])
    for cells in read_groups(placed):
        ways = [(after.x[cell] - placed.x[cell], after.y[cell] - placed.y[cell]) for cell in cells]
        assert len(set(ways)) == 1
    assert refined(spoiled, period, told(said)) == (better, latest)


@needs_tools
def test_what_is_early_stays(document: dict[str, Any]) -> None:
    assert refined(document, 100.0, SILENT)[0] == document


@needs_tools
def test_the_cost_of_a_place_is_that_of_an_analysis_there(document: dict[str, Any]) -> None:
    placed = read_placed(document)
    arcs, rng = read_arcs(placed), random.Random(1)
    period = float(analysed(arcs, placed).path.max())
    mover = Mover(placed, period)
    checked = 0
    for cells in read_groups(placed):
        columns, rows = rng.randint(-9, 9), rng.randint(-9, 9)
        before = analysed(arcs, placed)
        around = mover.around(cells)
        cost, length = around.cost(columns, rows), around._length(columns, rows)
        for cell in cells:
            placed.x[cell] += columns
            placed.y[cell] += rows
        there = analysed(arcs, placed)
        inside = set(cells)
        total = 0.0
        returns = False
        for arc in range(len(arcs.net)):
            if (arcs.start[arc] in inside) == (arcs.end[arc] in inside) or arcs.one_way[arc]:
                continue
            # A path that leaves the group and comes back is priced as it was outside.
            there_and_back = (
                there.arrival[arcs.net[arc]] != before.arrival[arcs.net[arc]]
                if arcs.end[arc] in inside
                else there.beyond[arc] != before.beyond[arc]
            )
            returns |= bool(there_and_back)
            total += price_of(max(there.path[arc] - (period - MARGIN), 0.0))
        for cell in cells:
            placed.x[cell] -= columns
            placed.y[cell] -= rows
        if not returns:
            checked += 1
            assert cost == pytest.approx(total + TILE_PRICE * length)
    assert checked > 50


def cell(kind: str, bel: str, inputs: dict[str, int], outputs: dict[str, int], **parameters: str) -> dict[str, Any]:
    return {
        "type": kind,
        "parameters": parameters,
        "attributes": {"NEXTPNR_BEL": bel},
        "port_directions": dict.fromkeys(inputs, "input") | dict.fromkeys(outputs, "output"),
        "connections": {port: [net] for port, net in (inputs | outputs).items()},
    }


def netlist(**cells: dict[str, Any]) -> dict[str, Any]:
    return {"modules": {"top": {"cells": cells}}}


def test_a_path_is_the_sum_of_its_cells_and_wires() -> None:
    placed = read_placed(
        netlist(
            first=cell("TRELLIS_FF", "X10/Y10/SLICEA.FF0", {"CLK": 1}, {"Q": 2}),
            gate=cell("TRELLIS_COMB", "X30/Y12/SLICEB.K1", {"A": 2}, {"F": 3}),
            last=cell("TRELLIS_FF", "X31/Y40/SLICED.FF1", {"CLK": 1, "M": 3}, {"Q": 4}),
        )
    )
    assert (placed.x, placed.y, placed.lane) == ([10, 30, 31], [10, 12, 40], [0, 3, 7])
    found = analysed(read_arcs(placed), placed)
    length = 0.525 + wire_delay(20, 2) + 0.236 + wire_delay(1, 28) + SETUP
    assert found.path.tolist() == pytest.approx([length, length])


def test_flip_flops_of_one_tile_share_clock_and_reset_and_of_one_slice_the_enable() -> None:
    first = cell("TRELLIS_FF", "X1/Y1/SLICEA.FF0", {"CLK": 1, "LSR": 2, "CE": 3}, {"Q": 9})
    fits = {
        "the same": (cell("TRELLIS_FF", "X1/Y1/SLICEA.FF1", {"CLK": 1, "LSR": 2, "CE": 3}, {"Q": 8}), True),
        "another enable": (cell("TRELLIS_FF", "X1/Y1/SLICEA.FF1", {"CLK": 1, "LSR": 2, "CE": 4}, {"Q": 8}), False),
        "in another slice": (cell("TRELLIS_FF", "X1/Y1/SLICEB.FF0", {"CLK": 1, "LSR": 2, "CE": 4}, {"Q": 8}), True),
        "another reset": (cell("TRELLIS_FF", "X1/Y1/SLICEB.FF0", {"CLK": 1, "LSR": 5, "CE": 3}, {"Q": 8}), False),
        "another clock": (cell("TRELLIS_FF", "X1/Y1/SLICED.FF0", {"CLK": 6, "LSR": 2, "CE": 3}, {"Q": 8}), False),
        "in another tile": (cell("TRELLIS_FF", "X2/Y1/SLICEA.FF0", {"CLK": 6, "LSR": 5, "CE": 3}, {"Q": 8}), True),
    }
    for case, (second, valid) in fits.items():
        assert Tiles(read_placed(netlist(first=first, second=second))).is_valid() == valid, case


def test_carry_and_logic_do_not_share_a_slice() -> None:
    gate = cell("TRELLIS_COMB", "X1/Y1/SLICEA.K0", {"A": 1}, {"F": 2})
    for lane, valid in (("A.K1", False), ("B.K1", True)):
        carry = cell("TRELLIS_COMB", f"X1/Y1/SLICE{lane}", {"A": 1}, {"F": 3}, MODE="CCU2")
        assert Tiles(read_placed(netlist(gate=gate, carry=carry))).is_valid() == valid


def test_a_cell_without_a_site_is_refused() -> None:
    with pytest.raises(FlowError, match=r"a placed cell must have a site, not gate \(TRELLIS_COMB\) none"):
        read_placed(netlist(gate=cell("TRELLIS_COMB", "", {"A": 1}, {"F": 2})))
