"""What scratchpads hold while programs take turns: kept where nothing overwrote it, else loaded again."""

from __future__ import annotations

from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.target.accel.residency import NO_LOADS, Footprints, Holding

TINY = load_config("tiny")
FINISH = (Op.FINISH, {})


def load(mem: Mem, sram: int, granules: int, dram: int = 0) -> tuple[Op, dict[str, int]]:
    return Op.LOAD, {"mem": mem, "sram": sram, "z": granules, "dram": dram}


def program(
    resident: list[tuple[Op, dict[str, int]]], main: list[tuple[Op, dict[str, int]]], data: bytes | None = None
) -> Program:
    """`data`: what lies where the loads read; without it nobody knows."""
    stream = [*resident, FINISH] if resident else []
    section = Section("weights", SectionKind.WEIGHTS, 0, 256, data)
    return Program.build(TINY, [*main, FINISH], WindowPlan([section]), resident=stream)


A = program([load(Mem.WGT, 0, 4), load(Mem.UOP, 0, 1)], [load(Mem.INP, 0, 9)])
B = program([load(Mem.WGT, 4, 4)], [load(Mem.INP, 0, 9)])
OVER_A = program([load(Mem.WGT, 3, 1)], [])
STREAMS = program([], [load(Mem.WGT, 100, 1), load(Mem.UOP, 1, 1)])


def run(holding: Holding, one: Program) -> bool:
    """One turn; True where the resident stream was launched."""
    return holding.turn(one)


def entries(config: AccelConfig, one: Program, stream: Section | None = None) -> list[int]:
    return Footprints(config).loads(one, stream or one.code).entries.tolist()


def test_entries_that_streams_load() -> None:
    # A granule of 16 bytes is one weight entry of 16 bytes, or two micro-ops, which lie behind the weights.
    assert entries(TINY, A, A.resident) == [0, 1, 2, 3, TINY.wgt_depth, TINY.wgt_depth + 1]
    assert entries(TINY, A) == [] and Footprints(TINY).of(STREAMS).resident is None


def test_weights_that_become_wider_take_more_entries() -> None:
    packed = Program.build(TINY, [(Op.LOAD, {"mem": Mem.WGT, "z": 2, "expand": 1}), FINISH])
    assert entries(TINY, packed) == [0, 1, 2, 3]
    config = load_config("default")
    factored = [(Op.LOAD, {"mem": Mem.WGT, "z": 24, "expand": 1, "pitch": 1}), FINISH]
    assert entries(config, Program.build(config, factored)) == [0, 1, 2]


DATA = bytes(range(256))
# Entries 4 to 7, in two loads and in another order of them.
WHOLE = program([load(Mem.WGT, 4, 4)], [], DATA)
PIECES = program([load(Mem.WGT, 6, 2, dram=32), load(Mem.WGT, 4, 2)], [], DATA)
MORE = program([load(Mem.WGT, 4, 4), load(Mem.UOP, 0, 1, dram=64)], [], DATA)
OTHER = program([load(Mem.WGT, 4, 4)], [], DATA[::-1])


def test_equal_constants_in_equal_places_are_shared() -> None:
    holding = Holding(Footprints(TINY))
    assert [run(holding, one) for one in (WHOLE, PIECES, MORE, WHOLE, MORE)] == [True, False, True, False, False]
    assert [run(holding, one) for one in (OTHER, PIECES, MORE)] == [True, True, False]


def test_loads_are_compared() -> None:
    loads = Footprints(TINY)
    whole, pieces, more, other = (loads.of(one).resident or NO_LOADS for one in (WHOLE, PIECES, MORE, OTHER))
    assert whole.equals(pieces) and more.covers(whole) and not whole.covers(more)
    assert not more.spoils(whole) and other.spoils(more) and not other.covers(whole)
    assert not NO_LOADS.spoils(whole) and not whole.spoils(NO_LOADS)


def test_a_stream_that_loads_the_same_spoils_nothing() -> None:
    again, twice = (program([], code, DATA) for code in ([load(Mem.WGT, 4, 4)], [load(Mem.WGT, 4, 4, dram=64)]))
    holding = Holding(Footprints(TINY))
    assert [run(holding, one) for one in (WHOLE, again, WHOLE, twice, WHOLE)] == [True, False, False, False, True]
    # Between its two loads another content is there, and a launch may fail.
    changing = program([], [load(Mem.WGT, 4, 4, dram=64), load(Mem.WGT, 4, 4)], DATA)
    assert [run(holding, one) for one in (WHOLE, changing, WHOLE)] == [False, False, True]


def test_padding_and_activations_equal_nothing() -> None:
    padded = [(op, {**values, "x_pad_0": 1}) for op, values in [load(Mem.WGT, 4, 3)]]
    for one, other in ((program(padded, [], DATA), program(padded, [], DATA)), (B, program([load(Mem.WGT, 4, 4)], []))):
        holding = Holding(Footprints(TINY))
        assert [run(holding, each) for each in (one, other, one, one)] == [True, True, True, False]


def test_programs_apart_keep_what_they_loaded() -> None:
    holding = Holding(Footprints(TINY))
    assert [run(holding, one) for one in (A, B, A, B, B)] == [True, True, False, False, False]


def test_what_is_overwritten_is_loaded_again() -> None:
    holding = Holding(Footprints(TINY))
    assert [run(holding, one) for one in (A, B, OVER_A, B, A, OVER_A)] == [True, True, True, False, True, True]
    assert [run(holding, one) for one in (B, STREAMS, B, A)] == [False, False, False, True]


def test_a_launch_that_fails_leaves_nothing() -> None:
    holding = Holding(Footprints(TINY))
    run(holding, A)
    holding.take(OVER_A)
    assert holding.needs(A) and holding.needs(OVER_A)
