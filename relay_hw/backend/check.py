"""Checks host functions of a stored build: references exist, operators get arguments of legal types.

In: flat functions from a build folder, whose hashes only show that they are unchanged. Out: nothing, or
ArtifactError with the function and the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from relay_hw.backend.nodes import (
    FlatApply,
    FlatCall,
    FlatClosure,
    FlatConstant,
    FlatConstruct,
    FlatFunction,
    FlatGet,
    FlatGlobal,
    FlatIf,
    FlatInput,
    FlatInvoke,
    FlatMatch,
    FlatNode,
    FlatRefNew,
    FlatRefRead,
    FlatRefWrite,
    FlatTuple,
    nested,
    uses,
)
from relay_hw.errors import ArtifactError, RelayHwError, TypeCheckError
from relay_hw.ir.types import UNIT, FuncType, RefType, TensorType, TupleType, Type, has_unknown_rank, scalar_type
from relay_hw.op.base import KnownTypes, same_dim

# Exceptions of type relations and attribute records for attributes of a wrong type.
_UNFIT = (RelayHwError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def check_functions(main: FlatFunction, functions: Mapping[str, FlatFunction]) -> dict[str, Type]:
    """Check `functions` and `main`; returns their result types by name.

    Raises ArtifactError if one of them or `main` calls, reads or returns what is not there or of another type.
    """
    known = {"main": main, **functions}
    return {name: _check(function, known) for name, function in known.items()}


def _check(outer: FlatFunction, functions: Mapping[str, FlatFunction]) -> Type:
    found = [_Check(function, functions).run() for function in nested(outer)]
    return found[0]


class _Check:
    """One function, node by node."""

    def __init__(self, function: FlatFunction, functions: Mapping[str, FlatFunction]) -> None:
        self._function = function
        self._functions = functions
        self._types: list[Type] = []

    def run(self) -> Type:
        """The type of the result. Raises ArtifactError for the first node that cannot be."""
        count = len(self._function.params)
        for place, node in enumerate(self._function.nodes):
            try:
                if isinstance(node, FlatInput) != (place < count):
                    raise TypeCheckError("parameters must come first")
                self._types.append(self._type(node))
            except _UNFIT as error:
                reason = (
                    error.message if isinstance(error, RelayHwError) else f"its operator cannot take it ({error!r})"
                )
                raise ArtifactError(f"function {self._function.name}: node {place}: {reason}") from None
        return self._types[self._function.result]

    def _type(self, node: FlatNode) -> Type:
        given = [self._types[index] for index in uses(node)]
        match node:
            case FlatInput(type=ty):
                return ty
            case FlatConstant(data=data):
                return TensorType(data.shape, str(data.dtype))
            case FlatTuple():
                return TupleType(given)
            case FlatGet(index=index):
                return _field(given[0], index)
            case FlatCall():
                return _called(node, given)
            case FlatInvoke(function=name, type=ty):
                return self._invoked(name, given, ty)
            case FlatGlobal(function=name, type=ty):
                self._named(name)
                return ty
            case FlatIf(captured=captured, then=then, otherwise=otherwise, type=ty):
                _must_be("the condition", given[0], scalar_type("bool"))
                for branch in (then, otherwise):
                    _must_fit(branch, given[len(given) - len(captured) :])
                return ty
            case FlatApply(type=ty):
                if not isinstance(given[0], FuncType) or len(given[0].arg_types) != len(given) - 1:
                    raise TypeCheckError(f"what is called must be a function of {len(given) - 1}, not {given[0]}")
                return ty
            case FlatRefRead(type=ty):
                _reference(given[0])
                return ty
            case FlatRefWrite():
                _reference(given[0])
                return UNIT
            case FlatMatch(type=ty) | FlatClosure(type=ty) | FlatConstruct(type=ty) | FlatRefNew(type=ty):
                return ty

    def _named(self, name: str) -> FlatFunction:
        found = self._functions.get(name)
        if found is None:
            raise TypeCheckError(f"function {name} must be in the build")
        return found

    def _invoked(self, name: str, given: Sequence[Type], ty: Type) -> Type:
        _must_fit(self._named(name), given)
        return ty


def _must_fit(function: FlatFunction, given: Sequence[Type]) -> None:
    params = function.params
    if len(params) != len(given):
        raise TypeCheckError(f"function {function.name} must get {len(params)} arguments, not {len(given)}")
    for param, ty in zip(params, given, strict=True):
        _must_be(f"argument {param.name} of {function.name}", ty, param.type)


def _called(node: FlatCall, given: Sequence[Type]) -> Type:
    if node.op.num_inputs not in (-1, len(given)):
        raise TypeCheckError(f"{node.op.name} must get {node.op.num_inputs} arguments, not {len(given)}")
    found = node.op.relation(given, node.attrs, KnownTypes(partial(_must_be, "an argument")))
    if found is not None:
        _must_be(f"the result of {node.op.name}", node.type, found)
    return node.type


def _field(ty: Type, index: int) -> Type:
    if not isinstance(ty, TupleType) or not 0 <= index < len(ty.fields):
        raise TypeCheckError(f"field {index} must be of a tuple that has it, not of {ty}")
    return ty.fields[index]


def _reference(ty: Type) -> None:
    if not isinstance(ty, RefType):
        raise TypeCheckError(f"what is read or written must be a reference, not {ty}")


def _must_be(what: str, found: Type, wanted: Type) -> None:
    if not _may_be(found, wanted):
        raise TypeCheckError(f"{what} must be {wanted}, not {found}")


def _may_be(left: Type, right: Type) -> bool:
    """Whether a value of one type may have the other; dynamic parts of a type match anything."""
    match left, right:
        case TensorType(), TensorType():
            is_open = not isinstance(left.dtype, str) or not isinstance(right.dtype, str)
            return (is_open or left.dtype == right.dtype) and _may_have(left, right)
        case TupleType(), TupleType():
            return len(left.fields) == len(right.fields) and all(map(_may_be, left.fields, right.fields))
        case (TensorType(), TupleType()) | (TupleType(), TensorType()):
            return False
        case _:
            return True


def _may_have(left: TensorType, right: TensorType) -> bool:
    if has_unknown_rank(left) or has_unknown_rank(right):
        return True
    return left.rank == right.rank and all(map(same_dim, left.shape, right.shape))
