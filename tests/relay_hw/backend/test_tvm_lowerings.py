"""Lowerings that nothing random reaches, against their numpy meaning; and that no lowering at all goes untested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.backend.flat import FlatCall, FlatFunction, evaluate
from relay_hw.backend.tvm import build_library, is_installed, load_library
from relay_hw.ir.expr import Call, Constant, Tuple
from relay_hw.op.rows import exponentials
from relay_hw.op.shape import ReshapeAttrs
from tests.needs import needs_tvm
from tests.relay_hw.backend.test_tvm_differential import (
    DTYPES,
    FLOATS,
    GROUPS,
    INTEGERS,
    Build,
    Case,
    corners,
    differences,
    tame,
)

pytestmark = needs_tvm

Type = tuple[tuple[int, ...], str]
SMALL = ("float32", "int8", "uint64", "bool")
SAME_BITS = (
    ("float16", "int16"), ("float32", "int32"), ("float64", "int64"), ("int8", "uint8"), ("uint32", "float32"),
    ("uint64", "int64"), ("uint16", "float16"), ("int32", "int32"),
)  # fmt: skip


def likes() -> Iterator[Case]:
    """Operators that take the shape or the element type of a second argument, whose values say nothing."""
    for dtype in SMALL:
        x, like = ((2, 1, 4), dtype), ((3, 2, 5, 4), "float32")
        yield Case(f"broadcast_to_like_{dtype}", op.broadcast_to_like, x, like)
        yield Case(f"reshape_like_{dtype}", op.reshape_like, ((2, 3, 4), dtype), ((4, 6), "int8"))
        part = lambda x, like: op.reshape_like(x, like, 1, 3, 0, 2)  # noqa: E731
        yield Case(f"reshape_like_part_{dtype}", part, ((2, 3, 4, 5), dtype), ((6, 2, 7), "int8"))
        for name in ("zeros_like", "ones_like"):
            yield Case(f"{name}_{dtype}", getattr(op, name), x)
        full = lambda x, dtype=dtype: op.full_like(x, Constant(corners(dtype, (), 3)))  # noqa: E731
        yield Case(f"full_like_{dtype}", full, x)
        for target in ("float32", "int32", "int8", "bool"):
            yield Case(f"cast_like_{dtype}_{target}", op.cast_like, x, ((1,), target), values=tame)
    for dtype in ("float32", "float64", "int32", "int8"):
        summed = ((3, 2, 5, 4), dtype), ((2, 1, 4), "float32")
        yield Case(f"collapse_sum_like_{dtype}", op.collapse_sum_like, *summed, values=tame)


def shapes() -> Iterator[Case]:
    builds: dict[str, Build] = {
        "expand_dims": lambda x: op.expand_dims(x, 1, 2),
        "expand_dims_last": lambda x: op.expand_dims(x, -1),
        "squeeze": op.squeeze,
        "squeeze_axis": lambda x: op.squeeze(x, (-2,)),
        "flatten": op.nn.batch_flatten,
        "reverse_reshape": lambda x: Call(op.get("contrib_reverse_reshape"), (x,), ReshapeAttrs((-1, 0))),
        "shape_of": op.shape_of,
        "shape_of_int64": lambda x: op.shape_of(x, "int64"),
        "size": op.ndarray_size,
        "size_int64": lambda x: op.ndarray_size(x, "int64"),
        "on_device": lambda x: op.on_device(x, "cpu"),
        "device_copy": lambda x: op.device_copy(x, "cpu", "cuda"),
        "stop_fusion": lambda x: Call(op.get("annotation.stop_fusion"), (x,)),
    }
    for dtype in SMALL:
        for name, build in builds.items():
            yield Case(f"{name}_{dtype}", build, ((3, 1, 4, 1, 2), dtype))


def constants() -> Iterator[Case]:
    """Tensors of one value; with an argument, so that they are not known before."""
    for dtype in DTYPES:
        scalar, vector = ((), dtype), ((4,), dtype)
        yield Case(f"full_{dtype}", lambda v, dtype=dtype: op.full(v, (2, 3), dtype), scalar)
        yield Case(f"ones_{dtype}", lambda x, dtype=dtype: Tuple((op.ones((3, 4), dtype), x)), vector)
        yield Case(f"zeros_{dtype}", lambda x, dtype=dtype: Tuple((op.zeros((3, 4), dtype), x)), vector)
    for dtype in ("int8", "int32", "int64", "uint8"):
        for axis in (-1, 0, 1):
            for out in ("float32", "int8"):
                hot = lambda i, on, off, axis=axis, out=out: op.one_hot(i, on, off, 4, axis, out)  # noqa: E731
                places = lambda dtype, shape, seed: (  # noqa: E731
                    np.random.default_rng(seed).integers(0 if dtype == "uint8" else -2, 7, shape).astype(dtype)
                )
                name = f"one_hot_{dtype}_{axis % 3}_{out}"
                yield Case(name, hot, ((3, 5), dtype), ((), out), ((), out), values=places)


def bits() -> Iterator[Case]:
    for source, target in SAME_BITS:
        for a, b in ((source, target), (target, source)):
            yield Case(f"reinterpret_{a}_{b}", lambda x, b=b: op.reinterpret(x, b), ((5, 7), a))
    for dtype in ("int8", "int16", "int32", "uint8", "uint16"):
        for number, (multiplier, shift) in enumerate(
            ((1 << 30, 1), (1 << 30, 0), (2**31 - 1, 0), (3 << 28, -7), (1 << 30, -31), (12345, 4), (0, 0), (1, -32))
        ):
            scaled = lambda x, m=multiplier, at=shift: op.fixed_point_multiply(x, m, at)  # noqa: E731
            yield Case(f"fixed_point_{dtype}_{number}", scaled, ((6, 9), dtype))


def networks() -> Iterator[Case]:
    """Layers' companions: bias, leaky relu, dropout, softmax, pools of everything."""
    for dtype in FLOATS:
        for alpha in (0.25, 0.0, -1.5):
            yield Case(f"leaky_{dtype}_{alpha}", lambda x, a=alpha: op.nn.leaky_relu(x, a), ((5, 7), dtype))
    for dtype in (*FLOATS, *(kind for kind in INTEGERS if kind != "uint64")):
        for axis in (1, -1, 0):
            x = (2, 3, 4)
            bias = lambda x, b, axis=axis: op.nn.bias_add(x, b, axis)  # noqa: E731
            yield Case(f"bias_{dtype}_{axis % 3}", bias, (x, dtype), ((x[axis],), dtype))
    for dtype in ("float32", "float64"):
        image = ((2, 3, 5, 7), dtype)
        yield Case(f"dropout_{dtype}", lambda x: op.nn.dropout(x, 0.3), image)
        both = lambda x: op.nn.dropout(x, 0.3).tuple_value  # noqa: E731
        yield Case(f"dropout_mask_{dtype}", both, image)
        for axis in (1, -1):
            yield Case(
                f"fast_softmax_{dtype}_{axis % 4}", lambda x, a=axis: op.nn.fast_softmax(x, a), image, values=tame
            )
    for dtype in ("float32", "float64", "int8", "int32", "uint8"):
        for layout, shape in (("NCHW", (2, 3, 5, 7)), ("NHWC", (2, 5, 7, 3))):
            for kind, values in (("avg", tame), ("max", corners)):
                pool = getattr(op.nn, f"global_{kind}_pool2d")
                whole = lambda x, pool=pool, layout=layout: pool(x, layout)  # noqa: E731
                yield Case(f"global_{kind}_{dtype}_{layout}", whole, (shape, dtype), values=values)


def fixed_point() -> Iterator[Case]:
    """Its integers, at the limits of multipliers and shifts."""
    multipliers, shifts = (2**31 - 1, 1, 5, 3 << 20, 1 << 30, 77), (31, 0, 1, 43, 62, 30)
    for rounding in ("half_up", "half_even", "half_away", "floor"):
        for y, r, shift in ((1 << 29, 3 << 28, 30), (1, 1, 1), (2**31 - 1, 2**31 - 1, 39), (1, 2**30, 62)):
            add = lambda a, b, y=y, r=r, at=shift, how=rounding: op.fixed.add(  # noqa: E731
                a, b, y, r, at, 4, -3, 2, how, -100, 99
            )
            yield Case(f"fixed_add_{rounding}_{shift}", add, ((4, 6, 5), "int8"), ((4, 6, 5), "int8"))
        for shape in ((1, 6, 4, 5), (1, 6, 1, 1)):
            numbers = {"multiplier": (1 << 22) - 1, "shift": 29, "y_zero_point": 4, "r_zero_point": -3, "zero_point": 2}
            numbers |= {"rounding": rounding, "a_min": -100, "a_max": 99}
            mul = lambda a, b, numbers=numbers: op.fixed.mul(a, b, **numbers)  # noqa: E731
            yield Case(f"fixed_mul_{rounding}_{shape[2]}", mul, ((1, 6, 4, 5), "int8"), (shape, "int8"))
        for axis, shape in ((1, (2, 6, 40)), (-1, (9, 6))):
            bias = Constant(corners("int32", (6,), 5))
            scaled = lambda x, axis=axis, bias=bias, how=rounding: op.fixed.requantize(  # noqa: E731
                x, bias, multipliers, shifts, -5, how, -120, 99, axis
            )
            yield Case(f"fixed_requantize_{rounding}_{axis % 3}", scaled, (shape, "int32"))

    results = Constant(np.arange(256).astype(np.uint8)[::-1].view(np.int8).copy())
    yield Case("fixed_table", lambda x: op.fixed.table(x, results), ((4, 65), "int8"))


def integer_rows() -> Iterator[Case]:
    """Softmax with all masks, and norms, of rows of one number, of few and of many; rows that are all equal."""

    def few(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
        rows = corners(dtype, shape, seed) >> np.random.default_rng(seed).integers(0, 8, (*shape[:-1], 1))
        return np.where(np.random.default_rng(seed + 1).random((*shape[:-1], 1)) < 0.1, 7, rows).astype(dtype)

    lengths = Constant(np.array([0, 3, 40], np.int32))
    for shape in ((3, 5, 1), (3, 5, 40), (3, 2, 700)):
        for scale, factor in ((0.01, (1 << 15, 7, -128)), (0.3, (65280, 8, -128)), (2.0, (65535, 0, 127))):
            table = Constant(exponentials(scale))
            for known in (None, lengths):
                for causal in (False, True):
                    soft = lambda x, t=table, n=known, f=factor, c=causal: op.fixed.softmax(  # noqa: E731
                        x, t, n, multiplier=f[0], shift=f[1], zero_point=f[2], causal=c
                    )
                    name = f"fixed_softmax_{shape[-1]}_{factor[1]}_{known is None}_{causal}"
                    yield Case(name, soft, (shape, "int8"), values=few)
        gain, bias = Constant(corners("int16", shape[-1:], 3)), Constant(corners("int32", shape[-1:], 4))
        for shift, epsilon in ((20, 0), (24, 1), (31, (1 << 48) - 1)):
            layer = lambda x, g=gain, b=bias, at=shift, e=epsilon: op.fixed.layer_norm(x, g, b, at, e, 3)  # noqa: E731
            yield Case(f"fixed_layer_norm_{shape[-1]}_{shift}", layer, (shape, "int8"), values=few)
            rms = lambda x, g=gain, b=bias, at=shift, e=epsilon: op.fixed.rms_norm(  # noqa: E731
                x, g, b, at, epsilon=e, zero_point=-5, input_zero_point=e % 3 - 9
            )
            yield Case(f"fixed_rms_norm_{shape[-1]}_{shift}", rms, (shape, "int8"), values=few)


def simplified() -> Iterator[Case]:
    """What a compiler may take for a constant or for x itself, but is not where x is infinite or NaN."""
    same = ("subtract", "divide", "equal", "not_equal", "less_equal", "greater", "maximum", "minimum", "floor_divide")
    for dtype in ("float32", "float64"):
        x = ((6, 9), dtype)
        for name in same:
            yield Case(f"same_{name}_{dtype}", lambda x, name=name: Call(op.get(name), (x, x)), x)
            fused = lambda x, name=name: Call(op.get(name), (op.negative(x), op.negative(x)))  # noqa: E731
            yield Case(f"fused_{name}_{dtype}", fused, x)
        for name, value in (("multiply", 0), ("add", 0), ("subtract", 0), ("multiply", 1), ("power", 0), ("divide", 1)):
            known = Constant(np.array(value, dtype))
            by = lambda x, name=name, known=known: Call(op.get(name), (x, known))  # noqa: E731
            yield Case(f"{name}_{value}_{dtype}", by, x)
        yield Case(f"zero_over_{dtype}", lambda x, d=dtype: op.divide(Constant(np.array(0, d)), x), x)
        yield Case(f"zero_times_{dtype}", lambda x: op.multiply(op.zeros_like(x), x), x)
        yield Case(f"zero_filled_{dtype}", lambda x, d=dtype: op.multiply(op.zeros((6, 9), d), x), x)
        image = ((2, 6, 3, 3), dtype)
        yield Case(f"lrn_{dtype}", lambda x: op.nn.lrn(x, 3, 1, 2.0, 0.0, 0.5), image)


def reductions() -> Iterator[Case]:
    """Of booleans, and places of the first and the last of equals."""
    for axes, keepdims in (((1,), False), ((0, 2), True), ((2, 1, 0), False)):
        for name in ("all", "any"):
            many = lambda x, name=name, axes=axes, keep=keepdims: getattr(op, name)(x, axes, keep)  # noqa: E731
            few = lambda dtype, shape, seed, odd=name == "any": (  # noqa: E731
                np.random.default_rng(seed).random(shape) < (0.1 if odd else 0.9)
            )
            yield Case(f"{name}_{len(axes)}", many, ((4, 5, 6), "bool"), values=few)
        for name in ("argmax", "argmin"):
            for dtype in ("float32", "int8", "uint8", "int32"):
                for last in (False, True):
                    place = lambda x, name=name, axes=axes, keep=keepdims, last=last: getattr(op, name)(  # noqa: E731
                        x, axes, keep, select_last_index=last
                    )
                    ties = lambda dtype, shape, seed: np.floor(  # noqa: E731
                        np.random.default_rng(seed).random(shape) * 3
                    ).astype(dtype)
                    yield Case(f"{name}_{len(axes)}_{dtype}_{last}", place, ((4, 5, 6), dtype), values=ties)
                    if dtype == "float32":
                        yield Case(f"{name}_{len(axes)}_{last}_nan", place, ((4, 5, 6), dtype))


GENERATORS = (simplified, reductions, likes, shapes, constants, bits, networks, fixed_point, integer_rows)
CASES = {generator.__name__: list(generator()) for generator in GENERATORS} if is_installed() else {}


@pytest.mark.parametrize("name", list(CASES))
def test_equals_numpy(name: str, tmp_path: Path) -> None:
    path = tmp_path / "host.so"
    record = build_library([case.function for case in CASES[name]], path)
    library = load_library(path, record, threads=1)
    wrong: dict[str, Any] = {}
    for case in CASES[name]:
        for seed in range(3):
            args = case.arguments(seed)
            found = differences(library.call(case.function.name, args), evaluate(case.function, args))
            if found:
                wrong[case.function.name] = found
    assert not wrong


def operators(function: FlatFunction) -> set[str]:
    return {node.op.name for node in function.nodes if isinstance(node, FlatCall)}


def untested(names: set[str], functions: list[FlatFunction]) -> set[str]:
    """Those of `names` that TVM compiles in none of the functions; a call that keeps its numpy meaning is none."""
    from relay_hw.backend.tvm.lower import lower
    from relay_hw.backend.tvm.machine import machine

    left = set(names)
    for function in functions:
        wanted = operators(function) & left
        if wanted:
            left -= wanted - set(lower([function], machine("x86-64-v3")).operators[function.name])
    return left


def test_no_lowering_goes_untested() -> None:
    from relay_hw.backend.tvm.ops import LOWERINGS

    functions = [case.function for cases in (*GROUPS.values(), *CASES.values()) for case in cases]
    assert untested(set(LOWERINGS), functions) == set()
    # A case that numpy computes, or another operator's, does not count.
    assert untested({"nn.relu", "argsort"}, [case.function for case in CASES["bits"]]) == {"nn.relu", "argsort"}
    wide = Case("wide", op.add, ((2,), "uint64"), ((2,), "uint64")).function
    assert operators(wide) == {"add"} and untested({"add"}, [wide]) == {"add"}
