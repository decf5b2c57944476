"""Counts how often signals switch while programs run on a netlist, for estimates of energy.

In: the netlist of a configuration. Out: after each launch, how often nets, block RAMs and multipliers switched.
Signals settle at once, so what a net does within a cycle is not seen: hazards of logic are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.fpga.flow import synthesised
from relay_hw.accel.fpga.parts import BLOCK_RAM, MULTIPLIER, FlowError, Part
from relay_hw.accel.fpga.sim.netlist import core_design
from relay_hw.accel.fpga.sim.tables import CARRY, FLIP_FLOP, LUT, LUT_MEMORY, PORTS, Tables, clock_pins, tables
from relay_hw.accel.fpga.vendor.ip import IP
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.registers import REGISTER
from relay_hw.accel.sim.device import Bytes, LaunchStats
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.result_cache import kept
from relay_hw.accel.sim.rtl_device import RtlDevice
from relay_hw.accel.sim.verilator import HARNESS_DIR, LIBRARY, find_compiler, user_cache_folder
from relay_hw.support.child import run_child
from relay_hw.support.progress import SILENT, Progress

MODEL: Final = Path(__file__).parent / "switching"
_FLAGS: Final = ("-std=c++20", "-O2", "-march=native", "-fPIC", "-shared", "-fvisibility=hidden", "-w")
_FLAGS_OF_HARNESS: Final = ("-DVTA_TRACE_FST=0", "-DVTA_TRACE_VCD=1")
_TYPES: Final = ((8, "uint8_t"), (16, "uint16_t"), (32, "uint32_t"), (64, "uint64_t"))


class Kind(str, Enum):
    """What switches: nets, by the cell that drives them; accesses of block RAMs; bits in multipliers; clock pins."""

    LUT = "lut"
    CARRY = "carry"
    FLIP_FLOP = "flip_flop"
    LUT_MEMORY = "lut_memory"
    RAM = "ram"
    PRODUCT = "product"
    INPUT = "input"
    # Nets with a wire of their own: from a table to the flip-flop beside it, from carry to carry.
    LOCAL = "local"
    READ = "read"
    WRITE = "write"
    # Reads that nobody asked for, by ports whose enable is tied high.
    IDLE = "idle"
    PARTIAL = "partial"
    CLOCK = "clock"


_DRIVERS: Final = {
    LUT: Kind.LUT,
    CARRY: Kind.CARRY,
    FLIP_FLOP: Kind.FLIP_FLOP,
    LUT_MEMORY: Kind.LUT_MEMORY,
    BLOCK_RAM: Kind.RAM,
    MULTIPLIER: Kind.PRODUCT,
}


@dataclass(frozen=True, slots=True)
class Activity:
    """Counts of what switched during one launch.

    `counts`: by kind, switches of nets times the pins that they drive, bits of accesses, changed
    bits of partial products, and both edges of the clock at all of its pins.
    """

    cycles: int
    counts: Mapping[Kind, int]


Weigh = Callable[[NDArray[np.uint64]], Activity]


class ActivityDevice:
    """Runs programs on the netlist of a configuration, and counts. Bytes and cycles are as on every device.

    `folder` keeps the netlist. Raises FlowError, ToolError.
    """

    def __init__(
        self,
        config: AccelConfig,
        part: Part,
        folder: Path,
        memory: MemoryModel | None = None,
        progress: Progress = SILENT,
    ) -> None:
        stage = synthesised(core_design(config, part), folder, progress)
        module = json.loads((stage / "synthesised.json").read_text())["modules"][IP]
        found = tables(module)
        self._weigh = weigh(module, found)
        self._device = RtlDevice(config, memory, model=_library(config, found))
        self._place = TemporaryDirectory()
        self._file = Path(self._place.name) / "switched"
        self._device.model.open_waves(self._file)

    def close(self) -> None:
        """Free the model."""
        self._device.close()
        self._place.cleanup()

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator."""
        return self._device.config

    def load(self, program: Program) -> None:
        """See `Device.load`."""
        self._device.load(program)

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self._device.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        return self._device.read(offset, size)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`."""
        return self._device.launch(stream)

    def activity(self) -> Activity:
        """Switching counts of the last launch."""
        return self._weigh(np.fromfile(self._file, np.uint64))


def weigh(module: Mapping[str, Any], found: Tables) -> Weigh:
    """What makes an `Activity` of the numbers that `Netlist::save` writes for a module with these tables."""
    kinds, each = zip(*_rows(module, found), strict=True)
    sizes = np.array(each, np.int64)
    pins = sum(1 for cells in found.cells.values() for cell in cells for _ in clock_pins(cell))

    def weighed(numbers: NDArray[np.uint64]) -> Activity:
        cycles = int(numbers[0])
        counts = dict.fromkeys(Kind, 0)
        for kind, count in zip(kinds, (numbers[1:].astype(np.int64) * sizes).tolist(), strict=True):
            counts[kind] += count
        return Activity(cycles, {**counts, Kind.CLOCK: 2 * cycles * pins})

    return weighed


def _rows(module: Mapping[str, Any], found: Tables) -> Iterator[tuple[Kind, int]]:
    """For each number that the model saves behind the cycles: its kind, and what one of it counts."""
    yield Kind.PARTIAL, 1
    for cell in found.cells[BLOCK_RAM]:
        for port in PORTS:
            width = int(cell["parameters"].get(f"DATA_WIDTH_{port}", "0"), 2)
            yield from ((Kind.READ, width), (Kind.IDLE, width), (Kind.WRITE, width))
    drivers, readers = _drivers(module, found), _readers(module, found)
    yield from [(Kind.LOCAL, 0)] * found.first
    for bit in found.nets:
        kind, pin = drivers.get(bit, (Kind.LOCAL, ""))
        read = readers.get(bit, [])
        yield Kind.LOCAL if _is_local(pin, read) else kind, len(read)


def _drivers(module: Mapping[str, Any], found: Tables) -> dict[int, tuple[Kind, str]]:
    """The kind of each net, and the pin that drives it; the clock's is not among them."""
    drivers = {bit: (Kind.INPUT, "") for bit in _port_bits(module, "input")}
    for kind, cells in found.cells.items():
        for cell in cells:
            for pin, bits in cell["connections"].items():
                if cell["port_directions"][pin] == "output":
                    drivers |= {bit: (_DRIVERS[kind], pin) for bit in bits if isinstance(bit, int)}
    clocks = {bit for cells in found.cells.values() for cell in cells for bit in clock_pins(cell)}
    return {bit: driver for bit, driver in drivers.items() if bit not in clocks}


def _readers(module: Mapping[str, Any], found: Tables) -> dict[int, list[str]]:
    """Pins that each net drives, without those of their cells; ports of the module are pins without a name."""
    readers: dict[int, list[str]] = {}
    for bit in _port_bits(module, "output"):
        readers.setdefault(bit, []).append("")
    for cells in found.cells.values():
        for cell in cells:
            for pin, bits in cell["connections"].items():
                if cell["port_directions"][pin] != "output":
                    for bit in bits:
                        readers.setdefault(bit, []).append(pin)
    return readers


def _port_bits(module: Mapping[str, Any], way: str) -> list[int]:
    return [bit for port in module["ports"].values() if port["direction"] == way for bit in port["bits"]]


def _is_local(pin: str, readers: Sequence[str]) -> bool:
    """Whether a net leaves no slice."""
    return (pin == "COUT" and readers == ["CIN"]) or (pin in ("Z", "S0", "S1") and readers == ["DI"])


def _library(config: AccelConfig, found: Tables) -> Path:
    """The harness around a netlist, built in seconds and kept. Raises FlowError, ToolError."""
    text = header(found)
    compiler, version = find_compiler()
    sources = sorted([*MODEL.iterdir(), *HARNESS_DIR.rglob("*.[ch]*")])
    digest = hashlib.sha256(f"{text}\0{version}\0{_FLAGS}\0{config.bus_bytes}".encode())
    for path in sources:
        digest.update(path.read_bytes())

    def make(work: Path) -> None:
        (work / "netlist.h").write_text(text)
        folders = [f"-I{folder}" for folder in (work, MODEL, HARNESS_DIR)]
        sizes = [f"-DVTA_BUS_BYTES={config.bus_bytes}", *_FLAGS_OF_HARNESS]
        target = ["-o", str(work / LIBRARY), str(HARNESS_DIR / "harness.cpp")]
        done = run_child([str(compiler), *_FLAGS, *folders, *sizes, *target], work)
        if done.returncode:
            raise FlowError(f"{compiler.name} must build the netlist's model, not fail: {done.stderr[:500]}")

    return kept(user_cache_folder() / "switching", f"{config.name}-{digest.hexdigest()[:24]}", make) / LIBRARY


def header(found: Tables) -> str:
    """`netlist.h`: the words of a netlist, and its ports."""
    ports = {"INPUTS": {name: bits for name, bits in found.inputs.items() if name != "clk_i"}, "OUTPUTS": found.outputs}
    places = [place for group in ports.values() for bits in group.values() for place in bits]
    lists = "\n".join(f"#define NETLIST_{way}(PORT) {' '.join(_port(*row) for row in rows.items())}"
                      for way, rows in ports.items())  # fmt: skip
    return (
        f"#include <cstdint>\n{lists}\n"
        f"static const uint32_t kControl = {REGISTER['CONTROL'].offset};\n"
        f"static const uint32_t kPorts[] = {{{', '.join(map(str, places))}}};\n"
        f"static const uint32_t kNetlist[] = {{{', '.join(map(str, found.words))}}};\n"
    )


def _port(name: str, bits: Sequence[int]) -> str:
    kind = next((text for size, text in _TYPES if len(bits) <= size), None)
    if kind is None:
        raise FlowError(f"port {name} must have at most 64 bits to be counted, not {len(bits)}")
    return f"PORT({kind}, {name}, {len(bits)})"
