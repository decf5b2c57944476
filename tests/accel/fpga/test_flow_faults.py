"""A step that fails, or is the last of the process, costs the way to a bitstream nothing that was finished before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from relay_hw.accel.fpga import flow, route, tools
from relay_hw.accel.fpga.flow import build_bitstream
from relay_hw.support.temporary import is_temporary
from tests.accel.fpga.test_flow import design
from tests.accel.test_flips import stub_tool
from tests.faults import Fault, every_fault


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.value)
def test_steps_of_a_bitstream(tmp_path: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are stubs; a whole seed is placed and routed, and packed."""
    made: list[str] = []
    netlist = {"modules": {"echo": {"ports": {}, "cells": {}, "netnames": {}, "attributes": {}}}}
    for module in (flow, route, tools):
        monkeypatch.setattr(module, "run_tool", stub_tool(made, {"mapped.json": json.dumps(netlist)}))
    root = tmp_path / "stages"
    want, all_steps = build_bitstream(design(), [1], root), len(made)

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()

    fewer, steps = 0, 0
    for steps in every_fault(prepare, lambda: build_bitstream(design(), [1], root), fault):
        made.clear()
        assert build_bitstream(design(), [1], root) == want, steps
        fewer += len(made) < all_steps
        assert [path for path in root.rglob("*") if is_temporary(path.name)] == [], steps
    # Of most faults something that was made before stays.
    assert steps > 15 and fewer > steps / 2
