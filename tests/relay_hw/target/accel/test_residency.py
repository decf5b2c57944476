"""What scratchpads hold while programs take turns: kept where nothing overwrote it, else loaded again."""

from __future__ import annotations

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.target.accel.residency import Footprints, Holding, loaded

TINY = load_config("tiny")
FINISH = (Op.FINISH, {})


def load(mem: Mem, sram: int, granules: int) -> tuple[Op, dict[str, int]]:
    return Op.LOAD, {"mem": mem, "sram": sram, "z": granules}


def program(resident: list[tuple[Op, dict[str, int]]], main: list[tuple[Op, dict[str, int]]]) -> Program:
    stream = [*resident, FINISH] if resident else []
    return Program.build(TINY, [*main, FINISH], resident=stream)


A = program([load(Mem.WGT, 0, 4), load(Mem.UOP, 0, 1)], [load(Mem.INP, 0, 9)])
B = program([load(Mem.WGT, 4, 4)], [load(Mem.INP, 0, 9)])
OVER_A = program([load(Mem.WGT, 3, 1)], [])
STREAMS = program([], [load(Mem.WGT, 100, 1), load(Mem.UOP, 1, 1)])


def run(holding: Holding, one: Program) -> bool:
    """One turn; True where the resident stream was launched."""
    return holding.turn(one)


def test_entries_that_streams_load() -> None:
    # A granule of 16 bytes is one weight entry of 16 bytes, or two micro-ops, which lie behind the weights.
    assert loaded(TINY, A.resident) == 0b1111 | 0b11 << TINY.wgt_depth
    assert loaded(TINY, A.code) == loaded(TINY, None) == 0


def test_weights_that_become_wider_take_more_entries() -> None:
    packed = Program.build(TINY, [(Op.LOAD, {"mem": Mem.WGT, "z": 2, "expand": 1}), FINISH])
    assert loaded(TINY, packed.code) == 0b1111
    config = load_config("default")
    factored = [(Op.LOAD, {"mem": Mem.WGT, "z": 24, "expand": 1, "pitch": 1}), FINISH]
    assert loaded(config, Program.build(config, factored).code) == 0b111


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
