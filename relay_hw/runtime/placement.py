"""Which machine computes for each device that a program names, and the program divided among them.

In: a typed module with `on_device` or `device_copy`, options of a build. Out: `Placement`: its partition, and the host
target of each host function. PlanDevices alone decides where an operator runs: what a device cannot run is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from relay_hw.backend.flat import FlatFunction
from relay_hw.backend.tvm import require
from relay_hw.backend.tvm.target import HostTarget
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import Call
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with, post_order
from relay_hw.quantize.rules import RULES
from relay_hw.runtime.batched import Partitioned
from relay_hw.runtime.hosts import compiled_by_tvm, flat_functions
from relay_hw.runtime.options import PROCESSOR, CompileOptions
from relay_hw.runtime.placed_numbers import Quantizer
from relay_hw.runtime.quantized import Quantized
from relay_hw.support.names import one_of
from relay_hw.target.base import PartitionRules
from relay_hw.target.placed import Placed, check_obeyed, outline_pipeline, placed_pipeline
from relay_hw.transform.fragments import DEVICE, FRAGMENT, is_graph
from relay_hw.transform.graph import is_external, is_op
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.plan_devices import PARAMS, RESULT, PlanDevices, device_name, names_devices
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """`planned`: the module after PlanDevices; `made`: its fragments, those of the target in integers; `hosts`: by host
    function, what it is compiled for."""

    planned: IRModule
    made: Quantized
    partitioned: Partitioned
    hosts: Mapping[str, HostTarget]


def is_placed(mod: IRModule, options: CompileOptions) -> bool:
    """Whether devices decide what runs where: a program names some, or a build has machines for several."""
    return bool(options.devices) or names_devices(mod)


def place(mod: IRModule, options: CompileOptions, target: PartitionRules, quantizer: Quantizer) -> Placement:
    """Divide a typed module among the devices of a build; `quantizer` makes integers of what is on the target.

    Raises InputError for a device that the build has no machine for, UnsupportedError for operators that a device
    cannot run and for annotations that contradict.
    """
    machines = _Machines(options.find_devices())
    planned = InferType()(PlanDevices(machines.default)(_without_fragments(RemoveUnusedFunctions()(mod))))
    named = dict.fromkeys((machines.default, *_named_devices(planned)))
    found = {device: machines.find(device) for device in named}
    placed = Placed(target, [device for device, machine in found.items() if machine is None], machines.default)
    outlined = outline_pipeline(placed)(planned)
    made = quantizer.quantize(outlined, [name for name, f in outlined.functions.items() if placed.is_ours(f)])
    partitioned = placed_pipeline(placed, RULES)(made.mod)
    check_obeyed(partitioned, placed)
    functions = flat_functions(partitioned)
    worth = compiled_by_tvm(partitioned, functions, is_straight=is_graph(planned))
    hosts = dict(_hosts(partitioned, functions, machines, {function.name for function in worth}))
    _check_kernels(partitioned, functions, hosts)
    return Placement(planned, made, Partitioned(partitioned, functions, ()), hosts)


def _without_fragments(mod: IRModule) -> IRModule:
    """`mod` with the fragments that quantizing made as plain functions, since devices cut other ones."""
    fragments = {name: function for name, function in mod.functions.items() if FRAGMENT in function.attrs}
    plain = {name: {key: value for key, value in f.attrs.items() if key != FRAGMENT} for name, f in fragments.items()}
    return mod.with_functions({name: copy_with(f, attrs=plain[name]) for name, f in fragments.items()})


@dataclass(frozen=True, slots=True)
class _Machines:
    """`known`: by device or kind of device, its host target, or None for the accelerator."""

    known: Mapping[str, HostTarget | None]

    @property
    def default(self) -> str:
        """The device of operators that nothing places."""
        return device_name(PROCESSOR if PROCESSOR in self.known else next(iter(self.known)))

    def find(self, device: str) -> HostTarget | None:
        """The machine for a device, None for the accelerator. Raises InputError if there is none."""
        kind = device.partition("(")[0]
        if device in self.known:
            return self.known[device]
        if kind not in self.known:
            raise InputError(one_of("device", self.known, device))
        machine, first = self.known[kind], device_name(kind)
        if device != first and (machine is None or machine.is_gpu):
            raise InputError(f"device must be {first}, not {device}: a build has one of this kind")
        return machine


def _named_devices(planned: IRModule) -> Iterator[str]:
    """The devices that a planned module names."""
    for function in planned.functions.values():
        if is_external(function):
            continue
        if PARAMS in function.attrs:
            yield from map(str, (*function.attrs[PARAMS], function.attrs[RESULT]))
        for node in post_order(function):
            if isinstance(node, Call) and is_op(node, "device_copy"):
                yield from (node.attrs.src_virtual_device, node.attrs.dst_virtual_device)


def _hosts(
    mod: IRModule, functions: Mapping[str, FlatFunction], machines: _Machines, worth: Collection[str]
) -> Iterator[tuple[str, HostTarget]]:
    """What host functions are compiled for: on a GPU all of them, on a processor those that are worth it."""
    for name in functions:
        device = mod[name].attrs.get(DEVICE) if name in mod.functions and is_external(mod[name]) else None
        machine = machines.find(str(device)) if device is not None else None
        if machine is not None and (machine.is_gpu or name in worth):
            yield name, machine


def _check_kernels(mod: IRModule, functions: Mapping[str, FlatFunction], hosts: Mapping[str, HostTarget]) -> None:
    """Raise UnsupportedError for operators on a GPU that has no kernel for them."""
    refused: dict[str, None] = {}
    for target in dict.fromkeys(hosts.values()):
        if not target.is_gpu:
            continue
        require(f"compile for {target.kind}")
        from relay_hw.backend.tvm.gpu import without_kernel

        ours = [functions[name] for name, machine in hosts.items() if machine == target]
        for name, operators in without_kernel(ours, target).items():
            refused |= dict.fromkeys(f"{operator} on {mod[name].attrs[DEVICE]}" for operator in operators)
    if refused:
        told = ", ".join(refused)
        raise UnsupportedError(f"operators must be placed on devices that can run them, not {told}: TVM has no kernel")
