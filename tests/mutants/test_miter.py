"""What is proven equal is equal, and what is not is not: pairs of small modules, with registers that nothing resets."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_hw.accel.fpga.tools import run_yosys
from tests.mutants.equivalence import gates, never_differs
from tests.mutants.miter import miter, read_circuit

FORM = """module m (input clk_i, input en_i, input d_i, output y_o{ports});
  reg d_q, en_q;
  always @(posedge clk_i) begin
    en_q <= en_i;
    if ({enable}) d_q <= {data};
  end
{rest}
endmodule
"""


def form(rest: str, enable: str = "en_i", data: str = "d_i", ports: str = "") -> str:
    """A module with a register that is loaded at times, and one that says when it was."""
    return FORM.format(rest=rest, enable=enable, data=data, ports=ports)


SHOWN, GATED = "assign y_o = d_q;", "assign y_o = d_q && en_q;"
PLAIN, ALWAYS = form(SHOWN), form(SHOWN, "1'b1")
ASSUMED = form(f"{SHOWN} always @* assume (en_i);")
COUNTED = form(f"{SHOWN} assign counts_y_o = en_q;", ports=", output counts_y_o")
TURNED = form(SHOWN, data="!d_q")
# What is set was loaded before, if both were clear at some time.
BORN = """module m (input clk_i, input {reset}, input en_i, input d_i, output y_o);
  reg d_q, en_q;
  always @(posedge clk_i)
    if (!{reset}) {{d_q, en_q}} <= 2'd0;
    else begin
      en_q <= en_q || en_i;
      if (en_i) d_q <= d_i;
    end
  assign y_o = {shown};
endmodule
"""


@pytest.mark.parametrize(
    ("gold", "gate", "is_equal"),
    [
        (PLAIN, PLAIN, True),
        (PLAIN, ALWAYS, False),
        (form(GATED), form(GATED, "1'b1"), True),
        (ASSUMED, ALWAYS, True),
        (COUNTED, ALWAYS, True),
        (COUNTED, TURNED, False),
        (TURNED, TURNED, True),
        (TURNED, form("assign y_o = !d_q;", data="!d_q"), False),
        *(
            (*(BORN.format(reset=reset, shown=shown) for shown in ("d_q", "d_q && en_q")), reset == "rst_ni")
            for reset in ("rst_ni", "any_i")
        ),
    ],
    ids=[
        *("same", "enable", "not read", "assumed", "counts", "counts and differs", "begin alike"),
        *("begin with anything", "begin in reset", "begin outside of it"),
    ],
)
def test_pairs(tmp_path: Path, gold: str, gate: str, is_equal: bool) -> None:
    steps = []
    for side, text in (("gold", gold), ("gate", gate)):
        (tmp_path / f"{side}.v").write_text(text)
        steps += [f"read_verilog -formal -sv {side}.v", "hierarchy -top m", "proc", *gates(side), "design -reset"]
    run_yosys(tmp_path, steps)
    sides = (read_circuit(tmp_path / f"{side}.aag", tmp_path / f"{side}.map") for side in ("gold", "gate"))
    (tmp_path / "miter.aig").write_bytes(miter(*sides))
    assert never_differs(tmp_path) is is_equal
