"""Measurements of time against size: every case reads what it makes, and growth is told from noise."""

from __future__ import annotations

import pytest

from scripts.scaling import worst
from scripts.scaling_cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_a_case_reads_what_it_makes(name: str) -> None:
    case = CASES[name]
    assert case.make(3) != case.make(4)
    case.read(case.make(3))


def test_the_growth_for_a_doubling() -> None:
    assert worst([(100, 0.1), (200, 0.2), (400, 0.8)]) == pytest.approx(4.0)
    assert worst([(100, 0.1), (400, 0.4)]) == pytest.approx(2.0)
    # Times too short to tell.
    assert worst([(100, 0.001), (200, 0.04), (400, 0.04)]) == 0.0
