"""Constants as TVM's JSON and the metadata of Relay text hold them: whole, or refused in one sentence."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from relay_hw.text.metadata import MetadataError, decode_array, encode_array


def test_a_constant_comes_back() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.testing.assert_array_equal(decode_array(encode_array(array)), array)


def test_a_constant_that_ends_early() -> None:
    """Wherever it is cut, in its head or in its data."""
    whole = base64.b64decode(encode_array(np.arange(6, dtype=np.int16)))
    for size in range(len(whole)):
        with pytest.raises(
            MetadataError, match=r"^(constant must be whole, not end after|constant .* must have 12 bytes)"
        ):
            decode_array(base64.b64encode(whole[:size]).decode())
