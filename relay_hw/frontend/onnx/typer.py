"""Incremental type inference during import. In: expressions whose variables are annotated. Out: a type for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Match,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.types import ANY, FuncType, IncompleteType, TensorType, TupleType, Type, TypeCall, bind_type_vars
from relay_hw.op.base import KnownTypes, same_dim


def _may_be_equal(left: Type, right: Type) -> bool:
    """Whether two tensor types differ at most in sizes that are dynamic in one of them."""
    match left, right:
        case TensorType(), TensorType():
            alike = left.rank == right.rank and left.dtype == right.dtype
            return alike and all(map(same_dim, left.shape, right.shape))
        case _:
            return False


def _must_fit(left: Type, right: Type) -> None:
    if left != right and not _may_be_equal(left, right):
        raise TypeCheckError(f"type must be {right}, not {left}")


# The element type of an empty list or option, until it is known.
UNKNOWN: Final = IncompleteType()


class Typer:
    """Infers types of expressions whose variables are annotated; every node once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, Type]] = {}
        self.functions: dict[str, Function] = {}

    def assume(self, expr: Expr, ty: Type) -> None:
        """Set the type of `expr` to `ty`, which may name sizes that its annotation leaves dynamic."""
        self._known[id(expr)] = (expr, ty)

    def __call__(self, expr: Expr) -> Type:
        known = self._known
        # Chains may be as long as a node has inputs.
        waiting = [] if id(expr) in known else [expr]
        while waiting:
            node = waiting[-1]
            parts = [part for part in _typed_first(node) if id(part) not in known]
            if parts:
                waiting += parts
            else:
                known[id(node)] = (node, self._compute(node))
                waiting.pop()
        return known[id(expr)][1]

    def _compute(self, expr: Expr) -> Type:
        match expr:
            case Var(type_annotation=ty) if ty is not None:
                return ty
            case Constant(data=data):
                return TensorType(data.shape, str(data.dtype))
            case Tuple(fields=fields):
                return TupleType([self(field) for field in fields])
            case TupleGetItem(tuple_value=value, index=index):
                whole = self(value)
                assert isinstance(whole, TupleType)
                return whole.fields[index]
            case Call(op=Op() as op, args=args, attrs=attrs):
                found = op.relation([self(arg) for arg in args], attrs, KnownTypes(_must_fit))
                assert found is not None
                return found
            case If(true_branch=left, false_branch=right):
                return join(self(left), self(right))
            case Call(op=GlobalVar(name_hint=name), type_args=given):
                function = self.functions[name]
                assert function.ret_type is not None
                filled = given or (UNKNOWN,) * len(function.type_params)
                return bind_type_vars(function.ret_type, dict(zip(function.type_params, filled, strict=True)))
            case Call(op=Constructor(belong_to=header), type_args=given):
                return TypeCall(header, tuple(given) or (UNKNOWN,))
            case Match(clauses=clauses):
                return self(clauses[0].rhs)
            case Function(params=params, ret_type=ty) if ty is not None:
                return FuncType(tuple(self(param) for param in params), ty)
            case _:
                raise AssertionError(f"an imported graph has no {type(expr).__name__}")


def _typed_first(expr: Expr) -> Sequence[Expr]:
    """The expressions that the type of `expr` depends on."""
    match expr:
        case Tuple(fields=parts) | Call(op=Op(), args=parts) | Function(params=parts):
            return parts
        case TupleGetItem(tuple_value=value):
            return (value,)
        case If(true_branch=left, false_branch=right):
            return (left, right)
        case Match(clauses=clauses):
            return (clauses[0].rhs,)
        case _:
            return ()


def join(left: Type, right: Type) -> Type:
    """A common supertype: where sizes differ, any size. Raises TypeCheckError if there is none."""
    if left is UNKNOWN or right is UNKNOWN:
        return right if left is UNKNOWN else left
    match left, right:
        case TensorType(), TensorType() if left.dtype == right.dtype and left.rank == right.rank:
            dims = [a if a == b else ANY for a, b in zip(left.shape, right.shape, strict=True)]
            return TensorType(dims, left.dtype)
        case TupleType(), TupleType() if len(left.fields) == len(right.fields):
            return TupleType([join(a, b) for a, b in zip(left.fields, right.fields, strict=True)])
        case TypeCall(), TypeCall() if left.func == right.func:
            return TypeCall(left.func, tuple(map(join, left.args, right.args)))
        case _ if left == right:
            return left
        case _:
            raise TypeCheckError(f"types must be equal but for their sizes, not {left} and {right}")
