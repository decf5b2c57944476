"""Tokens: on random programs every conflict between units is ordered, and no order of the units gets stuck."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.config import SEMAPHORES
from relay_hw.accel.isa.spec import Unit
from relay_hw.tensorize.access import Space
from relay_hw.tensorize.emit.tokens import Masks, Range, assign_tokens, most_open
from tests.targets import target_for

CONFIG = target_for("tiny")

# What each unit reaches: those that have no memory in common need no semaphore.
REACH = {
    Unit.LOAD: (Space.INP, Space.ACC),
    Unit.COMPUTE: (Space.INP, Space.ACC),
    Unit.OUTPUT: (Space.INP, Space.OUT, Space.ACC),
    Unit.STORE: (Space.OUT,),
    Unit.ROW: (Space.ACC,),
}


def ranges(unit: Unit) -> st.SearchStrategy[tuple[Unit, list[Range]]]:
    one = st.builds(
        lambda space, begin, size, write: Range(space, begin, begin + size, write),
        st.sampled_from(REACH[unit]),
        st.integers(0, 900),
        st.integers(1, 40),
        st.booleans(),
    )
    return st.tuples(st.just(unit), st.lists(one, min_size=1, max_size=3))


PROGRAMS = st.lists(st.sampled_from(Unit).flatmap(ranges), max_size=25)


def conflict(left: Range, right: Range) -> bool:
    if left.space is not right.space:
        return False
    if left.space is Space.ACC:
        depth = CONFIG.acc_bank_depth
        return left.begin // depth <= (right.end - 1) // depth and right.begin // depth <= (left.end - 1) // depth
    return (left.write or right.write) and left.begin < right.end and right.begin < left.end


def execute(units: list[Unit], masks: list[Masks], seed: int) -> list[int]:
    """Order of completion under a random choice among the units that can go on."""
    generator, counts, done = random.Random(seed), [0] * SEMAPHORES, []
    waiting = {unit: [i for i, u in enumerate(units) if u is unit] for unit in Unit}
    while any(waiting.values()):
        ready = [
            unit
            for unit, queue in waiting.items()
            if queue and all(counts[s] for s in range(SEMAPHORES) if masks[queue[0]].wait >> s & 1)
        ]
        assert ready, f"stuck before {[queue[:1] for queue in waiting.values()]}"
        index = waiting[generator.choice(ready)].pop(0)
        for s in range(SEMAPHORES):
            counts[s] += (masks[index].set >> s & 1) - (masks[index].wait >> s & 1)
        done.append(index)
    assert not any(counts)
    return done


@settings(max_examples=150, deadline=None)
@given(program=PROGRAMS, seed=st.integers(0, 1 << 16))
def test_conflicts_keep_their_order(program: list[tuple[Unit, list[Range]]], seed: int) -> None:
    masks = assign_tokens(program, CONFIG, 4096)
    units = [unit for unit, _ in program]
    for attempt in range(4):
        place = {index: at for at, index in enumerate(execute(units, masks, seed + attempt))}
        for late in range(len(program)):
            for early in range(late):
                ranges = [(a, b) for a in program[early][1] for b in program[late][1]]
                if any(conflict(a, b) for a, b in ranges):
                    assert place[early] < place[late], (early, late)


def test_no_token_says_what_is_known() -> None:
    """store 3 waits for requant 2, which waited for gemm 1, which waited for load 0: nothing more is needed."""
    inp, acc, out = (Range(space, 0, 8, False) for space in (Space.INP, Space.ACC, Space.OUT))
    wrote = {r.space: Range(r.space, r.begin, r.end, True) for r in (inp, acc, out)}
    program = [
        (Unit.LOAD, [wrote[Space.INP]]),
        (Unit.COMPUTE, [inp, wrote[Space.ACC]]),
        (Unit.OUTPUT, [acc, wrote[Space.OUT]]),
        (Unit.STORE, [out]),
        (Unit.LOAD, [wrote[Space.INP], wrote[Space.ACC]]),
    ]
    masks = assign_tokens(program, CONFIG, 4096)
    assert [mask.wait.bit_count() for mask in masks] == [0, 1, 1, 1, 1]
    assert [mask.set.bit_count() for mask in masks] == [1, 1, 2, 0, 0]


@given(st.lists(st.builds(Masks, st.integers(0, 7), st.integers(0, 7)), max_size=30))
def test_open_tokens_are_counted_as_the_checker_does(masks: list[Masks]) -> None:
    """An instruction's own token is there before it takes one."""
    most = 0
    for semaphore in range(3):
        open_tokens = 0
        for mask in masks:
            open_tokens += mask.set >> semaphore & 1
            most = max(most, open_tokens)
            open_tokens -= mask.wait >> semaphore & 1
    assert most_open(masks) == most
