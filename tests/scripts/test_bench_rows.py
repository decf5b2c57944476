"""Rows of the benchmark: what is stored for a word is counted from the model and from what was loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from examples.models import small
from relay_hw.accel.isa.config import load_config


@pytest.fixture(scope="module")
def rows() -> ModuleType:
    """The script as a module."""
    folder = str(Path(__file__).parents[2] / "scripts")
    sys.path.insert(0, folder)
    try:
        import bench_rows
    finally:
        sys.path.remove(folder)
    return bench_rows


def test_bytes_of_a_word(rows: ModuleType) -> None:
    """Two layers 96 wide, 192 inside, 300 words, 23 positions before; 4-bit weights; 8 bytes a cycle."""
    weights = (2 * (4 * 96 * 96 + 3 * 96 * 192) + 96 * 300) // 2
    caches = 2 * 2 * 96 * 23
    loaded = {"weights": weights + caches, "records": 500, "uops": 30, "instructions": 70, "activations_read": 9}
    decoder = {"bytes": loaded, "cycles": (weights + caches + 600) / 4}
    first, second = rows.stored_rows(decoder, small("llama_decode"), load_config("default"))
    assert (first.value, second.value) == (2, (weights + 600) / weights)
    assert (first.bound, second.bound) == (1.1, 1.15)
