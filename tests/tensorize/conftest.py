"""Gives tests the named configurations, and the regions of `regions.py` as one namespace."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from relay_hw.tensorize.target import Target
from tests.targets import target_for
from tests.tensorize.regions import Regions, compare, run

CONFIGS = ("default", "tiny", "ecp5", "w4", "wide")


@pytest.fixture(params=CONFIGS)
def config(request: pytest.FixtureRequest) -> Target:
    """Each named configuration."""
    return target_for(request.param)


@pytest.fixture
def kit() -> SimpleNamespace:
    """What builds, runs and compares regions."""
    return SimpleNamespace(Regions=Regions, run=run, compare=compare)
