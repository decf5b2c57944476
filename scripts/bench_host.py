"""Speed of the host path: networks and convolutions compiled by TVM beside onnxruntime, in turns in one run.

In: examples/models. Out: `Row`s of ratios; `python scripts/bench_host.py` prints them. Seconds are the least of many
turns; with one thread they are the processor's, so that other work on the machine does not count.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench_layers  # noqa: F401  first: it puts examples on the path
import numpy as np
from bench_rows import Row, judge

from examples.models import find
from examples.models.builder import INPUT
from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, flatten
from relay_hw.backend.tvm import build_library, load_library
from relay_hw.build_module import bind_params_by_name
from relay_hw.frontend import from_onnx
from relay_hw.ir.expr import Constant, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.transform import FoldConstant, FoldScaleAxis, InferType, PassContext, Sequential, SimplifyInference

TURNS, REPEATS = 12, 4
# ResNet-18 with one thread and with two, of onnxruntime's speed; int8 of float32's.
BOUNDS: Mapping[int, float] = {1: 0.8, 2: 0.75}
INT8_BOUND = 0.6
OTHERS = ("mobilenet_v1", "mobilenet_v2", "mobilenet_grouped")
# Channels and height of 3x3 convolutions of ResNet-18.
LAYERS = ((64, 56), (128, 28), (256, 14), (512, 7))
Run = Callable[[], Any]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds of one inference: onnxruntime's and ours, by number of threads."""

    theirs: Mapping[int, float]
    ours: Mapping[int, float]

    def ratio(self, threads: int) -> float:
        """Our speed over theirs."""
        return self.theirs[threads] / self.ours[threads]


def fastest(runs: Sequence[tuple[Run, Run]], clock: Clock) -> list[float]:
    """Seconds of the fastest of many calls of each, in turns; the first of a pair is called before, untimed."""
    best = [float("inf")] * len(runs)
    for _ in range(TURNS):
        for place, (prepare, run) in enumerate(runs):
            prepare()
            run()
            for _ in range(REPEATS):
                begin = clock()
                run()
                best[place] = min(best[place], clock() - begin)
    return best


@contextmanager
def loaded(functions: Sequence[FlatFunction]) -> Iterator[Any]:
    """The functions compiled for this machine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host.so"
        yield load_library(path, build_library(functions, path))


def network(name: str) -> tuple[FlatFunction, bytes]:
    """A network of examples/models with its batch norms folded, and as ONNX."""
    model = find(name).model()
    module, params = from_onnx(model)
    bound = module.with_functions({"main": bind_params_by_name(module["main"], params)})
    passes = [InferType(), SimplifyInference(), FoldConstant(), FoldScaleAxis(), FoldConstant(), InferType()]
    with PassContext(opt_level=3):
        folded = Sequential(passes, name="host")(bound)
    return flatten(folded["main"], "main"), model.SerializeToString()


def measure_network(name: str, threads: Sequence[int]) -> Pair:
    """A network in turns with onnxruntime; raises ValueError where the results differ."""
    import onnxruntime

    from relay_hw.backend.tvm.library import use_threads

    function, model = network(name)
    data = np.random.default_rng(0).normal(size=function.params[0].type.static_shape).astype(np.float32)  # type: ignore[union-attr]

    def session(count: int) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = count
        # Threads that spin would slow down the other side's turn.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0" if count > 1 else "1")
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    sessions = {count: session(count) for count in threads}
    with loaded([function]) as library:
        want = sessions[threads[0]].run(None, {INPUT: data})[0]
        if not np.allclose(library.call("main", [data]), want, rtol=1e-3, atol=1e-4 * np.abs(want).max()):
            raise ValueError(f"{name}: TVM's result must be onnxruntime's")
        run = library.prepared("main", [data])
        seconds: dict[int, list[float]] = {}
        for count, own in sessions.items():
            theirs = (lambda: None, lambda own=own: own.run(None, {INPUT: data}))
            ours = (lambda count=count: use_threads(count), run)
            seconds[count] = fastest([theirs, ours], time.thread_time if count == 1 else time.perf_counter)
        use_threads()
    return Pair(
        {count: both[0] for count, both in seconds.items()}, {count: both[1] for count, both in seconds.items()}
    )


def convolution(channels: int, height: int, dtype: str) -> tuple[FlatFunction, Any]:
    """A 3x3 convolution with random weights, int8 into int32, and its data."""
    rng, shape = np.random.default_rng(0), (channels, channels, 3, 3)
    data = rng.integers(-128, 128, (1, channels, height, height)).astype(dtype)
    x = Var("x", TensorType(data.shape, dtype))
    weight = Constant(rng.integers(-127, 128, shape).astype(dtype))
    out = "int32" if dtype == "int8" else dtype
    call = op.nn.conv2d(x, weight, padding=(1, 1), channels=channels, kernel_size=(3, 3), out_dtype=out)
    return flatten(infer_type(IRModule({"main": Function([x], call)}))["main"], f"{dtype}_{channels}"), data


def measure_int8() -> dict[int, float]:
    """Speed of int8 convolutions over that of float32 ones, by channels, one thread."""
    from relay_hw.backend.tvm.library import use_threads

    cases = [convolution(*layer, dtype) for layer in LAYERS for dtype in ("float32", "int8")]
    with loaded([function for function, _ in cases]) as library:
        use_threads(1)
        runs = [(lambda: None, library.prepared(function.name, [data])) for function, data in cases]
        seconds = fastest(runs, time.thread_time)
        use_threads()
    return {channels: seconds[2 * k] / seconds[2 * k + 1] for k, (channels, _) in enumerate(LAYERS)}


def rows() -> list[Row]:
    """ResNet-18 at its bounds, other networks, integers."""
    threads = [count for count in BOUNDS if count <= (os.cpu_count() or 1)]
    main = measure_network("resnet18", threads)
    found: list[Row] = []
    for count in threads:
        what = f"host path, ResNet-18 float32, {count} thread{'s' * (count > 1)}, of onnxruntime's speed"
        peer = f"onnxruntime: {1e3 * main.theirs[count]:.1f} ms; here {1e3 * main.ours[count]:.1f} ms"
        found.append(Row(what, main.ratio(count), "times", BOUNDS[count], False, peer))
    for name in OTHERS:
        pair = measure_network(name, [1])
        peer = f"onnxruntime: {1e3 * pair.theirs[1]:.1f} ms; here {1e3 * pair.ours[1]:.1f} ms"
        found.append(Row(f"host path, {name}, 1 thread, of onnxruntime's speed", pair.ratio(1), "times", peer=peer))
    ratios = measure_int8()
    worst = min(ratios, key=lambda channels: ratios[channels])
    what = f"host path, 3x3 convolution int8 to int32, of float32's speed: the least ({worst} channels)"
    return [*found, Row(what, ratios[worst], "times", INT8_BOUND, False)]


def main() -> int:
    """Measure and print; 1 when a bound is missed."""
    return judge(rows())


if __name__ == "__main__":
    sys.exit(main())
