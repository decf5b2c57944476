"""What stays on the device is decided for all regions of a network together, by an inference in steady state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest

from relay_hw.target.accel.regions import _settled
from relay_hw.target.accel.residency import NO_LOADS, Footprints
from relay_hw.target.accel.steady import steady
from scripts.measure_residency import compiled, inference, measured
from tests.relay_hw.steady_networks import NETWORKS

# Networks whose regions overwrite one another's constants.
FEW = (1, 2)


@pytest.mark.parametrize("number", [*FEW, *(pytest.param(n, marks=pytest.mark.long) for n in NETWORKS if n not in FEW)])
def test_auto_is_never_slower_than_off_or_than_any_region_alone(number: int) -> None:
    row = measured(number)
    print(f"network {number}: {row}")
    assert row["auto"] <= min(row["off"], row["single"])


class Form:
    """In the place of a segment."""

    def __init__(self, name: str) -> None:
        self.name = name


def settled(cycles: Mapping[frozenset[str], int], names: str) -> frozenset[str]:
    """Regions that keep constants, where an inference takes these cycles; 100 where nothing is said.

    There are two forms that keep some: the other's names are in capitals.
    """
    resident, plain, third = ({name: Form(name) for name in names} for _ in range(3))

    def chosen(found: Mapping[str, Any]) -> frozenset[str]:
        kept = {name for name in names if found[name] is resident[name]}
        return frozenset(kept | {name.upper() for name in names if found[name] is third[name]})

    forms = cast("list[Any]", [resident, third])
    best = _settled(cast("Any", plain), forms, lambda found: cycles.get(chosen(cast("Mapping[str, Any]", found)), 100))
    return chosen(best)


def test_the_best_of_all_none_and_one_is_the_start() -> None:
    assert settled({frozenset("abc"): 90}, "abc") == frozenset("abc")
    assert settled({frozenset(): 80, frozenset("abc"): 90}, "abc") == frozenset()
    assert settled({frozenset(): 80, frozenset("b"): 70}, "abc") == frozenset("b")


def test_from_there_region_by_region() -> None:
    assert settled({frozenset("b"): 70, frozenset("bc"): 60, frozenset("abc"): 90}, "abc") == frozenset("bc")
    assert settled({frozenset("abc"): 70, frozenset("ab"): 60, frozenset("b"): 50}, "abc") == frozenset("b")
    assert settled({frozenset("ABC"): 70, frozenset("AbC"): 60}, "abc") == frozenset("AbC")


def test_a_network_whose_constants_fit_together_loads_none() -> None:
    """Each region's constants have places of their own, whatever else the others load: here of memories that differ."""
    auto = compiled(0, "auto")
    programs = {name: segment.program for name, segment in auto.segments.items()}
    state = steady(Footprints(auto.config), programs, auto.calls.order)
    assert len(programs) > 2 and not any(state.reloads)


def test_what_does_not_fit_streams_beside_what_stays() -> None:
    """The weights of all regions are more than the memory holds: it is filled, and nothing in it is loaded again."""
    auto, off = compiled(24, "auto"), compiled(24, "off")
    footprints = Footprints(auto.config)
    programs = {name: segment.program for name, segment in auto.segments.items()}
    assert not any(steady(footprints, programs, auto.calls.order).reloads)
    found = [footprints.of(program) for program in programs.values()]
    assert any(one.code.entries.size for one in found)
    kept = [one.resident or NO_LOADS for one in found]
    entries = np.concatenate([one.entries for one in kept])
    assert len(entries) == len(set(entries)) > auto.config.wgt_depth // 2
    assert not any(one.code.spoils(other) for one in found for other in kept)
    assert inference(auto, dict(auto.segments)) < 0.7 * inference(off, dict(off.segments))
