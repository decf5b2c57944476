"""The cycle simulator: when each instruction starts and ends, exact to the clock edge, without a clock loop.

In: a program and a memory model. Out: the cycles and counters that the Verilog would show; data from the functional
simulator. The rules are those of accel/rtl/TIMING.md.
"""

from relay_hw.accel.sim.cycle.device import CycleDevice
from relay_hw.accel.sim.cycle.engine import InstructionTime
from relay_hw.accel.sim.cycle.timing import Timing

__all__ = ["CycleDevice", "InstructionTime", "Timing"]
