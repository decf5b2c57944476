"""Element types that numpy knows with ml_dtypes: constants of all their bit patterns survive text and JSON."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.analysis import infer_type
from relay_hw.errors import RelayHwError
from relay_hw.interp import evaluate
from relay_hw.ir.types import NARROW_DTYPES, TensorType, know_narrow_dtypes
from relay_hw.text import load_json, save_json

pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")


def every(dtype: str) -> np.ndarray:
    """Every number of a short type, every 257th of a longer one."""
    know_narrow_dtypes()
    bits = int(dtype.removeprefix("u").removeprefix("int")) if "int" in dtype else 4 if "float4" in dtype else 8
    if dtype == "bfloat16":
        return np.arange(0, 1 << 16, 257).astype(np.uint16).view(dtype)
    if "int" in dtype:
        low = 0 if dtype.startswith("u") else -(1 << (bits - 1))
        return np.arange(low, low + (1 << bits)).astype(dtype)
    return np.arange(1 << bits, dtype=np.uint8).view(dtype)


@pytest.mark.parametrize("dtype", sorted(NARROW_DTYPES))
def test_constants_survive(dtype: str) -> None:
    data = every(dtype)
    mod = infer_type(relay.IRModule({"main": relay.Function((), relay.copy(relay.const(data)))}))
    assert mod["main"].body.type == TensorType(data.shape, dtype)
    for back in (relay.fromtext(mod.astext()), load_json(save_json(mod), "module")):
        assert evaluate(back).tobytes() == data.tobytes() and str(evaluate(back).dtype) == dtype


def test_damaged_constants_are_refused() -> None:
    mod = infer_type(relay.IRModule({"main": relay.Function((), relay.copy(relay.const(every("int4"))))}))
    with pytest.raises(RelayHwError):
        load_json(save_json(mod).replace('"int4"', '"int5"'), "module")
    with pytest.raises(RelayHwError):
        load_json(save_json(mod).replace('"int4"', '"bfloat16"'), "module")
