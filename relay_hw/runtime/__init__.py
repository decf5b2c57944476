"""Compiles a model into a build folder, runs and profiles builds on devices.

`compile_model`, `CompileOptions`, `CompiledModel`, `load_artifact`, `Executor`, `Module`, `create_executor` and
`open_device` are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Artifact": "relay_hw.runtime.artifact",
    "CompileOptions": "relay_hw.runtime.options",
    "CompiledModel": "relay_hw.runtime.compile",
    "Executor": "relay_hw.runtime.execute",
    "Module": "relay_hw.runtime.module",
    "Result": "relay_hw.runtime.execute",
    "compile_model": "relay_hw.runtime.compile",
    "create_executor": "relay_hw.runtime.vm",
    "load_artifact": "relay_hw.runtime.artifact",
    "load_model": "relay_hw.runtime.models",
    "open_device": "relay_hw.target.accel.devices",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
