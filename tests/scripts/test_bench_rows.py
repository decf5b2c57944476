"""Rows of the benchmark: what is stored for a word is counted from the model and from what was loaded."""

from __future__ import annotations

from examples.models import small
from relay_hw.accel.isa.config import load_config
from scripts.bench_rows import body_row, stored_rows


def test_bytes_of_a_word() -> None:
    """Two layers 96 wide, 192 inside, 300 words, 23 positions before; 4-bit weights; 8 bytes a cycle."""
    weights = (2 * (4 * 96 * 96 + 3 * 96 * 192) + 96 * 300) // 2
    caches = 2 * 2 * 96 * 23
    loaded = {"weights": weights + caches, "records": 500, "uops": 30, "instructions": 70, "activations_read": 9}
    decoder = {"bytes": loaded, "cycles": (weights + caches + 600) / 4}
    first, second = stored_rows(decoder, small("llama_decode"), load_config("default"))
    assert (first.value, second.value) == (2, (weights + 600) / weights)
    assert (first.bound, second.bound) == (1.1, 1.15)


def test_a_classifier_is_left_out() -> None:
    layers = [
        {"name": name, "macs": macs, "cycles": cycles} for name, macs, cycles in (("up", 512, 4), ("lm_head", 9, 99))
    ]
    assert body_row({"layers": layers}, load_config("default")).value == 50
