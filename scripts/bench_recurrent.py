"""Recurrent networks on the accelerator: an LSTM in a Relay loop, cycles from RTL.

In: examples/relay/lstm.relay with random weights. Out: `Row`s. Data changes no cycle.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
from bench_rows import Row

from relay_hw.runtime import CompileOptions, Executor, compile_model, open_device
from relay_hw.target.accel.devices import close_device
from relay_hw.text import parse

EXAMPLE = Path(__file__).parents[1] / "examples" / "relay" / "lstm.relay"


def lstm_rows() -> list[Row]:
    """128 inputs, 128 hidden values, 28 steps: how much of the array its launches use after the first step."""
    rng = np.random.default_rng(0)
    mod = parse(EXAMPLE.read_text())
    sizes = {param.name_hint: param.type_annotation.static_shape for param in mod["main"].params}
    data = rng.normal(size=sizes["x"]).astype("float32")
    weights = {
        name: rng.uniform(-1, 1, shape).astype("float32") / math.sqrt(shape[-1])
        for name, shape in sizes.items()
        if name != "x"
    }
    model = compile_model(
        mod, CompileOptions(host_target="numpy", name="lstm"), params=weights, calibration={"x": data}
    )
    with tempfile.TemporaryDirectory() as folder:
        artifact = model.save(Path(folder) / "build")
        device = open_device("rtl", artifact.config)
        try:
            result = Executor(artifact, device).run({"x": data[None]})
        finally:
            close_device(device)
    steps = sizes["x"][0]
    cycles = [launch.stats.cycles or 0 for launch in result.launches]
    after = cycles[len(cycles) // steps :]
    macs = sum(row.macs for row in artifact.manifest.layers) * (steps - 1)
    used = macs / (sum(after) * artifact.config.macs_per_cycle)
    return [
        Row("LSTM of 128 inputs, 128 hidden values, 28 steps: array in use after step 1", 100 * used, "%", 25, False),
        Row("its cycles a step, resident weights", sum(after) / (steps - 1), "cycles"),
    ]
