"""Tables and products of the output stage: functions of one number behind layers and alone, gates, by the proof and on
the functional simulator."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.isa.spec import Form, Op
from relay_hw.analysis import infer_type
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Constant, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.tensorize import compile_function, why_not
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.validate.proof import validate
from tests.targets import target_for

WITH_TABLES = ("default", "w4", "wide", "tiny")


@pytest.mark.parametrize("name", WITH_TABLES)
def test_every_layer_can_have_a_table(kit: SimpleNamespace, name: str) -> None:
    """Convolutions of both kinds, with a sum behind, transposed ones, pools and dense layers; more tables than fit."""
    config = target_for(name)
    build = kit.Regions(21, config)
    build.tables = True
    x = build.input(9, 8, 7)
    y = build.conv(x, 20, padding=(1, 1, 1, 1))
    y = build.conv(y, 20, padding=(1, 1, 1, 1), residual=y, swapped=True)
    y = build.conv(y, 20, padding=(1, 1, 1, 1), groups=20)
    y = build.table(build.max_pool(y, (2, 2), (2, 2)))
    y = build.conv_transpose(build.sum_pool(y, (2, 2)), 8)
    y = build.add(y, build.table(y))
    kit.compare(build.function(build.dense(y, 11)), config)


@pytest.mark.parametrize("name", WITH_TABLES)
def test_products_of_tables(kit: SimpleNamespace, name: str) -> None:
    """Matrix products, layers of rows, and products kept on chip behind them."""
    config = target_for(name)
    build = kit.Regions(22, config)
    build.tables = True
    width = config.channel_align
    y = build.rows(build.tensor(5, width), 2 * width)
    other = build.rows(build.tensor(5, width), 2 * width)
    kit.compare(build.function(build.mul(y, other), build.table(other)), config)


@pytest.mark.parametrize("shape", [(20, 9, 8), (3, 1, 1), (64, 17, 16)])
def test_a_gate_has_a_number_for_each_channel(
    kit: SimpleNamespace, config: Target, shape: tuple[int, int, int]
) -> None:
    build = kit.Regions(sum(shape), config)
    y, r = build.input(*shape), build.input(shape[0], 1, 1)
    gated = build.mul(y, r)
    kit.compare(build.function(build.conv(gated, 8, (1, 1)), build.mul(gated, y)), config)


def test_a_gate_is_one_loop_of_instructions(kit: SimpleNamespace) -> None:
    """Its vector is loaded once a step, and stays where it is for all pixels."""
    config = target_for("default")
    build = kit.Regions(23, config)
    y, r = build.input(32, 8, 8), build.input(32, 1, 1)
    program = kit.compare(build.function(build.mul(y, r)), config).program
    products = [v for o, v in program.instructions if o is Op.REQUANT and v["form"] == Form.MUL]
    assert products and all(v["still"] and v["iter_out"] == 2 for v in products)


def test_equal_tables_are_loaded_once(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(24, config)
    results = np.arange(-128, 128).astype(np.int8)[::-1].copy()
    once = build.table(build.input(16, 6, 6), results)
    program = kit.compare(build.function(build.table(once, results)), config).program
    assert {v["table"] for o, v in program.instructions if o is Op.REQUANT} == {1}


def test_a_wrong_number_in_a_table_is_found(kit: SimpleNamespace) -> None:
    """The proof reads tables from the bytes that the program loads."""
    config = target_for("tiny")
    build = kit.Regions(25, config)
    build.tables = True
    function = build.function(build.conv(build.input(4, 3, 3), 4, (1, 1)))
    segment = compile_function(function, config, "accel_0")
    validate(function, segment, config)
    program = segment.program
    (table,) = (section for section in program.sections if section.name == "tables")
    assert table.data is not None
    others = tuple(section for section in program.sections if section is not table)
    wrong = replace(table, data=bytes([table.data[0] ^ 1, *table.data[1:]]))
    with pytest.raises(TensorizeError, match="must"):
        validate(function, replace(segment, program=replace(program, sections=(*others, wrong))), config)


def test_without_tables_there_is_a_reason() -> None:
    x, results = Var("x", TensorType((1, 8, 4, 4), "int8")), Constant(np.zeros(256, np.int8))
    typed = infer_type(IRModule.from_expr(Function([x], op.fixed.table(x, results))))["main"]
    composite = Function(typed.params, typed.body, typed.ret_type, attrs={"Primitive": 1, "Composite": "accel.table"})
    assert why_not(composite, target_for("ecp5")) == ("configuration ecp5 must have tables for fixed.table, not none")
    assert why_not(composite, target_for("default")) is None


def test_a_pixel_that_does_not_fit_has_a_reason() -> None:
    y, r = (Var(name, TensorType(shape, "int8")) for name, shape in (("y", (1, 9000, 2, 2)), ("r", (1, 9000, 1, 1))))
    typed = infer_type(IRModule.from_expr(Function([y, r], op.fixed.mul(y, r, multiplier=1, shift=0))))["main"]
    composite = Function(typed.params, typed.body, typed.ret_type, attrs={"Primitive": 1, "Composite": "accel.mul"})
    reason = why_not(composite, target_for("tiny"))
    assert reason is not None and reason.startswith("a pixel's channels must fit configuration tiny, not need")


def test_joined_results_of_tables_stay_in_place(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(26, config)
    build.tables = True
    x = build.input(7, 6, 6)
    parts = [build.conv(x, 16, (1, 1)), build.table(build.conv(x, 32, (1, 1)))]
    joined = build.move(lambda *x: op.concatenate(Tuple(x), axis=1), *parts)
    kit.compare(build.function(build.conv(joined, 9, (1, 1))), config)
