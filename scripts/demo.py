"""Handwritten digits from ONNX to Verilog, bit for bit: compile, run every image on the RTL, compare.

In: examples/mnist_cnn.onnx and build/data. Out: accuracy, bit-exactness, cycles by layer; build/mnist with report.html.
Exit status 1 when a byte differs or a bound is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.cli.console import Console
from relay_hw.errors import RelayHwError, UnsupportedError
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Call, Expr, Function, Op, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.report import Report, layer_table, report_files
from relay_hw.runtime.archive import Archive
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.folder import replace_files
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import profile
from relay_hw.runtime.result import Result
from relay_hw.runtime.static_report import static_report
from relay_hw.target.accel.devices import close_device, open_device

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples" / "mnist_cnn.onnx"
DATA = ROOT / "build" / "data"
BUILD = ROOT / "build" / "mnist"
FAST_IMAGES = 100
MIN_ACCURACY = 0.97
MIN_AGREEMENT = 0.99
MAX_CYCLES = 15_000

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Scores:
    """What the demo is about, each a share from 0 to 1; `exact` counts images."""

    float_accuracy: float
    int8_accuracy: float
    agreement: float
    exact: int
    images: int


def load_data() -> tuple[Mapping[str, Array], Mapping[str, Array]]:
    """Calibration and test data; made first if they are not there."""
    files = (DATA / "mnist_calibration.npz", DATA / "mnist_test.npz")
    if not all(file.is_file() for file in files):
        subprocess.run([sys.executable, str(ROOT / "scripts" / "make_data.py")], check=True)
    return Archive(files[0], "calibration data"), Archive(files[1], "test data")


def subset(data: Mapping[str, Array], count: int) -> dict[str, Array]:
    """`count` samples spread evenly: the file is sorted by digit."""
    total = len(data["labels"])
    chosen = np.arange(count) * total // count
    return {name: array[chosen] for name, array in data.items()}


def evaluate_all(mod: IRModule, data: Mapping[str, Array], console: Console, what: str) -> list[Any]:
    """Results of `main` on each sample, by the interpreter."""
    interpreter = Interpreter(mod)
    names = [var.name_hint for var in mod["main"].params]
    count = len(data["labels"])
    values: list[Any] = []
    console.started(f"{what}, images", count)
    for k in range(count):
        console.advanced(f"{what}, images", k)
        values.append(interpreter.call_global("main", [data[name][k : k + 1] for name in names]))
    return values


def last_integers(quantized: IRModule) -> IRModule:
    """A module whose `main` gives the last integer tensors of `quantized` and then its outputs."""
    main = quantized["main"]
    last: list[Expr] = []
    for expr in post_order(main.body):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "qnn.dequantize":
            last.append(expr.args[0])
    return IRModule({"main": Function(main.params, Tuple([*last, main.body]))}, quantized.types)


def score(compiled: CompiledModel, data: Mapping[str, Array], result: Result, console: Console) -> Scores:
    """Compare the device's outputs with the float model, the labels, and the interpreter's integers."""
    floats = evaluate_all(compiled.stages["simplified"], data, console, "float model")
    reference = evaluate_all(last_integers(compiled.stages["quantized"]), data, console, "interpreter")
    region = result.regions[list(result.regions)[-1]]
    labels, count = data["labels"], result.samples
    exact = sum(
        len(region) == len(values) - 1 and all(np.array_equal(a[k], b[0]) for a, b in zip(region, values, strict=False))
        for k, values in enumerate(reference)
    )
    float_top = np.array([int(np.argmax(value)) for value in floats])
    top = next(iter(result.outputs.values())).argmax(axis=1)
    return Scores(
        float(np.mean(float_top == labels)),
        float(np.mean(top == labels)),
        float(np.mean(top == float_top)),
        exact,
        count,
    )


def run_device(artifact: Artifact, data: Mapping[str, Array], console: Console) -> tuple[Result, Report, str]:
    """All samples and a profile on the RTL; on the functional simulator where there is no RTL toolchain."""
    try:
        device, name = open_device("rtl", artifact.config, _options(console)), "rtl"
    except UnsupportedError as error:
        console.note(f"the Verilog cannot be simulated here, so the functional simulator runs instead: {error}")
        device, name = open_device("functional", artifact.config), "functional"
    try:
        result = Executor(artifact, device).run(data, progress=console, keep_regions=True)
        timed = name == "rtl"
        report = profile(artifact, device, name, progress=console) if timed else static_report(artifact.manifest)
    finally:
        close_device(device)
    return result, report, name


def _options(console: Console) -> Any:
    from relay_hw.target.accel.devices import DeviceOptions

    return DeviceOptions(progress=console)


def problems(scores: Scores, cycles: list[int] | None, whole: bool) -> list[str]:
    """Bounds that were missed; accuracy is judged on all images only."""
    found: list[str] = []
    if scores.exact != scores.images:
        found.append(f"every image must be bit-exact, not {scores.exact} of {scores.images}")
    if scores.agreement < MIN_AGREEMENT:
        found.append(f"top-1 agreement must be at least {MIN_AGREEMENT:.0%}, not {scores.agreement:.2%}")
    for name, value in (("float", scores.float_accuracy), ("int8", scores.int8_accuracy)):
        if whole and value < MIN_ACCURACY:
            found.append(f"{name} accuracy must be at least {MIN_ACCURACY:.0%}, not {value:.2%}")
    if cycles and max(cycles) > MAX_CYCLES:
        found.append(f"an image must take at most {MAX_CYCLES:,} cycles, not {max(cycles):,}")
    return found


def facts_of(scores: Scores, result: Result, device: str, seconds: float) -> dict[str, str]:
    """Lines of the demo, in order."""
    lines = {
        "float accuracy": f"{scores.float_accuracy:.2%}",
        "int8 accuracy": f"{scores.int8_accuracy:.2%}",
        "top-1 agreement": f"{scores.agreement:.2%}",
        "bit-exact": f"{scores.exact}/{scores.images} ({device} against the interpreter, every byte)",
    }
    if result.cycles:
        low, high = min(result.cycles), max(result.cycles)
        lines["cycles per image"] = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        lines["simulated cycles per second"] = f"{result.simulated_cycles_per_second:,.0f}"
    return lines | {"compile seconds": f"{seconds:.1f}"}


def demo(fast: bool, config: str, console: Console) -> int:
    """The whole walk. Returns the exit status."""
    console.started("reading data")
    calibration, test = load_data()
    data = subset(test, min(FAST_IMAGES, len(test["labels"]))) if fast else test
    begin = time.perf_counter()
    model = load_model(MODEL)
    compiled = compile_model(
        model.mod,
        CompileOptions(config=config, name=model.name),
        params=model.params,
        calibration=calibration,
        progress=console,
    )
    artifact = compiled.save(BUILD)
    seconds = time.perf_counter() - begin
    result, report, device = run_device(artifact, data, console)
    scores = score(compiled, data, result, console)
    facts = facts_of(scores, result, device, seconds)
    report = replace(report, facts=facts)
    replace_files(BUILD, report_files(report))
    lines = [f"{name}: {value}" for name, value in facts.items()]
    print("\n".join([*lines, "", layer_table(report), "", f"report: {BUILD / 'report.html'}"]))
    missed = problems(scores, result.cycles, not fast)
    for problem in missed:
        console.error(problem)
    return 1 if missed else 0


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fast", action="store_true", help=f"run {FAST_IMAGES} images instead of all")
    parser.add_argument("--config", default="default", help="accelerator configuration (default: default)")
    args = parser.parse_args()
    console = Console(as_json=False)
    try:
        with console.progress():
            return demo(args.fast, args.config, console)
    except RelayHwError as error:
        console.error(str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main())
