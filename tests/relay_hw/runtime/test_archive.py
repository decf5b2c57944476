"""Archives of arrays from anybody: what is read, how much of it, and what is refused by which sentence."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from relay_hw.errors import InputError
from relay_hw.runtime.archive import Archive

SHAPE = "{{'descr': '{}', 'fortran_order': False, 'shape': {}}}"


def write(path: Path, members: Mapping[str, bytes], mode: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", mode) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(text: str, data: bytes = b"") -> bytes:
    """An array of format 1.0 with any text as its header."""
    line = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    arrays.arrays(st.one_of(arrays.scalar_dtypes(), arrays.byte_string_dtypes()), arrays.array_shapes(min_dims=0)),
    st.booleans(),
    st.integers(0, 6),
)
def test_what_is_read_is_what_numpy_reads(tmp_path: Path, array: Any, is_fortran: bool, samples: int) -> None:
    path = tmp_path / "a.npz"
    array = np.asfortranarray(array) if is_fortran else array
    np.savez(path, x=array)
    whole, some = Archive(path, "data")["x"], Archive(path, "data", samples)["x"]
    assert (whole.dtype, whole.shape, whole.tobytes()) == (array.dtype, array.shape, array.tobytes())
    np.testing.assert_array_equal(some, array[:samples] if array.ndim and len(some) != len(array) else array)
    assert whole.flags.writeable or whole.size == 0


def test_rows_that_are_asked_for_cost_their_own_bytes(tmp_path: Path) -> None:
    """Three megabytes that say that they are three gigabytes are read as far as one sample goes."""
    path, rows = tmp_path / "bomb.npz", 3000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file, file.open("x.npy", "w") as member:
        member.write(header(SHAPE.format("<f4", f"({rows}, 512, 512)")))
        for _ in range(8):
            member.write(bytes(1 << 20))
    tracemalloc.start()
    found = Archive(path, "data", samples=1)["x"]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (1, 512, 512) and most < 4 << 20


@pytest.mark.parametrize("damage", [lambda data: b"#!" + data, lambda data: data[:3] + b"\x80" + data[4:]])
def test_an_archive_begins_with_its_first_byte(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """What is one thing to zipfile is another to numpy, which looks at the first bytes."""
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros(3))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"must be an \.npz file \(a zip of arrays"):
        Archive(path, "data")


def test_arrays_of_other_lengths_are_read_whole(tmp_path: Path) -> None:
    """That inputs differ in length must be seen, however few samples are asked for."""
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((5, 2)), y=np.zeros((7, 2)), scale=np.float32(1))
    found = Archive(path, "data", samples=2)
    assert {name: array.shape for name, array in found.items()} == {"x": (5, 2), "y": (7, 2), "scale": ()}


def test_nothing_else_is_read(tmp_path: Path) -> None:
    good = npy(np.arange(3))
    path = write(tmp_path / "a.npz", {"x.npy": good, "y.npy": header(SHAPE.format("<f4", "(9,)"))})
    found = Archive(path, "data")
    assert sorted(found) == ["x", "y"] and found["x"].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"array y must hold 36 bytes, not 0"):
        found["y"]
    with pytest.raises(KeyError):
        found["z"]


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        (npy(np.array([{"a": 1}], dtype=object)), "array x must hold numbers, not Python objects"),
        (header(SHAPE.format("<f4", "(1099511627776,)")), "array x must take at most 8,589,934,592 bytes, not 4,398"),
        (header(SHAPE.format("<f4", "(4611686018427387904, 4)")), "array x must take at most 8,589,934,592 bytes"),
        (header(SHAPE.format("<f4", "(0, 1099511627776, 1099511627776)")), "array x must have a size that"),
        (header(SHAPE.format("<f4", "(-1,)")), r"array x must have sizes of at least 0, not \(-1,\)"),
        (header(SHAPE.format("<f4", "(" + "9" * 5000 + ",)")), "must hold plain arrays only: "),
        (header(SHAPE.format("<f4", "(" * 3000)), "must hold plain arrays only: "),
        (header("[" * 9000), "must hold plain arrays only: "),
        (header("'''"), "must hold plain arrays only: "),
        (header(SHAPE.format("<f4", "(2,)"), b"1234"), "array x must hold 8 bytes, not 4"),
        (npy(np.zeros(2, [("a", "f4")])), "array x must hold numbers, not "),
        (b"\x93NUMPY\x09\x00" + bytes(90), r"array x must be of version 1.0 or 2.0, not 9.0"),
        (b"", "must hold plain arrays only: "),
        (b"no array", "must hold plain arrays only: "),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, member: bytes, sentence: str) -> None:
    path = write(tmp_path / "a.npz", {"x.npy": member})
    with pytest.raises(InputError, match=rf"^data {path} must hold plain arrays only: ") as found:
        Archive(path, "data")["x"]
    assert found.match(sentence)


@pytest.mark.parametrize("mode", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_compressions(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path / "a.npz", {"x.npy": npy(np.zeros(1))}, mode)
    with pytest.raises(InputError, match="array x must be stored or deflated, as numpy writes it"):
        Archive(path, "data")


def test_an_array_that_is_there_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", {"x.npy": npy(np.zeros(1)), "x": npy(np.zeros(1))})
    with pytest.raises(InputError, match="array x must occur once"):
        Archive(path, "data")


def test_arrays_that_overlap(tmp_path: Path) -> None:
    """The first is said to go on to the end of the second."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x.npy", npy(np.zeros(2)))
        file.writestr("y.npy", npy(np.zeros(2)))
        first, second = file.infolist()
        first.compress_size = first.file_size = second.header_offset + second.file_size
    with pytest.raises(InputError, match=r"array y\.npy must not overlap array x\.npy"):
        Archive(path, "data")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.data())
def test_damage_is_one_sentence(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes changed, cut and put in anywhere: an array comes back or one sentence, nothing else."""
    path = tmp_path / "a.npz"
    mode = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    write(path, {"x.npy": npy(np.arange(40).reshape(4, 10)), "y.npy": npy(np.float32(2))}, mode)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(raw)
    try:
        dict(Archive(path, "data", samples=1))
    except InputError as error:
        assert str(error).startswith(f"data {path} must ")
