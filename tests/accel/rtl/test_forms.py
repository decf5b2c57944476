"""Modules in their form for simulation are equal to those that are synthesised: yosys proves it, on small sizes.

A module whose outputs depend on a few edges only is proven for any past. Of memories that begin alike, and of the
update, which holds what it wrote, all runs of a few edges are proven. `proofs/MODULE.v` says what is assumed.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.tools import run_yosys
from relay_hw.accel.sim.verilator import RTL_DIR, Form, rtl_files

PROOFS = Path(__file__).parent / "proofs"
FAST = {path.stem: path for path in rtl_files(form=Form.FAST) if path.parent.name == "fast"}
FABRIC = {path.stem: path for path in rtl_files(form=Form.FABRIC)}
# Bits one by one, so that what both forms have alike becomes one.
PREPARE = (
    *("hierarchy -top proof", "proc", "setundef -anyseq", "memory_map", "flatten", "opt -full", "wreduce", "opt -full"),
    "simplemap t:$dff t:$dffe t:$sdff t:$sdffe t:$sdffce t:$mux",
    *("opt -full", "opt_merge -share_all", "opt -full", "chformal -lower", "clean"),
)
PROVE = "-prove-asserts -set-assumes -verify proof"
# MUL's product in both forms of the update: any function of the latency does.
PRODUCT = """module vta_alu_mul (input clk_i, input en_i, input [31:0] a_i, b_i, output reg [31:0] product_o);
  always @(posedge clk_i) product_o <= en_i ? a_i ^ {b_i[30:0], b_i[31]} : 32'd0;
endmodule
"""
# What form mul brings back to the lane's multiplier is the last product, which both forms make by the same text: any
# number will do, as long as both get it.
LANE_RETURN, ANY_RETURN = "times_i[3] ? product_q[31:0]", "times_i[3] ? acc_i"


@dataclass(frozen=True, slots=True)
class Proof:
    """Sizes of a module, and the edges that are looked at: behind any past, or from the beginning."""

    sizes: dict[str, int]
    edges: int
    any_past: bool

    def command(self) -> str:
        """What yosys has to prove: of any past only the last edge counts."""
        if self.any_past:
            return f"sat -seq {self.edges} -prove-skip {self.edges - 1} {PROVE}"
        return f"sat -tempinduct -tempinduct-baseonly -set-init-zero -maxsteps {self.edges} {PROVE}"


SMALL = {
    "vta_dot": Proof({"BLOCK_IN": 8, "DSP_PRODUCTS": 8}, 6, any_past=True),
    "vta_requant_lane": Proof({"MULTIPLIER_BITS": 16}, 9, any_past=True),
    "vta_wgt_mem": Proof({"BEAT_W": 8, "ELEM_W": 16, "DEPTH": 4, "BEAT_ADDR_W": 4}, 7, any_past=False),
    "vta_acc_mem": Proof(
        {"BLOCK_OUT": 4, "ACC_DEPTH": 8, "ACC_BANKS": 2, "OUT_LANES": 2, "BEAT_W": 64, "BEAT_ADDR_W": 6, "ROW": 1},
        4,
        any_past=False,
    ),
    "vta_update": Proof({"BLOCK_OUT": 2, "OUT_LANES": 1, "SUM_W": 18}, 5, any_past=False),
}


def prove(module: str, proof: Proof, folder: Path) -> None:
    """Raises FlowError where the two forms differ."""
    for path in (*FABRIC.values(), RTL_DIR / "gen" / "vta_isa.vh"):
        shutil.copyfile(path, folder / path.name)
    (folder / "vta_alu_mul.v").write_text(PRODUCT)
    for form, path in (("fabric", FABRIC[module]), ("fast", FAST[module])):
        text = re.sub(rf"^module {module}\b", f"module {module}_{form}", path.read_text(), flags=re.MULTILINE)
        text = text.replace(LANE_RETURN, ANY_RETURN)
        (folder / f"{form}.v").write_text(text)
    (folder / "proof.v").write_text(_around_both(module, proof.sizes))
    others = " ".join(f"{name}.v" for name in FABRIC if name != module)
    read = f"read_verilog -sv -formal fabric.v fast.v proof.v {others}"
    run_yosys(folder, [read, *PREPARE, proof.command()])


def _around_both(module: str, sizes: dict[str, int]) -> str:
    """The module's parameters and inputs, and what its proof does with both forms."""
    head = re.search(rf"^module {module} #\((.*?)\n\) \((.*?)\n\);", FAST[module].read_text(), re.MULTILINE | re.DOTALL)
    assert head is not None
    parameters = head[1]
    for name, value in sizes.items():
        parameters = re.sub(rf"(parameter {name} +=) \d+", rf"\1 {value}", parameters)
    inputs = [line.split(",")[0] for line in head[2].splitlines() if line.strip().startswith("input")]
    ports = ",\n".join(inputs)
    body = (PROOFS / f"{module}.v").read_text()
    return f'`include "vta_isa.vh"\nmodule proof #({parameters}\n) (\n{ports}\n);\n{body}endmodule\n'


def test_every_form_for_simulation_has_a_proof() -> None:
    assert set(SMALL) == set(FAST) == {path.stem for path in PROOFS.glob("*.v")}


@pytest.mark.parametrize("module", ["vta_dot", "vta_requant_lane", "vta_wgt_mem"])
def test_equal(module: str, tmp_path: Path) -> None:
    prove(module, SMALL[module], tmp_path)


def test_weights_of_two_bits_are_widened_alike(tmp_path: Path) -> None:
    proof = SMALL["vta_wgt_mem"]
    prove("vta_wgt_mem", replace(proof, sizes=proof.sizes | {"WGT_BITS": 4, "FACTORS": 2}), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("module", sorted(SMALL))
def test_all_equal(module: str, tmp_path: Path) -> None:
    prove(module, SMALL[module], tmp_path)


def test_a_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    text = FAST["vta_wgt_mem"].read_text()
    wrong = text.replace("if (expand_q) pair_q <= wide;", "if (expand_q) pair_q <= {wdata_q, wdata_q};")
    assert wrong != text
    changed = tmp_path / "vta_wgt_mem.v"
    changed.write_text(wrong)
    monkeypatch.setitem(FAST, "vta_wgt_mem", changed)
    (tmp_path / "work").mkdir()
    with pytest.raises(FlowError, match="proof did fail"):
        prove("vta_wgt_mem", SMALL["vta_wgt_mem"], tmp_path / "work")
