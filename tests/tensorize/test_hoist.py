"""Hoisted lines mean the same: units keep their order, and so do lines that touch the same entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.spec import BY_OP, Op, Unit
from relay_hw.tensorize.access import Space
from relay_hw.tensorize.emit.emit import Line
from relay_hw.tensorize.emit.hoist import hoist
from relay_hw.tensorize.emit.tokens import Range

DEFAULT = load_config("default")
BANK = DEFAULT.acc_bank_depth
OPS = (Op.LOAD, Op.GEMM, Op.ALU, Op.REQUANT, Op.STORE)


@st.composite
def lines(draw: st.DrawFn) -> list[Line]:
    found: list[Line] = []
    step = 0
    for number in range(draw(st.integers(0, 14))):
        step += draw(st.integers(0, 1))
        ranges = [
            Range(space, begin, begin + draw(st.integers(1, 2 * BANK)), draw(st.booleans()))
            for space in draw(st.lists(st.sampled_from((Space.INP, Space.ACC, Space.OUT)), max_size=2))
            for begin in (draw(st.integers(0, 3)) * BANK,)
        ]
        found.append(Line(draw(st.sampled_from(OPS)), {"number": number}, 0, tuple(ranges), step))
    return found


def unit(line: Line) -> Unit | None:
    return BY_OP[line.op].unit


def conflict(one: Line, other: Line) -> bool:
    def cells(touched: Range) -> tuple[int, int]:
        size = BANK if touched.space is Space.ACC else 1
        return touched.begin // size, (touched.end - 1) // size + 1

    return any(
        a.space is b.space
        and (a.write or b.write or a.space is Space.ACC)
        and cells(a)[0] < cells(b)[1]
        and cells(b)[0] < cells(a)[1]
        for a in one.ranges
        for b in other.ranges
    )


@given(given_lines=lines())
def test_order_is_kept_where_it_matters(given_lines: list[Line]) -> None:
    result = hoist(given_lines, DEFAULT)
    place = {line.values["number"]: at for at, line in enumerate(result)}
    assert sorted(place) == list(range(len(given_lines)))
    for first, one in enumerate(given_lines):
        for second in range(first + 1, len(given_lines)):
            other = given_lines[second]
            if unit(one) is unit(other) or conflict(one, other):
                assert place[first] < place[second]
            if place[first] > place[second]:
                assert unit(other) is Unit.COMPUTE, "only COMPUTE is hoisted"
                assert unit(one) is not Unit.OUTPUT or one.step >= other.step - 1, "over one step at most"


def test_the_next_product_goes_in_front_of_many_results() -> None:
    def line(op: Op, step: int, bank: int) -> Line:
        acc = Range(Space.ACC, bank * BANK, (bank + 1) * BANK, op is Op.GEMM)
        return Line(op, {"step": step}, 0, (acc,), step)

    program = [line(Op.GEMM, 0, 0), *[line(Op.REQUANT, 0, 0)] * 9, line(Op.GEMM, 1, 1), *[line(Op.REQUANT, 1, 1)] * 9]
    result = hoist(program, DEFAULT)
    assert [each.op for each in result[:3]] == [Op.GEMM, Op.GEMM, Op.REQUANT]
    same_bank = [line(Op.GEMM, 0, 0), line(Op.REQUANT, 0, 0), line(Op.GEMM, 1, 0)]
    assert list(hoist(same_bank, DEFAULT)) == same_bank
