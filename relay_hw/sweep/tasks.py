"""One task, as a process computes it: its result, or how it failed, in a form that travels between processes.

In: functions, values. Out: `Result` or `Failure`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from relay_hw.accel.isa.errors import AccelError
from relay_hw.errors import InputError, QuantizeError, RelayHwError, UnsupportedError
from relay_hw.support.progress import Progress, ProgressStep, Steps

# Makes what the tasks of one process share.
Start = Callable[[], Any]
# (shared, task, progress) -> result
Work = Callable[[Any, Any, Progress], Any]

# Errors that keep their class on the way; messages of other refusals come back as those of InputError.
_FAMILY: Final = {kind.__name__: kind for kind in (InputError, QuantizeError, UnsupportedError)}
_QUIET_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Result:
    """What a task gave."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task gave nothing. `kind`: the name of the error's class."""

    kind: str
    message: str

    def error(self) -> Exception:
        """The error to raise; RuntimeError with the trace if it was no refusal."""
        if self.kind == MemoryError.__name__:
            return MemoryError(self.message)
        return _FAMILY.get(self.kind, RuntimeError)(self.message)


def attempt(work: Work, shared: Callable[[], Any], task: Any, progress: Progress) -> Result | Failure:
    """Compute a task; errors are part of the answer."""
    try:
        return Result(work(shared(), task, progress))
    except (RelayHwError, AccelError) as error:
        kind = type(error).__name__
        return Failure(kind if kind in _FAMILY else InputError.__name__, str(error))
    except MemoryError as error:
        return Failure(MemoryError.__name__, str(error))
    except Exception:
        return Failure(RuntimeError.__name__, traceback.format_exc())


def seldom(show: Callable[[ProgressStep], object]) -> Progress:
    """A `Progress` that shows a step at most every fifth of a second."""
    shown_at = -_QUIET_SECONDS

    def pass_on(step: ProgressStep) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= _QUIET_SECONDS:
            shown_at = now
            show(step)

    return Steps(pass_on)
