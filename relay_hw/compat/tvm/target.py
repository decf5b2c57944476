"""TVM's targets, such as `tvm.target.Target("llvm -mcpu=core-avx2")`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from relay_hw.compat.tvm.device import device
from relay_hw.errors import InputError
from relay_hw.support.names import one_of
from relay_hw.target.registry import target_names

# Kinds of targets besides accelerators.
KINDS: Final = ("llvm", "c", "cuda", "opencl", "nvptx", "numpy")

_MACHINES: Final = {"c": "llvm", "nvptx": "cuda"}


class Target:
    """A target; `kind` is its first word, or the name of an accelerator. `with target:` changes nothing."""

    def __init__(self, target: str | Mapping[str, Any] | Target, host: Any = None) -> None:
        if isinstance(target, Mapping):
            target = str(target.get("kind", ""))
        self.text = str(target)
        self.kind = self.text.split()[0].partition(":")[0] if self.text.split() else ""
        self.host = host
        known = (*KINDS, *target_names())
        if self.kind not in known:
            raise InputError(one_of("target", known, self.text or "empty"))

    @property
    def machine(self) -> str:
        """What computes for a device of this target, as `relay_hw.build` takes it."""
        return _MACHINES.get(self.kind, self.kind) if self.kind in KINDS else self.text

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Target({self.text!r})"


def create(target: str) -> Target:
    """A target by its text."""
    return Target(target)


def cuda(model: str = "unknown", **options: Any) -> Target:
    """A target of CUDA; what is built for it runs on the processor."""
    return Target("cuda")


def arm_cpu(model: str = "unknown", **options: Any) -> Target:
    """A processor's target."""
    return Target("llvm")


def default_device(target: Target) -> Any:
    """The device that belongs to a target."""
    if target.kind not in KINDS:
        return device("ext_dev")
    return device("cpu" if target.kind == "numpy" else target.kind)
