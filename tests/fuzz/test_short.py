"""A hundred inputs of each entry point, always the same; `make fuzz` has many more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fuzz.entries import ENTRIES
from tests.fuzz.judge import Outcome
from tests.fuzz.pool import Job, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and time are Linux's")
INPUTS = 100


@pytest.mark.parametrize("name", ENTRIES)
def test_a_hundred_inputs(name: str, tmp_path: Path) -> None:
    (done,) = run([Job(ENTRIES[name], 1, 0, INPUTS)], 1, tmp_path)
    bad = {number: finding for number, finding in done.findings.items() if not finding.outcome.is_right}
    assert not bad, f'make fuzz FLAGS="--entry {name} --seed 1 --only NUMBER" shows one of these'
    assert len(done.findings) == INPUTS
    # Where nothing or everything is accepted, the inputs are not worth much.
    accepted = sum(finding.outcome is not Outcome.REFUSED for finding in done.findings.values())
    assert 1 <= accepted <= INPUTS - 10
