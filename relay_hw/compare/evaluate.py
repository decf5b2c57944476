"""Runs a quantized network on many samples: compiled by TVM where that is faster, else batched on numpy.

In: a typed module of batch B, samples. Out: outputs [N, D] and the engine that made them. Compiled integers are checked
against the interpreter on the first samples; where they differ, numpy takes over and the note says so.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.engines import ENGINES
from relay_hw.backend.flat import Machine, flatten
from relay_hw.backend.tvm import build_library, is_installed, load_library
from relay_hw.compare.data import Samples
from relay_hw.compare.network import output_rows
from relay_hw.compare.network_work import network_work
from relay_hw.errors import InputError, RelayHwError
from relay_hw.interp import Interpreter
from relay_hw.ir.module import IRModule
from relay_hw.quantize.batch import Values, batched
from relay_hw.support.names import one_of
from relay_hw.support.progress import SILENT, Progress
from relay_hw.target.accel.rules import NAME, AccelRules
from relay_hw.target.pipeline import partition_pipeline
from relay_hw.transform.fragments import is_graph

Array = NDArray[Any]
Run = Callable[[Mapping[str, Array]], Any]

EVALUATING: Final = "evaluating"
# Launches that run together: enough to fill vectors, few enough for caches.
GROUP: Final = 8
# Compiling pays from here on: samples, or multiply-accumulates of all of them.
MANY_SAMPLES: Final = 1000
MANY_MACS: Final = 20_000_000_000
CHECKED: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """`outputs` float [N, D]; `engine`: numpy or tvm; `note`: why not the one that was asked for."""

    outputs: Array
    engine: str
    note: str
    seconds: float


class Evaluator:
    """Runs one module on sets of samples; the library is compiled once for all of them."""

    def __init__(self, mod: IRModule, output: int, engine: str = "auto", is_integer: bool = True) -> None:
        """`is_integer`: the module computes the same however it is evaluated, so that it may be compiled.

        Raises InputError for an unknown engine.
        """
        if engine not in ENGINES:
            raise InputError(one_of("engine", ENGINES, engine))
        self._mod = mod
        self._output = output
        self._engine = engine
        self._plain = Interpreter(mod)
        self._group = batched(mod, GROUP)
        self._compiled: Run | None = None
        self._note = "" if is_integer else "simulated in float32, so nothing is compiled"

    def run(self, samples: Samples, progress: Progress = SILENT) -> Evaluation:
        """Outputs of all samples. Raises what evaluation raises."""
        begin = time.perf_counter()
        progress.started(EVALUATING, samples.count)
        if self._compiled is None and self._wants_compiled(samples):
            self._compile(samples)
        if self._compiled is not None:
            outputs = self._grouped(samples, self._compiled, progress)
        elif self._group is not None:
            outputs = self._grouped(samples, self._by_values, progress)
        else:
            outputs = self._singly(samples, progress)
        engine = "numpy" if self._compiled is None else "tvm"
        return Evaluation(outputs, engine, self._note, time.perf_counter() - begin)

    def _wants_compiled(self, samples: Samples) -> bool:
        if self._engine == "numpy" or self._note:
            return False
        # Small fragments between branches and calls take longer to enter than to compute.
        macs = network_work(self._mod).macs * samples.launches
        many = is_graph(self._mod) and (samples.count >= MANY_SAMPLES or macs >= MANY_MACS)
        if (self._engine == "tvm" or many) and not is_installed():
            self._note = "TVM is not installed"
            return False
        return self._engine == "tvm" or many

    def _compile(self, samples: Samples) -> None:
        """Compile, and keep the library if it matches the interpreter bit for bit on the first samples."""
        try:
            run = compiled(self._group or self._mod)
            # Float layers, if there are any, are computed by numpy on both sides, as many samples at a time.
            plain = self._by_values if self._group is not None else self._single
            head = min(CHECKED, samples.launches)
            wanted, got = (self._grouped_rows(samples, either, 0, head) for either in (plain, run))
        except RelayHwError as error:
            self._note = f"TVM did not compile it: {error}"
            return
        if not np.array_equal(got, wanted):
            self._note = "compiled integers differed from the interpreter's"
            return
        self._compiled = run

    def _single(self, inputs: Mapping[str, Array]) -> Any:
        return self._plain.call_global("main", inputs)

    def _by_values(self, inputs: Mapping[str, Array]) -> Any:
        assert self._group is not None
        main = self._group["main"]
        return Values({param: inputs[param.name_hint] for param in main.params}).of(main.body)

    def _singly(self, samples: Samples, progress: Progress) -> Array:
        found: list[Array] = []
        for number, inputs in enumerate(samples.take(0, samples.launches), 1):
            found.append(self._rows(self._single(inputs), samples.batch))
            progress.advanced(EVALUATING, number * samples.batch)
        return np.concatenate(found)

    def _grouped(self, samples: Samples, run: Run, progress: Progress) -> Array:
        found: list[Array] = []
        step = GROUP if self._group is not None else 1
        for start in range(0, samples.launches, step):
            stop = min(start + step, samples.launches)
            found.append(self._grouped_rows(samples, run, start, stop))
            progress.advanced(EVALUATING, stop * samples.batch)
        return np.concatenate(found)

    def _grouped_rows(self, samples: Samples, run: Run, start: int, stop: int) -> Array:
        """Outputs of launches `start` to `stop`; an incomplete group is padded with its last launch."""
        if self._group is None:
            return np.concatenate([self._rows(run(x), samples.batch) for x in samples.take(start, stop)])
        found: list[Array] = []
        for begin in range(start, stop, GROUP):
            index = np.minimum(np.arange(begin, begin + GROUP), min(begin + GROUP, stop) - 1)
            inputs = {name: np.concatenate(list(array[index])) for name, array in samples.inputs.items()}
            rows = self._rows(run(inputs), GROUP * samples.batch)
            found.append(rows[: (min(begin + GROUP, stop) - begin) * samples.batch])
        return np.concatenate(found)

    def _rows(self, values: Any, count: int) -> Array:
        return output_rows(values, self._output, count)


def compiled(mod: IRModule) -> Run:
    """Compile all integer operators of `mod` by TVM into one library; numpy runs the rest. Raises RelayHwError."""
    partitioned = partition_pipeline(AccelRules())(mod)
    main = flatten(partitioned["main"], "main")
    functions = {name: flatten(f, name) for name, f in partitioned.functions.items() if name != "main"}
    integer = [f for name, f in functions.items() if partitioned[name].attrs.get("Compiler") == NAME]
    rest = Machine({name: f for name, f in functions.items() if f not in integer})
    names = [param.name for param in main.params]
    with tempfile.TemporaryDirectory(prefix="relay-hw-") as folder:
        path = Path(folder) / "integers.so"
        library = load_library(path, build_library(integer, path))

    def run(inputs: Mapping[str, Array]) -> Any:
        return rest.call(main, [inputs[name] for name in names], library.call)

    return run
