"""Finds targets by name: `accel`, registered ones, and those of installed packages.

In: a name, and which of that kind is meant. Out: a `Target`. A package brings one by an entry point of the group
`relay_hw.targets`, which names a function that takes the variant and gives a `Target`.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Final

from relay_hw.errors import InputError
from relay_hw.support.names import one_of
from relay_hw.target.accel.rules import NAME as ACCEL
from relay_hw.target.base import Target

# From a variant, empty for the default one, to the target. Raises InputError for an unknown variant.
Make = Callable[[str], Target]
GROUP: Final = "relay_hw.targets"
HOST_NAMES: Final = ("host", "numpy", "llvm", "cuda", "opencl", "none", "tvm", "machine")

_registered: Final[dict[str, Make]] = {}


def register(name: str, make: Make) -> None:
    """Register a target in this process. Raises InputError for a name that is in use, or is not a word."""
    if not name.isidentifier():
        raise InputError(f"the name of a target must be a word, not {name!r}")
    if name in (ACCEL, *HOST_NAMES, *_registered):
        raise InputError(f"the name of a target must be new, not {name}")
    _registered[name] = make


def unregister(name: str) -> None:
    """Remove a registered target."""
    _registered.pop(name, None)


def target_names() -> tuple[str, ...]:
    """Names of all targets, `accel` first."""
    return (ACCEL, *sorted({*_registered, *_installed()} - {ACCEL}))


def find_target(name: str, variant: str = "") -> Target:
    """The target of this name. Raises InputError."""
    if name == ACCEL:
        from relay_hw.target.accel.target import accel_target

        return accel_target(variant or None)
    if name in _registered:
        return _registered[name](variant)
    installed = _installed()
    if name in installed:
        make: Make = installed[name].load()
        return make(variant)
    raise InputError(one_of("target", target_names(), name))


def _installed() -> dict[str, importlib.metadata.EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}
