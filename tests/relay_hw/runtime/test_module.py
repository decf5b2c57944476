"""Cycles of the module that `relay.build` gives, against the functions that the commands call."""

from __future__ import annotations

from dataclasses import replace

import pytest

import relay_hw as relay
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.errors import InputError
from relay_hw.report import Profile
from relay_hw.runtime import CompileOptions, Module
from relay_hw.runtime.profile import timed_report
from relay_hw.runtime.why import explain
from relay_hw.target.accel.changes import read_change
from tests.relay_hw.random_cnn import random_cnn, random_input


@pytest.fixture(scope="module")
def module() -> Module:
    mod = random_cnn(1)
    options = CompileOptions(config="tiny", host_target="numpy", memory="narrow")
    return relay.build(mod, "accel", calibration=random_input(mod, 1, 4), options=options)


def test_its_profile_is_that_of_its_build(module: Module) -> None:
    found = module.profile()
    assert isinstance(found, Profile) and found.cycles and found.pictures and found.device == "cycle"
    assert replace(found, pictures=(), simulated_cycles_per_second=None) == timed_report(module.artifact)


def test_its_explanation_is_that_of_its_build(module: Module) -> None:
    text = "axi_data_bits=128,latency=50"
    found = module.explain([text])
    change = read_change(text, module.artifact.config, memory_model(module.artifact.manifest.memory_model))
    assert found.to_text() == explain(module.artifact, changes=[change]).to_text() == str(found)
    assert found.cycles == module.profile().cycles
    assert repr(found) == f"<Explanation of {found.cycles:,} cycles of model>"
    assert [outcome.change for outcome in found.outcomes] == [change]


def test_a_change_that_is_none(module: Module) -> None:
    with pytest.raises(InputError, match="must be"):
        module.explain(["faster"])


def test_a_build_for_the_host_has_no_cycles() -> None:
    host = relay.build(random_cnn(1), "numpy")
    assert host.profile().cycles == 0
