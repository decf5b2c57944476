"""Unification of types: holes, `?` dimensions, polymorphic functions.

In: pairs of types that must be equal. Out: the common type, or TypeCheckError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from relay_hw.analysis.dim_solver import DimSolver
from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import DimExpr, ShapeVar
from relay_hw.ir.types import (
    Condition,
    Dim,
    DimType,
    DimVar,
    DtypeVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    Kind,
    RefType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    bind_type_vars,
    has_unknown_rank,
    map_condition,
    map_dims,
    map_type,
    type_leaves,
)

MAX_TYPE_DEPTH = 200
MAX_TYPE_SIZE = 100_000


class TypeSolver:
    """Maps holes and flexible dimensions to values. `on_fill` is called for every hole that gets a value."""

    def __init__(self, on_fill: Callable[[IncompleteType], None] | None = None) -> None:
        self._filled: dict[IncompleteType, Type] = {}
        self.dims = DimSolver()
        self._shapes: dict[ShapeVar, tuple[Dim, ...] | None] = {}
        self._dtypes: dict[DtypeVar, str | None] = {}
        self._measured: dict[int, tuple[Type, int, int]] = {}
        self._ground: dict[int, tuple[Type, bool]] = {}
        self._on_fill = on_fill

    def unify(self, left: Type, right: Type) -> Type:
        """Unify two types; holes are filled, and `?` matches any dimension. Raises TypeCheckError."""
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
        return ty if self._is_ground(ty) else map_type(ty, self._leaf)

    def holes(self, ty: Type) -> Iterator[IncompleteType]:
        """The holes left in `ty`."""
        return (leaf for leaf in type_leaves(self.resolve(ty)) if isinstance(leaf, IncompleteType))

    def instantiate(self, ty: FuncType, type_args: Sequence[Type] = ()) -> tuple[FuncType, tuple[Type, ...]]:
        """`ty` for one use: its type parameters become `type_args` or new holes. Returns those too."""
        if not ty.type_params:
            return ty, ()
        chosen = tuple(type_args) or tuple(map(self._fresh, ty.type_params))
        mapping = dict(zip(ty.type_params, chosen, strict=True))
        body = bind_type_vars(FuncType(ty.arg_types, ty.ret_type, (), ty.where), mapping)
        assert isinstance(body, FuncType)
        return body, chosen

    def loosen(self, ty: FuncType) -> FuncType:
        """`ty` for one use: its symbolic dimensions may take any value, the same at each occurrence."""
        fresh: dict[DimVar, DimVar] = {}
        declared = {var.inside for var in ty.type_params}

        def dim_of(var: DimVar) -> Dim:
            if var in declared or isinstance(var, ShapeVar):
                return var
            if var not in fresh:
                fresh[var] = DimVar(var.name)
                self.dims.flexible(fresh[var])
            return fresh[var]

        return map_type(ty, lambda part: map_dims(part, dim_of))  # type: ignore[return-value]

    def _fresh(self, var: TypeVar) -> Type:
        """A fresh hole for a type parameter in one use."""
        new = TypeVar(var.name, var.kind)
        match new.inside:
            case ShapeVar() as shape:
                self._shapes[shape] = None
                return ShapeType((shape,))
            case DimVar() as dim:
                self.dims.flexible(dim)
                return DimType(dim)
            case DtypeVar() as dtype:
                self._dtypes[dtype] = None
                return TensorType((), dtype)
            case _:
                return IncompleteType(var.kind)

    def require(self, where: Sequence[Condition], what: str) -> None:
        """Require the conditions of one use of a function. Raises TypeCheckError."""
        for condition in where:
            self.dims.require(map_condition(condition, self._leaf), what)

    def final(self, ty: Type) -> Type:
        """`ty` with all known holes filled; dimensions without a value become `?`."""
        found = self.resolve(ty)
        if self._is_ground(found):
            return found
        return map_type(found, lambda part: map_dims(part, self.dims.final)) if self.dims.is_used else found

    def check_size(self, ty: Type) -> None:
        """Raises TypeCheckError for an absurdly deep or large type."""
        depth, size = self._measure(ty)
        if depth > MAX_TYPE_DEPTH:
            raise TypeCheckError(f"type must be nested at most {MAX_TYPE_DEPTH} deep, not {depth}")
        if size > MAX_TYPE_SIZE:
            raise TypeCheckError(f"type must have at most {MAX_TYPE_SIZE} parts, not {size}")

    def is_open(self, ty: Type) -> bool:
        """Whether a hole, shape or element type in `ty`, which is final, has no value."""
        return not self._is_ground(ty) and any(self._is_open_leaf(leaf) for leaf in type_leaves(ty))

    def _is_ground(self, ty: Type) -> bool:
        """Whether `ty` is a tuple of tensors with nothing to fill, however often its fields are read."""
        if not isinstance(ty, TupleType):
            return False
        known = self._ground.get(id(ty))
        if known is None:
            known = self._ground[id(ty)] = (ty, all(map(_is_plain, type_leaves(ty))))
        return known[1]

    def _is_open_leaf(self, leaf: Type) -> bool:
        match leaf:
            case IncompleteType():
                return True
            case TensorType(shape=shape, dtype=dtype):
                return (isinstance(dtype, DtypeVar) and dtype in self._dtypes) or self._is_open_shape(shape)
            case ShapeType(shape=shape):
                return self._is_open_shape(shape)
            case _:
                return False

    def _is_open_shape(self, shape: tuple[Dim, ...]) -> bool:
        return len(shape) == 1 and isinstance(shape[0], ShapeVar) and shape[0] in self._shapes

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
        """Update a filled hole whose value became more general, such as Tensor[(?), int32]."""
        while isinstance(hole, IncompleteType):
            following = self._filled[hole]
            if not isinstance(following, IncompleteType):
                self._filled[hole] = value
            hole = following

    def _unify_known(self, a: Type, b: Type) -> Type:
        match a, b:
            case TensorType(), TensorType():
                return a if a == b else self._unify_tensors(a, b)
            case DimType(), DimType():
                return DimType(self.dims.unify(a.dim, b.dim))
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
        if [var.kind for var in a.type_params] == [var.kind for var in b.type_params]:
            renamed = {theirs: as_argument(ours) for theirs, ours in zip(b.type_params, a.type_params, strict=True)}
            other = bind_type_vars(FuncType(b.arg_types, b.ret_type, (), b.where), renamed)
            assert isinstance(other, FuncType)
            if a.where != other.where:
                raise self._clash(a, b)
            args = self._unify_all(a.arg_types, other.arg_types)
            return FuncType(args, self.unify(a.ret_type, other.ret_type), a.type_params, a.where)
        # A polymorphic function serves where a monomorphic one is wanted.
        left, right = self.instantiate(a)[0], self.instantiate(b)[0]
        self.require((*left.where, *right.where), "function")
        return FuncType(self._unify_all(left.arg_types, right.arg_types), self.unify(left.ret_type, right.ret_type))

    def _unify_tensors(self, a: TensorType, b: TensorType) -> TensorType:
        a, b = self._tensor(a), self._tensor(b)
        if a.layout and b.layout and a.layout != b.layout:
            raise self._clash(a, b)
        return TensorType(self._unify_shapes(a, b), self._unify_dtypes(a, b), a.layout or b.layout)

    def _unify_dtypes(self, a: TensorType, b: TensorType) -> str:
        if a.dtype == b.dtype:
            return a.dtype
        for flexible, other in ((a.dtype, b.dtype), (b.dtype, a.dtype)):
            if isinstance(flexible, DtypeVar) and flexible in self._dtypes:
                self._dtypes[flexible] = other
                return other
        raise self._clash(a, b)

    def _unify_shapes(self, a: TensorType, b: TensorType) -> tuple[Dim, ...]:
        if a.shape == b.shape:
            return a.shape
        for flexible, other in ((a.shape, b.shape), (b.shape, a.shape)):
            match flexible:
                case (ShapeVar() as var,) if var in self._shapes:
                    self._shapes[var] = other
                    return other
                case _:
                    pass
        if a.rank != b.rank or has_unknown_rank(a) or has_unknown_rank(b):
            raise self._clash(a, b)
        return tuple(map(self.dims.unify, a.shape, b.shape))

    def _leaf(self, ty: Type) -> Type:
        match ty:
            case TensorType():
                return self._tensor(ty)
            case ShapeType(shape=(ShapeVar() as var,)):
                known = self._shapes.get(var)
                return ty if known is None else ShapeType(tuple(map(self.dims.value, known)))
            case DimType() | ShapeType():
                return map_dims(ty, self.dims.value)
            case IncompleteType():
                found = self._find(ty)
                return found if isinstance(found, IncompleteType) else self.resolve(found)
            case _:
                return self._find(ty)

    def _tensor(self, ty: TensorType) -> TensorType:
        """`ty` with its flexible parts substituted."""
        dtype, shape = ty.dtype, ty.shape
        while isinstance(dtype, DtypeVar) and (known := self._dtypes.get(dtype)) is not None:
            dtype = known
        while len(shape) == 1 and isinstance(shape[0], ShapeVar) and (whole := self._shapes.get(shape[0])) is not None:
            shape = whole
        if any(isinstance(dim, (DimVar, DimExpr)) for dim in shape):
            shape = tuple(map(self.dims.value, shape))
        return ty if dtype is ty.dtype and shape == ty.shape else TensorType(shape, dtype, ty.layout)

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


def _is_plain(leaf: Type) -> bool:
    return isinstance(leaf, TensorType) and isinstance(leaf.dtype, str) and all(type(dim) is int for dim in leaf.shape)


def as_argument(var: TypeVar) -> Type:
    """A type parameter as a type argument."""
    match var.kind:
        case Kind.DIM:
            return DimType(var.dim)
        case Kind.SHAPE:
            return ShapeType(var.shape)
        case Kind.BASE_TYPE:
            return TensorType((), var.dtype)
        case Kind.TYPE | Kind.CONSTRAINT | Kind.ADT_HANDLE | Kind.TYPE_DATA:
            return var
