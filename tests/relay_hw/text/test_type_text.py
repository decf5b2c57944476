"""Generated types of every form, with parameters of every kind, through text and JSON; solver against enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.analysis import structural_equal, structural_hash
from relay_hw.analysis.dim_solver import DimSolver
from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import ANY, Dim, DimVar, dim_add, dim_floordiv, dim_mul, dim_sub, substitute_dim
from relay_hw.ir.types import (
    Comparison,
    Condition,
    DimType,
    FuncType,
    Kind,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relay_hw.text import load_json, parse, save_json

LIST = relay.GlobalTypeVar("List")
NAMES = st.sampled_from(("n", "m", "A", "b", "s", "List", "int8", "where", "x.y", "1"))
DTYPES = st.sampled_from(("float32", "int8", "bool", "bfloat16", "int8x4"))


@st.composite
def dims(draw: st.DrawFn, known: Sequence[DimVar]) -> Dim:
    kind = draw(st.integers(0, 5))
    if kind == 0 or not known:
        return draw(st.one_of(st.integers(0, 9), st.just(ANY)))
    var = draw(st.sampled_from(known))
    if kind < 3:
        return var
    other: Dim = draw(st.one_of(st.sampled_from(known), st.integers(1, 5)))
    operation = draw(st.sampled_from((dim_add, dim_mul, lambda a, b: dim_floordiv(dim_add(a, b), 3))))
    found = operation(var, other)
    return dim_add(found, draw(st.integers(0, 3)))


@st.composite
def types(draw: st.DrawFn, scope: Sequence[TypeVar], depth: int = 3) -> Type:
    forms = ["tensor", "tensor"] + (["tuple", "function", "ref", "list"] if depth else [])
    forms += ["var"] * any(var.kind is Kind.TYPE for var in scope)
    match draw(st.sampled_from(forms)):
        case "tensor":
            return draw(tensors(scope))
        case "tuple":
            return TupleType(draw(st.lists(types(scope, depth - 1), max_size=3)))
        case "ref":
            return RefType(draw(types(scope, depth - 1)))
        case "list":
            return TypeCall(LIST, (draw(types(scope, depth - 1)),))
        case "var":
            return draw(st.sampled_from([var for var in scope if var.kind is Kind.TYPE]))
        case _:
            return draw(functions(scope, depth - 1))


@st.composite
def tensors(draw: st.DrawFn, scope: Sequence[TypeVar]) -> Type:
    shapes = [var for var in scope if var.kind is Kind.SHAPE]
    elements = [var for var in scope if var.kind is Kind.BASE_TYPE]
    dtype = draw(st.sampled_from(elements)).dtype if elements and draw(st.booleans()) else draw(DTYPES)
    if shapes and draw(st.booleans()):
        return TensorType(draw(st.sampled_from(shapes)).shape, dtype)
    known = [var.dim for var in scope if var.kind is Kind.DIM]
    layout = draw(st.sampled_from(("", "", "NCHW", "NCHW4c")))
    return TensorType(draw(st.lists(dims(known), max_size=4)), dtype, layout)


@st.composite
def functions(draw: st.DrawFn, scope: Sequence[TypeVar], depth: int) -> Type:
    kinds = draw(st.lists(st.sampled_from((Kind.TYPE, Kind.DIM, Kind.SHAPE, Kind.BASE_TYPE)), max_size=3))
    params = [TypeVar(draw(NAMES), kind) for kind in kinds]
    inner = [*scope, *params]
    known = [var.dim for var in inner if var.kind is Kind.DIM]
    where = [
        Condition(DimType(draw(dims(known))), draw(st.sampled_from(Comparison)), DimType(draw(dims(known))))
        for _ in range(draw(st.integers(0, 2)) if known else 0)
    ]
    args = draw(st.lists(types(inner, depth), max_size=2))
    return FuncType(tuple(args), draw(types(inner, depth)), tuple(params), tuple(where))


@st.composite
def modules(draw: st.DrawFn) -> relay.IRModule:
    kinds = draw(st.lists(st.sampled_from((Kind.TYPE, Kind.DIM, Kind.SHAPE, Kind.BASE_TYPE)), max_size=4))
    scope = [TypeVar(draw(NAMES), kind) for kind in kinds]
    params = [relay.Var("p", draw(types(scope))) for _ in range(2)]
    a = TypeVar("A")
    data = relay.TypeData(LIST, (a,), (relay.Constructor("Cons", (a, TypeCall(LIST, (a,))), LIST, 0),))
    function = relay.Function(params, relay.Tuple(params), None, scope)
    return relay.IRModule({"main": function}, {"List": data})


@given(modules())
@settings(max_examples=150)
def test_types_of_every_form_come_back(mod: relay.IRModule) -> None:
    typed = relay.transform.InferType()(mod)
    again = parse(typed.astext())
    assert structural_equal(typed, again)
    assert structural_hash(typed) == structural_hash(again)
    assert structural_equal(typed, load_json(save_json(typed)))


VARS = tuple(DimVar(name) for name in "nmk")


@st.composite
def linear(draw: st.DrawFn) -> Dim:
    parts = [dim_mul(draw(st.integers(-3, 3)), var) for var in VARS]
    return dim_add(draw(st.integers(0, 9)), *parts)


@given(st.lists(st.tuples(linear(), linear()), min_size=1, max_size=3))
@settings(max_examples=150)
def test_equations_of_flexible_sizes_are_solved_soundly(equations: list[tuple[Dim, Dim]]) -> None:
    """What the solver finds satisfies all equations; what it refuses has no solution among small sizes."""
    solver = DimSolver()
    for var in VARS:
        solver.flexible(var)
    solutions = [
        sizes
        for sizes in product(range(8), repeat=len(VARS))
        if all(_at(dim_sub(left, right), sizes) == 0 for left, right in equations)
    ]
    try:
        for left, right in equations:
            solver.unify(left, right)
        solver.finish()
    except TypeCheckError as error:
        assume("nothing fixes its variables" not in str(error))
        assert not solutions
        return
    for left, right in equations:
        assert solver.value(dim_sub(left, right)) == 0


@given(st.lists(st.tuples(linear(), st.sampled_from(Comparison), linear()), max_size=2), linear(), linear())
@settings(max_examples=150)
def test_a_condition_that_is_taken_as_shown_holds(
    given_conditions: list[tuple[Dim, Comparison, Dim]], left: Dim, right: Dim
) -> None:
    """Whatever follows from the assumptions is true of all sizes that meet them."""
    solver = DimSolver()
    for a, comparison, b in given_conditions:
        solver.assume(Condition(DimType(a), comparison, DimType(b)))
    for comparison in Comparison:
        try:
            solver.require(Condition(DimType(left), comparison, DimType(right)), "use")
            solver.finish()
        except TypeCheckError:
            solver = _again(given_conditions)
            continue
        for sizes in product(range(4), repeat=len(VARS)):
            if all(_holds(_at(a, sizes), c, _at(b, sizes)) for a, c, b in given_conditions):
                assert _holds(_at(left, sizes), comparison, _at(right, sizes))


def _again(conditions: Sequence[tuple[Dim, Comparison, Dim]]) -> DimSolver:
    solver = DimSolver()
    for a, comparison, b in conditions:
        solver.assume(Condition(DimType(a), comparison, DimType(b)))
    return solver


def _at(dim: Dim, sizes: Sequence[int]) -> int:
    found = substitute_dim(dim, dict(zip(VARS, sizes, strict=True)).__getitem__)
    assert isinstance(found, int)
    return found


def _holds(left: int, comparison: Comparison, right: int) -> bool:
    return {
        Comparison.EQ: left == right,
        Comparison.NE: left != right,
        Comparison.LT: left < right,
        Comparison.LE: left <= right,
        Comparison.GT: left > right,
        Comparison.GE: left >= right,
    }[comparison]


def test_conditions_belong_to_the_nearest_function() -> None:
    n = TypeVar("n", Kind.DIM)
    same = Condition(DimType(n.dim), Comparison.EQ, DimType(n.dim))
    inner = FuncType((), TensorType((), "float32"))
    outer = FuncType((), FuncType((), inner), (n,), (same,))
    text = "fn [n: Dim]() -> fn () -> fn () -> float32 where () where () where (n == n)"
    assert str(outer) == text
    program = '#[version = "0.0.5"]\ndef @main(%f: TYPE) { %f }\n'
    texts = (text, text.replace(" where ()", ""))
    read = [parse(program.replace("TYPE", part))["main"].params[0].type for part in texts]
    assert structural_equal(read[0], outer) and not structural_equal(read[1], outer)
