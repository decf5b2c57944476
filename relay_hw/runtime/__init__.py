"""Compiling a model into a build folder, and running and profiling it on a device.

`compile_model`, `CompiledModel`, `load_artifact`, `Executor`, `Module`, `create_executor` and `open_device` are loaded
when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "Artifact": "artifact",
    "CompiledModel": "compile",
    "Executor": "execute",
    "Module": "module",
    "Result": "execute",
    "compile_model": "compile",
    "create_executor": "vm",
    "load_artifact": "artifact",
    "load_model": "models",
    "open_device": "devices",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
