"""SUB of the ALU, with an operand and with an immediate: functional and cycle simulator against numpy."""

import re
import sys
from pathlib import Path

import numpy as np

from relay_hw.accel.isa.asm import assemble
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.device import Device
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.functional import FunctionalDevice

# The program of ADD leaves a + b and a + immediate as 16 entries, cut into bytes, the low ones first.
ADD = Path(__file__).parents[2] / "accel" / "isa" / "programs" / "alu_add.asm"


def check(device: Device) -> None:
    """Run the program of ADD with SUB instead, and compare."""
    text = ADD.read_text().replace("alu_op=add", "alu_op=sub")
    program = assemble(text)
    numbers = [int(word) for line in re.findall(r"^\.data i32 (.*)$", text, re.MULTILINE) for word in line.split()]
    given = np.array(numbers, np.int64).reshape(16, -1)
    wanted = np.concatenate([given[:8] - given[8:], given[:8] + 1234567]).astype(np.int32)
    parts = wanted.reshape(-1, 1).view(np.uint8)
    device.load(program)
    device.launch()
    section = program.section("out")
    np.testing.assert_array_equal(device.read(section.offset, section.size), parts.T.reshape(-1))


if __name__ == "__main__":
    config = load_config("tiny")
    for one in (FunctionalDevice(config), CycleDevice(config, memory_model("standard"), data=True)):
        check(one)
    sys.stdout.write("as wanted\n")
