"""Timing of the DRAM behind the AXI port, shared by the cycle simulator and the RTL harness.

AXI4 with independent read and write channels, in order. Without `sdram`, a read burst accepted at edge t presents its
first beat so that it is sampled at edge t + latency at the earliest; a write response comes latency edges after the
last W beat, or after its address, whichever is later. With it, reads and writes share one chip (see `Sdram`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from types import MappingProxyType

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import ConfigError
from relay_hw.support.names import one_of


@dataclass(frozen=True, slots=True)
class Sdram:
    """A chip and its controller, in cycles of the core's clock. Raises ConfigError.

    One beat after the other has the chip, for as many cycles as it has `column_bytes`; a burst keeps it while its next
    beat can go on, and reads and writes that wait take turns. What comes between two beats: `bank_switch` to another
    bank; `turn` to change direction, `write_to_read` at least in that case; 1 + `rcd` to open a row, `rp` more to
    close another one, `recovery` after a write to its bank; a refresh every `refresh_every` cycles takes `refresh` and
    closes all rows. Rows of neighbouring addresses are in neighbouring banks. A write is answered `response` cycles
    after its last beat had the chip. `read_buffer` and `write_buffer`: bytes between chip and bus, each way.
    """

    column_bytes: int = 2
    row_bytes: int = 1024
    banks: int = 4
    rp: int = 2
    rcd: int = 2
    recovery: int = 3
    bank_switch: int = 3
    turn: int = 5
    write_to_read: int = 5
    refresh_every: int = 625
    refresh: int = 12
    response: int = 5
    read_buffer: int = 128
    write_buffer: int = 128

    def __post_init__(self) -> None:
        for key in ("column_bytes", "row_bytes", "banks"):
            value: int = getattr(self, key)
            if not 1 <= value <= 65536 or value & (value - 1):
                raise ConfigError(f"memory model: {key} must be a power of two from 1 to 65536, not {value}")
        if not self.refresh < self.refresh_every <= 65535:
            every, long = self.refresh_every, self.refresh
            raise ConfigError(f"memory model: refresh_every must be above refresh {long} and below 65536, not {every}")
        for key in ("rp", "rcd", "recovery", "bank_switch", "turn", "write_to_read", "refresh", "response"):
            value = getattr(self, key)
            if not 0 <= value <= 255:
                raise ConfigError(f"memory model: {key} must be from 0 to 255, not {value}")
        for key in ("read_buffer", "write_buffer"):
            value = getattr(self, key)
            if not 1 <= value <= 65535:
                raise ConfigError(f"memory model: {key} must be from 1 to 65535, not {value}")

    def beat_cycles(self, config: AccelConfig) -> int:
        """Cycles for which a beat of the bus has the chip."""
        return max(1, config.bus_bytes // self.column_bytes)

    def read_room(self, config: AccelConfig) -> int:
        """Read beats that had the chip and wait for the bus, at most."""
        return max(1, self.read_buffer // config.bus_bytes)

    def write_room(self, config: AccelConfig) -> int:
        """Write beats that wait for the chip, at most."""
        return max(1, self.write_buffer // config.bus_bytes)


class WriteOrder(IntEnum):
    """When a memory takes the address of a write and its data: AXI leaves that to the memory. Mirrored in
    accel/sim/harness/axi_memory.h."""

    # Data from the edge behind the handshake of their address on.
    ADDRESS_FIRST = 0
    # The address only while its first beat is on the bus, then data as above.
    DATA_SHOWN = 1
    # The address behind the handshake of its last beat.
    DATA_FIRST = 2
    # Data at any edge, their address there or not.
    ANY = 3


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """Latency in clock edges, read beats a cycle (1), bursts in flight at most on each side. Raises ConfigError.

    With `sdram`: `latency` counts from the end of a beat's cycles on the chip; of each side one burst is accepted at a
    time, and a second one and a read beat wait in registers before the controller, which takes data of writes at any
    edge while its buffer has room.
    """

    latency: int = 100
    beats_per_cycle: int = 1
    read_outstanding: int = 16
    write_outstanding: int = 16
    sdram: Sdram | None = None
    write_order: WriteOrder = WriteOrder.ADDRESS_FIRST

    def __post_init__(self) -> None:
        if self.beats_per_cycle != 1:
            raise ConfigError(f"memory model: beats_per_cycle must be 1, not {self.beats_per_cycle}")
        for key in ("latency", "read_outstanding", "write_outstanding"):
            value: int = getattr(self, key)
            if not 1 <= value <= 65535:
                raise ConfigError(f"memory model: {key} must be from 1 to 65535, not {value}")
            if self.sdram is not None and key != "latency" and value != 1:
                raise ConfigError(f"memory model: {key} must be 1 with SDRAM, not {value}")
        if self.sdram is not None and self.write_order is not WriteOrder.ADDRESS_FIRST:
            raise ConfigError(f"memory model: write_order must not be chosen with SDRAM, not {self.write_order.name}")


def _board(latency: int, sdram: Sdram) -> MemoryModel:
    return MemoryModel(latency, 1, 1, 1, sdram)


# Boards by LiteDRAM, each at one clock: ULX3S, MT48LC16M16 at 80 MHz; Colorlight i5, EM638325-6H at 50 MHz.
MEMORY_MODELS: Mapping[str, MemoryModel] = MappingProxyType(
    {
        "standard": MemoryModel(),
        "narrow": MemoryModel(read_outstanding=4, write_outstanding=4),
        "ulx3s": _board(11, Sdram()),
        "colorlight": _board(11, Sdram(4, rp=1, rcd=1, recovery=2, refresh_every=781, refresh=8)),
    }
)


def memory_model(text: str) -> MemoryModel:
    """A model by name, sizes that differ behind it: `NAME[,KEY=VALUE...]`. Raises ConfigError."""
    name, *changes = text.split(",")
    if name not in MEMORY_MODELS:
        raise ConfigError(one_of("memory model", sorted(MEMORY_MODELS), name))
    model = MEMORY_MODELS[name]
    for change in changes:
        key, _, value = change.strip().partition("=")
        if not value.isdecimal():
            raise ConfigError(f"memory model: {key} must be an integer, not {value or 'nothing'}")
        model = _changed(model, key, int(value))
    return model


def memory_text(model: MemoryModel) -> str:
    """The shortest text that `memory_model` reads as this model."""

    def text(name: str) -> str:
        base = MEMORY_MODELS[name]
        rows = [(model, base, "latency"), (model, base, "read_outstanding"), (model, base, "write_outstanding")]
        if model.sdram is not None and base.sdram is not None:
            rows += [(model.sdram, base.sdram, field.name) for field in fields(Sdram)]
        changes = [f"{key}={getattr(now, key)}" for now, then, key in rows if getattr(now, key) != getattr(then, key)]
        return ",".join([name, *changes])

    alike = [name for name, base in MEMORY_MODELS.items() if (base.sdram is None) == (model.sdram is None)]
    return min(map(text, alike), key=len)


def _changed(model: MemoryModel, key: str, value: int) -> MemoryModel:
    own = {field.name for field in fields(MemoryModel)} - {"sdram", "write_order"}
    if key in own:
        return replace(model, **{key: value})
    chip = {field.name for field in fields(Sdram)} if model.sdram is not None else set[str]()
    if model.sdram is None or key not in chip:
        raise ConfigError(one_of("memory model: key", sorted(own | chip), key))
    return replace(model, sdram=replace(model.sdram, **{key: value}))
