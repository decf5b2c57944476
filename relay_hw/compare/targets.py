"""What other targets than ours make of a quantized network: their instructions, and what they leave to the host.

In: a float module, its quantized form, names of targets. Out: `Elsewhere` for each. The integers are the same on every
target, so accuracy is that of the strategy; cycles are not comparable, and most targets have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay_hw.errors import InputError, RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.names import one_of
from relay_hw.support.progress import Progress
from relay_hw.target.accel.rules import NAME
from relay_hw.target.partition import HOST
from relay_hw.target.registry import find_target, target_names


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A strategy on another target: instructions of its layers, how many layers it and the host have, and `own_macs` of
    `macs` multiply-accumulates. `reason`: why there is no program."""

    target: str
    instructions: int = 0
    layers: int = 0
    host_layers: int = 0
    own_macs: int = 0
    macs: int = 0
    reason: str = ""

    @property
    def share(self) -> float:
        """Share of the multiply-accumulates that run on the target."""
        return self.own_macs / self.macs if self.macs else 0.0


def check_target(name: str) -> None:
    """Raises InputError for a target that there is not, or that the rows are for anyway."""
    kind, _, config = name.partition(":")
    others = [one for one in target_names() if one != NAME]
    if kind not in others:
        raise InputError(one_of("target", others, kind))
    find_target(kind, config)


def elsewhere(
    mod: IRModule, quantized: IRModule, strategy: Strategy, targets: Sequence[str], progress: Progress
) -> tuple[Elsewhere, ...]:
    """The network on each of `targets`: a name, or a name and a configuration with a colon between them."""
    found: list[Elsewhere] = []
    for name in () if strategy.simulated else targets:
        progress.started(f"compiling for {name}")
        kind, _, config = name.partition(":")
        try:
            options = CompileOptions(target=kind, config=config or None, strategy=strategy)
            found.append(_counted(name, compile_model(mod, options, quantized=quantized)))
        except RelayHwError as error:
            found.append(Elsewhere(name, reason=str(error)))
    return tuple(found)


def instructions_of(compiled: CompiledModel) -> int:
    """Instructions of all layers that run on the target."""
    return sum(end - begin for row in compiled.layers if row.where != HOST for begin, end in row.ranges)


def _counted(name: str, compiled: CompiledModel) -> Elsewhere:
    own = [row for row in compiled.layers if row.where != HOST]
    rest = [row for row in compiled.layers if row.where == HOST]
    macs = sum(row.macs for row in own)
    return Elsewhere(name, instructions_of(compiled), len(own), len(rest), macs, macs + sum(row.macs for row in rest))
