"""Two thousand generated programs: print and parse is the identity, so is JSON there and back."""

from __future__ import annotations

import pytest

from relay_hw.analysis import infer_type, structural_equal
from relay_hw.text import load_json, parse, print_module, save_json
from tests.relay_hw.programs import random_module

PROGRAMS = 2_000
CHUNK = 250


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_text_and_json_keep_generated_programs(first: int) -> None:
    for seed in range(first, first + CHUNK):
        depth = 2 + seed % 3
        made = f"random_module({seed}, depth={depth})"
        mod = infer_type(random_module(seed, depth=depth))
        again = parse(print_module(mod), made)
        assert structural_equal(again, mod), f"{made} must be equal after printing and parsing"
        assert structural_equal(load_json(save_json(mod)), mod), f"{made} must be equal after JSON"
