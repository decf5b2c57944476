"""Places: scratchpad buffers, micro-op sequences and DRAM tensors that are live together never share cells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.spec import Mem
from relay_hw.tensorize.emit.dram import ConstantPool, Life, burst_bytes, place_shared, plan_window
from relay_hw.tensorize.emit.scratchpad import Scratchpad, Slots
from relay_hw.tensorize.schedule.uops import make_pool


@given(
    events=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3)), max_size=40),
    step=st.sampled_from((1, 2, 8)),
    slots=st.sampled_from(Slots),
)
def test_live_buffers_do_not_overlap(events: list[tuple[int, int]], step: int, slots: Slots) -> None:
    """Each event allocates one buffer and frees some of the oldest."""
    pad = Scratchpad(64, step, slots)
    live: dict[tuple[str | int, ...], tuple[int, int]] = {}
    for now, (size, gone) in enumerate(events):
        found = pad.allocate(("b", now), size)
        if found is not None:
            place = found.begin
            assert place % step == 0 and place + size <= 64
            assert all(place >= end or place + size <= begin for begin, end in live.values())
            live["b", now] = (place, place + size)
        else:
            assert live, "an empty memory must have room"
        for key in list(live)[:gone]:
            pad.free(key, now)
            del live[key]


def test_the_oldest_room_comes_first() -> None:
    pad = Scratchpad(30, 1)
    places = []
    for now in range(6):
        places.append(pad.allocate(("b", now), 10).begin)
        pad.free(("b", now), now)
    assert places == [0, 10, 20, 0, 10, 20]


UOP = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1))


@given(st.lists(st.lists(UOP, min_size=1, max_size=5).map(tuple), min_size=1, max_size=12))
def test_every_micro_op_sequence_is_found(sequences: list[tuple[tuple[int, int, int, int], ...]]) -> None:
    pool = make_pool(sequences)
    for sequence in sequences:
        begin = pool.position[sequence]
        assert pool.uops[begin : begin + len(sequence)] == sequence
    assert len(pool.uops) <= sum(len(sequence) for sequence in set(sequences))


def test_micro_op_sequences_inside_others_take_no_room() -> None:
    long = tuple((0, n, n, int(n == 0)) for n in range(9))
    pool = make_pool([long[:1], long[2:5], long, long[:4]])
    assert pool.uops == long
    assert [pool.position[key] for key in (long[:1], long[2:5], long[:4])] == [0, 2, 0]


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 8), st.integers(0, 4)), max_size=12))
def test_tensors_that_live_together_lie_apart(rows: list[tuple[int, int, int]]) -> None:
    config = load_config("default")
    lives = {("tensor", n): Life(size, begin, begin + length) for n, (size, begin, length) in enumerate(rows)}
    placed = place_shared(lives, config)
    for one, a in lives.items():
        assert placed.offsets[one] % burst_bytes(config) == 0 and placed.offsets[one] + a.size <= placed.size
        for other, b in lives.items():
            if one != other and a.begin <= b.end and b.begin <= a.end:
                apart = placed.offsets[one] + a.size <= placed.offsets[other]
                assert apart or placed.offsets[other] + b.size <= placed.offsets[one]


def test_equal_constants_are_stored_once() -> None:
    pool = ConstantPool(load_config("default"))
    assert pool.add(b"abc") == 0
    assert pool.add(b"xyz") == 512
    assert pool.add(b"abc") == 0
    assert len(pool.data) == 515


def test_window_sections_do_not_overlap() -> None:
    config = load_config("wide")
    constants = [(("a",), Mem.WGT, b"w" * 3000), (("b",), Mem.UOP, b"u" * 64), (("c",), Mem.PRM, b"p" * 512)]
    lives = {("tensor", 2): Life(700, 0, 1)}
    window = plan_window(constants, {}, {("tensor", 0): 100}, {("tensor", 1): 200}, lives, config)
    assert [section.name for section in window.sections] == [
        "uops",
        "weights",
        "constants",
        "input",
        "output",
        "scratch",
    ]
    ends = [section.end for section in window.sections]
    assert all(end <= following.offset for end, following in zip(ends, window.sections[1:], strict=False))
    assert window.constants["a",] == window.sections[1].offset
    assert window.tensors["tensor", 2] == window.sections[-1].offset
