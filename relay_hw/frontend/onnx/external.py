"""Reads external data: tensors in files beside an ONNX model. In: a model, its folder. Out: the model with their bytes.

The names come from untrusted models. A file is opened only if it is a regular one below the model's folder,
with no link on the way to it and no second name, and no more of it is read than its tensor has bytes.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relay_hw.errors import InputError
from relay_hw.frontend.onnx.walk import all_tensors
from relay_hw.limits import Limits, product

_KEYS = ("location", "offset", "length")
_LINKS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


def is_external(tensor: Any) -> bool:
    """Whether a tensor is in another file."""
    import onnx

    return tensor.data_location == onnx.TensorProto.EXTERNAL


def refuse_external(proto: Any, name: str, way: str) -> None:
    """Raise InputError if a tensor of `proto` is in another file; `way`: the option that allows it."""
    for tensor in all_tensors(proto):
        if is_external(tensor):
            raise InputError(f"weight {tensor.name} of {name} must lie in the model, not in a file beside it: {way}")


def read_external(proto: Any, path: Path, limits: Limits) -> None:
    """Read tensors in other files into `proto`, the model read from `path`. Raises InputError."""
    total = 0
    for tensor in all_tensors(proto):
        if not is_external(tensor):
            continue
        what = f"weight {tensor.name} of {path}"
        parts, offset, size = _place(tensor, what)
        total += size
        limits.check("external_bytes", f"the bytes of {path} in other files", total)
        tensor.raw_data = _bytes(path.parent, parts, offset, size, what)
        del tensor.external_data[:]
        tensor.ClearField("data_location")


def _place(tensor: Any, what: str) -> tuple[Sequence[str], int, int]:
    """Path, offset and length of a tensor's bytes. Raises InputError."""
    given: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key in given:
            raise InputError(f"{what} must give {entry.key} once")
        if entry.key in _KEYS:
            given[entry.key] = entry.value
    parts = _parts(given.get("location", ""), what)
    size = byte_count(tensor, what)
    if "length" in given and _number(given["length"], "length", what) != size:
        raise InputError(f"{what} must have a length of {size:,} bytes, not {given['length']}")
    return parts, _number(given.get("offset", "0"), "offset", what), size


def _number(text: str, key: str, what: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise InputError(f"{what} must have an integer of at least 0 and below 10^18 as {key}, not {text[:40]}")
    return int(text)


def _parts(location: str, what: str) -> Sequence[str]:
    """The folders and the name of a location. Raises InputError."""
    parts = location.split("/")
    is_plain = not (location.startswith("/") or "\\" in location or "\0" in location or re.match("[A-Za-z]:", location))
    parts = [part for part in parts if part != "."]
    if not is_plain or not parts or ".." in parts or "" in parts:
        raise InputError(f"{what} must lie in a file below the model's folder, not in {location!r}")
    return parts


def byte_count(tensor: Any, what: str) -> int:
    """The bytes of a tensor of numbers. Raises InputError for another and for negative sizes."""
    if any(size < 0 for size in tensor.dims):
        raise InputError(f"{what} must have sizes of at least 0, not {'x'.join(map(str, tensor.dims))}")
    bits = element_bits(tensor.data_type)
    if bits is None:
        raise InputError(f"{what} must have numbers as elements, not ONNX type {tensor.data_type}")
    return -(-product(tensor.dims) * bits // 8)


def element_bits(data_type: int) -> int | None:
    """Bits of an element of an ONNX type, None for strings and unknown types."""
    import onnx
    from onnx import helper

    try:
        name = onnx.TensorProto.DataType.Name(data_type)
    except ValueError:
        return None
    if name in ("UNDEFINED", "STRING"):
        return None
    small = re.fullmatch(r"U?INT([24])|FLOAT(4)E2M1", name)
    if small is not None:
        return int(small.group(1) or small.group(2))
    return helper.tensor_dtype_to_np_dtype(data_type).itemsize * 8


def _bytes(folder: Path, parts: Sequence[str], offset: int, size: int, what: str) -> bytes:
    place = "/".join(parts)
    try:
        with _opened(folder, parts) as file:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{what} must lie in a regular file, not in {place!r}")
            if found.st_nlink != 1:
                raise InputError(
                    f"{what} must lie in a file with one name, not in {place!r}, which has {found.st_nlink}"
                )
            if offset + size > found.st_size:
                raise InputError(
                    f"{what} must end within {place!r}, at byte {found.st_size:,}, not at byte {offset + size:,}"
                )
            with os.fdopen(os.dup(file), "rb") as stream:
                stream.seek(offset)
                data = stream.read(size)
    except OSError as error:
        reason = "a link or no folder lies on the way" if error.errno in _LINKS else error.strerror or str(error)
        raise InputError(f"{what} must lie in a readable file, not in {place!r}: {reason}") from None
    if len(data) != size:
        raise InputError(f"{what} must have {size:,} bytes in {place!r}, not {len(data):,}")
    return data


@contextmanager
def _opened(folder: Path, parts: Sequence[str]) -> Iterator[int]:
    """Open a file below `folder` folder by folder, so that no part of the path can be a link or be swapped for one."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(parts):
            # A pipe would wait for its writer.
            kind = os.O_NONBLOCK if number == len(parts) - 1 else os.O_DIRECTORY
            inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=at)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)
