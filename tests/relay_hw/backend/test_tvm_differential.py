"""Operators through TVM against their numpy meaning: every element type, corners, random attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, evaluate, flatten
from relay_hw.backend.tvm import build_library, is_installed, load_library
from relay_hw.errors import RelayHwError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from tests.needs import needs_tvm

pytestmark = needs_tvm

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = (*FLOATS, *INTEGERS, "bool")
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}
RNG = np.random.default_rng(11)
Build = Callable[..., Expr]

UNARY = [one for one in op.OPS if one.num_inputs == 1 and one.attrs_type is None and "flatten" not in one.name]
UNARY = [
    one for one in UNARY if one.name in op.elementwise.__dict__ or one in (*op.elementwise.OPS, *op.activation.OPS)
]
BINARY = [one for one in op.broadcast.OPS if one.num_inputs == 2 and one.attrs_type is None]
DIVISIONS = ("divide", "floor_divide", "floor_mod", "mod", "trunc_divide", "trunc_mod")
# Of integers these are functions of floats that are cut off, or refuse values.
REAL_ONLY = {
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "fast_erf", "fast_exp",
    "fast_tanh", "log", "log10", "log2", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "power",
}  # fmt: skip


def corners(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Values with what goes wrong: limits, ties, zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if kind.kind == "f":
        value = rng.normal(0, 3, shape).astype(kind)
        pool = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, np.inf, -np.inf, np.nan], kind)
    else:
        info = np.iinfo(kind)
        value = rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
        pool = np.array([info.min, info.max, 0, 1, info.max - 1, 7], kind)
    return np.where(rng.random(shape) < 0.3, rng.choice(pool, shape), value)


def tame(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Small values, floats without NaN: for sums, whose order is free, and casts, which need a range."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 2, shape).astype(dtype)
    return corners(dtype, shape, seed)


class Case:
    """A function, and how its arguments are made."""

    def __init__(self, name: str, build: Build, *types: tuple[tuple[int, ...], str], values: Any = corners) -> None:
        params = [Var(f"x{i}", TensorType(*ty)) for i, ty in enumerate(types)]
        module = infer_type(IRModule({"main": Function(params, build(*params))}))
        self.function: FlatFunction = flatten(module["main"], name.replace(".", "_"))
        self.types = types
        self.values = values

    def arguments(self, seed: int) -> list[Any]:
        return [self.values(dtype, shape, 10 * seed + k) for k, (shape, dtype) in enumerate(self.types)]


def valid(name: str, build: Build, *types: tuple[tuple[int, ...], str], values: Any = corners) -> Iterator[Case]:
    """The case, where the language accepts it and its meaning takes the values."""
    try:
        case = Case(name, build, *types, values=values)
        evaluate(case.function, case.arguments(0))
    except (RelayHwError, TypeError, OverflowError):
        return
    yield case


def elementwise() -> Iterator[Case]:
    """All operators of an element type in one function."""
    shape, other = (3, 1, 7), (5, 7)
    for dtype in DTYPES:
        real = dtype in FLOATS
        for k, one in enumerate(UNARY):
            if real or one.name not in REAL_ONLY:
                yield from valid(f"{dtype}_{one.name}_{k}", lambda x, one=one: Call(one, (x,)), (shape, dtype))
        for one in BINARY:
            if one.name in DIVISIONS and not real:
                if dtype == "bool":
                    continue
                most = min(np.iinfo(dtype).max, 2**31)
                divisor = np.array([1, 2, 3, 7, most, 5, 1], dtype)
                if dtype in ("int8", "int16", "int32"):
                    divisor[3:6] = -1, np.iinfo(dtype).min, -7
                by = Constant(divisor)
                yield from valid(f"{dtype}_{one.name}", lambda x, one=one, by=by: Call(one, (x, by)), (shape, dtype))
            elif real or one.name not in REAL_ONLY:
                build = lambda a, b, one=one: Call(one, (a, b))  # noqa: E731
                yield from valid(f"{dtype}_{one.name}", build, (shape, dtype), (other, dtype))
        yield from valid(f"{dtype}_clip", lambda x: op.clip(x, -3.5, 60.0), (shape, dtype))
        select = lambda c, a, b: op.where(c, a, b)  # noqa: E731
        yield from valid(f"{dtype}_where", select, (other, "bool"), (shape, dtype), (other, dtype))


def casts() -> Iterator[Case]:
    for source in DTYPES:
        for target in DTYPES:
            unsigned = source in FLOATS and target.startswith("uint")
            build = lambda x, target=target, unsigned=unsigned: op.cast(op.abs(x) if unsigned else x, target)  # noqa: E731
            yield from valid(f"cast_{source}_{target}", build, ((4, 5), source), values=tame)


def integer_traps() -> Iterator[Case]:
    """What TVM or LLVM would take otherwise."""
    for dtype in ("int8", "int16", "int32", "uint8"):
        pair = ((6, 9), dtype), ((6, 9), dtype)
        yield from valid(
            f"trap_narrow_{dtype}",
            lambda a, b: op.less(op.cast(op.add(a, b), "int64"), op.cast(b, "int64")),
            *pair,
        )
        yield from valid(f"trap_sum_{dtype}", lambda a, b: op.sum(op.add(a, b), axis=1), *pair)
        yield from valid(f"trap_mean_{dtype}", lambda a, b: op.mean(op.multiply(a, b), axis=1), *pair)
        yield from valid(
            f"trap_widen_{dtype}",
            lambda a, b: op.maximum(op.cast(op.cast(op.multiply(a, b), "int8"), "int32"), op.cast(a, "int32")),
            *pair,
        )


def reductions() -> Iterator[Case]:
    ones = [one for one in op.reduce.OPS if one.num_inputs == 1]
    for one in ones:
        for dtype in ("float32", "float64", "int8", "int32", "uint8", "bool"):
            shape = tuple(int(size) for size in RNG.integers(1, 6, RNG.integers(1, 5)))
            rank = len(shape)
            axes = tuple(int(a) for a in RNG.permutation(rank)[: RNG.integers(1, rank + 1)])
            attrs = {"axis": axes, "keepdims": bool(RNG.integers(2)), "exclude": bool(RNG.integers(4) == 0)}
            values = corners if one.name in ("max", "min", "argmax", "argmin", "all", "any") else tame
            made = one.attrs_type(**attrs)  # type: ignore[misc]
            yield from valid(
                f"{one.name}_{dtype}",
                lambda x, one=one, made=made: Call(one, (x,), made),
                (shape, dtype),
                values=values,
            )


def pick(*choices: Any) -> Any:
    return choices[int(RNG.integers(len(choices)))]


def pools() -> Iterator[Case]:
    layouts = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
    for rank in (1, 2, 3):
        for kind in ("max", "avg"):
            for dtype in ("float32", "int8", "int32"):
                attrs: dict[str, Any] = {
                    "strides": tuple(int(v) for v in RNG.integers(1, 4, rank)),
                    "dilation": tuple(int(v) for v in RNG.integers(1, 3, rank)),
                    "padding": tuple(int(v) for v in RNG.integers(0, 2, 2 * rank)),
                    "layout": pick(*layouts[rank]),
                    "ceil_mode": bool(RNG.integers(2)),
                }
                if kind == "avg":
                    attrs["count_include_pad"] = bool(RNG.integers(2))
                shape = tuple(int(v) for v in RNG.integers(4, 8, rank + 2))
                pool = getattr(op.nn, f"{kind}_pool{rank}d")
                build = lambda x, pool=pool, attrs=attrs, rank=rank: pool(x, (2,) * (rank - 1) + (3,), **attrs)  # noqa: E731
                values = tame if kind == "avg" else corners
                yield from valid(f"{kind}_pool{rank}d_{dtype}", build, (shape, dtype), values=values)
            whole = getattr(op.nn, f"adaptive_{kind}_pool{rank}d")
            build = lambda x, whole=whole, rank=rank: whole(x, (2,) * rank)  # noqa: E731
            yield from valid(f"adaptive_{kind}_{rank}", build, ((2, 3, *(4, 6, 8)[:rank]), "float32"), values=tame)


def convolutions() -> Iterator[Case]:
    layouts = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
    for number in range(36):
        rank, transposed = int(RNG.integers(1, 4)), number % 3 == 2
        dtype, out = pick(("float32", "float32"), ("int8", "int32"), ("uint8", "int8"), ("float64", "float64"))
        groups = int(pick(1, 1, 2, 3, 6))
        inside, outside = groups * int(RNG.integers(1, 4)), groups * int(RNG.integers(1, 8))
        kernel = tuple(int(v) for v in RNG.integers(1, 4, rank))
        layout = pick(*layouts[rank])
        sizes = tuple(int(v) for v in RNG.integers(5, 10, rank))
        shape = (2, inside, *sizes) if layout[1] == "C" else (2, *sizes, inside)
        weight = (inside, outside // groups, *kernel) if transposed else (outside, inside // groups, *kernel)
        strides = tuple(int(v) for v in RNG.integers(1, 4, rank))
        attrs: dict[str, Any] = {
            "strides": strides,
            "dilation": tuple(int(v) for v in RNG.integers(1, 3, rank)),
            "padding": tuple(int(v) for v in RNG.integers(0, 2, 2 * rank)),
            "groups": groups,
            "channels": outside,
            "kernel_size": kernel,
            "data_layout": layout,
            "out_dtype": out,
        }
        if transposed:
            attrs["output_padding"] = tuple(int(RNG.integers(0, s)) for s in strides)
        build = getattr(op.nn, f"conv{rank}d" + "_transpose" * transposed)
        name = f"conv_{number}"
        if number % 4 == 0:
            given = lambda x, w, build=build, attrs=attrs: build(x, w, **attrs)  # noqa: E731
            yield from valid(name, given, (shape, dtype), (weight, dtype), values=tame)
        else:
            known = Constant(tame(dtype, weight, number))
            fixed = lambda x, build=build, attrs=attrs, known=known: build(x, known, **attrs)  # noqa: E731
            yield from valid(name, fixed, (shape, dtype), values=tame)


def products() -> Iterator[Case]:
    for number, (dtype, out) in enumerate(
        (("float32", "float32"), ("int8", "int32"), ("float64", "float64"), ("int16", "int32"), ("uint8", "int16"))
    ):
        m, k, n = (int(v) for v in RNG.integers(1, 40, 3))
        known = Constant(tame(dtype, (n, k), number))
        dense = lambda x, known=known, out=out: op.nn.dense(x, known, out_dtype=out)  # noqa: E731
        yield from valid(f"dense_{dtype}", dense, ((2, m, k), dtype), values=tame)
        for a, b in ((False, True), (True, False)):
            left, right = ((k, m) if a else (m, k)), ((n, k) if b else (k, n))
            flags = {"transpose_a": a, "transpose_b": b, "out_dtype": out}
            two = lambda x, y, flags=flags: op.nn.matmul(x, y, **flags)  # noqa: E731
            yield from valid(f"matmul_{dtype}_{a}", two, (left, dtype), (right, dtype), values=tame)
            many = lambda x, y, flags=flags: op.nn.batch_matmul(x, y, **flags)  # noqa: E731
            yield from valid(f"batch_{dtype}_{a}", many, ((3, *left), dtype), ((3, *right), dtype), values=tame)


# Sums that float32 cannot hold exactly: chunks, or float64.
DEEP = 4096


def deep_sums() -> Iterator[Case]:
    for channels in (DEEP, DEEP - 1):
        full = Constant(np.full((3, channels), -128, np.int8))
        yield from valid(
            f"deep_{channels}",
            lambda x, full=full: op.nn.dense(x, full, out_dtype="int32"),
            ((2, channels), "int8"),
            values=lambda dtype, shape, seed: np.full(shape, -128, dtype) + (np.arange(shape[-1]) % 2).astype(dtype),
        )


def moves() -> Iterator[Case]:
    t = ((2, 4, 6, 8), pick("float32", "int8"))
    indices = Constant(np.array([[0, 3, -1], [9, 1, 2]], np.int32))
    builds: dict[str, Build] = {
        "reshape": lambda x: op.reshape(x, (0, -1)),
        "transpose": lambda x: op.transpose(x, (3, 0, 2, 1)),
        "layout_block": lambda x: op.layout_transform(x, "NCHW", "NCHW4c"),
        "layout_back": lambda x: op.layout_transform(op.layout_transform(x, "NCHW", "NCHW2c"), "NCHW2c", "NHWC"),
        "layout_order": lambda x: op.layout_transform(x, "NCHW", "NHWC"),
        "to_space": lambda x: op.nn.depth_to_space(x, 2, mode="CRD"),
        "to_depth": lambda x: op.nn.space_to_depth(x, 2),
        "tile": lambda x: op.tile(x, (2, 1, 3)),
        "repeat": lambda x: op.repeat(x, 3, axis=2),
        "repeat_flat": lambda x: op.repeat(x, 2),
        "upsampling": lambda x: op.nn.upsampling(x, 2, 3),
        "reverse": lambda x: op.reverse(x, axis=-2),
        "slice": lambda x: op.strided_slice(x, (1, -1, 0, 6), (2, 0, 100, 1), (1, -2, 2, -3)),
        "slice_size": lambda x: op.strided_slice(x, (0, 1), (-1, 2), slice_mode="size"),
        "split": lambda x: op.split(x, (1, 4), axis=2),
        "stack": lambda x: op.stack(Tuple((x, x)), axis=-1),
        "concatenate": lambda x: op.concatenate(Tuple((x, x, x)), axis=-3),
        "pad_crop": lambda x: op.nn.pad(x, ((1, 0), (-1, 2), (0, -3), (0, 0)), 3),
        "pad_edge": lambda x: op.nn.pad(x, ((1, 0), (0, 2), (2, 1), (0, 0)), pad_mode="edge"),
        "mirror": lambda x: op.nn.mirror_pad(x, ((1, 0), (2, 2), (0, 3), (1, 1)), "REFLECT"),
        "mirror_symmetric": lambda x: op.nn.mirror_pad(x, ((1, 2), (0, 0), (0, 3), (1, 1))),
        "take": lambda x: op.take(x, indices, axis=1),
        "take_wrap": lambda x: op.take(x, indices, axis=3, mode="wrap"),
        "take_flat": lambda x: op.take(x, indices),
        "gather": lambda x: op.gather(x, 3, Constant(np.full((2, 4, 6, 2), -3, np.int64))),
        "gather_nd": lambda x: op.gather_nd(x, Constant(np.array([[0, 1, -1], [3, -2, 0]], np.int32))),
        "one_hot": lambda x: op.one_hot(op.cast(x, "int32"), op.const(1.0), op.const(0.0), 5, axis=1, dtype="float32"),
        "broadcast": lambda x: op.broadcast_to(x, (3, 2, 4, 6, 8)),
        "collapse": lambda x: op.collapse_sum_to(x, (4, 1, 8)),
        "zeros": lambda x: op.add(op.zeros((2, 1, 6, 8), t[1]), x),
    }
    for name, build in builds.items():
        yield Case(f"move_{name}", build, t, values=tame)


def norms() -> Iterator[Case]:
    image = ((2, 6, 4, 5), "float32")
    vector = [Constant(tame("float32", (6,), k)) for k in range(4)]
    positive = Constant(np.abs(vector[3].data) + 0.5)
    builds: dict[str, Build] = {
        "softmax": lambda x: op.nn.softmax(x, axis=1),
        "log_softmax": lambda x: op.nn.log_softmax(x, axis=-2),
        "instance": lambda x: op.nn.instance_norm(x, vector[0], vector[1]),
        "group": lambda x: op.nn.group_norm(x, vector[0], vector[1], 3),
        "layer": lambda x: op.nn.layer_norm(x, vector[0], vector[1], axis=1),
        "batch": lambda x: op.nn.batch_norm(x, vector[0], vector[1], vector[2], positive)[0],
        "l2": lambda x: op.nn.l2_normalize(x, 1e-3, (1, 3)),
        "lrn": lambda x: op.nn.lrn(x, 3),
        "variance": lambda x: op.variance(x, axis=(1, 3), keepdims=True, unbiased=True),
        "prelu": lambda x: op.nn.prelu(x, vector[0]),
    }
    for name, build in builds.items():
        yield Case(f"norm_{name}", build, image, values=tame)


def quantized() -> Iterator[Case]:
    def scalar(value: float, dtype: str) -> Constant:
        return Constant(np.array(value, dtype))

    scales, zeros = Constant(np.array([0.02, 0.5, 1.0], np.float32)), Constant(np.array([3, -4, 0], np.int32))
    for rounding in ("half_away", "half_even"):
        for out in ("int8", "uint8", "int16"):
            build = lambda x, r=rounding, o=out: op.qnn.quantize(x, scales, zeros, 1, o, r)  # noqa: E731
            yield Case(f"quantize_{rounding}_{out}", build, ((4, 3, 5), "float32"))
    for dtype in ("int8", "uint8", "int32"):
        build = lambda x: op.qnn.dequantize(x, scales, zeros, 1)  # noqa: E731
        yield Case(f"dequantize_{dtype}", build, ((4, 3, 5), dtype))
        for rounding in ("UPWARD", "TONEAREST", "TONEAREST_EVEN"):
            build = lambda x, r=rounding: op.qnn.requantize(  # noqa: E731
                x, scales, zeros, scalar(0.25, "float32"), scalar(5, "int32"), 1, r
            )
            yield Case(f"requantize_{dtype}_{rounding}", build, ((4, 3, 5), dtype))
    kernel = Constant(tame("int8", (6, 2, 3, 3), 4))
    points = (scalar(-7, "int32"), scalar(2, "int32"), scalar(0.1, "float32"), scalar(0.2, "float32"))
    build = lambda x: op.qnn.conv2d(x, kernel, *points, (3, 3), 6, padding=(1, 1), groups=2)  # noqa: E731
    yield Case("qnn_conv2d", build, ((2, 4, 7, 6), "int8"))
    matrix = Constant(tame("int8", (9, 17), 5))
    yield Case("qnn_dense", lambda x: op.qnn.dense(x, matrix, *points, 9), ((5, 17), "int8"))
    yield Case("sum_pool", lambda x: op.fixed.sum_pool2d(x, (3, 2), (2, 1), (1, 0, 0, 1)), ((2, 3, 7, 6), "int8"))
    wide = Constant(tame("int8", (4, 3, 3, 2), 6))
    build = lambda x: op.fixed.conv2d_transpose(x, wide, (2, 1), (1, 0), groups=2, input_zero_point=-9)  # noqa: E731
    yield Case("fixed_transpose", build, ((2, 4, 5, 6), "int8"))


GENERATORS = (
    elementwise, casts, integer_traps, reductions, pools, convolutions, products, deep_sums, moves, norms, quantized
)  # fmt: skip
GROUPS = {generator.__name__: list(generator()) for generator in GENERATORS} if is_installed() else {}


@pytest.fixture(scope="module", params=list(GROUPS))
def group(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from relay_hw.backend.tvm.schedule import CpuRule

    patch = pytest.MonkeyPatch()
    # A schedule that does not fit would give plain loops: here it is an error.
    patch.setattr(CpuRule, "apply", lambda self, func, _target, _tunable: self.schedule(func))
    path: Path = tmp_path_factory.mktemp(request.param) / "host.so"
    cases = GROUPS[request.param]
    record = build_library([case.function for case in cases], path)
    patch.undo()
    return request.param, cases, record, load_library(path, record, threads=1)


def differences(got: Any, want: Any) -> str:
    if isinstance(want, tuple):
        return "; ".join(filter(None, (differences(left, right) for left, right in zip(got, want, strict=True))))
    want = np.asarray(want)
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype} {got.shape}, not {want.dtype} {want.shape}"
    if want.dtype.kind != "f":
        return "" if np.array_equal(got, want) else f"{np.sum(got != want)} of {want.size} differ"
    limit = TOLERANCE[str(want.dtype)]
    with np.errstate(all="ignore"):
        close = np.isclose(got, want, rtol=limit, atol=limit, equal_nan=True)
    return "" if close.all() else f"{got[~close][:3]}, not {want[~close][:3]}"


def test_equals_numpy(group: Any) -> None:
    _, cases, _, library = group
    wrong = {}
    for case in cases:
        for seed in range(2):
            args = case.arguments(seed)
            found = differences(library.call(case.function.name, args), evaluate(case.function, args))
            if found:
                wrong[case.function.name] = found
    assert not wrong


def test_little_is_left_to_numpy(group: Any) -> None:
    name, cases, record, _ = group
    left = {operator for operators in record.left_to_numpy.values() for operator in operators}
    most = {"elementwise": 0.2, "casts": 0.2, "reductions": 0.45}.get(name, 0.1)
    assert len(record.left_to_numpy) <= most * len(cases) + 1, left
