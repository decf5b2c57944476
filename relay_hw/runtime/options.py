"""Options of a build. In: one record. Out: the target, the host target, the strategy.

Every option has a default; conflicting ones are refused when the record is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeGuard

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.backend.tvm import usual_host
from relay_hw.backend.tvm.target import HostTarget, read_host
from relay_hw.errors import InputError
from relay_hw.limits import DEFAULT as USUAL_LIMITS
from relay_hw.limits import Limits
from relay_hw.quantize import Strategy, find_strategy
from relay_hw.quantize.recipes import FLOAT
from relay_hw.support.names import one_of
from relay_hw.target.accel.rules import NAME as ACCEL
from relay_hw.target.accel.target import accel_target
from relay_hw.target.base import Target
from relay_hw.target.registry import HOST_NAMES, find_target, target_names

RESIDENT: Final = ("auto", "off")
# What computes for a device: a host, or a target by name or as an object.
Machine = HostTarget | Target | str
# Kinds of devices as programs name them. On the processor is what nothing places, if a build has one.
PROCESSOR: Final = "cpu"
_EXTERNAL: Final = "ext_dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileOptions:
    """Options of `compile_model`. Raises InputError for invalid or conflicting values.

    What the network is compiled for:

    `target`: another target than `accel`, or its name (`relay_hw.target.registry`).
    `config`: the accelerator configuration, `default` by default; for another target, the name of its configuration.
    `memory`: name of the memory model that programs are optimised for, `standard` by default; `accel` only.
    `board`: takes configuration (unless `config` is given) and memory from a board; `accel` only.
    `accelerate`: False keeps every operator on the host, and the build needs no device.
    `host_target`: machine that host functions are compiled for, as in `relay_hw.backend.tvm.target`; `numpy`: none.
    None is `llvm` where TVM is installed, else `numpy`.
    `devices`: what computes for the devices that a program names, by device (`cuda(0)`) or kind (`cuda`): a machine as
    in `host_target`, or the name of `target`. By default `cpu` is the host, a GPU its own kind, `ext_dev` the target.

    How:

    `strategy`: how to quantize the network; `float`: not at all, so that all of it runs on the host.
    `resident`: "auto" keeps weights on the device between launches where that is faster, "off" never.
    `batch_calls`: calls of a fragment of a program with control flow that one launch may compute; 1: each by itself.
    `prefix_masks`: inputs that are masks of ones and then zeros, so that the accelerator is told by a number which
    columns of a softmax count; samples with other masks are refused.
    `tune`: seconds to spend searching for faster tiles on the cycle simulator.
    `cache`: folder that earlier results of such searches are read from; by default the user cache directory.
    `validate`: False leaves out the proof that each program computes what its network says.
    `limits`: on the size of the network.
    `name`: of the model, in the build and its reports.
    """

    target: Target | str | None = None
    config: AccelConfig | str | None = None
    memory: str | None = None
    board: str | None = None
    accelerate: bool = True
    host_target: HostTarget | str | None = None
    devices: Mapping[str, HostTarget | str] = field(default_factory=dict[str, "HostTarget | str"])
    strategy: Strategy | str = "int8"
    resident: str = "auto"
    batch_calls: int = 1
    prefix_masks: tuple[str, ...] = ()
    tune: float = 0
    cache: Path | None = None
    validate: bool = True
    limits: Limits = field(default=USUAL_LIMITS)
    name: str = "model"

    def __post_init__(self) -> None:
        if self.resident not in RESIDENT:
            raise InputError(one_of("resident", RESIDENT, self.resident))
        if self.batch_calls < 1:
            raise InputError(f"batch_calls must be at least 1, not {self.batch_calls}")
        if not self.tune >= 0:
            raise InputError(f"tune must be at least 0 seconds, not {self.tune:g}")
        if self._is_ours:
            return
        for what, given in {"memory": self.memory, "board": self.board}.items():
            if given is not None:
                raise InputError(
                    f"{what} must be left out for target {self.target}, not be {given}: only accel has one"
                )
        if not isinstance(self.target, str) and self.config is not None:
            raise InputError(f"config must be left out where the target is given as an object, not be {self.config}")

    @property
    def _is_ours(self) -> bool:
        return self.target is None or self.target == ACCEL

    @property
    def is_float(self) -> bool:
        """Whether the network is not quantized."""
        return self.strategy == FLOAT

    def find_target(self) -> Target:
        """The target to compile for. Raises InputError for an unknown name."""
        if self.target is None or self.target == ACCEL:
            return accel_target(self.config, self.memory, self.board)
        if isinstance(self.target, str):
            return find_target(self.target, self.config if isinstance(self.config, str) else "")
        return self.target

    def find_strategy(self) -> Strategy:
        """The quantization strategy. Raises InputError for an unknown name."""
        return Strategy(FLOAT) if self.is_float else find_strategy(self.strategy)

    def find_host(self) -> HostTarget:
        """The machine that host functions are compiled for. Raises InputError."""
        return usual_host() if self.host_target is None else read_host(self.host_target)

    def with_machines(self, machines: Mapping[str, HostTarget]) -> CompileOptions:
        """The same with `machines` for some devices, beside those that there are by default. Raises InputError."""
        target = self.find_target().name
        usual = {device: target if machine is None else machine for device, machine in self.find_devices().items()}
        return replace(self, devices={**usual, **machines})

    def find_devices(self) -> Mapping[str, HostTarget | None]:
        """The machine of each device or kind of device, None for the target. Raises InputError."""
        host, target = self.find_host(), self.find_target().name if self.accelerate else ""
        if self.devices:
            return {name: None if value == target else read_host(value) for name, value in self.devices.items()}
        processor = usual_host() if host.is_gpu else host
        found: dict[str, HostTarget | None] = {PROCESSOR: processor}
        found |= {} if processor is host else {host.kind: host}
        return found | ({_EXTERNAL: None} if target else {})


USUAL: Final = CompileOptions()


def with_devices(options: CompileOptions, machines: Mapping[str, Machine]) -> CompileOptions:
    """`options` for a program on devices: `machines` as `devices`, where `NAME:VARIANT` or an object is the target.

    Without a target nothing is accelerated; without TVM numpy takes the place of `llvm`. Raises InputError for several
    targets, and for no machine at all.
    """
    if not machines:
        raise InputError("devices must have at least one machine, not none")
    targets = {machine: None for machine in machines.values() if is_target(machine)}
    if len(targets) > 1:
        raise InputError(f"devices must have one target besides hosts, not {' and '.join(map(_name, targets))}")
    chosen = replace(options, devices={device: _plain(machine) for device, machine in machines.items()})
    return with_target(chosen, *targets) if targets else replace(chosen, accelerate=False)


def with_target(options: CompileOptions, target: Target | str) -> CompileOptions:
    """`options` for a target as an object, or by its name: `NAME`, or `NAME:VARIANT`. Raises InputError."""
    if not isinstance(target, str):
        return replace(options, target=target)
    name, _, variant = target.partition(":")
    return replace(options, target=name, config=variant or options.config)


def is_target(machine: Machine) -> TypeGuard[Target | str]:
    """Whether a machine is no host."""
    if isinstance(machine, str):
        name = machine.partition(":")[0]
        return name not in HOST_NAMES and name in target_names()
    return not isinstance(machine, HostTarget)


def _name(machine: Machine) -> str:
    return machine if isinstance(machine, str) else str(machine) if isinstance(machine, HostTarget) else machine.name


def _plain(machine: Machine) -> HostTarget | str:
    """A machine as an option says it."""
    if machine == "llvm":
        return usual_host()
    if isinstance(machine, HostTarget):
        return machine
    return _name(machine).partition(":")[0] if is_target(machine) else _name(machine)
