"""Relax operators as Relay: each means what TVM's own compiled code computes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from relay_hw.frontend import from_relax
from relay_hw.frontend.relax.reader import CONVERTERS
from relay_hw.interp.evaluate import Interpreter
from tests.needs import needs_tvm

pytestmark = needs_tvm

F32 = "float32"
Case = tuple[str, list[tuple[tuple[int, ...], str]], Callable[[Any, list[Any]], Any]]


def build(types: list[tuple[tuple[int, ...], str]], body: Callable[[Any, list[Any]], Any]) -> Any:
    """A Relax module whose main applies `body(relax.op, params)`."""
    relax: Any = import_module("tvm.relax")
    params = [relax.Var(f"x{i}", relax.TensorType(shape, dtype)) for i, (shape, dtype) in enumerate(types)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(body(relax.op, params)))
    return builder.get()


def data(types: list[tuple[tuple[int, ...], str]]) -> list[np.ndarray]:
    rng = np.random.default_rng(len(types))
    found = []
    for shape, dtype in types:
        if dtype == "bool":
            found.append(rng.integers(0, 2, shape).astype(bool))
        elif dtype.startswith("float"):
            found.append((rng.uniform(0.1, 0.9, shape) * rng.choice([-1, 1], shape)).astype(dtype))
        else:
            found.append(rng.integers(0, 3, shape).astype(dtype))
    return found


def compare(module: Any, arrays: list[np.ndarray]) -> None:
    tvm: Any = import_module("tvm")
    relax: Any = import_module("tvm.relax")
    steps = [relax.transform.DecomposeOpsForInference(), relax.transform.LegalizeOps()]
    executable = tvm.compile(tvm.transform.Sequential(steps)(module), "llvm")
    want = relax.VirtualMachine(executable, tvm.cpu())["main"](*[tvm.runtime.tensor(a) for a in arrays])
    mod = from_relax(module)
    names = [param.name_hint for param in mod["main"].params]
    got = Interpreter(mod).call_global("main", dict(zip(names, arrays, strict=True)))
    pairs = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
    for mine, theirs in pairs:
        array = theirs.numpy()
        assert (mine.shape, mine.dtype) == (array.shape, array.dtype)
        np.testing.assert_allclose(mine, array, rtol=2e-5, atol=2e-6)


def one(*shape: int, dtype: str = F32) -> list[tuple[tuple[int, ...], str]]:
    return [(shape, dtype)]


def const(value: Any, dtype: str | None = None) -> Any:
    return import_module("tvm.relax").const(value, dtype)


def number(value: float) -> Any:
    return import_module("tvm.tirx").const(value, F32)


POSITIVE = ("acosh", "log", "sqrt", "rsqrt")
UNARY = [
    *(
        "abs",
        "acos",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "erf",
        "exp",
        "floor",
        "isfinite",
        "isinf",
    ),
    *("isnan", "negative", "round", "sigmoid", "sign", "sin", "sinh", "square", "tan", "tanh", "trunc", *POSITIVE),
]
BINARY = [
    *(
        "add",
        "subtract",
        "multiply",
        "divide",
        "power",
        "maximum",
        "minimum",
        "equal",
        "not_equal",
        "less",
        "less_equal",
    ),
    *("greater", "greater_equal", "log_add_exp"),
]
INTEGER = [
    "floor_divide",
    "floor_mod",
    "divide",
    "mod",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
]


def unary(name: str) -> Case:
    def body(o: Any, x: list[Any]) -> Any:
        source = o.add(o.abs(x[0]), const(1.0, F32)) if name in POSITIVE else x[0]
        return getattr(o, name)(source)

    return name, one(3, 5), body


def integer(name: str) -> Case:
    def body(o: Any, x: list[Any]) -> Any:
        lift = const(1, "int32")
        shift = o.subtract(o.multiply(x[0], o.add(lift, lift)), o.add(lift, lift))
        return getattr(o, name)(shift if "shift" not in name else x[0], o.add(x[1], lift))

    return f"{name} of integers", [((3, 5), "int32"), ((3, 5), "int32")], body


def scales() -> list[Any]:
    return [const(np.full(8, 0.05, F32)), const(np.full(8, 3, "int8"))]


CONV = [((1, 6, 8, 9), F32), ((4, 3, 3, 2), F32)]
NORM = [((2, 6, 4, 5), F32), ((6,), F32), ((6,), F32)]
REDUCE = ("sum", "mean", "max", "min", "prod", "variance", "std")
CASES: list[Case] = [
    *(unary(name) for name in UNARY),
    *((name, [((3, 5), F32), ((1, 5), F32)], lambda o, x, n=name: getattr(o, n)(o.abs(x[0]), x[1])) for name in BINARY),
    *(integer(name) for name in INTEGER),
    *((f"{n} {axis} {keep}", one(2, 3, 4), lambda o, x, n=n, axis=axis, keep=keep: getattr(o, n)(x[0], axis, keep))
      for n in REDUCE for axis, keep in ((None, False), ([0, 2], True))),
    ("argmax", one(3, 5), lambda o, x: o.argmax(x[0], 1)),
    ("argmin", one(3, 5), lambda o, x: o.argmin(x[0], None, True)),
    ("cumsum", one(3, 5), lambda o, x: o.cumsum(x[0], 1)),
    ("cumprod", one(3, 5), lambda o, x: o.cumprod(x[0], 0, exclusive=True)),
    ("clip", one(3, 5), lambda o, x: o.clip(x[0], -0.25, 0.5)),
    ("astype", one(3, 5), lambda o, x: o.astype(x[0], "float64")),
    ("where", [((3, 5), "bool"), ((3, 5), F32), ((5,), F32)], lambda o, x: o.where(*x)),
    ("logical", [((3, 5), "bool"), ((3, 5), "bool")],
     lambda o, x: o.logical_xor(o.logical_not(x[0]), o.logical_or(*x))),
    ("full_like", one(3, 5), lambda o, x: o.add(x[0], o.full_like(x[0], const(2.5, F32)))),
    ("ones_like", one(3, 5), lambda o, x: o.add(o.ones_like(x[0]), o.zeros_like(x[0]))),
    ("zeros", one(3, 5), lambda o, x: o.add(x[0], o.add(o.zeros((3, 5), F32), o.ones((5,), F32)))),
    ("arange", one(5), lambda o, x: o.add(x[0], o.arange(1, 11, 2, F32))),
    ("reshape", one(2, 3, 4), lambda o, x: o.reshape(x[0], (4, -1))),
    ("flatten", one(2, 3, 4), lambda o, x: o.flatten(x[0])),
    ("squeeze", one(2, 1, 4, 1), lambda o, x: o.squeeze(x[0], [1])),
    ("expand_dims", one(2, 3), lambda o, x: o.expand_dims(x[0], [0, 3])),
    ("permute_dims", one(2, 3, 4), lambda o, x: o.permute_dims(x[0], [2, 0, 1])),
    ("permute_dims reversed", one(2, 3, 4), lambda o, x: o.permute_dims(x[0])),
    ("concat", [((2, 3), F32), ((2, 1), F32)], lambda o, x: o.concat(x, 1)),
    ("concat flat", [((2, 3), F32), ((2, 1), F32)], lambda o, x: o.concat([o.flatten(v) for v in x])),
    ("split at", one(2, 7), lambda o, x: o.split(x[0], [2, 3], 1)),
    ("split in", one(2, 6), lambda o, x: o.split(x[0], 3, 1)),
    ("stack", [((2, 3), F32), ((2, 3), F32)], lambda o, x: o.stack(x, 1)),
    ("broadcast_to", one(3, 1), lambda o, x: o.broadcast_to(x[0], (2, 3, 4))),
    ("tile", one(2, 3), lambda o, x: o.tile(x[0], (2, 1, 2))),
    ("repeat", one(2, 3), lambda o, x: o.repeat(x[0], 2, 1)),
    ("flip", one(2, 3), lambda o, x: o.flip(x[0], 1)),
    ("strided_slice", one(6, 7), lambda o, x: o.strided_slice(x[0], [0, 1], [1, 0], [5, 7], [2, 3])),
    ("take", [((5, 4), F32), ((2, 3), "int32")], lambda o, x: o.take(x[0], x[1], 0)),
    ("gather_elements", [((3, 4), F32), ((2, 4), "int64")], lambda o, x: o.gather_elements(x[0], x[1], 0)),
    ("gather_nd", [((3, 4, 5), F32), ((6, 2), "int64")], lambda o, x: o.gather_nd(x[0], x[1])),
    ("scatter_elements", [((3, 4), F32), ((2, 4), "int64"), ((2, 4), F32)],
     lambda o, x: o.scatter_elements(*x, axis=0, reduction="add")),
    ("scatter_nd", [((3, 4), F32), ((5, 2), "int64"), ((5,), F32)], lambda o, x: o.scatter_nd(*x, reduction="add")),
    ("one_hot", one(4, dtype="int32"), lambda o, x: o.one_hot(x[0], number(2.0), number(-1.0), 3, -1)),
    ("sort", one(4, 5), lambda o, x: o.sort(x[0], 1, True)),
    ("argsort", one(4, 5), lambda o, x: o.argsort(x[0], 1)),
    ("topk", one(4, 5), lambda o, x: o.topk(x[0], 2)),
    ("tril", one(4, 5), lambda o, x: o.tril(x[0], 1)),
    ("triu", one(4, 5), lambda o, x: o.triu(x[0], -1)),
    ("einsum", [((3, 4), F32), ((4, 5), F32)], lambda o, x: o.einsum(x, "ij,jk->ki")),
    ("resize linear", one(1, 2, 4, 5), lambda o, x: o.image.resize2d(x[0], (7, 8), layout="NCHW", method="linear")),
    ("resize nearest", one(1, 4, 5, 2), lambda o, x: o.image.resize2d(
        x[0], (8, 10), layout="NHWC", method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
        rounding_method="floor")),
    ("conv2d", CONV, lambda o, x: o.nn.conv2d(*x, strides=2, padding=[1, 0, 2, 1], dilation=[1, 2], groups=2)),
    ("conv2d NHWC", [((1, 8, 9, 6), F32), ((3, 2, 6, 4), F32)],
     lambda o, x: o.nn.conv2d(*x, data_layout="NHWC", kernel_layout="HWIO")),
    ("conv2d int8", [((1, 3, 6, 6), "int8"), ((4, 3, 3, 3), "int8")], lambda o, x: o.nn.conv2d(*x, out_dtype="int32")),
    ("conv1d", [((1, 4, 9), F32), ((6, 4, 3), F32)], lambda o, x: o.nn.conv1d(*x, padding=1)),
    ("conv2d_transpose", [((1, 4, 5, 5), F32), ((4, 3, 3, 3), F32)],
     lambda o, x: o.nn.conv2d_transpose(*x, strides=2, padding=1, output_padding=1)),
    ("max_pool2d", one(1, 3, 8, 9), lambda o, x: o.nn.max_pool2d(x[0], (3, 2), 2, 1)),
    ("avg_pool2d", one(1, 3, 8, 9), lambda o, x: o.nn.avg_pool2d(x[0], (3, 3), 2, 1)),
    ("avg_pool2d counted", one(1, 3, 8, 9), lambda o, x: o.nn.avg_pool2d(x[0], (3, 3), 2, 1, count_include_pad=True)),
    ("adaptive_avg_pool2d", one(1, 3, 8, 9), lambda o, x: o.nn.adaptive_avg_pool2d(x[0], (4, 3))),
    ("matmul", [((3, 4), F32), ((4, 5), F32)], lambda o, x: o.matmul(*x)),
    ("matmul of transposed", [((3, 4), F32), ((5, 4), F32)], lambda o, x: o.matmul(x[0], o.permute_dims(x[1]))),
    ("matmul rows", [((2, 3, 4), F32), ((4, 5), F32)], lambda o, x: o.matmul(*x)),
    ("matmul batches", [((2, 1, 3, 4), F32), ((5, 4, 6), F32)], lambda o, x: o.matmul(*x)),
    ("matmul vectors", [((4,), F32), ((2, 4, 3), F32)], lambda o, x: o.matmul(*x)),
    ("matmul int8", [((3, 4), "int8"), ((4, 5), "int8")], lambda o, x: o.matmul(*x, out_dtype="int32")),
    ("batch_norm", [*NORM, ((6,), F32), ((6,), F32)],
     lambda o, x: o.nn.batch_norm(*x[:4], o.abs(x[4]), axis=1, training=False)),
    ("layer_norm", [((2, 3, 6), F32), ((6,), F32), ((6,), F32)], lambda o, x: o.nn.layer_norm(*x, axes=[-1])),
    ("layer_norm of two axes", [((2, 3, 6), F32), ((3, 6), F32), ((3, 6), F32)],
     lambda o, x: o.nn.layer_norm(*x, axes=[1, 2])),
    ("group_norm", NORM, lambda o, x: o.nn.group_norm(*x, num_groups=3, channel_axis=1, axes=[2, 3])),
    ("rms_norm", [((2, 6), F32), ((6,), F32)], lambda o, x: o.nn.rms_norm(*x, axes=[-1])),
    ("softmax", one(3, 5), lambda o, x: o.nn.softmax(x[0], 1)),
    ("log_softmax", one(3, 5), lambda o, x: o.nn.log_softmax(x[0], 0)),
    *((n, one(3, 5), lambda o, x, n=n: getattr(o.nn, n)(x[0])) for n in
      ("relu", "gelu", "gelu_tanh", "silu", "selu", "softplus", "leakyrelu")),
    ("prelu", [((2, 3, 4), F32), ((3,), F32)], lambda o, x: o.nn.prelu(*x, axis=1)),
    ("pad", one(2, 3), lambda o, x: o.nn.pad(x[0], [0, 1, 2, 0], pad_value=3.5)),
    ("attention", [((2, 5, 3, 4), F32), ((2, 6, 3, 4), F32), ((2, 6, 3, 4), F32)], lambda o, x: o.nn.attention(*x)),
    ("attention causal", [((2, 5, 3, 4), F32)] * 3, lambda o, x: o.nn.attention(*x, causal_mask="TopLeft", scale=0.3)),
    ("attention bias", [((2, 5, 3, 4), F32)] * 3 + [((2, 3, 5, 5), F32)], lambda o, x: o.nn.attention(*x[:3], x[3])),
    ("quantize", one(3, 8), lambda o, x: o.dequantize(o.quantize(x[0], *scales(), 1, "int8"), *scales(), 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_means_what_tvm_computes(case: Case) -> None:
    _, types, body = case
    compare(build(types, body), data(types))


def test_ties_are_rounded_to_even() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 3.2], np.float32)
    compare(build(one(8), lambda o, v: o.round(v[0])), [x])


def test_pixel_shuffle() -> None:
    """TVM 0.27 cannot compile its own operator."""
    mod = from_relax(build(one(1, 8, 3, 3), lambda o, x: o.nn.pixel_shuffle(x[0], 2)))
    x = np.arange(72, dtype=np.float32).reshape(1, 8, 3, 3)
    want = x.reshape(1, 2, 2, 2, 3, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 6, 6)
    np.testing.assert_array_equal(Interpreter(mod).call_global("main", {"x0": x}), want)


def test_every_converter_is_of_an_operator_that_relax_has() -> None:
    import_module("tvm.relax")
    known = set(import_module("tvm.ir").Op.list_op_names())
    assert {f"relax.{name}" for name in CONVERTERS} <= known
