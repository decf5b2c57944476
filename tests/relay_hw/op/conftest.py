"""Evaluates operators straight from their relation and meaning, without the rooms above."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.types import IncompleteType, TensorType, TupleType, Type


class Ground:
    """A solver that remembers what holes were made equal to."""

    def __init__(self) -> None:
        self.found: dict[int, Type] = {}

    def unify(self, left: Type, right: Type) -> Type:
        if isinstance(left, IncompleteType):
            self.found[left.serial] = right
        elif left != right:
            raise TypeCheckError(f"cannot unify {left} and {right}")
        return right

    def resolve(self, ty: Type) -> Type:
        return self.found.get(ty.serial, ty) if isinstance(ty, IncompleteType) else ty


def type_of(value: Any) -> Type:
    if isinstance(value, tuple):
        return TupleType([type_of(item) for item in value])
    return TensorType(np.shape(value), str(np.asarray(value).dtype))


def evaluate(expr: Expr, values: dict[int, Any]) -> Any:
    match expr:
        case Var():
            return values[id(expr)]
        case Constant(data=data):
            return data
        case Tuple(fields=fields):
            return tuple(evaluate(field, values) for field in fields)
        case TupleGetItem(tuple_value=value, index=index):
            return evaluate(value, values)[index]
        case Call(op=Op() as op, args=args, attrs=attrs):
            given = [evaluate(arg, values) for arg in args]
            ty = op.relation([type_of(value) for value in given], attrs, Ground())
            assert ty is not None
            result = op.reference(attrs, given, ty)
            assert type_of(result) == ty, f"{op.name}: value {type_of(result)}, relation {ty}"
            return result
    raise AssertionError(expr)


@pytest.fixture
def apply() -> Callable[..., Any]:
    """`apply(build, *arrays, **attributes)`: the value, whose type must be the one that the relation gave."""

    def run(build: Callable[..., Expr], *values: Any, **attributes: Any) -> Any:
        variables = [Var(f"x{number}") for number in range(len(values))]
        expr = build(*variables, **attributes)
        return evaluate(expr, {id(var): value for var, value in zip(variables, values, strict=True)})

    return run


@pytest.fixture
def refuse() -> Callable[..., str]:
    """`refuse(build, *types, **attributes)`: the sentence of the TypeCheckError that the relation raises."""

    def run(build: Callable[..., Expr], *types: Type | None, **attributes: Any) -> str:
        call = build(*(Var(f"x{number}") for number in range(len(types))), **attributes)
        assert isinstance(call, Call) and isinstance(call.op, Op)
        given = [IncompleteType() if ty is None else ty for ty in types]
        # Constants and tuples that the builder added keep their own type.
        extra = [type_of(arg.data) for arg in call.args[len(types) :] if isinstance(arg, Constant)]
        if call.args and isinstance(call.args[0], Tuple):
            given = [TupleType(given)]
        with pytest.raises(TypeCheckError) as caught:
            call.op.relation(given + extra, call.attrs, Ground())
        return caught.value.message

    return run


@pytest.fixture
def infer() -> Callable[..., tuple[Type | None, list[Type]]]:
    """`infer(build, *types, **attributes)`: the result type and the argument types; None is an unknown argument."""

    def run(build: Callable[..., Expr], *types: Type | None, **attributes: Any) -> tuple[Type | None, list[Type]]:
        call = build(*(Var(f"x{number}") for number in range(len(types))), **attributes)
        assert isinstance(call, Call) and isinstance(call.op, Op)
        solver = Ground()
        given = [IncompleteType() if ty is None else ty for ty in types]
        result = call.op.relation(given, call.attrs, solver)
        return result, [solver.resolve(ty) for ty in given]

    return run
