"""TVM's graph executor: inputs by name or number, run, outputs by number."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from relay_hw.compat.tvm.factory import ExecutorFactory
from relay_hw.compat.tvm.nd import NDArray, unwrap
from relay_hw.compat.tvm.params import load_param_dict
from relay_hw.errors import InputError
from relay_hw.runtime.module import Module


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """Seconds of each repetition, as the mean of its runs."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.results))

    @property
    def median(self) -> float:
        return float(np.median(self.results))

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return float(np.std(self.results))

    def __str__(self) -> str:
        return f"mean {1e3 * self.mean:.4f} ms, median {1e3 * self.median:.4f} ms, best {1e3 * self.min:.4f} ms"


class GraphModule:
    """One model with its inputs. Raises InputError for inputs that it does not have or that do not fit."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._outputs: list[Any] | None = None

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Set one input by name or number, and others by name."""
        if key is not None:
            self._module.set_input(key, unwrap(value))
        # Weights are part of the model already.
        known = {name: unwrap(given) for name, given in params.items() if self.get_input_index(name) >= 0}
        self._module.set_input(**known)

    set_input_zero_copy = set_input

    def load_params(self, params_bytes: bytes) -> None:
        """Set the inputs that a `.params` file names."""
        self.set_input(None, None, **load_param_dict(params_bytes))

    def run(self, **input_dict: Any) -> None:
        """Compute; `input_dict` sets inputs first."""
        self._module.run(**{name: unwrap(value) for name, value in input_dict.items()})
        self._outputs = [self._module.get_output(k) for k in range(self._module.get_num_outputs())]

    def get_num_outputs(self) -> int:
        """How many outputs the last run gave; runs nothing."""
        return len(self._ready())

    def get_num_inputs(self) -> int:
        """How many inputs the model has, weights not counted."""
        return self._module.get_num_inputs()

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 for an unknown name."""
        return self._module.get_input_index(name)

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An input that was set."""
        found = NDArray(self._module.get_input(index))
        return found if out is None else found.copyto(out)

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output of the last run; with `out` copied there."""
        outputs = self._ready()
        if not 0 <= index < len(outputs):
            raise InputError(f"output must be in [0, {len(outputs)}), not {index}")
        found = NDArray(outputs[index])
        return found if out is None else found.copyto(out)

    def benchmark(
        self,
        device: Any = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        end_to_end: bool = False,
        **input_dict: Any,
    ) -> BenchmarkResult:
        """Mean seconds of `number` runs, `repeat` times."""
        self.set_input(**input_dict)
        found: list[float] = []
        for _ in range(repeat):
            start = time.perf_counter()
            for _ in range(number):
                self.run()
            found.append((time.perf_counter() - start) / number)
        return BenchmarkResult(tuple(found))

    def _ready(self) -> list[Any]:
        if self._outputs is None:
            raise InputError("outputs must be computed by run before they are read")
        return self._outputs


def create(graph_json_str: Any, libmod: ExecutorFactory, device: Any = None) -> GraphModule:
    """A module from the parts that `graph, lib, params = relay.build(...)` gives."""
    return GraphModule(libmod.runtime())
