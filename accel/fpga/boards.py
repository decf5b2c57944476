"""Boards that bitstreams are made for: their part, memory chip, clock and host link.

In: a name. Out: `Board`; pins come from LiteX's description of the same board when its SoC is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from relay_hw.accel.fpga.parts import FlowError, Part, find_part
from relay_hw.support.names import one_of


class HostLink(Enum):
    """How a host reaches the bus of a board."""

    SERIAL = "serial"
    ETHERBONE = "etherbone"


@dataclass(frozen=True, slots=True)
class SdramChip:
    """Single-data-rate SDRAM on a board: geometry, and times of the slowest grade in nanoseconds.

    `module` names LiteDRAM's description of the chip; `clock_phase`: degrees that its clock lags the SoC's.
    """

    name: str
    module: str
    data_bits: int
    banks: int
    rows: int
    columns: int
    has_mask: bool
    clock_phase: int
    # Cycles from READ to data, up to 100 MHz.
    cas_latency: int
    t_rcd: float
    t_rp: float
    t_ras: float
    t_rc: float
    t_rfc: float
    t_rrd: float
    t_wr: float
    # All rows are refreshed once in this time, in milliseconds.
    refresh_ms: float

    @property
    def size_bytes(self) -> int:
        """Bytes of the chip."""
        return self.banks * self.rows * self.columns * self.data_bits // 8

    def refresh_every(self, clock_hz: int) -> int:
        """Cycles from one row's refresh to the next one's, at most."""
        return int(self.refresh_ms * 1e-3 * clock_hz / self.rows)


@dataclass(frozen=True, slots=True)
class Fit:
    """A configuration that a board is used with, and the SoC's clock then. `is_routed`: whether a bitstream has met
    that clock; docs/results/boards.json has what was found."""

    config: str
    mhz: float
    is_routed: bool


@dataclass(frozen=True, slots=True)
class Board:
    """A board that bitstreams are made for.

    `platform` names the module of litex_boards that knows the pins; `clock_pin`, `reset_pin`, `led_pin`: resources
    of it. `input_mhz`: its oscillator; `fits`: what runs on it, the usual one first.
    """

    name: str
    title: str
    # What openFPGALoader calls it.
    loader: str
    part: Part
    platform: str
    platform_arguments: tuple[tuple[str, str], ...]
    input_mhz: float
    clock_pin: str
    # Clocks that come with data from outside, by their pins, in MHz.
    data_clocks: tuple[tuple[str, float], ...]
    reset_pin: str
    # Level of the reset pin that resets.
    reset_level: int
    led_pin: str
    # Outputs that must be high for the board to work.
    high_pins: tuple[str, ...]
    fits: tuple[Fit, ...]
    link: HostLink
    baud: int
    sdram: SdramChip

    @property
    def mhz(self) -> float:
        """The SoC's clock for a configuration that `fits` lacks."""
        return self.fits[0].mhz

    def fit(self, config: str) -> Fit | None:
        """The entry of `fits` for a configuration; None if there is none."""
        return next((fit for fit in self.fits if fit.config == config), None)


_MT48LC16M16: Final = SdramChip(
    name="MT48LC16M16A2",
    module="MT48LC16M16",
    data_bits=16,
    banks=4,
    rows=8192,
    columns=512,
    has_mask=True,
    clock_phase=90,
    cas_latency=2,
    t_rcd=20,
    t_rp=20,
    t_ras=44,
    t_rc=64,
    t_rfc=66,
    t_rrd=15,
    t_wr=15,
    refresh_ms=64,
)
_EM638325: Final = SdramChip(
    name="EM638325-6H",
    module="M12L64322A",
    data_bits=32,
    banks=4,
    rows=2048,
    columns=256,
    has_mask=False,
    clock_phase=180,
    cas_latency=2,
    t_rcd=15,
    t_rp=15,
    t_ras=40,
    t_rc=55,
    t_rfc=55,
    t_rrd=10,
    t_wr=15,
    refresh_ms=32,
)

BOARDS: Final = (
    Board(
        name="ulx3s-85f",
        title="Radiona ULX3S with LFE5U-85F",
        loader="ulx3s",
        part=find_part("lfe5u-85f"),
        platform="radiona_ulx3s",
        platform_arguments=(("device", "LFE5U-85F"), ("revision", "2.0")),
        input_mhz=25,
        clock_pin="clk25",
        data_clocks=(),
        reset_pin="rst",
        reset_level=1,
        led_pin="user_led",
        high_pins=("wifi_gpio0",),
        fits=(Fit("ecp5", 75, is_routed=True), Fit("ecp5w4", 60, is_routed=True)),
        link=HostLink.SERIAL,
        baud=3_000_000,
        sdram=_MT48LC16M16,
    ),
    Board(
        name="colorlight-i5",
        title="Colorlight i5 7.0 with LFE5U-25F",
        loader="colorlight-i5",
        part=find_part("lfe5u-25f"),
        platform="colorlight_i5",
        platform_arguments=(("board", "i5"), ("revision", "7.0")),
        input_mhz=25,
        clock_pin="clk25",
        data_clocks=(("eth_clocks0_rx", 125),),
        reset_pin="cpu_reset_n",
        reset_level=0,
        led_pin="user_led_n",
        high_pins=(),
        fits=(Fit("mini", 50, is_routed=True),),
        link=HostLink.ETHERBONE,
        baud=0,
        sdram=_EM638325,
    ),
)


def find_board(name: str) -> Board:
    """The board called `name`. Raises FlowError."""
    for board in BOARDS:
        if board.name == name.lower():
            return board
    raise FlowError(one_of("board", [board.name for board in BOARDS], name))
