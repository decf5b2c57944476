"""Sizes of a VTA from its `vta_config.json`: buffers, their entries, and the widths of fields in instructions.

In: the document that VTA's own tools read. Out: `Geometry`. Raises InputError for what no instruction could address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, Final

from relay_hw.errors import InputError
from relay_hw.support.documents import DocumentError, parse_json, reason
from relay_hw.support.durable import read_given_text
from relay_hw.support.names import one_of

FOLDER: Final = Path(__file__).parent / "configs"
ITER_BITS: Final = 14
WORD_BITS: Final = 64
UOP_BYTES: Final = 4
_CHISEL_UOPS: Final = 2048


class Core(Enum):
    """An implementation of VTA. They differ where `relay_hw.vta.sim.choices` says."""

    HLS = "hls"
    CHISEL = "chisel"
    FSIM = "fsim"
    OPENCL = "intelfocl"


CORES: Final[Mapping[str, Core]] = {
    "pynq": Core.HLS,
    "ultra96": Core.HLS,
    "zcu104": Core.HLS,
    "de10nano": Core.CHISEL,
    "tsim": Core.CHISEL,
    "sim": Core.FSIM,
    "intelfocl": Core.OPENCL,
}


class Buffer(IntEnum):
    """A memory on the chip; its number is an instruction's `memory_type`."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5


# Keys of the document, all integers but these two.
_TEXTS: Final = ("TARGET", "HW_VER")
_WIDTHS: Final = ("LOG_INP_WIDTH", "LOG_WGT_WIDTH", "LOG_ACC_WIDTH")
_SHAPE: Final = ("LOG_BATCH", "LOG_BLOCK")
_BUFFERS: Final = ("LOG_UOP_BUFF_SIZE", "LOG_INP_BUFF_SIZE", "LOG_WGT_BUFF_SIZE", "LOG_ACC_BUFF_SIZE")
KEYS: Final = (*_TEXTS, *_WIDTHS, *_SHAPE, *_BUFFERS)
# int8, int8 and int32.
_ONLY: Final = dict(zip(_WIDTHS, (3, 3, 5), strict=True))
_MOST: Final = 24


@dataclass(frozen=True, slots=True)
class Geometry:
    """`name` of the target; logarithms as in the document; `version`: HW_VER, which nothing reads."""

    name: str
    version: str
    log_batch: int
    log_block: int
    log_uop_bytes: int
    log_inp_bytes: int
    log_wgt_bytes: int
    log_acc_bytes: int

    @property
    def core(self) -> Core:
        """Which implementation the target has."""
        return CORES[self.name]

    @property
    def batch(self) -> int:
        """Rows of an entry of INP, ACC and OUT."""
        return 1 << self.log_batch

    @property
    def block(self) -> int:
        """Channels of an entry, in and out."""
        return 1 << self.log_block

    def entry_bytes(self, buffer: Buffer) -> int:
        """Bytes of an entry in DRAM."""
        lanes = self.batch * self.block
        sizes = {
            Buffer.UOP: UOP_BYTES,
            Buffer.WGT: self.block * self.block,
            Buffer.ACC: 4 * lanes,
        }
        return sizes.get(buffer, lanes)

    def depth(self, buffer: Buffer) -> int:
        """Entries of a buffer. OUT has as many as ACC; Chisel's UOP has fewer than its fields can name."""
        if buffer is Buffer.UOP and self.core is Core.CHISEL:
            return min(_CHISEL_UOPS, 1 << self.log_depth(buffer))
        return 1 << self.log_depth(buffer)

    def log_depth(self, buffer: Buffer) -> int:
        """Bits of an index into a buffer."""
        sizes = {Buffer.UOP: self.log_uop_bytes, Buffer.INP: self.log_inp_bytes, Buffer.WGT: self.log_wgt_bytes}
        own = Buffer.ACC if buffer in (Buffer.OUT, Buffer.ACC_8BIT) else buffer
        return sizes.get(own, self.log_acc_bytes) - self.entry_bytes(own).bit_length() + 1

    @property
    def title(self) -> str:
        """The name of its bitstream."""
        sizes = (self.log_uop_bytes, self.log_inp_bytes, self.log_wgt_bytes, self.log_acc_bytes)
        return f"{self.batch}x{self.block}_i8w8a32_{'_'.join(map(str, sizes))}"


def read_geometry(document: object) -> Geometry:
    """The sizes of a parsed `vta_config.json`. Raises InputError."""
    if not isinstance(document, dict):
        raise InputError("vta_config.json must be an object of sizes")
    row: dict[str, Any] = document
    missing = [key for key in KEYS if key not in row]
    if missing:
        raise InputError(f"vta_config.json must have {', '.join(missing)}")
    numbers = {key: row[key] for key in (*_WIDTHS, *_SHAPE, *_BUFFERS)}
    for key, value in numbers.items():
        if type(value) is not int or not 0 <= value <= _MOST:
            raise InputError(f"{key} of vta_config.json must be an integer from 0 to {_MOST}, not {value!r}")
        if key in _ONLY and value != _ONLY[key]:
            raise InputError(f"{key} of vta_config.json must be {_ONLY[key]}, not {value}")
    if row["TARGET"] not in CORES:
        raise InputError(one_of("TARGET of vta_config.json", CORES, row["TARGET"]))
    if not isinstance(row["HW_VER"], str):
        raise InputError(f"HW_VER of vta_config.json must be a text, not {row['HW_VER']!r}")
    sizes = [numbers[key] for key in (*_SHAPE, *_BUFFERS)]
    geometry = Geometry(row["TARGET"], row["HW_VER"], *sizes)
    _check(geometry)
    return geometry


def _check(geometry: Geometry) -> None:
    """Whether every index has its bits. Raises InputError."""
    uop, inp, wgt, acc = (geometry.log_depth(one) for one in (Buffer.UOP, Buffer.INP, Buffer.WGT, Buffer.ACC))
    if min(uop, inp, wgt, acc) < 1:
        raise InputError(f"each buffer of {geometry.title} must hold two entries")
    if acc + inp + wgt > 8 * UOP_BYTES:
        raise InputError(f"indices of a micro-op must have 32 bits together, not {acc + inp + wgt}")
    if 8 + 2 * uop + 1 + 2 * ITER_BITS > WORD_BITS:
        raise InputError(f"indices of micro-ops must have at most 13 bits, not {uop}")
    # The second index of a micro-op names an entry of INP for GEMM, of ACC for ALU.
    if acc > inp:
        raise InputError(f"ACC must have at most as many entries as INP, {1 << inp}, not {1 << acc}")
    if 2 * (acc + inp) > 44:
        raise InputError(f"indices of ACC and INP must have 22 bits together, not {acc + inp}")


def config_names() -> tuple[str, ...]:
    """Configurations that come with this package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def load_geometry(variant: str = "") -> Geometry:
    """A configuration by its name, or the path of a `vta_config.json`; pynq without either. Raises InputError."""
    name = variant or "pynq"
    path = FOLDER / f"{name}.json" if name in config_names() else Path(name)
    if path.suffix != ".json":
        raise InputError(one_of("configuration of target vta", (*config_names(), "a vta_config.json"), name))
    try:
        return read_geometry(parse_json(read_given_text(path)))
    except (OSError, DocumentError) as error:
        raise InputError(f"{path.name} must be a vta_config.json: {reason(error)}") from None
