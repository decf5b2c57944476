"""Opens devices by name, with the options that each needs.

In: a name, a configuration, a memory model. Out: a `Device`, or one sentence that says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.names import CYCLE, FUNCTIONAL, RTL
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.support.names import one_of
from relay_hw.support.progress import SILENT, Progress

if TYPE_CHECKING:
    from relay_hw.accel.sim.device import Device

# A board, among the devices.
FPGA: Final = "fpga"
# Seconds that a board may take for an answer.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """`waves`: file for signals (rtl only); `memory`: name of a memory model; `progress` receives long steps.

    `timing_only`: the cycle device need not compute data. `port`: a board's serial port, `socket://host:port` or
    `etherbone://host`, its own address by default; `soc`: the folder of its bitstream, or the `soc.json` in it (fpga
    only).
    """

    memory: str = "standard"
    waves: Path | None = None
    progress: Progress = SILENT
    timing_only: bool = False
    port: str | None = None
    soc: Path | None = None


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A device that can be chosen by name. `open` may leave out imports until it is called.

    `has_exact_cycles`: its counters are those of the cycle simulator, so that it can be profiled. `has_waves`: it
    records signals. `chunk`: samples that are best taken through a region together.
    """

    name: str
    open: Callable[[AccelConfig, DeviceOptions], Device]
    has_exact_cycles: bool = False
    has_waves: bool = False
    chunk: int = 1


def find_device(name: str) -> DeviceKind:
    """The device of this name. Raises InputError."""
    for kind in DEVICES:
        if kind.name == name:
            return kind
    raise InputError(one_of("device", [kind.name for kind in DEVICES], name))


def open_device(name: str, config: AccelConfig, options: DeviceOptions | None = None) -> Device:
    """Open a device with an empty DRAM window. Raises InputError, UnsupportedError (a missing tool), AccelError."""
    kind, opts = find_device(name), options or DeviceOptions()
    if opts.waves is not None and not kind.has_waves:
        able = " or ".join(kind.name for kind in DEVICES if kind.has_waves)
        raise InputError(f"waves must be recorded on the {able} device, not on {name}")
    return kind.open(config, opts)


def _open_functional(config: AccelConfig, options: DeviceOptions) -> Device:
    from relay_hw.accel.sim.functional import FunctionalDevice

    return FunctionalDevice(config)


def _open_cycle(config: AccelConfig, options: DeviceOptions) -> Device:
    from relay_hw.accel.sim.cycle import CycleDevice

    return CycleDevice(config, memory_model(options.memory), data=not options.timing_only)


def _open_rtl(config: AccelConfig, options: DeviceOptions) -> Device:
    from relay_hw.accel.sim.rtl_device import RtlDevice, Simulation
    from relay_hw.accel.sim.verilator import ToolError

    try:
        run = Simulation(waves=options.waves)
        return RtlDevice(config, memory_model(options.memory), run, progress=options.progress)
    except ToolError as error:
        raise UnsupportedError(f"{error}; --device {FUNCTIONAL} runs without it") from None


def _open_fpga(config: AccelConfig, options: DeviceOptions) -> Device:
    from relay_hw.accel.fpga.device import FpgaDevice
    from relay_hw.accel.fpga.open_link import open_link
    from relay_hw.accel.fpga.soc_map import load_map

    missing = InputError("device fpga must have a port and the folder of its bitstream: --port PORT --soc FOLDER")
    if options.soc is None:
        raise missing
    soc = load_map(options.soc)
    port = options.port or soc.address
    if not port:
        raise missing
    return FpgaDevice(config, open_link(port, soc.baud, _PATIENCE), soc, progress=options.progress)


DEVICES: Final = (
    DeviceKind(FUNCTIONAL, _open_functional),
    DeviceKind(CYCLE, _open_cycle, has_exact_cycles=True),
    DeviceKind(RTL, _open_rtl, has_exact_cycles=True, has_waves=True),
    # Bytes of a sample travel while the board works on the one before.
    DeviceKind(FPGA, _open_fpga, chunk=16),
)


def close_device(device: Device) -> None:
    """Close the device; wave files are complete afterwards."""
    close = getattr(device, "close", None)
    if close is not None:
        with suppress(AccelError):
            close()
