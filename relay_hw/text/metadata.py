"""Reads and writes the metadata section: values without literals, in the format of TVM's save_json.

In: JSON. Out: constants, strings and integers by type key and index; and back.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from relay_hw.ir.expr import Constant
from relay_hw.ir.types import know_narrow_dtypes
from relay_hw.limits import is_countable
from relay_hw.support.documents import parse_json

CONSTANT: Final = "relay.Constant"
STRING: Final = "runtime.String"
INTEGER: Final = "IntImm"

_ARRAY_MAGIC: Final = 0xDD5E40F096B4A13F
_HEADER: Final = struct.Struct("<QQiii")
_DTYPE: Final = struct.Struct("<BBH")
_KINDS: Final = {0: "int", 1: "uint", 2: "float", 6: "bool"}
# Codes and bits of narrow types, in DLPack's numbering; an element of fewer than 8 bits still takes a byte.
_NARROW: Final = {
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
    "float4_e2m1fn": (17, 4),
    "int4": (0, 4),
    "uint4": (1, 4),
    "int2": (0, 2),
    "uint2": (1, 2),
}
_NARROW_NAMES: Final = {code: name for name, code in _NARROW.items()}
_CPU: Final = 1
# DLPack's numbers of devices.
_DEVICES: Final = {1: "cpu", 2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 12: "ext_dev", 14: "hexagon"}

Entry = Constant | str | int


class MetadataError(ValueError):
    """A metadata section that cannot be read; the parser adds the place."""


def read_metadata(text: str) -> dict[tuple[str, int], Entry]:
    """The value of each `meta[key][index]`. Raises MetadataError."""
    try:
        document = parse_json(text)
        return _read_document(document)
    except MetadataError:
        raise
    except RecursionError:
        raise MetadataError("metadata must be nested less deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, struct.error) as error:
        raise MetadataError(f"metadata must be JSON as save_json writes it: {error}") from None


def _read_document(document: Any) -> dict[tuple[str, int], Entry]:
    nodes = document["nodes"]
    blobs = document.get("b64ndarrays", [])
    root = nodes[document["root"]]
    if root.get("type_key") != "Map":
        raise MetadataError(f"root of metadata must be a Map, not {root.get('type_key')!r}")
    found: dict[tuple[str, int], Entry] = {}
    for key, place in zip(root.get("keys", []), root.get("data", []), strict=True):
        for index, node in enumerate(nodes[place].get("data", [])):
            entry = _read_node(nodes[node], blobs)
            if entry is not None:
                found[str(key), index] = entry
    return found


def _read_node(node: Mapping[str, Any], blobs: Sequence[str]) -> Entry | None:
    """A value, or None for a kind of node that is not supported."""
    attrs = node.get("attrs", {})
    match node.get("type_key"):
        case "relay.Constant":
            return Constant(decode_array(blobs[int(attrs["data"])]))
        case "runtime.String" | "String":
            return str(node.get("repr_str", ""))
        case "IntImm" | "tir.IntImm":
            return int(attrs["value"])
        case "VirtualDevice":
            return _device(attrs)
        case _:
            return None


def _device(attrs: Mapping[str, Any]) -> str:
    """A device as `on_device` names it, such as `cuda(1)`; empty for one that TVM leaves open."""
    kind = int(attrs.get("device_type_int", -1))
    name = _DEVICES.get(kind, f"device{kind}")
    return "" if kind < 0 else f"{name}({max(int(attrs.get('virtual_device_id', 0)), 0)})"


def write_metadata(entries: Mapping[str, Sequence[Entry]]) -> str:
    """The JSON for values by type key, in order."""
    nodes: list[dict[str, Any]] = [{"type_key": ""}]
    blobs: list[str] = []
    root: dict[str, Any] = {"type_key": "Map", "keys": list(entries), "data": []}
    nodes.append(root)
    for values in entries.values():
        array: dict[str, Any] = {"type_key": "Array", "data": []}
        root["data"].append(len(nodes))
        nodes.append(array)
        for value in values:
            array["data"].append(len(nodes))
            nodes.append(_write_node(value, blobs))
    document = {"root": 1, "nodes": nodes, "b64ndarrays": blobs, "attrs": {"tvm_version": "0.18.0"}}
    return json.dumps(document, indent=2)


def _write_node(value: Entry, blobs: list[str]) -> dict[str, Any]:
    match value:
        case Constant(data=data):
            blobs.append(encode_array(data))
            attrs = {"_checked_type_": "0", "data": str(len(blobs) - 1), "span": "0", "virtual_device_": "0"}
            return {"type_key": CONSTANT, "attrs": attrs}
        case str():
            return {"type_key": STRING, "repr_str": value}
        case _:
            return {"type_key": INTEGER, "attrs": {"dtype": "int64", "span": "0", "value": str(value)}}


def encode_array(data: np.ndarray) -> str:
    """An array as base64 of the bytes that TVM saves."""
    return base64.b64encode(array_bytes(data)).decode("ascii")


def array_bytes(data: np.ndarray) -> bytes:
    """An array in TVM's format. Raises ValueError unless it has numbers or booleans."""
    little = np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<"), copy=False)
    code = {"i": 0, "u": 1, "b": 1, "f": 2}.get(data.dtype.kind)
    bits = 1 if data.dtype.kind == "b" else data.dtype.itemsize * 8
    code, bits = _NARROW.get(str(data.dtype), (code, bits))
    if code is None:
        raise ValueError(f"constant must hold numbers or booleans, not {data.dtype}")
    raw = little.tobytes()
    head = _HEADER.pack(_ARRAY_MAGIC, 0, _CPU, 0, data.ndim) + _DTYPE.pack(code, bits, 1)
    shape = struct.pack(f"<{data.ndim}q", *data.shape)
    return head + shape + struct.pack("<q", len(raw)) + raw


def decode_array(blob: str) -> np.ndarray:
    """The array that `encode_array` or TVM saved. Raises MetadataError."""
    try:
        data = base64.b64decode(blob, validate=False)
    except (binascii.Error, ValueError) as error:
        raise MetadataError(f"constant must be base64: {error}") from None
    try:
        return read_array(data, 0)[0]
    except struct.error:
        raise MetadataError(f"constant must be whole, not end after {len(data)} bytes") from None


def read_array(data: bytes, start: int) -> tuple[np.ndarray, int]:
    """The array that begins at `start`, and where it ends. Raises MetadataError, struct.error."""
    magic, _, _, _, rank = _HEADER.unpack_from(data, start)
    if magic != _ARRAY_MAGIC:
        raise MetadataError(f"constant must begin with the array mark, not {magic:#x}")
    if not 0 <= rank <= 32:
        raise MetadataError(f"constant must have 0 to 32 dimensions, not {rank}")
    place = start + _HEADER.size
    dtype = _dtype(*_DTYPE.unpack_from(data, place))
    place += _DTYPE.size
    shape = struct.unpack_from(f"<{rank}q", data, place)
    place += 8 * rank
    (size,) = struct.unpack_from("<q", data, place)
    raw = data[place + 8 : place + 8 + max(size, 0)]
    count = 1
    for dim in shape:
        count *= max(dim, 0)
    needed = count * dtype.itemsize
    if min(shape, default=0) < 0 or size != len(raw) or needed != size:
        there = len(raw) if size == needed else size
        raise MetadataError(f"constant of shape {shape} and {dtype} must have {needed} bytes, not {there}")
    if not is_countable(shape, dtype.itemsize):
        raise MetadataError(f"constant of shape {shape} must have a size that fits into 64 bits, empty or not")
    array = np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
    return array, place + 8 + size


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[Any]:
    narrow = _NARROW_NAMES.get((code, bits))
    if narrow is not None and lanes == 1:
        know_narrow_dtypes()
        return np.dtype(narrow)
    kind = _KINDS.get(code)
    if kind is None or lanes != 1:
        raise MetadataError(
            f"element type of a constant must be int, uint or float, not code {code} with {lanes} lanes"
        )
    if kind == "bool" or (kind == "uint" and bits == 1):
        return np.dtype("bool")
    widths = (16, 32, 64) if kind == "float" else (8, 16, 32, 64)
    if bits not in widths:
        raise MetadataError(f"{kind} of a constant must have one of {widths} bits, not {bits}")
    return np.dtype(f"{kind}{bits}")
