"""Properties can be asked about every mutant, and do not change with the wires that they read."""

from __future__ import annotations

import re

import pytest

from relay_hw.accel.fpga.parts import FlowError
from scripts.formal import PROPERTIES
from tests.accel.rtl.syntax import module_of
from tests.mutants.alone import broken_property, broken_task, whole_text
from tests.mutants.build import Mutant, sites_of, sources

MODULES = [path.stem for path in sorted(PROPERTIES.glob("*.v"))]
# Of two equal numbers of columns either may be taken.
SAME = ("vta_row condition bound: (cof_r_i[15:0] < columns_q) => (cof_r_i[15:0] <= columns_q)",)


def own_wires(module: str) -> frozenset[str]:
    """Names in a module's properties that are not its ports."""
    code = re.sub(r"//.*", "", (PROPERTIES / f"{module}.v").read_text())
    ports = {port.first.name for port in module_of(sources()[module]).portlist.ports}
    return frozenset(re.findall(r"(?<![\w.\\])[a-z]\w*", code)) - ports


def test_an_error_of_a_tool_is_no_answer() -> None:
    with pytest.raises(FlowError, match="ERROR"):
        broken_task("vta_count", "module vta_count (input wire clk_i); assign = 1; endmodule", 900)


@pytest.mark.parametrize("module", ["vta_ram_cols"])
def test_a_text_without_a_mutant_has_the_properties(module: str) -> None:
    assert not broken_task(module, whole_text(sites_of(module)[0]), 900)


@pytest.mark.long
@pytest.mark.parametrize("module", [module for module in MODULES if module != "vta_ram_cols"])
def test_all_texts_without_a_mutant_have_the_properties(module: str) -> None:
    """They are printed from a tree, which a tool may take for something else than the source."""
    assert not broken_task(module, whole_text(sites_of(module)[0]), 900)


@pytest.mark.long
@pytest.mark.parametrize("module", MODULES)
def test_properties_find_mutants_of_the_wires_that_they_read(module: str) -> None:
    """One that asks such a wire, instead of the ports, would change with it."""
    read = own_wires(module)
    found = [
        site
        for site in sites_of(module)[1]
        if not site.place.is_clocked and read & set(re.findall(r"\w+", site.place.target))
    ]
    missed = {site.key for site in found if not broken_property(Mutant(1, "tiny", site), 300)}
    assert missed == {key for key in SAME if key.startswith(f"{module} ")}
