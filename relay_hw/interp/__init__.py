"""The reference interpreter, which defines Relay's semantics."""

from relay_hw.interp.evaluate import Interpreter, evaluate
from relay_hw.interp.executor import InterpreterExecutor, create_executor
from relay_hw.interp.values import Closure, ConstructorValue, RefValue

__all__ = [
    "Closure",
    "ConstructorValue",
    "Interpreter",
    "InterpreterExecutor",
    "RefValue",
    "create_executor",
    "evaluate",
]
