"""Changed Verilog is found: a sample here, all of it by `scripts/mutants.py`."""

from __future__ import annotations

import pytest

from relay_hw.accel.sim.verilator import build_library
from scripts import mutants
from tests.mutants.alone import Fate
from tests.mutants.build import SAMPLE, SHAPES, SHAPES_AND_SAMPLE, Mutant, chosen, sites_of, sources
from tests.mutants.equivalence import has_fate, stages
from tests.mutants.operators import Operator, Subject
from tests.mutants.suite import run

FOUND = (
    "vta_count condition any_q: (!one_o) => one_o",
    "vta_count reset any_q: 1'b0 => any_q",
    "vta_sems slice given_2: give_i[2] => give_i[1]",
    "vta_sems operand overflow_q: given_3_q => given_4_q",
    "vta_fault condition code: (!open_q) => (!(!open_q))",
    "vta_fault reset stop_q: 1'b0 => stop_q",
    "vta_csr condition stop: (fault_stop_i || abort_q) => abort_q",
    "vta_csr state written_q[4]: 1'b1 => written_q[4]",
)


@pytest.mark.long
def test_sample() -> None:
    """The model with all mutants off passes every trial; with one of these on it does not."""
    listed, folder = chosen(SAMPLE, mutants.SEED)
    library = build_library(SHAPES_AND_SAMPLE[SAMPLE].build(folder))
    picked = [mutant for mutant in listed if mutant.site.key in FOUND]
    lives = [mutant for mutant, verdict in run(SAMPLE, library, [None, *picked], 1) if verdict.lives]
    assert (lives, len(picked)) == ([None], len(FOUND))


def test_open_survivors_say_why() -> None:
    known = mutants.known_survivors()
    assert known and all(len(reason) > 6 for _, reason in known.values())


def test_every_scene_of_a_proof_shows_the_module_that_changes() -> None:
    for module in sources():
        scenes = [scene for together in stages(module) for scene in together]
        hidden = [scene for scene in scenes if scene.whole is not None and module not in (scene.outer, *scene.whole)]
        assert not hidden, module


@pytest.mark.long
def test_survivors_are_sites_of_the_verilog() -> None:
    """None that is open is a reset, an ID or a fault."""
    places = {site.key: site for name in sources() for site in sites_of(name)[1]}
    for name, (fate, _) in mutants.known_survivors().items():
        key, _, shape = name.rpartition(" [")
        assert key in places and shape.rstrip("]") in SHAPES, name
        site = places[key]
        is_ordinary = site.subject is Subject.OTHER and site.operator is not Operator.RESET
        assert fate is not Fate.OPEN or is_ordinary, name


@pytest.mark.long
def test_a_mutant_is_found_in_its_module_alone() -> None:
    """By a bench and a property, while another is proven to change nothing."""
    _, found = sites_of("vta_once")
    wrong = Mutant(1, "tiny", next(site for site in found if site.operator is Operator.CONDITION))
    assert has_fate(wrong, Fate.BENCH, 900) and has_fate(wrong, Fate.PROPERTY, 900)
    assert not has_fate(wrong, Fate.SAME, 900)
    same = next(site for site in sites_of("vta_sems")[1] if site.key == "vta_sems constant count: 8'd0 => 8'd1")
    assert has_fate(Mutant(2, "tiny", same), Fate.SAME, 900)
