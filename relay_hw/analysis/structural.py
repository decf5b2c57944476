"""Structural equality and hash of programs, up to names of variables. In: expressions, types, modules. Out: bool, int.

Sharing counts: two uses of one node differ from one use each of two equal nodes. Leaves may be shared or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any as AnyValue

import numpy as np

from relay_hw.ir.dims import DimExpr, dim_vars, substitute_dim
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.types import (
    Any,
    Condition,
    Dim,
    DimType,
    DimVar,
    DtypeVar,
    FuncType,
    GlobalTypeVar,
    RefType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relay_hw.ir.visit import children, pattern_vars, post_order

Program = IRModule | Expr | Type


def structural_equal(left: Program, right: Program) -> bool:
    """Whether both are the same program up to names of bound variables.

    Free variables are equal only to themselves. Spans and inferred types do not count, annotations of parameters,
    patterns and results do.
    """
    if isinstance(left, IRModule) and isinstance(right, IRModule):
        return _equal_modules(left, right)
    if isinstance(left, Expr) and isinstance(right, Expr):
        return _Equality().exprs(left, right)
    if isinstance(left, Type) and isinstance(right, Type):
        return _Equality().types(left, right)
    return False


def structural_hash(program: Program) -> int:
    """Equal programs have equal hashes, also in another process."""
    if isinstance(program, IRModule):
        parts = [(name, structural_hash(function)) for name, function in sorted(program.functions.items())]
        types = [(name, len(data.constructors)) for name, data in sorted(program.types.items())]
        return _digest("module", parts, types)
    if isinstance(program, Type):
        return _digest(_type_key(program, {}))
    return _hash_expr(program)


def _equal_modules(left: IRModule, right: IRModule) -> bool:
    if set(left.functions) != set(right.functions) or set(left.types) != set(right.types):
        return False
    if any(not _Equality().type_data(data, right.types[name]) for name, data in left.types.items()):
        return False
    return all(_Equality().exprs(function, right.functions[name]) for name, function in left.functions.items())


class _Equality:
    """State of a comparison: maps bound names and nodes of the left side to the right side."""

    def __init__(self) -> None:
        self._nodes: dict[AnyValue, AnyValue] = {}
        self._back: dict[AnyValue, AnyValue] = {}

    def exprs(self, left: Expr, right: Expr) -> bool:
        stack = [(left, right)]
        while stack:
            a, b = stack.pop()
            if a in self._nodes or b in self._back:
                if self._nodes.get(a) is not b or self._back.get(b) is not a:
                    return False
                continue
            if type(a) is not type(b):
                return False
            parts_a, parts_b = children(a), children(b)
            if len(parts_a) != len(parts_b) or not self._same_head(a, b):
                return False
            if parts_a:
                self._bind(a, b)
            stack.extend(reversed(list(zip(parts_a, parts_b, strict=True))))
        return True

    def types(self, a: Type | None, b: Type | None) -> bool:
        match a, b:
            case TypeVar(), TypeVar():
                return self._nodes.get(a, a) is b and self._back.get(b, b) is a
            case FuncType(), FuncType():
                if not self._bind_type_params(a.type_params, b.type_params):
                    return False
                same = self._all_types((*a.arg_types, a.ret_type), (*b.arg_types, b.ret_type))
                return same and self._same_where(a.where, b.where)
            case TensorType(), TensorType():
                same_dtype = self._nodes.get(a.dtype, a.dtype) == b.dtype and a.layout == b.layout
                return same_dtype and self._same_shape(a.shape, b.shape)
            case DimType(), DimType():
                return self._same_dim(a.dim, b.dim)
            case ShapeType(), ShapeType():
                return self._same_shape(a.shape, b.shape)
            case TupleType(), TupleType():
                return self._all_types(a.fields, b.fields)
            case RefType(), RefType():
                return self.types(a.value, b.value)
            case ((TypeCall() | GlobalTypeVar()), (TypeCall() | GlobalTypeVar())):
                head_a, args_a = (a.func, a.args) if isinstance(a, TypeCall) else (a, ())
                head_b, args_b = (b.func, b.args) if isinstance(b, TypeCall) else (b, ())
                same_head = head_a == head_b or (isinstance(head_a, TypeVar) and self.types(head_a, head_b))
                return same_head and self._all_types(args_a, args_b)
            case _:
                return a == b

    def type_data(self, a: TypeData, b: TypeData) -> bool:
        if a.header != b.header or a.extern != b.extern or not self._bind_type_params(a.type_vars, b.type_vars):
            return False
        if len(a.constructors) != len(b.constructors):
            return False
        pairs = zip(a.constructors, b.constructors, strict=True)
        return all(x.name_hint == y.name_hint and self._all_types(x.inputs, y.inputs) for x, y in pairs)

    def _same_shape(self, a: Sequence[Dim], b: Sequence[Dim]) -> bool:
        return len(a) == len(b) and all(map(self._same_dim, a, b))

    def _same_dim(self, a: Dim, b: Dim) -> bool:
        if isinstance(a, (int, Any)) or isinstance(b, (int, Any)):
            return a == b
        # Dimensions that no function declares are the same where they have one name.
        others = {var.name: var for var in dim_vars(b)}
        for var in dim_vars(a):
            other = others.get(var.name)
            if other is not None and var not in self._nodes and other not in self._back:
                self._bind(var, other)
        return substitute_dim(a, lambda var: self._nodes.get(var, var)) == b

    def _same_where(self, a: Sequence[Condition], b: Sequence[Condition]) -> bool:
        return len(a) == len(b) and all(
            x.comparison is y.comparison and self.types(x.left, y.left) and self.types(x.right, y.right)
            for x, y in zip(a, b, strict=True)
        )

    def _bind_type_params(self, left: Sequence[TypeVar], right: Sequence[TypeVar]) -> bool:
        """Whether the parameters agree in number and kinds; binds them."""
        if [var.kind for var in left] != [var.kind for var in right]:
            return False
        self._bind_all(left, right)
        for a, b in zip(left, right, strict=True):
            if a.inside is not None:
                self._bind(a.inside, b.inside)
        return True

    def _bind(self, a: AnyValue, b: AnyValue) -> None:
        self._nodes[a] = b
        self._back[b] = a

    def _bind_all(self, left: Sequence[AnyValue], right: Sequence[AnyValue]) -> None:
        for a, b in zip(left, right, strict=True):
            self._bind(a, b)

    def _all_types(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        return len(left) == len(right) and all(self.types(a, b) for a, b in zip(left, right, strict=True))

    def _same_head(self, a: Expr, b: Expr) -> bool:
        """Whether the nodes agree except for sub-expressions; binds their variables."""
        match a, b:
            case Var(), Var():
                return a is b
            case Constant(), Constant():
                return _same_array(a.data, b.data)
            case (GlobalVar(), GlobalVar()) | (Op(), Op()) | (Constructor(), Constructor()):
                return _name(a) == _name(b)
            case TupleGetItem(), TupleGetItem():
                return a.index == b.index
            case Call(), Call():
                return _key(a.attrs) == _key(b.attrs) and self._same_type_args(a, b)
            case Let(), Let():
                self._bind(a.var, b.var)
                return True
            case Function(), Function():
                return self._same_signature(a, b)
            case Match(), Match():
                return a.complete == b.complete and all(map(self._same_clause, a.clauses, b.clauses))
            case _:
                return True

    def _same_type_args(self, a: Call, b: Call) -> bool:
        return not a.type_args or not b.type_args or self._all_types(a.type_args, b.type_args)

    def _same_signature(self, a: Function, b: Function) -> bool:
        if len(a.params) != len(b.params) or not self._bind_type_params(a.type_params, b.type_params):
            return False
        self._bind_all(a.params, b.params)
        annotated = zip(a.params, b.params, strict=True)
        if not all(self.types(x.type_annotation, y.type_annotation) for x, y in annotated):
            return False
        same = self.types(a.ret_type, b.ret_type) and self._same_where(a.where, b.where)
        return same and _key(a.attrs) == _key(b.attrs)

    def _same_clause(self, a: Clause, b: Clause) -> bool:
        vars_a, vars_b = pattern_vars(a.lhs), pattern_vars(b.lhs)
        if len(vars_a) != len(vars_b):
            return False
        self._bind_all(vars_a, vars_b)
        return self._same_pattern(a.lhs, b.lhs)

    def _same_pattern(self, a: Pattern, b: Pattern) -> bool:
        match a, b:
            case PatternVar(), PatternVar():
                return self.types(a.var.type_annotation, b.var.type_annotation)
            case PatternConstructor(), PatternConstructor():
                same = _name(a.constructor) == _name(b.constructor) and len(a.patterns) == len(b.patterns)
                return same and all(map(self._same_pattern, a.patterns, b.patterns))
            case PatternTuple(), PatternTuple():
                return len(a.patterns) == len(b.patterns) and all(map(self._same_pattern, a.patterns, b.patterns))
            case _:
                return type(a) is type(b)


def _name(node: Expr) -> tuple[str, ...]:
    match node:
        case Constructor(name_hint=name, belong_to=owner):
            return owner.name, name
        case Op(name=name) | GlobalVar(name_hint=name):
            return (name,)
        case _:
            return ()


def _same_array(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal shape, element type and bytes, so that NaN equals itself and 0.0 differs from -0.0."""
    return a.shape == b.shape and a.dtype == b.dtype and (a is b or a.tobytes() == b.tobytes())


def _key(value: AnyValue) -> AnyValue:
    """A key of attributes: equal if and only if they are, with a stable repr."""
    match value:
        case np.ndarray():
            return ("array", str(value.dtype), value.shape, value.tobytes())
        case np.generic():
            return _key(value.item())
        case bool() | str() | None:
            return value
        case int():
            return ("number", str(value))
        case float():
            # A whole number may be written as an integer or as a float.
            is_whole = value.is_integer() and repr(value) != "-0.0"
            return ("number", str(int(value)) if is_whole else repr(value))
        case Enum():
            return (type(value).__name__, value.name)
        case Constant(data=data):
            return _key(data)
        case Type():
            return _type_key(value, {})
        case Mapping():
            return ("map", tuple(sorted((str(key), _key(item)) for key, item in value.items())))
        case list() | tuple():
            return tuple(_key(item) for item in value)
        case _ if is_dataclass(value) and not isinstance(value, (Expr, type)):
            return (type(value).__name__, tuple((f.name, _key(getattr(value, f.name))) for f in fields(value)))
        case _:
            return repr(value)


def _hash_expr(root: Expr) -> int:
    numbers: dict[AnyValue, int] = {}
    memo: dict[Expr, int] = {}
    # Binders are numbered from outside in, as equality meets them.
    for node in reversed(list(post_order(root))):
        _number(node, numbers)
    for node in post_order(root):
        memo[node] = _digest(_head_key(node, numbers), [memo[part] for part in children(node)])
    return memo[root]


def _number(node: Expr, numbers: dict[AnyValue, int]) -> None:
    match node:
        case Function(params=params, type_params=type_params):
            inside = (var.inside for var in type_params if var.inside is not None)
            bound: tuple[AnyValue, ...] = (*type_params, *inside, *params)
        case Let(var=var):
            bound = (var,)
        case Match(clauses=clauses):
            bound = tuple(var for clause in clauses for var in pattern_vars(clause.lhs))
        case _:
            return
    for name in bound:
        numbers.setdefault(name, len(numbers))


def _head_key(node: Expr, numbers: Mapping[AnyValue, int]) -> AnyValue:
    kind = type(node).__name__
    match node:
        case Var(name_hint=name):
            return (kind, numbers.get(node, name))
        case Constant(data=data):
            return (kind, _key(data))
        case Constructor() | Op() | GlobalVar():
            return (kind, _name(node))
        case TupleGetItem(index=index):
            return (kind, index)
        case Call(attrs=attrs):
            return (kind, _key(attrs))
        case Function(params=params, ret_type=ret, attrs=attrs):
            annotations = [_type_key(param.type_annotation, numbers) for param in params]
            return (kind, annotations, _type_key(ret, numbers), _key(attrs))
        case Match(clauses=clauses, complete=complete):
            return (kind, complete, [_pattern_key(clause.lhs) for clause in clauses])
        case _:
            return kind


def _pattern_key(pattern: Pattern) -> AnyValue:
    match pattern:
        case PatternConstructor(constructor=constructor, patterns=inner):
            return (_name(constructor), [_pattern_key(part) for part in inner])
        case PatternTuple(patterns=inner):
            return ("tuple", [_pattern_key(part) for part in inner])
        case _:
            return type(pattern).__name__


def _type_key(ty: Type | None, numbers: Mapping[AnyValue, int]) -> AnyValue:
    match ty:
        case None:
            return None
        case TensorType(shape=shape, dtype=dtype, layout=layout):
            named = numbers.get(dtype, "var") if isinstance(dtype, DtypeVar) else dtype
            return ("tensor", [_dim_key(dim, numbers) for dim in shape], named, layout)
        case DimType(dim=dim):
            return ("dim", _dim_key(dim, numbers))
        case ShapeType(shape=shape):
            return ("shape", [_dim_key(dim, numbers) for dim in shape])
        case TypeVar(name=name):
            return ("var", numbers.get(ty, name))
        case FuncType(type_params=params):
            inner = {**numbers}
            for index, var in enumerate(params):
                inner[var] = inner[var.inside] = -1 - index
            return ("fn", [_type_key(part, inner) for part in (*ty.arg_types, ty.ret_type)])
        case TupleType(fields=parts):
            return ("tuple", [_type_key(part, numbers) for part in parts])
        case RefType(value=value):
            return ("ref", _type_key(value, numbers))
        case TypeCall(func=func, args=args) if args:
            return ("call", _type_key(func, numbers), [_type_key(arg, numbers) for arg in args])
        case TypeCall(func=func):
            return _type_key(func, numbers)
        case GlobalTypeVar(name=name):
            return ("name", name)
        case _:
            return "hole"


def _dim_key(dim: Dim, numbers: Mapping[AnyValue, int]) -> AnyValue:
    match dim:
        case DimVar(name=name):
            return numbers.get(dim, name)
        case DimExpr(terms=terms):
            # The order of the terms depends on names, which need not be equal.
            return sorted((len(product), factor) for product, factor in terms)
        case _:
            return str(dim)


def _digest(*parts: AnyValue) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")
