"""Explains the effect of a hardware change: cycles by cause and bytes before and after, and a sentence.

In: timed launches of the same regions. Out: `Spent`, differences, a sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.causes import Cause
from relay_hw.accel.sim.cycle import Timing
from relay_hw.accel.sim.cycle.losses import accounts, stretches, together
from relay_hw.accel.sim.cycle.traffic import NO_TRAFFIC, Traffic, total_traffic, traffic_by_owner

# Causes that a sentence names, and the least share of the change of cycles that each must have.
_CAUSES, _LEAST = 3, 0.05
# A kind of bytes is mentioned if it grew or shrank by this factor.
_FACTOR = 1.2
_KINDS = {
    "weights": "weights",
    "records": "parameter records",
    "uops": "micro-ops",
    "activations_read": "activations read",
    "activations_written": "activations written",
    "instructions": "instructions",
}


@dataclass(frozen=True, slots=True)
class Spent:
    """Cycles by cause, products among them, and bytes."""

    causes: Mapping[Cause, int]
    traffic: Traffic = NO_TRAFFIC

    @property
    def cycles(self) -> int:
        """Total cycles."""
        return sum(self.causes.values())

    def __mul__(self, times: int) -> Spent:
        return Spent({cause: cycles * times for cause, cycles in self.causes.items()}, self.traffic * times)


def spent_in(timing: Timing, macs: int) -> Spent:
    """Cycles and bytes of a launch whose layers have `macs` multiply-accumulates."""
    owners = [0] * len(timing.works)
    causes = together(accounts(stretches(timing, owners)).values()).cycles
    array = causes[Cause.PRODUCTS]
    causes[Cause.LANES] = max(0, array - -(-macs // timing.config.macs_per_cycle))
    causes[Cause.PRODUCTS] = array - causes[Cause.LANES]
    return Spent(causes, total_traffic(traffic_by_owner(timing.works, owners, timing.config).values()))


def reloads_in(timing: Timing) -> Spent:
    """Cycles and bytes of a launch that reloads resident constants."""
    moved = traffic_by_owner(timing.works, [0] * len(timing.works), timing.config)
    return Spent({Cause.RELOAD: timing.cycles}, total_traffic(moved.values()))


def total_spent(parts: Iterable[Spent]) -> Spent:
    """The sum over all launches."""
    causes, traffic = Counter[Cause](), NO_TRAFFIC
    for part in parts:
        causes.update(part.causes)
        traffic += part.traffic
    return Spent(causes, traffic)


def cause_changes(before: Spent, after: Spent) -> dict[Cause, int]:
    """Change of cycles by cause, largest first, without zeros."""
    found = {cause: after.causes.get(cause, 0) - before.causes.get(cause, 0) for cause in Cause}
    return {cause: more for cause, more in sorted(found.items(), key=lambda item: -abs(item[1])) if more}


def cause_text(before: Spent, after: Spent) -> str:
    """The largest changes: `lanes +1,963, output +187`."""
    changes = cause_changes(before, after)
    least = _LEAST * max(map(abs, changes.values()), default=0)
    shown = [(cause, more) for cause, more in changes.items() if abs(more) >= least][:_CAUSES]
    return ", ".join(f"{cause} {more:+,}" for cause, more in shown)


def why_it_differs(before: Spent, after: Spent, old: AccelConfig, new: AccelConfig) -> str:
    """A sentence: what changed in cycles and bytes, and the hardware difference that caused it."""
    parts = [cause_text(before, after), *_hardware(old, new), *_bytes(before.traffic, after.traffic)]
    return "; ".join(filter(None, parts))


def _hardware(old: AccelConfig, new: AccelConfig) -> list[str]:
    found: list[str] = []
    if new.channel_align != old.channel_align:
        found.append(f"channels are padded to multiples of {new.channel_align}, not {old.channel_align}")
    if new.macs_per_cycle != old.macs_per_cycle:
        found.append(f"the array has {new.macs_per_cycle} multipliers, not {old.macs_per_cycle}")
    if (new.block_in, new.block_out) != (old.block_in, old.block_out):
        sizes = f"{new.block_in} inputs and {new.block_out} outputs, not {old.block_in} and {old.block_out}"
        grows = new.block_in > old.block_in or new.block_out > old.block_out
        found.append(f"a slot takes {sizes}" + (", and layers of fewer leave lanes idle" if grows else ""))
    return found


def _bytes(before: Traffic, after: Traffic) -> list[str]:
    then, now = asdict(before), asdict(after)
    return [
        f"{name} {then[key]:,} -> {now[key]:,} bytes"
        for key, name in _KINDS.items()
        if max(then[key], now[key]) > _FACTOR * min(then[key], now[key])
    ]
