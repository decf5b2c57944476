"""Functions of rows, pairs inside one another: simulators and Verilog leave the same bytes after the same cycles."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.program import SectionKind
from relay_hw.ir.expr import Function
from relay_hw.target.accel.devices import close_device, open_device
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.layout import pack_activation
from relay_hw.tensorize.target import Target
from tests.targets import target_for
from tests.tensorize.test_pairs import turned
from tests.tensorize.test_rows import chain

# Building the Verilog of a configuration takes most of a minute.
NAMES = ("tiny", "default")
Program = Callable[[SimpleNamespace, Target], Function]


def launched(segment: Segment, config: Target, device: str) -> tuple[bytes, int]:
    """The output's bytes, and the cycles of a launch."""
    rng, program, opened = np.random.default_rng(0), segment.program, open_device(device, load_config(config.name))
    try:
        opened.load(program)
        for port in segment.inputs:
            data = pack_activation(rng.integers(-128, 128, port.shape).astype(np.int8), config, port.layout)
            opened.write(program.tensor_offset(port.name), data.view(np.uint8))
        if program.resident is not None:
            opened.launch(SectionKind.RESIDENT)
        found = opened.launch()
        size = pack_activation(np.zeros(segment.outputs[0].shape, np.int8), config).size
        return bytes(opened.read(program.tensor_offset("output_0"), size)), found.cycles or 0
    finally:
        close_device(opened)


def turned_rows(kit: SimpleNamespace, config: Target) -> Function:
    """Rows that are turned as a rotary embedding turns them, and multiplied with others by their transpose."""
    build = kit.Regions(8, config)
    x, cosines, sines = (build.tensor(2, 9, 24) for _ in range(3))
    rows = build.pairs(2, x, cosines, sines, reordered=turned)
    return build.function(build.product(x, rows) if config.name == "default" else build.pairs(3, rows, x))


@pytest.mark.parametrize("program", [chain, turned_rows])
@pytest.mark.parametrize("name", NAMES)
def test_devices_agree(kit: SimpleNamespace, program: Program, name: str) -> None:
    config = target_for(name)
    segment = compile_function(program(kit, config), config, "accel_0")
    cycle, rtl = (launched(segment, config, device) for device in ("cycle", "rtl"))
    assert cycle == rtl and cycle[1] == segment.cycles
    assert launched(segment, config, "functional")[0] == cycle[0]
