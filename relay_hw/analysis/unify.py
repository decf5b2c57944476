"""Unification of types: holes, `?` dimensions, polymorphic functions.

In: pairs of types that must be equal. Out: the common type, or TypeCheckError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from relay_hw.errors import TypeCheckError
from relay_hw.ir.types import (
    ANY,
    Any,
    Dim,
    DimVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    bind_type_vars,
    map_type,
    type_leaves,
)

MAX_TYPE_DEPTH = 200
MAX_TYPE_SIZE = 100_000


class TypeSolver:
    """Knows what each hole and flexible dimension stands for. `on_fill` is told of every hole that gets a value."""

    def __init__(self, on_fill: Callable[[IncompleteType], None] | None = None) -> None:
        self._filled: dict[IncompleteType, Type] = {}
        self._dims: dict[DimVar, Dim | None] = {}
        self._measured: dict[int, tuple[Type, int, int]] = {}
        self._on_fill = on_fill

    def unify(self, left: Type, right: Type) -> Type:
        """The type that both are; holes are filled, and a `?` dimension meets any. Raises TypeCheckError."""
        a, b = self._find(left), self._find(right)
        if a is b:
            return a
        if isinstance(a, IncompleteType):
            return self._fill(a, b)
        if isinstance(b, IncompleteType):
            return self._fill(b, a)
        result = self._unify_known(a, b)
        self._refill(left, result)
        self._refill(right, result)
        return result

    def resolve(self, ty: Type) -> Type:
        """`ty` with all known holes filled."""
        if isinstance(ty, TensorType):
            return self._leaf(ty)
        return map_type(ty, self._leaf)

    def holes(self, ty: Type) -> Iterator[IncompleteType]:
        """The holes left in `ty`."""
        return (leaf for leaf in type_leaves(self.resolve(ty)) if isinstance(leaf, IncompleteType))

    def instantiate(self, ty: FuncType, type_args: Sequence[Type] = ()) -> tuple[FuncType, tuple[Type, ...]]:
        """`ty` for one use: its type parameters become `type_args` or new holes. Returns those too."""
        if not ty.type_params:
            return ty, ()
        chosen = tuple(type_args) or tuple(IncompleteType(var.kind) for var in ty.type_params)
        mapping = dict(zip(ty.type_params, chosen, strict=True))
        body = FuncType(
            tuple(bind_type_vars(arg, mapping) for arg in ty.arg_types), bind_type_vars(ty.ret_type, mapping)
        )
        return body, chosen

    def loosen(self, ty: FuncType) -> FuncType:
        """`ty` for one use: its symbolic dimensions may take any value, the same at each occurrence."""
        fresh: dict[DimVar, DimVar] = {}

        def leaf(part: Type) -> Type:
            if not isinstance(part, TensorType) or not any(isinstance(dim, DimVar) for dim in part.shape):
                return part
            return TensorType(tuple(self._fresh_dim(dim, fresh) for dim in part.shape), part.dtype)

        return FuncType(tuple(map_type(arg, leaf) for arg in ty.arg_types), map_type(ty.ret_type, leaf), ty.type_params)

    def check_size(self, ty: Type) -> None:
        """Raises TypeCheckError for a type so deep or large that no program can mean it."""
        depth, size = self._measure(ty)
        if depth > MAX_TYPE_DEPTH:
            raise TypeCheckError(f"type must be nested at most {MAX_TYPE_DEPTH} deep, not {depth}")
        if size > MAX_TYPE_SIZE:
            raise TypeCheckError(f"type must have at most {MAX_TYPE_SIZE} parts, not {size}")

    def _find(self, ty: Type) -> Type:
        while isinstance(ty, IncompleteType) and ty in self._filled:
            ty = self._filled[ty]
        return TypeCall(ty, ()) if isinstance(ty, GlobalTypeVar) else ty

    def _fill(self, hole: IncompleteType, value: Type) -> Type:
        if any(other is hole for other in self.holes(value)):
            raise TypeCheckError(f"type must not contain itself: {self.resolve(value)}")
        self._filled[hole] = value
        if self._on_fill is not None:
            self._on_fill(hole)
        return value

    def _refill(self, hole: Type, value: Type) -> None:
        """Let a filled hole follow its value to a more general one, such as Tensor[(?), int32]."""
        while isinstance(hole, IncompleteType):
            following = self._filled[hole]
            if not isinstance(following, IncompleteType):
                self._filled[hole] = value
            hole = following

    def _unify_known(self, a: Type, b: Type) -> Type:
        match a, b:
            case TensorType(), TensorType() if a.dtype == b.dtype and a.rank == b.rank:
                if a == b:
                    return a
                return TensorType(tuple(map(self._unify_dims, a.shape, b.shape)), a.dtype)
            case TupleType(), TupleType() if len(a.fields) == len(b.fields):
                return TupleType(self._unify_all(a.fields, b.fields))
            case RefType(), RefType():
                return RefType(self.unify(a.value, b.value))
            case TypeCall(), TypeCall() if a.func == b.func and len(a.args) == len(b.args):
                return TypeCall(a.func, self._unify_all(a.args, b.args))
            case FuncType(), FuncType() if len(a.arg_types) == len(b.arg_types):
                return self._unify_functions(a, b)
            case _ if a == b:
                return a
            case _:
                raise self._clash(a, b)

    def _unify_all(self, left: Sequence[Type], right: Sequence[Type]) -> tuple[Type, ...]:
        return tuple(self.unify(a, b) for a, b in zip(left, right, strict=True))

    def _unify_functions(self, a: FuncType, b: FuncType) -> FuncType:
        if len(a.type_params) == len(b.type_params):
            renamed = dict(zip(b.type_params, a.type_params, strict=True))
            b_args = tuple(bind_type_vars(arg, renamed) for arg in b.arg_types)
            args = self._unify_all(a.arg_types, b_args)
            return FuncType(args, self.unify(a.ret_type, bind_type_vars(b.ret_type, renamed)), a.type_params)
        # A polymorphic function serves where a monomorphic one is wanted.
        left, right = self.instantiate(a)[0], self.instantiate(b)[0]
        return FuncType(self._unify_all(left.arg_types, right.arg_types), self.unify(left.ret_type, right.ret_type))

    def _unify_dims(self, left: Dim, right: Dim) -> Dim:
        a, b = self._find_dim(left), self._find_dim(right)
        if a is b or a == b:
            return a
        for flexible, other in ((a, b), (b, a)):
            if isinstance(flexible, DimVar) and flexible in self._dims:
                self._dims[flexible] = other
                return other
        if isinstance(a, Any) or isinstance(b, Any):
            return ANY
        raise TypeCheckError(f"dimension must be {a}, not {b}")

    def _find_dim(self, dim: Dim) -> Dim:
        while isinstance(dim, DimVar):
            known = self._dims.get(dim)
            if known is None:
                return dim
            dim = known
        return dim

    def _fresh_dim(self, dim: Dim, fresh: dict[DimVar, DimVar]) -> Dim:
        if not isinstance(dim, DimVar):
            return dim
        if dim not in fresh:
            fresh[dim] = DimVar(dim.name)
            self._dims[fresh[dim]] = None
        return fresh[dim]

    def _leaf(self, ty: Type) -> Type:
        match ty:
            case TensorType(shape=shape):
                if not self._dims or not any(isinstance(dim, DimVar) for dim in shape):
                    return ty
                return TensorType(tuple(map(self._find_dim, shape)), ty.dtype)
            case IncompleteType():
                found = self._find(ty)
                return found if isinstance(found, IncompleteType) else self.resolve(found)
            case _:
                return self._find(ty)

    def _measure(self, ty: Type) -> tuple[int, int]:
        ty = self._find(ty)
        match ty:
            case TupleType(fields=parts):
                pass
            case FuncType():
                parts = (*ty.arg_types, ty.ret_type)
            case RefType():
                parts = (ty.value,)
            case TypeCall(args=parts):
                pass
            case _:
                return 1, 1
        known = self._measured.get(id(ty))
        if known is None:
            inner = [self._measure(part) for part in parts]
            depth = 1 + max((d for d, _ in inner), default=0)
            known = self._measured[id(ty)] = (ty, depth, 1 + sum(size for _, size in inner))
        return known[1], known[2]

    def _clash(self, a: Type, b: Type) -> TypeCheckError:
        return TypeCheckError(f"type must be {self.resolve(a)}, not {self.resolve(b)}")


def type_vars(ty: Type) -> Iterator[TypeVar]:
    """The type variables that occur in `ty` outside of the function types that bind them."""
    match ty:
        case TypeVar():
            yield ty
        case FuncType(type_params=params):
            for part in (*ty.arg_types, ty.ret_type):
                yield from (var for var in type_vars(part) if var not in params)
        case TupleType(fields=parts) | TypeCall(args=parts):
            for part in parts:
                yield from type_vars(part)
        case RefType(value=value):
            yield from type_vars(value)
        case _:
            return
