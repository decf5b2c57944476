"""Bit fields of fixed-width instruction words: one `Layout` packs and unpacks, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.errors import EncodeError, FaultCode


@dataclass(frozen=True, slots=True)
class Field:
    """A bit field of an instruction word.

    `width` bits from bit `lo` of a word. `minimum` is the smallest legal value, `enum` closes the set of values.
    """

    name: str
    lo: int
    width: int
    doc: str
    signed: bool = False
    minimum: int | None = None
    enum: type[IntEnum] | None = None

    @property
    def hi(self) -> int:
        return self.lo + self.width - 1

    @property
    def low_value(self) -> int:
        """Smallest value that may be written."""
        if self.minimum is not None:
            return self.minimum
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high_value(self) -> int:
        """Largest value that may be written."""
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Fields of one word of `width` bits. Bits that no field covers are reserved and must be zero."""

    name: str
    width: int
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        used = 0
        for field in self.fields:
            mask = ((1 << field.width) - 1) << field.lo
            if field.hi >= self.width:
                raise EncodeError(f"{self.name}.{field.name}: bit {field.hi} does not fit {self.width} bits")
            if used & mask:
                raise EncodeError(f"{self.name}.{field.name}: bits {field.hi}:{field.lo} overlap another field")
            used |= mask

    @property
    def reserved_mask(self) -> int:
        """Bits that must be zero."""
        used = 0
        for field in self.fields:
            used |= ((1 << field.width) - 1) << field.lo
        return ((1 << self.width) - 1) & ~used

    def encode(self, values: Mapping[str, int]) -> int:
        """Pack `values` (absent fields are 0). Raises EncodeError naming the field."""
        unknown = sorted(set(values) - {field.name for field in self.fields})
        if unknown:
            raise EncodeError(f"{self.name}: unknown field(s) {unknown}")
        word = 0
        for field in self.fields:
            value = int(values.get(field.name, 0))
            check_value(self.name, field, value)
            word |= (value & ((1 << field.width) - 1)) << field.lo
        return word

    def decode(self, word: int) -> dict[str, int]:
        """Unpack `word`. Raises EncodeError for reserved bits that are set and for values outside a field's range."""
        if word & self.reserved_mask:
            what = f"{self.name}: reserved bits must be 0, not {word & self.reserved_mask:#x}"
            raise EncodeError(what, FaultCode.RESERVED_BITS)
        values: dict[str, int] = {}
        for field in self.fields:
            value = (word >> field.lo) & ((1 << field.width) - 1)
            if field.signed and value >> (field.width - 1):
                value -= 1 << field.width
            check_value(self.name, field, value)
            values[field.name] = value
        return values

    def decode_many(self, words: NDArray[np.uint32]) -> list[dict[str, int]] | None:
        """Unpack words of [n, width / 32], least significant first. None where `decode` would refuse one of them.

        No field may cross a boundary of 32 bits.
        """
        reserved = self.reserved_mask
        masks = [reserved >> 32 * k & 0xFFFF_FFFF for k in range(self.width // 32)]
        if (words & np.array(masks, np.uint32)).any():
            return None
        columns = [_column(words[:, field.lo // 32], field) for field in self.fields]
        for field, column in zip(self.fields, columns, strict=True):
            if column.size and not field.low_value <= column.min() <= column.max() <= field.high_value:
                return None
            if field.enum is not None and not set(np.unique(column).tolist()) <= field.enum._value2member_map_.keys():
                return None
        names = [field.name for field in self.fields]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


def _column(words: NDArray[np.uint32], field: Field) -> NDArray[np.int64]:
    """Values of one field."""
    values = words.astype(np.int64) >> field.lo % 32 & (1 << field.width) - 1
    return values - (values >> field.width - 1 << field.width) if field.signed else values


def check_value(owner: str, field: Field, value: int) -> None:
    """Raise EncodeError unless `value` is legal for `field`."""
    if not field.low_value <= value <= field.high_value:
        raise EncodeError(
            f"{owner}.{field.name} = {value} does not fit {field.width} bits [{field.low_value}, {field.high_value}]"
        )
    if field.enum is not None and value not in field.enum._value2member_map_:
        names = ", ".join(f"{member.name.lower()}={member.value}" for member in field.enum)
        raise EncodeError(f"{owner}.{field.name} must be one of {names}, not {value}")
