"""Pyverilog reads the Verilog sources: modules, ports and parameters agree with the specification and the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyverilog.vparser import ast

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.gen_verilog import verilog_parameters
from relay_hw.accel.sim.verilator import RTL_DIR as RTL
from relay_hw.accel.sim.verilator import Form, rtl_files
from tests.accel.rtl.syntax import module_of

SOURCES = rtl_files(RTL, Form.FABRIC)
FAST = sorted((RTL / "fast").glob("*.v"))
CLOCKED = {"clk_i": "input", "rst_ni": "input"}
WRITE_CHANNELS = {"aw": "id addr len size burst lock cache prot valid ready", "w": "data strb last valid ready"}
WRITE_CHANNELS |= {"b": "id resp valid ready"}
READ_CHANNELS = {"ar": "id addr len size burst lock cache prot valid ready", "r": "id data resp last valid ready"}
LITE_CHANNELS = {"aw": "addr prot valid ready", "w": "data strb valid ready", "b": "resp valid ready"}
LITE_CHANNELS |= {"ar": "addr prot valid ready", "r": "data resp valid ready"}


def ports_of(path: Path) -> dict[str, str]:
    """Port name to direction, in order."""
    ports = [port.first for port in module_of(path).portlist.ports]
    return {port.name: type(port).__name__.lower() for port in ports}


def parameters_of(path: Path) -> dict[str, str]:
    """Parameter name to its default, as text."""
    params = module_of(path).paramlist.params if module_of(path).paramlist else ()
    declared = [item for decl in params for item in decl.list if type(item) is ast.Parameter]
    return {item.name: str(item.value.var) for item in declared}


def channel_ports(prefix: str, channels: dict[str, str], master: bool) -> dict[str, str]:
    """Directions of AXI signals: a channel's payload and valid flow one way, its ready the other."""
    result = {}
    for channel, signals in channels.items():
        forward = (channel in ("aw", "w", "ar")) == master
        for signal in signals.split():
            outward = forward != (signal == "ready")
            result[f"{prefix}_{channel}{signal}"] = "output" if outward else "input"
    return result


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_file_holds_its_module_with_house_names(path: Path) -> None:
    assert module_of(path).name == path.stem
    assert path.stem.startswith("vta_")
    for name, direction in ports_of(path).items():
        if name.startswith(("m_axi_", "s_axil_")):
            continue
        suffix = {"input": ("_i", "_ni"), "output": ("_o",)}[direction]
        assert name.endswith(suffix), f"{path.stem}.{name} is an {direction}"
    assert all(name.isupper() or "_" in name for name in parameters_of(path))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_parameter_has_a_comment_above(path: Path) -> None:
    lines = path.read_text().splitlines()
    for name in parameters_of(path):
        at = next(i for i, line in enumerate(lines) if re.search(rf"\bparameter\b.*\b{name}\b", line))
        above = next(line for line in reversed(lines[:at]) if "parameter" not in line)
        assert above.strip().startswith("//"), f"{path.stem}.{name} has no comment"


def test_top_has_the_parameters_of_a_configuration() -> None:
    top = next(path for path in SOURCES if path.stem == "vta_top")
    expected = verilog_parameters(load_config("tiny"))
    defaults = parameters_of(top)
    assert set(defaults) == set(expected)
    for name, value in defaults.items():
        if name != "CONFIG_HASH":
            assert int(value) == expected[name], f"the default of {name} is that of `tiny`"


def test_top_has_the_ports_of_the_contract() -> None:
    top = next(path for path in SOURCES if path.stem == "vta_top")
    expected = CLOCKED | {"done_o": "output"}
    expected |= channel_ports("m_axi", WRITE_CHANNELS | READ_CHANNELS, master=True)
    expected |= channel_ports("s_axil", LITE_CHANNELS, master=False)
    assert ports_of(top) == expected


def test_module_table_of_the_readme_is_complete() -> None:
    rows = re.findall(r"^\|\s*`(\w+)`\s*\|", (RTL / "README.md").read_text(), flags=re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == {path.stem for path in SOURCES}
    on_disk = {path.relative_to(RTL) for path in RTL.rglob("*.v") if path not in FAST}
    assert on_disk == {path.relative_to(RTL) for path in SOURCES}, "filelist.f must list every source"


@pytest.mark.parametrize("path", FAST, ids=lambda path: path.stem)
def test_form_for_simulation_stands_in_for_the_module_of_its_name(path: Path) -> None:
    (other,) = (source for source in SOURCES if source.name == path.name)
    assert rtl_files(RTL, Form.FAST)[SOURCES.index(other)] == path
    assert (ports_of(path), parameters_of(path)) == (ports_of(other), parameters_of(other))


def test_instances_name_modules_that_exist() -> None:
    known = {path.stem: path for path in SOURCES}

    def instances(node: ast.Node) -> list[ast.InstanceList]:
        found = [node] if isinstance(node, ast.InstanceList) else []
        return found + [item for child in node.children() for item in instances(child)]

    used = set()
    for path in SOURCES:
        for item in instances(module_of(path)):
            if item.module.startswith("ERROR_"):
                continue
            used.add(item.module)
            for instance in item.instances:
                wired = {port.portname for port in instance.portlist}
                assert wired == set(ports_of(known[item.module])), f"{path.stem} wires {item.module}"
    assert used == set(known) - {"vta_top"}, "a module that nothing uses"
