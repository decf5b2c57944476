"""Compiles a model into a build folder, runs and profiles builds on devices.

Its names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relay_hw.runtime.artifact import Artifact, load_artifact
    from relay_hw.runtime.compile import CompiledModel, compile_model
    from relay_hw.runtime.execute import Executor
    from relay_hw.runtime.explanation import Explanation
    from relay_hw.runtime.models import Model, load_model
    from relay_hw.runtime.module import Module
    from relay_hw.runtime.options import CompileOptions
    from relay_hw.runtime.result import Result
    from relay_hw.runtime.vm import create_executor
    from relay_hw.target.accel.devices import open_device

_HOME = {
    "Artifact": "relay_hw.runtime.artifact",
    "CompileOptions": "relay_hw.runtime.options",
    "CompiledModel": "relay_hw.runtime.compile",
    "Executor": "relay_hw.runtime.execute",
    "Explanation": "relay_hw.runtime.explanation",
    "Model": "relay_hw.runtime.models",
    "Module": "relay_hw.runtime.module",
    "Result": "relay_hw.runtime.result",
    "compile_model": "relay_hw.runtime.compile",
    "create_executor": "relay_hw.runtime.vm",
    "load_artifact": "relay_hw.runtime.artifact",
    "load_model": "relay_hw.runtime.models",
    "open_device": "relay_hw.target.accel.devices",
}

__all__ = [
    "Artifact",
    "CompileOptions",
    "CompiledModel",
    "Executor",
    "Explanation",
    "Model",
    "Module",
    "Result",
    "compile_model",
    "create_executor",
    "load_artifact",
    "load_model",
    "open_device",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
