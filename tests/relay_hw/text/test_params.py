"""Parameter files: there and back, the bytes of TVM, and one sentence for whatever is damaged."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import relay_hw as relay
from relay_hw.errors import InputError
from relay_hw.text import load_param_dict, save_param_dict

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"]
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0))
)
SAMPLE = {"w": np.arange(6, dtype="float32").reshape(2, 3), "model.0.bias": np.array([1, -1], "int8")}


@given(st.dictionaries(st.text(max_size=8), ARRAYS, max_size=4))
@settings(max_examples=60)
def test_what_is_saved_is_loaded(params: dict[str, np.ndarray]) -> None:
    found = load_param_dict(save_param_dict(params))
    assert list(found) == list(params)
    for name, array in params.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_the_bytes_are_tvms() -> None:
    tvm = pytest.importorskip("tvm")
    theirs = bytes(tvm.runtime.save_param_dict({name: tvm.runtime.tensor(array) for name, array in SAMPLE.items()}))
    for mine, given_back in ((load_param_dict(theirs), SAMPLE),):
        assert {name: array.tolist() for name, array in mine.items()} == {n: a.tolist() for n, a in given_back.items()}
    again = tvm.runtime.load_param_dict(save_param_dict(SAMPLE))
    assert {name: value.numpy().tolist() for name, value in again.items()} == {n: a.tolist() for n, a in SAMPLE.items()}
    # The names come in any order from TVM; one alone must be the same bytes.
    one = {"w": SAMPLE["w"]}
    assert save_param_dict(one) == bytes(tvm.runtime.save_param_dict({"w": tvm.runtime.tensor(SAMPLE["w"])}))


def test_every_cut_is_refused() -> None:
    data = save_param_dict(SAMPLE)
    for end in range(len(data)):
        with pytest.raises(InputError, match="parameter file"):
            load_param_dict(data[:end])


@given(st.data())
@settings(max_examples=300)
def test_a_changed_byte_is_loaded_or_refused(draw: st.DataObject) -> None:
    data = bytearray(save_param_dict(SAMPLE))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        load_param_dict(data)
    except InputError as error:
        assert "\n" not in str(error)


def empty() -> bytes:
    """An array of no elements, whose other sizes no integer of numpy counts."""
    shape = (0, 1 << 40, 1 << 40)
    data = save_param_dict({"w": np.zeros((0, 2, 2), np.float32)})
    return data.replace(struct.pack("<3q", 0, 2, 2), struct.pack("<3q", *shape))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            empty(),
            "parameter w of the parameter file cannot be read: constant of shape (0, 1099511627776, 1099511627776)"
            " must have a size that fits into 64 bits, empty or not",
        ),
        (b"\0" * 40, "parameter file must begin with the mark of a list of arrays, not 0x0"),
        (
            save_param_dict({})[:16] + b"\xff" * 8,
            "parameter file must hold its 18446744073709551615 names, not 24 bytes",
        ),
        (
            save_param_dict({"w": SAMPLE["w"]})[:24] + b"\x09" + b"\0" * 15,
            "parameter file must be whole: it must have 9 more bytes at 32, not 8",
        ),
        (
            save_param_dict({"w": SAMPLE["w"]})[:33] + b"\0" * 8,
            "parameter file must have an array for each of its 1 names, not 0",
        ),
        (
            save_param_dict({"w": SAMPLE["w"]})[:32] + b"\xff" + save_param_dict({"w": SAMPLE["w"]})[33:],
            r"names in a parameter file must be UTF-8, not b'\xff'",
        ),
        (
            save_param_dict({"w": SAMPLE["w"]})[:60],
            "parameter file must be whole: it ends within parameter w",
        ),
        (
            save_param_dict({"w": SAMPLE["w"]}) + b"more",
            "parameter file must end behind its last array, not 4 bytes later",
        ),
        (
            save_param_dict({"v": SAMPLE["w"], "w": SAMPLE["w"]}).replace(b"v", b"w", 1),
            "parameter file must have an array once, unlike w",
        ),
        (
            save_param_dict({"w": SAMPLE["w"]})[:-1],
            "parameter w of the parameter file cannot be read: constant of shape (2, 3) and float32 must have 24 bytes,"
            " not 23",
        ),
    ],
)
def test_refusals(data: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        load_param_dict(data)
    assert str(caught.value) == sentence
    with pytest.raises(InputError, match="parameter x must hold numbers or booleans, not <U1"):
        save_param_dict({"x": np.array(["a"])})


def test_the_names_of_relay() -> None:
    assert relay.load_param_dict(relay.save_param_dict(SAMPLE))["w"].shape == (2, 3)
