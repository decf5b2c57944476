"""The passes that divide a program whose operators are on devices: each device's functions, and copies between them.

In: a typed module that `PlanDevices` planned, and which devices are the target's. Out: what `partition_pipeline` gives;
host functions have the attribute `virtual_device`, and a copy is a host function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with, post_order
from relay_hw.target.base import PartitionRules, QuantizerRules
from relay_hw.target.host_only import HostOnly
from relay_hw.target.partition import HOST, PartitionDevice, partition_records
from relay_hw.target.pipeline import share_accumulators
from relay_hw.transform.base import Pass
from relay_hw.transform.fragments import DEVICE, OutlineFragments
from relay_hw.transform.graph import is_op
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.outline_copies import OutlineCopies
from relay_hw.transform.pipelines import simplify_pipeline
from relay_hw.transform.sequential import Pipeline

COPY: Final = "device_copy"
# A fragment that the build put in integers: numpy converts at its border, as it does for every region.
CONVERTS: Final = "converts"
_CONVERSIONS: Final = ("qnn.quantize", "qnn.dequantize")


@dataclass(frozen=True, slots=True)
class Placed:
    """The devices of a program: those of the target, and the one of what nothing else places."""

    target: PartitionRules
    devices: Collection[str]
    default: str

    def is_ours(self, function: Function) -> bool:
        """Whether a fragment is on the target."""
        return function.attrs.get(DEVICE) in self.devices

    def rules(self, function: Function) -> PartitionRules:
        """The rules for a fragment: the target's on its devices, those of the host elsewhere."""
        if DEVICE in function.attrs:
            reason = f"it is placed on {function.attrs[DEVICE]}"
            return self.target if self.is_ours(function) else HostOnly(reason)
        found = [node.attrs for node in post_order(function) if isinstance(node, Call) and is_op(node, COPY)]
        ways = (f"it copies from {attrs.src_virtual_device} to {attrs.dst_virtual_device}" for attrs in found)
        return HostOnly(next(ways, "it is on no device"))


def outline_pipeline(placed: Placed) -> Pass:
    """Passes that cut a planned program into fragments, each on one device, and copies."""
    return Pipeline([OutlineFragments(placed.default), OutlineCopies()])


def placed_pipeline(placed: Placed, rules: QuantizerRules) -> Pass:
    """Passes that split the fragments of a program into functions of the target and of hosts.

    `rules`: what operators need to be quantized, for the reasons of those that the target cannot run.
    """
    return Pipeline(
        [
            _Among(Pipeline([share_accumulators(), placed.target.composites()]), placed.is_ours),
            _Alone(simplify_pipeline(), lambda function: DEVICE in function.attrs and not placed.is_ours(function)),
            PartitionDevice(placed.target, rules, placed.rules),
        ]
    )


def alone(function: Function, mod: IRModule) -> IRModule:
    """A function as `main` of a module of its own, without its attributes."""
    return replace(mod, functions={"main": copy_with(function, attrs={})})


def check_obeyed(mod: IRModule, placed: Placed) -> None:
    """Raise UnsupportedError for operators that are placed on the target, which cannot run them."""
    refused: dict[str, str] = {}
    for record in partition_records(mod):
        attrs = mod[record.function].attrs
        device, converts = str(attrs.get(DEVICE, "")), CONVERTS in attrs and record.operator in _CONVERSIONS
        if record.where == HOST and device in placed.devices and not converts:
            refused.setdefault(f"{record.operator} on {device}", record.reason)
    if refused:
        told = "; ".join(f"{what}: {reason}" for what, reason in refused.items())
        raise UnsupportedError(f"operators must be placed on devices that can run them, not {told}")


class _Among(Pass):
    """A pass over those functions of a module that `chosen` takes, as if there were no others."""

    name = "among"

    def __init__(self, inner: Pass, chosen: Callable[[Function], bool]) -> None:
        self.inner = inner
        self.chosen = chosen

    def transform(self, mod: IRModule) -> IRModule:
        ours = {name: function for name, function in mod.functions.items() if self.chosen(function)}
        return mod.with_functions(self.inner(replace(mod, functions=ours)).functions) if ours else mod


class _Alone(Pass):
    """A pass over each function that `chosen` takes, as `main` of a module of its own."""

    name = "alone"

    def __init__(self, inner: Pass, chosen: Callable[[Function], bool]) -> None:
        self.inner = inner
        self.chosen = chosen

    def transform(self, mod: IRModule) -> IRModule:
        ours = {name: function for name, function in mod.functions.items() if self.chosen(function)}
        return mod.with_functions({name: self._changed(function, mod) for name, function in ours.items()})

    def _changed(self, function: Function, mod: IRModule) -> Function:
        return copy_with(InferType()(self.inner(alone(function, mod)))["main"], attrs=function.attrs)
