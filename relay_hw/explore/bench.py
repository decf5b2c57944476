"""Measures one point of a design space, with the data that a process shares between points.

In: a `Setting`, designs. Out: `Measured`: cycles of the steady state by the exact engine, energy of its counters.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.accel.isa.errors import AccelError
from relay_hw.backend.tvm.target import NUMPY
from relay_hw.compare.hardware_cost import counted
from relay_hw.compare.network import Network, read_network
from relay_hw.compare.network_work import Work, network_work
from relay_hw.errors import RelayHwError
from relay_hw.explore.design import Design
from relay_hw.explore.results import Measured
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.progress import Progress
from relay_hw.target.partition import HOST
from relay_hw.text import load_json
from relay_hw.transform.infer_type import InferType

Array = NDArray[Any]
# A strategy's name and the bits of the output stage's multipliers: all that integers of a network depend on.
Form = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What worker processes get: the network and its integer modules as text, and a sample if control flow needs one
    for one."""

    network: str
    output: int
    strategies: Mapping[str, Strategy]
    quantized: Mapping[Form, str]
    sample: Mapping[str, Array] | None = None


def form_of(design: Design, strategies: Mapping[str, Strategy]) -> Form:
    """The form of integers that a design uses."""
    return design.strategy, min(design.config.multiplier_bits, strategies[design.strategy].multiplier_bits)


@dataclass(frozen=True, slots=True)
class Answer:
    """A measurement with the seconds that it took."""

    key: str
    measured: Measured
    seconds: float


def answered(bench: Bench, task: tuple[str, Design], _progress: Progress) -> Answer:
    """The answer to a task: a design under the key of its content."""
    return bench.answer(*task)


class Bench:
    """Measures points, one after the other; shared data is read once."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._network: Network = read_network(setting.network, setting.output, "", False)
        self._integers: dict[Form, tuple[IRModule, Work]] = {}

    def measure(self, design: Design) -> Measured:
        """Measure an inference on the design; a refusal is in the result."""
        strategy = self._setting.strategies[design.strategy]
        if strategy.simulated:
            return Measured(refused=strategy.simulated)
        form = form_of(design, self._setting.strategies)
        quantized, work = self._form(form)
        try:
            options = CompileOptions(
                config=design.config,
                strategy=replace(strategy, multiplier_bits=form[1]),
                memory=design.memory,
                resident=design.resident,
                host_target=NUMPY,
                validate=False,
            )
            found = compile_model(self._network.mod, options, quantized=quantized, calibration=self._setting.sample)
            return Measured(host=_first_on_host(found), **counted(found, work, found.calls.order))
        except (RelayHwError, AccelError) as error:
            # The name of a configuration is the point's number: the same design has another one in another space.
            return Measured(refused=str(error).replace(design.config.name, "the point"))

    def answer(self, key: str, design: Design) -> Answer:
        """One measurement, with its time."""
        begin = time.perf_counter()
        measured = self.measure(design)
        return Answer(key, measured, time.perf_counter() - begin)

    def _form(self, form: Form) -> tuple[IRModule, Work]:
        if form not in self._integers:
            mod = InferType()(load_json(self._setting.quantized[form], "network"))
            self._integers[form] = mod, network_work(mod)
        return self._integers[form]


def _first_on_host(compiled: CompiledModel) -> str:
    """The first layer with products on the host, and why it is there."""
    rows = (f"{row.name}: {row.reason}" for row in compiled.layers if row.where == HOST and row.macs)
    return next(rows, "")
