"""Every pass, alone and in random orders, keeps type, value and order of effects of random programs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from relay_hw import transform
from relay_hw.analysis import check_well_formed
from relay_hw.dataflow_pattern import wildcard
from relay_hw.ir.module import IRModule
from relay_hw.transform import PASSES, Pass, Pipeline, pin_effects
from relay_hw.transform.infer_type import InferType
from tests.relay_hw.programs import modules, random_module
from tests.relay_hw.transform.reference import assert_keeps_semantics

SUPPORTED = {"npu": dict.fromkeys(("add", "maximum", "stack", "reshape"), True), "dsp": {"sum": True, "add": True}}
SQUARE = wildcard() * wildcard()
STEPS: list[Pass] = [
    *(step() for step in PASSES),
    transform.DeadCodeElimination(inline_once=True),
    transform.EtaExpand(expand_global_var=True),
    transform.FuseOps(0),
    transform.FuseOps(3),
    transform.MergeComposite([("dsp.square", SQUARE)]),
    transform.AnnotateTarget(["npu", "dsp"], supported=SUPPORTED),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_seeded_programs(step: Pass, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(25):
        new = assert_keeps_semantics([step], random_module(seed), f"random_module({seed})")
        check_well_formed(new)


@settings(max_examples=15)
@given(modules())
def test_drawn_programs(mod: IRModule) -> None:
    for step in STEPS:
        assert_keeps_semantics([step], mod, "a drawn module")


# Partial evaluation writes out calls; a bound keeps programs of orders small.
BOUNDED = transform.PartialEvaluate(max_calls=100)
ORDERED = [BOUNDED if isinstance(step, transform.PartialEvaluate) else step for step in STEPS]


def test_random_orders(capsys: pytest.CaptureFixture[str]) -> None:
    """1,000 orders of four passes, each on its own program."""
    choose = random.Random(0)
    for seed in range(20_000, 21_000):
        steps = [choose.choice(ORDERED) for _ in range(4)]
        assert_keeps_semantics([Pipeline(steps)], random_module(seed, depth=4), f"random_module({seed}, depth=4)")


def test_pinning_effects_is_done_once(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(200):
        pinned = pin_effects(InferType()(random_module(seed)))
        assert pin_effects(pinned) is pinned, seed
