"""Container of a program as a file: numbers, a header in JSON and data, with a SHA-256 hash over all of them.

In: a header, and data behind it. Out: bytes; the same content gives the same bytes. What the header says is up to
`accel/isa/program.py`.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass

from relay_hw.accel.isa.errors import ProgramError
from relay_hw.accel.isa.spec import ISA_VERSION

MAGIC = b"RLHWPROG"
CONTAINER_VERSION = 2
# Magic, container version, instruction-set version, configuration hash, header bytes, SHA-256 of all that follows it
# and of the four numbers before it.
_PREFIX = struct.Struct("<8sIIII32s")
_NUMBERS = struct.Struct("<IIII")
PREFIX_BYTES = _PREFIX.size


@dataclass(frozen=True, slots=True)
class Container:
    """What a container holds: the hash of a configuration, a JSON text and the data behind it."""

    config_hash: int
    header: bytes
    data: bytes

    @classmethod
    def of(cls, config_hash: int, header: dict[str, object], data: bytes) -> Container:
        """A container with `header` written as JSON."""
        return cls(config_hash, json.dumps(header, sort_keys=True, separators=(",", ":")).encode(), data)

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        numbers = (CONTAINER_VERSION, ISA_VERSION, self.config_hash, len(self.header))
        digest = hashlib.sha256(_NUMBERS.pack(*numbers) + self.header + self.data).digest()
        return _PREFIX.pack(MAGIC, *numbers, digest) + self.header + self.data

    @classmethod
    def from_bytes(cls, data: bytes) -> Container:
        """Inverse of `to_bytes`. Raises ProgramError for another version or content that its hash does not match."""
        if len(data) < PREFIX_BYTES:
            raise ProgramError(f"program must be at least {PREFIX_BYTES} bytes, not {len(data)}")
        magic, container, isa, config_hash, header_bytes, digest = _PREFIX.unpack_from(data)
        if magic != MAGIC:
            raise ProgramError(f"program must start with {MAGIC!r}, not {magic!r}")
        if container != CONTAINER_VERSION:
            raise ProgramError(
                f"program container version must be {CONTAINER_VERSION}, not {container}: make the program again"
            )
        if isa != ISA_VERSION:
            raise ProgramError(f"program instruction-set version must be {ISA_VERSION}, not {isa}")
        body = data[PREFIX_BYTES:]
        if hashlib.sha256(_NUMBERS.pack(container, isa, config_hash, header_bytes) + body).digest() != digest:
            raise ProgramError("program content must match its SHA-256 hash; the file is damaged or truncated")
        return cls(config_hash, body[:header_bytes], body[header_bytes:])
