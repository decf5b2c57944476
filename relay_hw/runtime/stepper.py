"""Runs a model of one step again and again, with its states kept between the steps.

In: what runs a sample, which outputs are which inputs of the next step, the first states. Out: outputs of each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError
from relay_hw.runtime.feed import check_feeds, first_state, next_state
from relay_hw.runtime.manifest import Manifest
from relay_hw.runtime.ports import single_output
from relay_hw.runtime.result import Result
from relay_hw.support.names import one_of

Array = NDArray[Any]


class Stepper:
    """Keeps the states of a model by the names of their inputs; each `step` is one inference.

    What a step is given may depend on what the one before it gave, as the next word of a text does.
    """

    def __init__(
        self,
        run: Callable[[Mapping[str, Any], int], Result],
        rows: Manifest,
        feeds: Sequence[tuple[str, str]],
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """`run`: an executor's, of the build with these `rows`; `feeds`: pairs of an output and the input that it is in
        the next step, as `check_feeds` takes them; `state`: the first ones by input, else zeros. Raises InputError.
        """
        self._run, self._rows = run, rows
        self._feeds = check_feeds(feeds, self._rows)
        self._taken = {row.name: row for row in self._rows.inputs if row.name in self._feeds}
        self._state: dict[str, Array] = {}
        self._result: Result | None = None
        self.steps = 0
        self.reset(state)

    def reset(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin again, with these states. Raises InputError for other names, and shapes that do not fit."""
        state = state or {}
        for name in state:
            if name not in self._taken:
                raise InputError(one_of("state", self._taken, name))
        given = {name: np.asarray(value)[np.newaxis] for name, value in state.items()}
        self._state = {
            name: np.asarray(first_state(row, given, self._rows.is_quantized)[0]).reshape(row.shape)
            for name, row in self._taken.items()
        }
        self.steps = 0

    def step(self, **inputs: Any) -> dict[str, Any]:
        """Outputs by name, from the inputs that are no states. Raises InputError, EvalError, Fault, AccelError."""
        for name in inputs:
            if name in self._state:
                raise InputError(f"input {name} must be left to the stepper, which keeps it as a state")
        samples = {name: [value] for name, value in (inputs | self._state).items()}
        self._result = self._run(samples, 1)
        outputs = {row.name: row for row in self._rows.outputs}
        found = {name: single_output(outputs[name], value) for name, value in self._result.outputs.items()}
        for name, output in self._feeds.items():
            self._state[name] = next_state(found[output], outputs[output], self._taken[name])
        self.steps += 1
        return found

    @property
    def state(self) -> dict[str, Array]:
        """The states that the next step takes, by input."""
        return dict(self._state)

    @property
    def result(self) -> Result | None:
        """Details of the last step: launches, cycles, seconds of each segment; None before the first."""
        return self._result
