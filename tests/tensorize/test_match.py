"""Matching: each composite that cannot run has its own sentence, and what is legal becomes the right kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.isa.spec import Rounding
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from relay_hw.ir.types import ANY, TensorType
from relay_hw.span import Span
from relay_hw.tensorize import compile_function, why_not
from relay_hw.tensorize.kernel import ConvKernel, Image, PairsKernel, PoolKernel, PoolKind
from relay_hw.tensorize.match.composite import match
from tests.targets import target_for

DEFAULT = target_for("default")


def var(*shape: int, dtype: str = "int8", name: str = "x") -> Var:
    return Var(name, TensorType(shape, dtype))


def ones(*shape: int, dtype: str = "int8") -> Constant:
    return Constant(np.ones(shape, dtype))


def requantize(core: Expr, channels: int, **changes: Any) -> Call:
    numbers = {"multiplier": (1 << 20,), "shift": (24,), **changes}
    return op.fixed.requantize(core, ones(channels, dtype="int32"), **numbers)


def conv2d(data: Expr, weight: Expr, **changes: Any) -> Call:
    return op.nn.conv2d(data, weight, **{"out_dtype": "int32", **changes})


def composite(name: str, params: list[Var], body: Expr) -> Function:
    return Function(params, body, attrs={"Primitive": 1, "Composite": f"accel.{name}"})


def conv_function(
    x: Var | None = None,
    weight: Expr | None = None,
    stage: dict[str, Any] | None = None,
    wrap: Callable[[Expr], Expr] = lambda x: x,
    **changes: Any,
) -> Function:
    x = x or var(1, 3, 8, 8)
    weight = weight if weight is not None else ones(4, 3, 3, 3)
    return composite("conv2d", [x], requantize(conv2d(wrap(x), weight, **changes), 4, **(stage or {})))


def dense_function(x: Var, weight: Expr, data: Callable[[Expr], Expr] = lambda x: x, **changes: Any) -> Function:
    core = op.nn.dense(data(x), weight, **{"out_dtype": "int32", **changes})
    return composite("dense", [x], requantize(core, 4))


def pad_by(widths: tuple[tuple[int, int], ...], value: float = 0, mode: str = "constant") -> Callable[[Expr], Expr]:
    return lambda x: op.nn.pad(x, widths, Constant(np.array(value)), mode)


SPATIAL = ((0, 0), (0, 0), (1, 1), (1, 1))
X, ROWS = var(1, 3, 8, 8), var(1, 6, 8)
ROWS_OF_ONE = requantize(op.nn.dense(ROWS, ones(1, 8), out_dtype="int32"), 1, axis=2)


def with_residual(shape: tuple[int, ...], groups: int = 1) -> Function:
    r, channels = var(*shape, name="r"), 4 if groups == 1 else 2 * groups
    core = conv2d(X, ones(channels, 3 // groups, 3, 3), groups=groups)
    body = op.fixed.add(requantize(core, channels), r, 1, 1, 1)
    return composite("conv2d", [X, r], body)


def add_function(shape: tuple[int, ...] = (1, 3, 8, 8), **changes: Any) -> Function:
    y, r = var(1, 3, 8, 8, name="y"), var(*shape, name="r")
    return composite("add", [y, r], op.fixed.add(y, r, **{"y_multiplier": 1, "r_multiplier": 1, "shift": 1, **changes}))


def max_pool(x: Var = X, wrap: Callable[[Expr], Expr] = lambda x: x, **changes: Any) -> Function:
    return composite("max_pool2d", [x], op.nn.max_pool2d(wrap(x), **{"pool_size": (2, 2), **changes}))


REFUSED: dict[str, tuple[Function, str]] = {
    "groups": (with_residual((1, 6, 6, 6), groups=3), "a convolution of groups must not add a second operand"),
    "data layout": (conv_function(data_layout="NHWC"), "data_layout must be NCHW, not NHWC"),
    "kernel layout": (conv_function(kernel_layout="HWIO"), "kernel_layout must be OIHW, not HWIO"),
    "accumulator": (conv_function(out_dtype="int16"), "out_dtype must be int32, not int16"),
    "weights": (conv_function(weight=var(4, 3, 3, 3)), "weight must be a constant, not Var"),
    "weight dtype": (conv_function(weight=ones(4, 3, 3, 3, dtype="uint8")), "weight must be int8, not uint8"),
    "weight channels": (conv_function(weight=ones(4, 2, 3, 3)), "weight must have 3 input channels, not 2"),
    "batch": (conv_function(var(2, 3, 8, 8)), r"batch must be 1, not \(2,\)"),
    "dtype": (conv_function(var(1, 3, 8, 8, dtype="uint8")), "activation must be int8, not uint8"),
    "rank": (conv_function(var(1, 3, 8)), r"activation shape must be \(1, C, H, W\), not \(1, 3, 8\)"),
    "unknown": (
        composite("conv2d", [Var("x", TensorType((1, ANY, 8, 8), "int8"))], X),
        "composite must hold a call of an operator here",
    ),
    "padding": (conv_function(padding=(3, 0, 0, 0)), "padding must be below the window's 3, not 3"),
    "window": (conv_function(dilation=(4, 4)), "window must fit the padded input of 8, not be 9"),
    "axis": (conv_function(stage={"axis": 2}), "requantize axis must be 1, not 2"),
    "multiplier": (
        conv_function(stage={"multiplier": (1 << 31,)}),
        "multiplier must fit the 31 bits of configuration default, not 2147483648",
    ),
    "shift": (conv_function(stage={"shift": (63,)}), "shift must be 0 to 62, not 63"),
    "multipliers": (
        conv_function(stage={"multiplier": (1, 2), "shift": (1, 2)}),
        "multiplier and shift must have 1 or 4 values, not 2",
    ),
    "rounding": (
        conv_function(stage={"rounding": "up"}),
        "rounding must be one of half_up, half_even, half_away, floor, not up",
    ),
    "zero point": (conv_function(stage={"zero_point": 128}), "zero point must fit int8, not 128"),
    "clip": (conv_function(stage={"a_min": 5, "a_max": 4}), "clip bounds must be ordered int8 values, not 5 and 4"),
    "pad mode": (conv_function(wrap=pad_by(SPATIAL, 0, "reflect")), "pad_mode must be constant, not reflect"),
    "pad channels": (
        conv_function(wrap=pad_by(((0, 0), (1, 0), (0, 0), (0, 0)))),
        "padding of batch and channels must be 0",
    ),
    "pad value": (conv_function(wrap=pad_by(SPATIAL, 200)), "pad value must fit int8, not 200"),
    "pad fraction": (conv_function(wrap=pad_by(SPATIAL, 0.5)), "pad value must be an integer, not 0.5"),
    "two pads": (
        conv_function(wrap=pad_by(SPATIAL, 3), padding=(1, 1, 1, 1)),
        "pad value in front of a padding operator must be 0, not 3",
    ),
    "operator": (
        composite("conv2d", [X], requantize(op.nn.relu(X), 3)),
        "operator must be nn.conv2d or nn.dense, not nn.relu",
    ),
    "no requantize": (composite("conv2d", [X], conv2d(X, ones(4, 3, 3, 3))), "operator must be fixed.requantize, not"),
    "pattern": (composite("log_softmax", [X], op.nn.log_softmax(X)), "composite must be one of accel's patterns, not"),
    "bias": (
        composite("conv2d", [X], op.fixed.requantize(conv2d(X, ones(4, 3, 3, 3)), var(4, dtype="int32"), (1,), (1,))),
        "bias must be a constant, not Var",
    ),
    "dense inputs": (dense_function(var(1, 9), ones(4, 8)), "weight must have 9 inputs, not 8"),
    "rows as an image": (
        composite("dense", [ROWS], op.reshape(ROWS_OF_ONE, (1, 1, 6, 1))),
        r"reshape to an image must be of one vector, not of rows \(1, 6, 1\)",
    ),
    "reshape": (
        dense_function(var(1, 2, 2, 2), ones(4, 8), lambda x: op.reshape(x, (2, 4))),
        r"reshape must be to \(1, 8\), not \(2, 4\)",
    ),
    "residual shape": (
        with_residual((1, 4, 6, 5)),
        r"operands of fixed.add must have one shape, not \(1, 4, 6, 6\) and \(1, 4, 6, 5\)",
    ),
    "add shape": (add_function((1, 3, 8, 1)), "operands of fixed.add must have one shape, not"),
    "add zero point": (add_function(r_zero_point=-129), "zero point must fit int8, not -129"),
    "pool layout": (max_pool(layout="NHWC"), "layout must be NCHW, not NHWC"),
    "pool padding": (max_pool(padding=(2, 2, 2, 2)), "padding must be below the window's 2, not 2"),
    "pool pad value": (
        max_pool(wrap=pad_by(SPATIAL, 3), pool_size=(3, 3), padding=(1, 1, 1, 1)),
        "pad value in front of a padding operator must be -128, not 3",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_not(name: str) -> None:
    function, sentence = REFUSED[name]
    reason = why_not(function, DEFAULT)
    assert reason is not None
    with pytest.raises(TensorizeError, match=sentence):
        raise TensorizeError(reason)


def test_why_not_depends_on_the_configuration() -> None:
    function = conv_function(stage={"multiplier": (1 << 20,)})
    assert why_not(function, DEFAULT) is None
    reason = why_not(function, target_for("ecp5"))
    assert reason == "multiplier must fit the 16 bits of configuration ecp5, not 1048576"


def test_why_not_when_no_tile_fits() -> None:
    x = var(1, 3, 90, 90)
    reason = why_not(conv_function(x, weight=ones(4, 3, 41, 41)), target_for("tiny"))
    assert reason is not None and reason.startswith("convolution must have a tile that fits configuration tiny, not")
    reason = why_not(max_pool(x, pool_size=(60, 60)), target_for("tiny"))
    assert reason is not None and reason.startswith("pool must have a tile that fits configuration tiny, not")


def test_conv_kernel() -> None:
    weight = Constant(np.arange(4 * 3 * 2 * 3, dtype=np.int8).reshape(4, 3, 2, 3))
    wrap = pad_by(((0, 0), (0, 0), (1, 0), (2, 1)), -3)
    function = conv_function(weight=weight, wrap=wrap, strides=(2, 1), stage={"rounding": "floor", "zero_point": -4})
    found = match(function, DEFAULT)
    kernel = found.kernel
    assert isinstance(kernel, ConvKernel) and kernel.residual is None and not kernel.flat
    assert kernel.window.padding == (1, 2, 0, 1) and kernel.window.pad_value == -3
    assert kernel.target == Image(4, 9, 4) and found.shape == (1, 4, 4, 9) and found.params == (0,)
    assert np.array_equal(kernel.weights, weight.data.transpose(0, 2, 3, 1))
    assert kernel.requantize.rounding is Rounding.FLOOR and kernel.requantize.zero_point == -4
    assert kernel.requantize.shift.tolist() == [24] * 4
    assert kernel.macs == 4 * 9 * 4 * 2 * 3 * 3


def test_dense_kernel_permutes_to_channels_last() -> None:
    x = var(1, 2, 3, 5)
    weight = Constant(np.random.default_rng(0).integers(-128, 128, (4, 30)).astype(np.int8))
    kernel = match(dense_function(x, weight, op.nn.batch_flatten), DEFAULT).kernel
    assert isinstance(kernel, ConvKernel) and kernel.flat
    assert kernel.weights.shape == (4, 3, 5, 2)
    assert kernel.weights[1, 2, 4, 1] == weight.data[1, 1 * 15 + 2 * 5 + 4]


def test_residual_on_the_left_swaps_the_operands() -> None:
    r = var(1, 4, 6, 6, name="r")
    body = op.fixed.add(r, requantize(conv2d(X, ones(4, 3, 3, 3)), 4), 7, 9, 3, 1, 2)
    found = match(composite("conv2d", [r, X], body), DEFAULT)
    assert isinstance(found.kernel, ConvKernel) and found.kernel.residual is not None
    stage = found.kernel.residual
    assert (stage.y_multiplier, stage.r_multiplier, stage.y_zero, stage.r_zero) == (9, 7, 2, 1)
    assert found.params == (1, 0)


def test_pool_and_add_kernels() -> None:
    pool = match(max_pool(pool_size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1)), DEFAULT).kernel
    assert isinstance(pool, PoolKernel) and pool.kind is PoolKind.MAX and pool.window.pad_value == -128
    assert pool.target == Image(4, 4, 3)
    up = match(max_pool(pool_size=(3, 3), strides=(2, 2), ceil_mode=True), DEFAULT).kernel
    assert isinstance(up, PoolKernel) and up.target == Image(4, 4, 3) and up.window.padding == (0, 0, 1, 1)
    assert isinstance(match(add_function(), DEFAULT).kernel, PairsKernel)


def test_reasons_carry_the_place() -> None:
    core = conv2d(X, Constant(np.ones((4, 3, 3, 3), np.int8)), padding=(3, 0, 0, 0))
    placed = Call(core.op, core.args, core.attrs, span=Span("model/conv7"))
    function = composite("conv2d", [X], requantize(placed, 4))
    sentence = "padding must be below the window's 3, not 3"
    with pytest.raises(TensorizeError, match=f"model/conv7: {sentence}"):
        match(function, DEFAULT)
    assert why_not(function, DEFAULT) == sentence


def region(body: Callable[[Expr], Expr], x: Var | None = None) -> Function:
    x = x or var(1, 3, 8, 8)
    return Function([x], body(x), attrs={"Compiler": "accel", "global_symbol": "accel_0"})


def test_region_refusals() -> None:
    pool = max_pool()
    cases = [
        (region(lambda x: x), "result of a must be computed by it, not be its input"),
        (region(lambda x: op.nn.relu(x)), "accelerator function must call composite functions, not Op"),
        (region(lambda x: Tuple([Call(pool, [x]), x])), "result of a must be computed by it, not be its input"),
        (region(lambda x: Call(pool, [x]), var(1, 4, 8, 8)), "operand of max_pool2d must be 8x8x3, not 8x8x4"),
        (region(lambda x: Call(pool, [x]), var(1, 3, 8, 8, dtype="float32")), "input x of a must be int8, not float32"),
    ]
    for function, sentence in cases:
        with pytest.raises(TensorizeError, match=sentence):
            compile_function(function, DEFAULT, "a")


def test_constant_operands(kit: Any) -> None:
    """A constant activation is data of the program."""
    build = kit.Regions(3, DEFAULT)
    x = build.input(5, 4, 4)
    value = Constant(np.random.default_rng(1).integers(-128, 128, (1, 5, 4, 4)).astype(np.int8))
    y = build.add(x, x)
    assert isinstance(y, Call)
    replaced = Call(y.op, [x, value])
    build._shapes[replaced] = (1, 5, 4, 4)
    kit.compare(build.function(replaced), DEFAULT)
