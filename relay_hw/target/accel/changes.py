"""Hardware changes to try on the simulator: one size or memory parameter different from a build's.

In: a configuration and a memory model. Out: legal changes, each with the causes of lost cycles that it may help.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, replace

from relay_hw.accel.isa.config import AccelConfig, resized
from relay_hw.accel.isa.errors import ConfigError
from relay_hw.accel.sim.causes import LOST, Cause
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.errors import InputError
from relay_hw.support.names import one_of

# Sizes that a program does not depend on: it runs as it is.
SAME_PROGRAM = frozenset({"read_outstanding", "write_outstanding", "queue_depth", "burst_beats"})
# Limits of the memory model by the names that a change gives them.
MEMORY_KEYS = {"latency": "latency", "memory_reads": "read_outstanding", "memory_writes": "write_outstanding"}

_READS = (Cause.BUS, Cause.LATENCY, Cause.FILL)
# Scratchpads that hold more loaded data if a size grows, by that size.
_LOADED = {"inp_depth": "inp", "wgt_depth": "wgt", "acc_depth": "acc"}
_WRITES = (Cause.STORE, Cause.DRAIN)


@dataclass(frozen=True, slots=True)
class Change:
    """`sizes` of the accelerator and limits of the `memory` that differ; `causes`: those of lost cycles it may help."""

    text: str
    causes: tuple[Cause, ...] = LOST
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    memory: Mapping[str, int] = field(default_factory=dict[str, int])

    def may_help(self, causes: Set[Cause], loads: Set[str]) -> bool:
        """Whether it may reduce cycles of one of `causes`; `loads`: scratchpads whose loads are waited for.

        A larger scratchpad saves reads of what it holds, and of nothing else.
        """
        fitting = causes & set(self.causes)
        mems = {_LOADED[key] for key in self.sizes if key in _LOADED}
        return bool(fitting - set(_READS) if mems and not mems & loads else fitting)

    @property
    def asked(self) -> str:
        """What `read_change` reads as this change: `KEY=VALUE,...`."""
        names = {field: key for key, field in MEMORY_KEYS.items()}
        values = {**self.sizes, **{names[field]: value for field, value in self.memory.items()}}
        return ",".join(f"{key}={value}" for key, value in values.items())

    @property
    def recompiles(self) -> bool:
        """Whether programs must be recompiled for it."""
        return not self.sizes.keys() <= SAME_PROGRAM

    def config(self, base: AccelConfig) -> AccelConfig:
        """The changed configuration. Raises ConfigError for illegal sizes."""
        return resized(base, "changed", self.sizes) if self.sizes else base

    def memory_model(self, base: MemoryModel) -> MemoryModel:
        """The changed memory model. Raises ConfigError."""
        return replace(base, **self.memory)


def usual_changes(config: AccelConfig, memory: MemoryModel) -> list[Change]:
    """The default changes to try; only legal ones."""
    c = config
    found = [
        _sized(
            c,
            "bus of {} bits",
            (Cause.BUS, Cause.LATENCY, Cause.FILL, Cause.STORE, Cause.FETCH, Cause.DRAIN),
            "axi_data_bits",
            2,
        ),
        _memory(
            "latency of {} cycles",
            (Cause.LATENCY, Cause.FILL, Cause.FETCH, Cause.DRAIN),
            "latency",
            max(1, memory.latency // 2),
        ),
        _sized(c, "{} reads in flight", _READS, "read_outstanding", 2),
        _sized(c, "{} writes in flight", _WRITES, "write_outstanding", 2),
        _memory("{} reads in flight in the memory", _READS, "memory_reads", 2 * memory.read_outstanding),
        _memory("{} writes in flight in the memory", _WRITES, "memory_writes", 2 * memory.write_outstanding),
        _sized(c, "queues of {} instructions", (Cause.QUEUE,), "queue_depth", 2),
        _sized(c, "inp of {} entries", (*_READS, Cause.UNFOLD), "inp_depth", 2),
        _sized(c, "wgt of {} entries", (*_READS, Cause.QUEUE, Cause.RELOAD), "wgt_depth", 2),
        _sized(c, "prm of {} entries", (Cause.RELOAD,), "prm_depth", 2),
        _sized(c, "uop of {} entries", (Cause.RELOAD,), "uop_depth", 2),
        *([_sized(c, "{} tables", (Cause.RELOAD,), "tables", 2)] if c.tables else []),
        *([_sized(c, "cof of {} entries", (Cause.RELOAD,), "cof_depth", 2)] if c.cof_depth else []),
        _sized(c, "acc of {} entries", (*_READS, Cause.OUTPUT, Cause.PIPELINE), "acc_depth", 2),
        _sized(c, "out of {} entries", (Cause.OUTPUT, Cause.STORE), "out_depth", 2),
        _sized(c, "output stage of {} lanes", (Cause.OUTPUT, Cause.DRAIN), "out_lanes", 2),
        _sized(c, "blocks of {} inputs", LOST, "block_in", 2),
        _sized(c, "blocks of {} outputs", LOST, "block_out", 2),
        Change(f"blocks of {c.block_in // 2} inputs", (Cause.LANES,), {"block_in": c.block_in // 2}),
    ]
    return [change for change in found if _is_legal(change, config, memory)]


def distinct(changes: Iterable[Change]) -> list[Change]:
    """Changes without duplicates, whatever their text."""
    found: dict[object, Change] = {}
    for change in changes:
        found.setdefault((tuple(sorted(change.sizes.items())), tuple(sorted(change.memory.items()))), change)
    return [*found.values()]


def _sized(config: AccelConfig, text: str, causes: tuple[Cause, ...], key: str, factor: int) -> Change:
    value: int = getattr(config, key) * factor
    return Change(text.format(value), causes, {key: value})


def _memory(text: str, causes: tuple[Cause, ...], key: str, value: int) -> Change:
    return Change(text.format(value), causes, memory={MEMORY_KEYS[key]: value})


def _is_legal(change: Change, config: AccelConfig, memory: MemoryModel) -> bool:
    try:
        change.config(config)
        change.memory_model(memory)
    except ConfigError:
        return False
    return True


def read_change(text: str, config: AccelConfig, memory: MemoryModel) -> Change:
    """`KEY=VALUE,...`: sizes of the configuration, and latency, memory_reads or memory_writes of the memory model.

    Raises InputError for another key or a value that is no integer, ConfigError for sizes that do not go together.
    """
    known = {f.name for f in fields(AccelConfig)} - {"name"}
    sizes: dict[str, int] = {}
    limits: dict[str, int] = {}
    for part in text.split(","):
        key, _, value = part.strip().partition("=")
        if key not in known and key not in MEMORY_KEYS:
            raise InputError(one_of("a change", sorted(known | MEMORY_KEYS.keys()), key))
        if not value.isdecimal():
            raise InputError(f"change of {key} must be an integer, not {value or 'nothing'}")
        if key in MEMORY_KEYS:
            limits[MEMORY_KEYS[key]] = int(value)
        else:
            sizes[key] = int(value)
    change = Change(text, sizes=sizes, memory=limits)
    change.config(config)
    change.memory_model(memory)
    return change
