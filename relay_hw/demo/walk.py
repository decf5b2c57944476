"""The demo: compiles the digits' network, runs images on a device, compares every byte with the interpreter.

In: digits, the name of a configuration, how to open a device. Out: scores, the run, a report; a build folder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.sim.names import FUNCTIONAL, RTL
from relay_hw.demo.digits import MODEL, Digits
from relay_hw.errors import UnsupportedError
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Call, Expr, Function, Op, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.report import Report, report_files
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.folder import replace_files
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import profile
from relay_hw.runtime.result import Result
from relay_hw.runtime.static_report import static_report
from relay_hw.support.progress import Progress
from relay_hw.target.accel.devices import DeviceOptions, close_device, find_device, open_device

# Where the Verilog cannot be simulated.
MIN_ACCURACY: Final = 0.97
MIN_AGREEMENT: Final = 0.99
MAX_CYCLES: Final = 15_000

Array = NDArray[Any]


class Teller(Progress, Protocol):
    """Receives progress and notes."""

    def note(self, message: str) -> None:
        """Show a message at once."""
        ...


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of the demo, each a share from 0 to 1; `exact` counts images."""

    float_accuracy: float
    int8_accuracy: float
    agreement: float
    exact: int
    images: int


@dataclass(frozen=True, slots=True)
class Shown:
    """Results of the demo. `device`: what the images ran on; `seconds`: compile time."""

    scores: Scores
    result: Result
    report: Report
    device: str
    seconds: float

    @property
    def facts(self) -> dict[str, str]:
        """Lines to print, in order."""
        scores, cycles = self.scores, self.result.cycles
        lines = {
            "float accuracy": f"{scores.float_accuracy:.2%}",
            "int8 accuracy": f"{scores.int8_accuracy:.2%}",
            "top-1 agreement": f"{scores.agreement:.2%}",
            "bit-exact": f"{scores.exact}/{scores.images} ({self.device} against the interpreter, every byte)",
        }
        if cycles:
            low, high = min(cycles), max(cycles)
            lines["cycles per image"] = f"{low:,}" if low == high else f"{low:,} to {high:,}"
            lines["simulated cycles per second"] = f"{self.result.simulated_cycles_per_second:,.0f}"
        return lines | {"compile seconds": f"{self.seconds:.1f}"}


def show(folder: Path, calibration: Digits, test: Digits, config: str, device: str, teller: Teller) -> Shown:
    """Run the whole demo; `folder` becomes the build, with a report of this run.

    A device `rtl` without its tools becomes the functional simulator, with a note. Raises RelayHwError, AccelError.
    """
    begin = time.perf_counter()
    model = load_model(MODEL)
    compiled = compile_model(
        model.mod,
        CompileOptions(config=config, name=model.name),
        params=model.params,
        calibration=calibration.arrays(),
        progress=teller,
    )
    artifact = compiled.save(folder)
    seconds = time.perf_counter() - begin
    result, report, name = _run(artifact, test, device, teller)
    shown = Shown(score(compiled, test, result, teller), result, report, name, seconds)
    shown = replace(shown, report=replace(report, facts=shown.facts))
    replace_files(folder, report_files(shown.report))
    return shown


def problems(scores: Scores, cycles: list[int] | None, whole: bool) -> list[str]:
    """Bounds that were missed; accuracy is checked only if all images ran."""
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


def score(compiled: CompiledModel, test: Digits, result: Result, teller: Teller) -> Scores:
    """Compare the device's outputs with the float model, the labels, and the interpreter's integers."""
    data = test.arrays()
    floats = _evaluate(compiled.stages["simplified"], data, teller, "float model")
    reference = _evaluate(_last_integers(compiled.stages["quantized"]), data, teller, "interpreter")
    region = result.regions[list(result.regions)[-1]]
    exact = sum(
        len(region) == len(values) - 1 and all(np.array_equal(a[k], b[0]) for a, b in zip(region, values, strict=False))
        for k, values in enumerate(reference)
    )
    float_top = np.array([int(np.argmax(value)) for value in floats])
    top = next(iter(result.outputs.values())).argmax(axis=1)
    return Scores(
        float(np.mean(float_top == test.labels)),
        float(np.mean(top == test.labels)),
        float(np.mean(top == float_top)),
        exact,
        result.samples,
    )


def _evaluate(mod: IRModule, data: Mapping[str, Array], teller: Teller, what: str) -> list[Any]:
    """Results of `main` on each image, by the interpreter."""
    interpreter = Interpreter(mod)
    names = [var.name_hint for var in mod["main"].params]
    count = len(data[names[0]])
    values: list[Any] = []
    teller.started(f"{what}, images", count)
    for k in range(count):
        teller.advanced(f"{what}, images", k)
        values.append(interpreter.call_global("main", [data[name][k : k + 1] for name in names]))
    return values


def _last_integers(quantized: IRModule) -> IRModule:
    """A module whose `main` gives the last integer tensors of `quantized` and then its outputs."""
    main = quantized["main"]
    last: list[Expr] = []
    for expr in post_order(main.body):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == "qnn.dequantize":
            last.append(expr.args[0])
    return IRModule({"main": Function(main.params, Tuple([*last, main.body]))}, quantized.types)


def _run(artifact: Artifact, test: Digits, wanted: str, teller: Teller) -> tuple[Result, Report, str]:
    """Run all images and, if the device counts cycles, profile them."""
    name, device = wanted, None
    try:
        device = open_device(wanted, artifact.config, DeviceOptions(progress=teller))
    except UnsupportedError as error:
        if wanted != RTL:
            raise
        name = FUNCTIONAL
        teller.note(f"the Verilog cannot be simulated here, so the {name} simulator runs instead: {error}")
        device = open_device(name, artifact.config)
    try:
        result = Executor(artifact, device).run(test.arrays(), progress=teller, keep_regions=True)
        timed = find_device(name).has_exact_cycles
        report = profile(artifact, device, name, progress=teller) if timed else static_report(artifact.manifest)
    finally:
        close_device(device)
    return result, report, name
