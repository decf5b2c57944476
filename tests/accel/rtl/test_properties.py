"""Properties of modules: each has a sentence, the quick ones hold, and a module with a mistake does not have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.sim.verilator import rtl_files
from scripts import formal

PATHS = sorted(formal.PROPERTIES.glob("*.v"))
MODULES = {path.stem: path for path in rtl_files()}
# A mistake in each module, which its properties find: a module, what is there, what stands there by mistake.
MISTAKES = (
    ("vta_count", "any_q   <= add_i || !one_o;", "any_q   <= add_i || one_o;"),
    ("vta_fifo", ".we_i   (!full_o),\n          .waddr_i(write_q),\n          .wdata_i(data_i[WIDTH-1:EARLY])",
     ".we_i   (push_i && full_o),\n          .waddr_i(write_q),\n          .wdata_i(data_i[WIDTH-1:EARLY])"),
    ("vta_sems", "alone_3 = able_3 && !(able_1 && meet_13)", "alone_3 = able_3 && !(able_1 && meet_12)"),
    ("vta_read_arb", "&& !full && !stop_i", "&& !stop_i"),
    ("vta_axil", "(whole_q && write_known_i) ? OKAY", "(whole_q || write_known_i) ? OKAY"),
    ("vta_dma_walk", "&& left_d[5:0] <= limit_d", "&& left_d[5:0] < limit_d"),
    ("vta_dma_merge", "x_one_o && (y_i == 16'd1", "(y_i == 16'd1"),
    ("vta_once", "UOP_END] - 16'd1", "UOP_END]"),
    ("vta_multiples", "~one + 10'd1", "~one"),
    ("vta_nibble", "{upper, 2'b00}", "{upper[8:0], 3'b000}"),
    ("vta_widen", "beat_i[w*HALF+:HALF]} << LOW;", "beat_i[w*HALF+:HALF]};"),
    ("vta_fault", "pick_index_q < index_q", "pick_index_q <= index_q"),
    ("vta_csr", "abort_q <= abort_soon_o && busy;", "abort_q <= abort_soon_o;"),
    ("vta_store", "ends_q  <= data_load ? data_len == 6'd0", "ends_q  <= data_load ? data_len == 6'd1"),
    ("vta_requant_lane", "up = shifted[0] && (sticky || !sign);", "up = shifted[0] && (sticky || sign);"),
    ("vta_fetch", "wire        final_chunk = chunk >= final_q;", "wire        final_chunk = chunk > final_q;"),
    ("vta_dispatch", "if (go && is_last_q) over_q", "if (done_o && is_last_q) over_q"),
    ("vta_uop_walk", "uops_end ? in_left_q == 16'd2", "uops_end ? in_left_q == 16'd1"),
    ("vta_output_walk", "out_two_q  <= out_left_q == 16'd3;", "out_two_q  <= out_left_q == 16'd2;"),
    ("vta_counters", "carry_q <= (carry_q & ~turn_q) |", "carry_q <= (carry_q & turn_q) |"),
    ("vta_alu_lane", "(&amount[4:3] && |dropped[22:15])", "(&amount[4:3] && |dropped[21:15])"),
    ("vta_alu_mul", "{low_q[31:18] + high,", "{low_q[31:18] + left_q,"),
    ("vta_pick", "lower_q <= !way_i[1];", "lower_q <= way_i[1];"),
    ("vta_ram_cols", "if (we_i[col]) mem_q", "if (|we_i) mem_q"),
    ("vta_ram_async", "mem_q[waddr] <=", "mem_q[raddr] <="),
    ("vta_ram_beat", "if (re_i) elem_q <=", "elem_q <="),
    ("vta_ram_out", "we_i && (waddr_i & ELEM_MASK) == COL[15:0];", "we_i;"),
    ("vta_decode", "window_end > vector_bytes;", "window_end >= vector_bytes;"),
    ("vta_load_place", "row_last ? |x_first_q", "row_last ? |x_pad_0"),
    ("vta_stop", "load_written_q <= done_index_q[0*32+:32];", "load_written_q <= done_seen_q[0*32+:32];"),
    ("vta_inp_mem", "~(4'b1111 << r_line[1:0]);", "~(4'b1110 << r_line[1:0]);"),
    ("vta_wgt_mem", "made_q    <= expand_i ?", "made_q    <= expand_q ?"),
    ("vta_cof_mem", "we_i && beat == OWN[BEAT_ADDR_W-1:0];", "we_i;"),
    ("vta_row", "(busy_q && !done_q[4])", "(busy_q && !done_q[3])"),
    ("vta_row_inverse", "fits = next >= trial;", "fits = next > trial;"),
    ("vta_row_lane", "(25'd1 << c_drop_i) >> 1;", "25'd1 << c_drop_i;"),
    ("vta_row_walk", "(inside_q && entries_left_q != 16'd0)", "(inside_q && entries_left_q != 16'd1)"),
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_property_is_a_sentence_and_is_proven(path: Path) -> None:
    found, kinds = list(formal.properties(path)), {task.kind for task in formal.tasks(path)}
    assert sorted(each.number for each in found) == list(range(1, len(found) + 1))
    assert found and all(each.sentence.endswith(".") for each in found)
    assert "induction" in kinds and ("bounded" in kinds) == any(not each.is_unbounded for each in found)
    assert ("cover" in kinds) == (": cover (" in path.read_text())


def test_every_module_has_properties_or_a_reason() -> None:
    assert {path.stem for path in PATHS} | set(formal.OPEN) == set(MODULES)
    assert not {path.stem for path in PATHS} & set(formal.OPEN)


def test_every_file_has_a_mistake_that_it_finds() -> None:
    assert {module for module, _, _ in MISTAKES} == {path.stem for path in PATHS}


@pytest.mark.parametrize("module", ["vta_count", "vta_axil", "vta_dma_walk"])
def test_holds(module: str, tmp_path: Path) -> None:
    formal.prove(next(formal.tasks(formal.PROPERTIES / f"{module}.v")), tmp_path)


def find_mistake(module: str, right: str, wrong: str, folder: Path) -> None:
    """Some task of the module fails where it has the mistake."""
    text = MODULES[module].read_text()
    assert text.count(right) == 1
    changed = folder / f"{module}.v"
    changed.write_text(text.replace(right, wrong))
    for number, task in enumerate(formal.tasks(formal.PROPERTIES / f"{module}.v")):
        work = folder / str(number)
        work.mkdir()
        try:
            formal.prove(task, work, {module: changed})
        except FlowError as error:
            assert "Status: FAILED" in str(error)
            return
    raise AssertionError(f"no property of {module} finds it")


@pytest.mark.parametrize(("module", "right", "wrong"), MISTAKES[:3], ids=lambda each: each if each in MODULES else "")
def test_a_mistake_is_found(module: str, right: str, wrong: str, tmp_path: Path) -> None:
    find_mistake(module, right, wrong, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("module", "right", "wrong"), MISTAKES[3:], ids=lambda each: each if each in MODULES else "")
def test_all_mistakes_are_found(module: str, right: str, wrong: str, tmp_path: Path) -> None:
    find_mistake(module, right, wrong, tmp_path)


def test_an_assertion_without_a_sentence_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vta_count.v"
    path.write_text("// induction 1\n\n  always @* p3: assert (any_o);\n")
    with pytest.raises(ValueError, match=r"vta_count.v must have a sentence for each assertion, not differ in \[3\]"):
        list(formal.properties(path))


def test_an_abstraction_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match=r"vta_requant_lane.v must hold 'product_q <= operand_x .*' once, not 0 times"):
        formal.with_properties("vta_requant_lane", "module vta_requant_lane; endmodule")


def test_the_page_has_every_property() -> None:
    text = formal.PAGE.read_text()
    assert formal.page(text) == text, "python scripts/formal.py --write"
