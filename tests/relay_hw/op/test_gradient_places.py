"""Gradients of every operator wherever it stands: in closures, recursion over data, functions of any size and shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis.infer import infer_expr
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Expr, Function, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.types import ANY, Kind, TensorType, TupleType, Type, TypeVar
from relay_hw.transform import gradient, gradient_module
from tests.relay_hw.op import test_gradient_dynamic as dynamic
from tests.relay_hw.op import test_gradient_families as families
from tests.relay_hw.op.gradient_checks import EXECUTOR, type_of
from tests.relay_hw.op.test_gradient_families import Case, first_real, real

nn = op.nn
WINDOWS: list[Case] = [
    ("conv1d", lambda x, w: nn.conv1d(x, w, padding=1), (real(2, 2, 5), real(3, 2, 3))),
    ("conv2d", lambda x, w: nn.conv2d(x, w, padding=(1, 0, 2, 1), strides=(2, 1), dilation=(1, 2)),
     (real(2, 2, 5, 6), real(3, 2, 3, 2))),
    ("conv2d in groups", lambda x, w: nn.conv2d(x, w, groups=2, strides=2, data_layout="NHWC", kernel_layout="HWOI"),
     (real(2, 5, 6, 4), real(2, 2, 6, 2))),
    ("conv3d", nn.conv3d, (real(1, 1, 3, 2, 3), real(2, 1, 2, 1, 2))),
    ("conv2d_transpose", lambda x, w: nn.conv2d_transpose(x, w, padding=(1, 0, 2, 1), strides=(2, 1),
                                                          output_padding=(1, 0)), (real(2, 2, 3, 4), real(2, 3, 3, 3))),
    ("conv1d_transpose in groups", lambda x, w: nn.conv1d_transpose(x, w, padding=1, strides=3, dilation=2, groups=2),
     (real(2, 4, 3), real(4, 2, 2))),
    ("max_pool2d", lambda x: nn.max_pool2d(x, (3, 2), 2, 1, (1, 0, 1, 1), "NHWC", ceil_mode=True), (real(2, 6, 5, 2),)),
    ("max_pool1d", lambda x: nn.max_pool1d(x, 2, 3, 1, 2), (real(1, 2, 5),)),
    ("avg_pool2d", lambda x: nn.avg_pool2d(x, 2, 2), (real(2, 2, 4, 4),)),
    ("avg_pool2d of padding", lambda x: nn.avg_pool2d(x, (3, 2), 2, 1, (1, 0, 1, 1), ceil_mode=True,
                                                      count_include_pad=True), (real(2, 2, 6, 5),)),
    ("avg_pool2d of holes", lambda x: nn.avg_pool2d(x, (3, 2), 2, 2, (1, 0, 1, 1), "NHWC", ceil_mode=True),
     (real(2, 6, 5, 2),)),
    ("batch_matmul", nn.batch_matmul, (real(2, 3, 2), real(2, 4, 2))),
    ("sort", op.sort, (real(2, 3),)),
    ("topk", lambda x: op.topk(x, 2)[0], (real(2, 3),)),
    ("cumsum", lambda x: op.cumsum(x, 1), (real(2, 3),)),
    ("exp", op.exp, (real(2, 3),)),
    ("power", lambda x, y: op.power(op.abs(x), y), (real(2, 3), real(3))),
]  # fmt: skip
CASES = families.CASES + families.GLOBAL + dynamic.CASES + WINDOWS
IDS = [case[0] for case in CASES]
# What these take apart has known sizes.
KNOWN = (
    *("deform_conv", "deformable_conv2d", "trees by leaves"),
    *("squeeze all", "image resize", "regions", "crops"),
)


def params(types: Sequence[Type]) -> list[Var]:
    return [Var(f"x{k}", ty, checked_type=ty) for k, ty in enumerate(types)]


def plain_slopes(build: Callable[..., Expr], values: tuple[Any, ...]) -> Any:
    own = params([type_of(value) for value in values])
    return EXECUTOR.evaluate(gradient(Function(own, first_real(build(*own)))))(*values)[1]


def same(found: Any, wanted: Any, factor: float = 1) -> None:
    for slope, other in zip(found, wanted, strict=True):
        if isinstance(slope, tuple):
            same(slope, other, factor)
        else:
            assert slope.shape == other.shape
            np.testing.assert_allclose(slope, factor * other, rtol=1e-9, atol=1e-9)


WALK = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @walk[A](%f: fn (A) -> float64, %l: List[A], %n: int32) -> float64 {
  if (%n == 0) { 0f64 } else {
    match (%l) { Cons(%h, %t) => { %f(%h) + @walk(%f, %t, %n - 1) }, Nil => { 0f64 } }
  }
}
"""


@pytest.mark.parametrize(("build", "values"), [case[1:] for case in CASES], ids=IDS)
def test_in_a_closure_that_a_loop_over_data_calls(build: Callable[..., Expr], values: tuple[Any, ...]) -> None:
    library = relay.fromtext(WALK)
    cons, nil = library.types["List"].constructors
    outer, whole = params([type_of(value) for value in values]), Var("p", type_of(values), checked_type=type_of(values))
    parts = [TupleGetItem(whole, at, checked_type=type_of(value)) for at, value in enumerate(values)]
    # The first argument comes from around the closure, so adjoints meet in it.
    inner = Function([whole], first_real(build(outer[0], *parts[1:])))
    items: Expr = Call(nil, [])
    for _ in range(2):
        items = Call(cons, [Tuple(outer), items])
    f = Var("f")
    body = Let(f, inner, Call(relay.GlobalVar("walk"), [f, items, relay.const(5)]))
    mod = relay.transform.InferType()(library.with_functions({"main": Function(outer, body)}))
    found = relay.create_executor("debug", gradient_module(mod, "main", "g")).evaluate("g")(*values)[1]
    same([x for x in found if is_real(x)], [x for x in plain_slopes(build, values) if is_real(x)], 2)


def is_real(value: Any) -> bool:
    return isinstance(value, tuple) or value.dtype.kind == "f"


def unsized(ty: Type, sizes: dict[int, TypeVar] | None) -> Type:
    """`?` for every size, or a type parameter for each size that occurs."""
    if isinstance(ty, TupleType):
        return TupleType([unsized(part, sizes) for part in ty.fields])
    assert isinstance(ty, TensorType)
    if not ty.dtype.startswith("float"):
        return ty
    if sizes is None:
        return TensorType([ANY] * ty.rank, ty.dtype)
    return TensorType([sizes.setdefault(d, TypeVar(f"n{d}", Kind.DIM)).dim for d in ty.static_shape], ty.dtype)


def is_weight(name: str, at: int) -> bool:
    return name.startswith("conv") and at > 0


SIZED = [case for case in CASES if not case[0].startswith(KNOWN)]


@pytest.mark.parametrize(("name", "build", "values"), SIZED, ids=[case[0] for case in SIZED])
def test_sizes_that_only_run_time_knows(name: str, build: Callable[..., Expr], values: tuple[Any, ...]) -> None:
    types = [type_of(v) if is_weight(name, at) else unsized(type_of(v), None) for at, v in enumerate(values)]
    own = params(types)
    for mode in ("higher_order", "first_order"):
        new = gradient(Function(own, first_real(build(*own))), mode=mode)
        same(EXECUTOR.evaluate(new)(*values)[1], plain_slopes(build, values))


# What these are of must be known by its type: parts of complex numbers, channels of a weight.
NAMED = [case for case in SIZED if not case[0].startswith("dft along") and "_transpose" not in case[0]]


@pytest.mark.parametrize(("name", "build", "values"), NAMED, ids=[case[0] for case in NAMED])
def test_functions_of_any_size(name: str, build: Callable[..., Expr], values: tuple[Any, ...]) -> None:
    sizes: dict[int, TypeVar] = {}
    own = params([type_of(v) if is_weight(name, at) else unsized(type_of(v), sizes) for at, v in enumerate(values)])
    of_any = Function(own, infer_expr(first_real(build(*own))), TensorType((), "float64"), list(sizes.values()))
    outer = params([type_of(value) for value in values])
    main = Function(outer, Call(relay.GlobalVar("f"), outer))
    mod = relay.transform.InferType()(relay.IRModule({"f": of_any, "main": main}))
    wanted = plain_slopes(build, values)
    whole = relay.create_executor("debug", gradient_module(mod, "main", "g"))
    same(whole.evaluate("g")(*values)[1], wanted)
    same(relay.create_executor("debug", mod).evaluate(gradient(mod["f"], mod))(*values)[1], wanted)


POLYMORPHIC: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a shape": ("def @main[s: Shape](%x: Tensor[s, float64]) -> Tensor[s, float64] { %x * %x + exp(%x) / %x }", ()),
    "a closure": (
        """def @main[s: Shape](%x: Tensor[s, float64]) -> Tensor[s, float64] {
  let %f = fn (%a: Tensor[s, float64]) -> Tensor[s, float64] { %a * sin(%x) };
  %f(%f(%x))
}""",
        (),
    ),
    "recursion": (
        """def @main[s: Shape](%x: Tensor[s, float64], %n: int32) -> Tensor[s, float64] {
  if (%n == 0) { %x } else { @main(sin(%x) * %x, %n - 1) }
}""",
        (np.int32(2),),
    ),
    "sizes": (
        """def @main[n: Dim, k: Dim](%x: Tensor[(n, k), float64]) -> Tensor[(k,), float64] {
  sum(concatenate((%x, exp(%x)), axis=0), axis=[0]) * max(%x, axis=[0])
}""",
        (),
    ),
}


@pytest.mark.parametrize("name", POLYMORPHIC)
def test_functions_with_parameters_for_shapes_are_differentiated(name: str) -> None:
    text, more = POLYMORPHIC[name]
    mod = relay.transform.InferType()(relay.fromtext('#[version = "0.0.5"]\n' + text))
    executor = relay.create_executor("debug", mod)
    main, x = executor.evaluate("main"), real(2, 3)
    once = gradient(mod["main"], mod)
    assert [param.kind for param in once.type_params] == [param.kind for param in mod["main"].type_params]
    twice = gradient(slope_of(once), mod)
    for function, new in ((main, once), (lambda *a: executor.evaluate(slope_of(once))(*a), twice)):
        value, slopes = executor.evaluate(new)(x, *more)
        np.testing.assert_allclose(value, function(x, *more))
        for place in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[place] = 1e-6
            ends = [np.sum(function(x + sign * step, *more)) for sign in (1, -1)]
            np.testing.assert_allclose(slopes[0][place], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-6)


def slope_of(function: Function) -> Function:
    """The derivative by the first argument."""
    body = TupleGetItem(TupleGetItem(function.body, 1), 0)
    return infer_expr(Function(function.params, body, function.params[0].type, function.type_params))


def test_types_that_may_be_anything_are_refused() -> None:
    x, a = relay.var("x", shape=(2,)), TypeVar("A")
    wanted = "type parameters of a differentiated function must be shapes and sizes, not A"
    with pytest.raises(UnsupportedError, match=wanted):
        gradient(Function([x, Var("y", a)], x, None, [a]))


def test_what_must_have_known_sizes() -> None:
    _, build, values = next(case for case in CASES if case[0] == "deform_conv")
    own = params([unsized(type_of(value), None) for value in values])
    with pytest.raises(UnsupportedError, match=r"gradient of onnx\.deform_conv must have static shapes, not Tensor"):
        gradient(Function(own, first_real(build(*own))))
