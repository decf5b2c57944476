"""Recurrent networks on the accelerator: an LSTM in a Relay loop, cycles from RTL; trees whose nodes share launches.

In: examples/relay/lstm.relay and treelstm.relay with random weights. Out: `Row`s. Data changes no cycle.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from bench_rows import Row
from threadpoolctl import threadpool_limits

from relay_hw.interp import ConstructorValue
from relay_hw.ir.module import IRModule
from relay_hw.runtime import CompileOptions, Executor, compile_model, open_device
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.result import Result
from relay_hw.target.accel.devices import close_device
from relay_hw.text import parse

EXAMPLE = Path(__file__).parents[1] / "examples" / "relay" / "lstm.relay"


TREE = EXAMPLE.with_name("treelstm.relay")
TREES, CALLS = 100, 40
# The example a quarter as wide: products of its trees take little of the array.
NARROW = (("192", "48"), ("320", "80"), ("128", "32"), (" 32)", " 8)"), ("(1, 64)", "(1, 16)"), ("(80, 8)", "(80, 32)"))


def tree_rows() -> list[Row]:
    """A TreeLSTM, node by node and with many nodes in a launch: the example, and a narrow one; and both on numpy."""
    wide = TREE.read_text()
    narrow = wide
    for old, new in NARROW:
        narrow = narrow.replace(old, new)
    title = f"TreeLSTM, {TREES} trees, cycles node by node over those with up to {CALLS} nodes in a launch"
    one, many = (_seconds(wide, calls) for calls in (1, CALLS))
    return [
        # Its products alone take 51,528 cycles: no grouping passes 5.4 here.
        Row(f"{title}, default", _gain(wide), "times", 4.5, False),
        Row("the same, wide", _gain(wide, config="wide"), "times", 5, False),
        Row("the same, default, weights loaded in every launch", _gain(wide, resident="off"), "times", 5, False),
        Row("the same, default, a quarter as wide", _gain(narrow), "times", 5, False),
        Row("the example in integers on numpy, its calls together, of the time node by node", many / one, "times", 0.5),
    ]


def _gain(text: str, resident: str = "auto", config: str = "default") -> float:
    """Cycles of single calls over those of shared launches. Raises ValueError where results differ."""
    results: list[Result] = []
    for calls in (1, CALLS):
        options = CompileOptions(config=config, host_target="numpy", resident=resident, batch_calls=calls)
        artifact, data = _built(text, options)
        device = open_device("cycle", artifact.config)
        try:
            results.append(Executor(artifact, device).run(data, chunk=TREES))
        finally:
            close_device(device)
    first, second = ([value.tobytes() for value in result.outputs.values()] for result in results)
    if first != second:
        raise ValueError("trees must have the same results with shared launches")
    one, many = (sum(result.chunk_cycles or ()) for result in results)
    return one / many


def _seconds(text: str, calls: int) -> float:
    """Of the processor, on numpy with one thread, whose others would be counted while they wait: the least of three."""
    options = CompileOptions(host_target="numpy", accelerate=False, batch_calls=calls)
    artifact, data = _built(text, options)
    executor = Executor(artifact, None)
    found: list[float] = []
    for _ in range(3):
        with threadpool_limits(1):
            begin = time.process_time()
            executor.run(data, chunk=TREES)
            found.append(time.process_time() - begin)
    return min(found)


def _built(text: str, options: CompileOptions) -> tuple[Artifact, Mapping[str, Any]]:
    """A TreeLSTM with random weights, and random trees."""
    mod, rng = parse(text), np.random.default_rng(0)
    shapes = {param.name_hint: param.type_annotation.static_shape for param in mod["main"].params[1:]}
    weights = {
        name: rng.uniform(-1, 1, shape).astype("float32") / math.sqrt(shape[-1]) for name, shape in shapes.items()
    }
    width = mod.types["Tree"].constructors[0].inputs[0].static_shape[1]
    data = [_tree(mod, rng, width, int(rng.integers(1, 8))) for _ in range(TREES)]
    model = compile_model(mod, options, params=weights, calibration={"tree": data[:8]})
    with tempfile.TemporaryDirectory() as folder:
        return model.save(Path(folder) / "build"), {"tree": data}


def _tree(mod: IRModule, rng: np.random.Generator, width: int, leaves: int) -> ConstructorValue:
    """A tree with random leaves."""
    leaf, node = mod.types["Tree"].constructors
    if leaves == 1:
        return ConstructorValue(leaf, (rng.normal(size=(1, width)).astype("float32"),))
    left = int(rng.integers(1, leaves))
    return ConstructorValue(node, (_tree(mod, rng, width, left), _tree(mod, rng, width, leaves - left)))


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
