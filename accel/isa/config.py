"""Configurations of the accelerator: the only source of sizes.

In: a name of a file in `configs/`, or a path to a JSON file. Out: a checked `AccelConfig`. Compiler, simulators,
Verilog parameters and documents all read their sizes from here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final, cast

from relay_hw.accel.isa.errors import ConfigError
from relay_hw.support import durable
from relay_hw.support.documents import DocumentError, parse_json, reason
from relay_hw.support.names import one_of

# Of a file of some twenty numbers.
_MOST_BYTES: Final = 1 << 16
CONFIG_DIR = Path(__file__).parent / "configs"

# Bytes of one lane's record in the parameter memory: bias, multiplier, shift and zero points, spare.
PRM_LANE_BYTES = 16
UOP_BYTES = 8
INSTRUCTION_BYTES = 32
SEMAPHORES = 16
SEMAPHORE_MAX = 255
# Smallest run of bytes that LOAD and STORE move; wider buses raise it (see `granule_bytes`).
MIN_GRANULE_BYTES = 16
# Longest row of an image that GATHER keeps on chip; there are two buffers of this size.
ROW_BUFFER_BYTES = 4096
# Neighbouring lines of INP that GEMM reads at once in the modes taps and max; as many RAMs hold the lines in turn.
TAPS = 4
# A table of the output stage has a result for each int8 number, two in each of its records.
TABLE_RESULTS = 256
TABLE_RECORDS = TABLE_RESULTS // 2
TABLE_RECORD_BYTES = 8
# The row unit takes a quarter of an accumulator entry at a time, as it reads each entry three times.
ROW_QUARTERS = 4
COF_RECORD_BYTES = 8
# Records that a softmax looks up: one for each distance of two int8 numbers.
EXPONENTIALS = 256
# Names go into file names, programs and Verilog.
CONFIG_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")


@dataclass(frozen=True, slots=True)
class AccelConfig:
    """Sizes of one accelerator. Depths count entries; widths count bits."""

    name: str
    batch: int
    block_in: int
    block_out: int
    inp_bits: int
    wgt_bits: int
    acc_bits: int
    inp_depth: int
    wgt_depth: int
    acc_depth: int
    acc_banks: int
    out_depth: int
    uop_depth: int
    prm_depth: int
    out_lanes: int
    multiplier_bits: int
    tables: int
    cof_depth: int
    axi_data_bits: int
    burst_beats: int
    read_outstanding: int
    write_outstanding: int
    queue_depth: int

    def __post_init__(self) -> None:
        _check(self)

    @property
    def bus_bytes(self) -> int:
        """Bytes of one AXI beat."""
        return self.axi_data_bits // 8

    @property
    def granule_bytes(self) -> int:
        """Bytes of a granule: DRAM addresses and run lengths of LOAD and STORE are multiples of it."""
        return max(MIN_GRANULE_BYTES, self.bus_bytes)

    @property
    def channel_align(self) -> int:
        """Channels of an activation in DRAM are padded to a multiple of this (16 but for blocks or buses wider)."""
        return max(self.granule_bytes, self.inp_lanes, self.block_out)

    @property
    def inp_lanes(self) -> int:
        """Lanes of one entry of INP: as many as a product of tiles has 8-bit weights in the room of its own."""
        return self.block_in * self.wgt_bits // 8

    @property
    def inp_bytes(self) -> int:
        return self.inp_lanes * self.inp_bits // 8

    @property
    def operand_entries(self) -> int:
        """Neighbouring entries of INP that one product of a tile reads: 1 or 2."""
        return self.block_in // self.inp_lanes

    @property
    def line_bytes(self) -> int:
        """Bytes of one line of INP: the row of one of its RAMs."""
        return self.channel_align

    @property
    def line_entries(self) -> int:
        """Entries of INP in one line."""
        return self.line_bytes // self.inp_bytes

    @property
    def inp_lines(self) -> int:
        return self.inp_depth // self.line_entries

    @property
    def part_bytes(self) -> int:
        """Bytes of a part of INP, what REQUANT, taps and max count: the smaller of an entry and an output block."""
        return min(self.inp_bytes, self.out_bytes)

    @property
    def entry_parts(self) -> int:
        """Parts of one entry of INP."""
        return self.inp_bytes // self.part_bytes

    @property
    def block_parts(self) -> int:
        """Parts of INP that one output block takes: blocks start at a multiple of this."""
        return self.out_bytes // self.part_bytes

    @property
    def line_parts(self) -> int:
        """Parts of one line of INP."""
        return self.line_bytes // self.part_bytes

    @property
    def inp_parts(self) -> int:
        """Parts of INP."""
        return self.inp_depth * self.entry_parts

    @property
    def tap_groups(self) -> int:
        """Groups of four taps in one entry of WGT."""
        return self.block_in // TAPS

    @property
    def wgt_bytes(self) -> int:
        return self.block_in * self.block_out * self.wgt_bits // 8

    @property
    def factor_granules(self) -> int:
        """Granules of weights behind each granule of factors: a factor for each INP_LANES of them, two to a byte.

        0 where entries of WGT are so small that LOAD takes no factors.
        """
        return self.inp_lanes * self.wgt_bits // 8 if self.wgt_bytes >= 2 * self.granule_bytes else 0

    @property
    def acc_bytes(self) -> int:
        return self.block_out * self.acc_bits // 8

    @property
    def out_bytes(self) -> int:
        return self.block_out * self.inp_bits // 8

    @property
    def prm_bytes(self) -> int:
        return self.block_out * PRM_LANE_BYTES

    @property
    def tab_depth(self) -> int:
        """Records of all tables."""
        return self.tables * TABLE_RECORDS

    @property
    def row_lanes(self) -> int:
        """Elements that the row unit takes at a time; 0 where there is none."""
        return self.block_out // ROW_QUARTERS if self.cof_depth else 0

    @property
    def row_multipliers(self) -> int:
        """Multipliers of the row unit's lanes: squares, differences from the mean, standardised elements, gains."""
        return 4 * self.row_lanes

    @property
    def cof_bytes(self) -> int:
        """Bytes of an entry of coefficients: a record for each lane of the row unit."""
        return self.block_out // ROW_QUARTERS * COF_RECORD_BYTES

    @property
    def acc_bank_depth(self) -> int:
        """Entries of one accumulator bank; bank = entry index // this."""
        return self.acc_depth // self.acc_banks

    @property
    def scratchpad_bytes(self) -> int:
        """Bytes of all scratchpads together."""
        return (
            self.inp_depth * self.inp_bytes
            + self.wgt_depth * self.wgt_bytes
            + self.acc_depth * self.acc_bytes
            + self.out_depth * self.out_bytes
            + self.uop_depth * UOP_BYTES
            + self.prm_depth * self.prm_bytes
            + self.tab_depth * TABLE_RECORD_BYTES
            + self.cof_depth * self.cof_bytes
        )

    @property
    def macs_per_cycle(self) -> int:
        return self.batch * self.block_in * self.block_out

    @property
    def hash32(self) -> int:
        """32-bit hash of every size (not of the name): what the capability register holds."""
        return hash_of_sizes(self.sizes)

    @property
    def sizes(self) -> dict[str, int]:
        """Every size by name: all that two configurations can differ in."""
        return {key: getattr(self, key) for key in SIZES}


def resized(config: AccelConfig, name: str, sizes: Mapping[str, int]) -> AccelConfig:
    """`config` with other `sizes`, called `name`; without a row unit where nobody asks for it and an entry of its
    coefficients would not be whole beats. Raises ConfigError."""
    bus_bytes = sizes.get("axi_data_bits", config.axi_data_bits) // 8
    entry = sizes.get("block_out", config.block_out) // ROW_QUARTERS * COF_RECORD_BYTES
    fits = bus_bytes > 0 and entry % bus_bytes == 0
    return replace(config, name=name, **{**({} if fits else {"cof_depth": 0}), **sizes})


SIZES: Final = tuple(key.name for key in fields(AccelConfig) if key.name != "name")


def hash_of_sizes(sizes: Mapping[str, object]) -> int:
    """The 32-bit hash of sizes by name."""
    digest = hashlib.sha256(json.dumps(dict(sizes), sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:4], "little")


def config_names() -> tuple[str, ...]:
    """Names of the configurations that ship with the package, sorted."""
    return tuple(sorted(path.stem for path in CONFIG_DIR.glob("*.json")))


def load_config(name_or_path: str | Path) -> AccelConfig:
    """Read a named configuration or a JSON file. Raises ConfigError."""
    path = Path(name_or_path)
    if not path.suffix:
        path = CONFIG_DIR / f"{name_or_path}.json"
    try:
        raw = parse_json(durable.read_given(path, _MOST_BYTES))
    except FileNotFoundError:
        names = [*config_names(), "a JSON file"]
        raise ConfigError(one_of("configuration", names, name_or_path)) from None
    except (OSError, DocumentError) as error:
        raise ConfigError(f"configuration file {path} must be JSON: {reason(error)}") from None
    return config_from_dict(raw, path.stem)


def config_from_dict(raw: object, name: str) -> AccelConfig:
    """Build a configuration from parsed JSON. Raises ConfigError that names the key."""
    if not isinstance(raw, dict):
        raise ConfigError(f"configuration {name} must be an object, not {type(raw).__name__}")
    values = cast(dict[str, object], raw)
    expected = set(SIZES)
    given = set(values) - {"name"}
    if unknown := given - expected:
        raise ConfigError(f"configuration {name}: unknown key {min(unknown)!r}")
    if missing := expected - given:
        raise ConfigError(f"configuration {name}: key {min(missing)!r} is missing")
    sizes: dict[str, int] = {}
    for key in sorted(expected):
        value = values[key]
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"configuration {name}: {key} must be an integer, not {value!r}")
        sizes[key] = value
    return AccelConfig(name=name, **sizes)


def _check(c: AccelConfig) -> None:
    """Refuse sizes that no hardware could have, with the reason."""

    def need(ok: bool, what: str) -> None:
        if not ok:
            raise ConfigError(f"configuration {c.name}: {what}")

    def power_of_two(key: str, low: int, high: int) -> None:
        value: int = getattr(c, key)
        ok = low <= value <= high and value & (value - 1) == 0
        need(ok, f"{key} must be a power of two from {low} to {high}, not {value}")

    if not (isinstance(c.name, str) and CONFIG_NAME.fullmatch(c.name)):  # type: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"configuration name must be 1 to 64 letters, digits, '_', '.', '+' and '-', not {c.name!r}")
    need(c.batch == 1, f"batch must be 1, not {c.batch}")
    need(c.inp_bits == 8, f"inp_bits must be 8, not {c.inp_bits}")
    need(c.wgt_bits in (4, 8), f"wgt_bits must be 4 or 8, not {c.wgt_bits}")
    need(c.acc_bits == 32, f"acc_bits must be 32, not {c.acc_bits}")
    for key in ("block_in", "block_out"):
        power_of_two(key, 4, 64)
    if c.wgt_bits == 4:
        need(c.line_entries == 1, f"block_in must be {2 * c.line_bytes} (two lines) for 4 bits, not {c.block_in}")
    for key in ("inp_depth", "wgt_depth", "acc_depth", "out_depth", "uop_depth", "prm_depth"):
        power_of_two(key, 8, 65536)
    power_of_two("acc_banks", 1, 16)
    power_of_two("axi_data_bits", 64, 512)
    power_of_two("burst_beats", 1, 64)
    power_of_two("queue_depth", 2, 64)
    power_of_two("read_outstanding", 1, 64)
    power_of_two("write_outstanding", 1, 64)
    power_of_two("out_lanes", 1, 64)
    need(c.out_lanes <= c.block_out, f"out_lanes must be at most block_out {c.block_out}, not {c.out_lanes}")
    need(c.acc_banks <= c.acc_depth // 8, f"acc_banks must leave 8 entries a bank, not {c.acc_depth // c.acc_banks}")
    need(c.tables in (0, 2, 4, 8, 16), f"tables must be 0 or a power of two from 2 to 16, not {c.tables}")
    need(8 <= c.multiplier_bits <= 31, f"multiplier_bits must be from 8 to 31, not {c.multiplier_bits}")
    need(c.burst_beats * c.bus_bytes <= 4096, "burst_beats times bus bytes must be at most 4096 (AXI's 4 KiB rule)")
    need(c.bus_bytes <= INSTRUCTION_BYTES, f"axi_data_bits must be at most {INSTRUCTION_BYTES * 8}")
    need(c.prm_bytes % c.bus_bytes == 0, "one parameter entry must be a whole number of beats")
    if c.cof_depth:
        power_of_two("cof_depth", EXPONENTIALS, 1 << 16)
        need(c.cof_bytes % c.bus_bytes == 0, "one entry of coefficients must be a whole number of beats")
        most = 1 << 16
        need(c.cof_depth * c.block_out <= most, f"cof_depth must be at most {most // c.block_out}, not {c.cof_depth}")
    need(c.inp_lines >= TAPS, f"inp_depth must be at least {TAPS * c.line_entries} ({TAPS} lines), not {c.inp_depth}")
    need(c.inp_parts <= 65536, f"inp_depth must be at most {65536 // c.entry_parts} (65536 parts), not {c.inp_depth}")
    groups = c.prm_depth * c.block_out // c.out_lanes
    need(groups <= 65536, f"prm_depth times block_out / out_lanes must be at most 65536, not {groups}")
