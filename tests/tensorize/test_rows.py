"""Softmax and norms on the row unit: the program's bytes equal the interpreter's, and are proved to be right."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.spec import BY_OP, Op, Unit
from relay_hw.accel.isa.stream import Instr
from relay_hw.analysis import infer_type
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Constant, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op.rows import exponentials, visible
from relay_hw.tensorize import compile_function, why_not
from relay_hw.tensorize.emit.check import check_program
from relay_hw.tensorize.emit.occupancy import occupancy
from relay_hw.tensorize.lower.rows import visible_runs
from relay_hw.tensorize.target import Target
from tests.targets import target_for
from tests.tensorize.test_check import changed, token_pairs

ROW_CONFIGS = ("default", "tiny", "w4", "wide")
SHAPES = [(5, 49), (1, 7), (9, 16), (4, 49, 49), (3, 20, 33), (2, 300, 130)]


@pytest.fixture(params=ROW_CONFIGS)
def device(request: pytest.FixtureRequest) -> Target:
    """Configurations with a row unit."""
    return target_for(request.param)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("causal", [False, True])
def test_softmax(kit: SimpleNamespace, device: Target, shape: tuple[int, ...], causal: bool) -> None:
    build = kit.Regions(sum(shape), device)
    kit.compare(build.function(build.softmax(build.tensor(*shape), causal)), device)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("centered", [False, True])
def test_norm(kit: SimpleNamespace, device: Target, shape: tuple[int, ...], centered: bool) -> None:
    build = kit.Regions(sum(shape), device)
    kit.compare(build.function(build.norm(build.tensor(*shape), centered)), device)


@pytest.mark.parametrize("causal", [False, True])
def test_lengths(kit: SimpleNamespace, device: Target, causal: bool) -> None:
    """One for each matrix, none and more than all columns among them; then one for all."""
    build = kit.Regions(8, device)
    y = build.softmax(build.tensor(4, 12, 20), causal, (0, 7, 99, 20))
    kit.compare(build.function(build.softmax(y, causal, (15,))), device)


@pytest.mark.parametrize("name", ["default", "w4", "wide"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_length_that_is_an_input(kit: SimpleNamespace, name: str, causal: bool) -> None:
    """The program is the same for all of them. Two softmaxes read one length, a third has none."""
    config = target_for(name)
    build = kit.Regions(7, config)
    length = build.tensor(1, config.cof_bytes)
    y = build.softmax(build.softmax(build.tensor(4, 12, 20), causal, length), causal, length)
    given = []
    for columns in (0, 1, 7, 19, 20, 21, 300, (1 << 16) - 1):
        entry = np.zeros((1, config.cof_bytes), np.int8)
        entry[0, :2] = np.frombuffer(np.uint16(columns).tobytes(), np.int8)
        given.append(("x0", entry))
    kit.compare(build.function(build.softmax(y, causal)), config, given=given)


def test_rows_of_more_axes(kit: SimpleNamespace, device: Target) -> None:
    """Reshapes around a function of rows that keep them; causal matrices are those inside."""
    build = kit.Regions(9, device)
    y = build.softmax(build.tensor(3, 8, 20), True, (17,), inside=(1, 3, 8, 20))
    kit.compare(build.function(build.softmax(y, True, (5, 20, 9, 1), inside=(4, 6, 20))), device)


def test_a_row_that_takes_all_accumulators(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    build = kit.Regions(10, config)
    kit.compare(build.function(build.softmax(build.tensor(2, 4 * config.acc_depth - 3), lengths=(2000,))), config)


def chain(kit: SimpleNamespace, config: Target, seed: int = 3) -> Function:
    """Functions of rows between dense layers, and a residual add around one."""
    build = kit.Regions(seed, config)
    x = build.tensor(21, 40)
    y = build.norm(build.rows(x, 40))
    y = build.add(build.norm(build.rows(y, 40), centered=False), x)
    return build.function(build.rows(build.softmax(build.rows(y, 24), causal=True), 30))


@pytest.mark.parametrize("on_chip", [False, True])
def test_between_layers(kit: SimpleNamespace, device: Target, on_chip: bool) -> None:
    """Units run in any order that tokens allow."""
    function = chain(kit, device)
    segment = compile_function(function, device, "accel_0", on_chip=on_chip)
    check_program(segment.program, device)
    for order in range(3):
        kit.compare(function, device, seed=order, order=order)


@pytest.mark.parametrize("name", ["default", "wide"])
def test_attention(kit: SimpleNamespace, name: str) -> None:
    """Products, a causal softmax and copies of heads in one program; activations stay on chip."""
    config = target_for(name)
    build = kit.Regions(11, config)
    x = build.tensor(24, 64)
    heads: Callable[[Expr], Expr] = lambda t: op.transpose(op.reshape(t, (24, 2, 32)), (1, 0, 2))  # noqa: E731
    q, k = (build.move(heads, build.rows(x, 64)) for _ in range(2))
    v = build.move(lambda t: op.transpose(heads(t), (0, 2, 1)), build.rows(x, 64))
    mixed = build.product(build.softmax(build.product(q, k), causal=True), v)
    y = build.move(lambda t: op.reshape(op.transpose(t, (1, 0, 2)), (24, 64)), mixed)
    segment = kit.compare(build.function(build.norm(build.add(build.rows(y, 64), x))), config, order=1)
    assert sum(code is Op.ROW for code, _ in segment.program.instructions) >= 3


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_rows(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(ROW_CONFIGS)))
    seed = data.draw(st.integers(0, 1 << 20))
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 40), st.integers(1, 130)))
    build = kit.Regions(seed, config)
    x = build.tensor(*shape[data.draw(st.integers(0, 1)) :])
    match data.draw(st.sampled_from(("softmax", "layer norm", "rms norm"))):
        case "softmax":
            first = build.shape(x)[0]
            lengths = data.draw(st.none() | st.lists(st.integers(-1, 140), min_size=first, max_size=first))
            y = build.softmax(x, data.draw(st.booleans()), lengths)
        case name:
            y = build.norm(x, name == "layer norm")
    kit.compare(build.function(y), config, seed, order=seed)


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)),
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.booleans(),
)
def test_runs_of_visible_columns(shape: tuple[int, int, int], lengths: list[int], causal: bool) -> None:
    """Runs cover the rows, each row sees what the operator says, and two of them are not one."""
    seen = visible(shape, np.array(lengths[: shape[0]]), causal).sum(axis=-1).reshape(-1)
    found = list(visible_runs(seen))
    rows = [int(seen[first]) + step * number for first, count, step in found for number in range(count)]
    assert rows == seen.tolist()
    assert [first for first, _, _ in found] == np.cumsum([0, *(count for _, count, _ in found)]).tolist()[:-1]
    assert all(step in (0, 1) for _, _, step in found)


def program_of(kit: SimpleNamespace, config: Target) -> Program:
    return compile_function(chain(kit, config), config, "accel_0", resident=False).program


def test_every_token_of_the_row_unit_is_needed(kit: SimpleNamespace, device: Target) -> None:
    program = program_of(kit, device)
    units = [BY_OP[code].unit for code, _ in program.instructions]
    pairs = [pair for pair in token_pairs(program) if Unit.ROW in (units[pair[1]], units[pair[2]])]
    assert len(pairs) > 4
    for semaphore, giver, taker in pairs:

        def drop(instructions: list[Instr], s: int = semaphore, g: int = giver, t: int = taker) -> None:
            instructions[g][1]["set"] &= ~(1 << s)
            instructions[t][1]["wait"] &= ~(1 << s)

        with pytest.raises(TensorizeError, match=r"instruction \d+ \(\w+\) must wait for instruction \d+"):
            check_program(changed(program, drop), device)


def first_row(program: Program) -> int:
    return next(index for index, (code, _) in enumerate(program.instructions) if code is Op.ROW)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"row_step": 0}, "rows must share no acc entry"),
        ({"acc_base": 0xFFF0}, "acc entry must be below"),
        ({"cof_base": 0xFFF0}, "cof entry must be below"),
        ({"row_step": 0x1000}, "acc entry must be below"),
    ],
)
def test_refuses_wrong_places(kit: SimpleNamespace, device: Target, changes: dict[str, int], sentence: str) -> None:
    program = program_of(kit, device)

    def edit(instructions: list[Instr]) -> None:
        instructions[first_row(program)][1].update(changes)

    with pytest.raises(TensorizeError, match=rf"instruction \d+: {sentence}"):
        check_program(changed(program, edit), device)


def test_refuses_coefficients_that_were_not_loaded(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(1, config)
    program = compile_function(build.function(build.norm(build.tensor(4, 40))), config, "accel_0").program

    def edit(instructions: list[Instr]) -> None:
        instructions[first_row(program)][1]["cof_base"] += 1

    with pytest.raises(TensorizeError, match=r"\(row\) must read cof \d+ only after it was written"):
        check_program(changed(program, edit), config)


def test_occupancy_has_coefficients(kit: SimpleNamespace, device: Target) -> None:
    lives = occupancy(program_of(kit, device), device)
    assert {mem.name: len(found) > 0 for mem, found in lives.items()}["COF"]


def test_a_program_without_rows_needs_no_coefficients(kit: SimpleNamespace) -> None:
    build = kit.Regions(2, target_for("ecp5"))
    segment = compile_function(build.function(build.rows(build.tensor(4, 20), 8)), target_for("ecp5"), "accel_0")
    assert "coefficients" not in {section.name for section in segment.program.sections}


def composite(name: str, param: Var, body: Expr, *others: Var) -> Function:
    typed = infer_type(IRModule.from_expr(Function([param, *others], body)))["main"]
    attrs = {"Primitive": 1, "Composite": f"accel.{name}"}
    return Function(typed.params, typed.body, typed.ret_type, attrs=attrs)


def var(*shape: int, dtype: str = "int8") -> Var:
    return Var("x", TensorType(shape, dtype))


def norm_of(x: Var, columns: int) -> Expr:
    return op.fixed.layer_norm(x, Constant(np.ones(columns, np.int16)), Constant(np.zeros(columns, np.int32)), 10)


TABLE = Constant(exponentials(0.1))
FOUR, WIDE, LENGTHS = var(1, 2, 3, 5), var(2, 2049), var(1, dtype="int32")
ROWS, LONG = var(2, 3, 6), var(1, 4097)
REFUSED: dict[str, tuple[str, Function, str]] = {
    "axes": (
        "default",
        composite("softmax", FOUR, op.fixed.softmax(FOUR, TABLE)),
        "rows must be the last axis of 2 or 3, not of 4",
    ),
    "other rows": (
        "default",
        composite("softmax", ROWS, op.fixed.softmax(op.reshape(ROWS, (3, 12)), TABLE)),
        "a reshape must keep rows of 12, not make them 6",
    ),
    "lengths": (
        "default",
        composite("softmax", ROWS, op.fixed.softmax(ROWS, TABLE, LENGTHS), LENGTHS),
        "lengths that are no constant must be int8 of (1, 32), not int32 of (1,)",
    ),
    "columns": (
        "default",
        composite("layer_norm", WIDE, norm_of(WIDE, 2049)),
        "columns of a norm must fit the 512 entries of coefficients of default, not need 516",
    ),
    "unit": (
        "ecp5",
        composite("layer_norm", ROWS, norm_of(ROWS, 6)),
        "configuration ecp5 must have a row unit for fixed.layer_norm",
    ),
    "room": (
        "tiny",
        composite("softmax", LONG, op.fixed.softmax(LONG, TABLE)),
        "a row must fit the 1024 entries of configuration tiny, not need 1028",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_not(name: str) -> None:
    config, function, sentence = REFUSED[name]
    reason = why_not(function, target_for(config))
    assert reason == sentence
