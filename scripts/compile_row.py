"""Compile one network of examples/models: exact cycles of its launches, and the processor time that it took.

In: a network, a memory model, whether weights may stay on the device. Out: one line of JSON. `bench_compile.py` runs
it in the sources of two commits, so it takes from them only what both have.
"""

from __future__ import annotations

import json
import resource
import sys

from examples.models import find
from examples.models.builder import INPUT, images
from relay_hw.accel.isa.stream import encode_instructions
from relay_hw.accel.sim.cycle.timing import time_code
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.frontend import from_onnx
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.options import CompileOptions

CALIBRATION = 8
STANDARD = "standard"


def compile_row(name: str, memory: str, resident: str = "auto") -> dict[str, float]:
    """Cycles of one launch of each region, and seconds of the processor in user mode from model to programs."""
    model = find(name).model()
    shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
    data = {INPUT: images(shape, CALIBRATION, seed=1)}
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    module, params = from_onnx(model)
    # The standard memory is what is meant where none is named.
    named = None if memory == STANDARD else memory
    options = CompileOptions(host_target="numpy", name=name, resident=resident, memory=named)
    build = compile_model(module, options, params=params, calibration=data)
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - begin
    cycles = 0
    for segment in build.segments.values():
        code = encode_instructions(segment.program.instructions)
        cycles += time_code(build.config, memory_model(memory), segment.program.code.offset, code).cycles
    return {"cycles": cycles, "seconds": round(seconds, 2)}


if __name__ == "__main__":
    print(json.dumps(compile_row(*sys.argv[1:])))
