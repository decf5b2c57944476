"""Parses types, patterns and type definitions. In: tokens. Out: types, patterns, TypeData."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import (
    Constructor,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    Var,
)
from relay_hw.ir.module import TypeData
from relay_hw.ir.types import (
    DimType,
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
    is_dtype,
)
from relay_hw.text.dim_parser import DimParser
from relay_hw.text.lexer import Token, TokenKind

_SHORT = {"int": "int32", "uint": "uint32", "float": "float32"}
_KINDS = {kind.value: kind for kind in (Kind.TYPE, Kind.DIM, Kind.SHAPE, Kind.BASE_TYPE)}


class TypeParser(DimParser):
    """Reads types, patterns and type definitions."""

    def type(self) -> Type:
        """A type; `_` is a hole."""
        return self.nested(self._type)

    def optional_type(self) -> Type | None:
        """`: type` if it is there."""
        return self.type() if self.take(":") else None

    def type_params(self) -> tuple[TypeVar, ...]:
        """`[A, B]` if it is there; the names come into scope."""
        if not self.take("["):
            return ()
        found: dict[str, TypeVar] = {}
        while not self.at("]"):
            name = self.expect_kind(TokenKind.NAME, "a name", "list of type parameters")
            if name.text in found:
                raise self.error(f"type parameter {name.text} must be declared once", name)
            found[name.text] = TypeVar(name.text, self._kind())
            self.push_type_var(found[name.text])
            if not self.take_comma("]", "list of type parameters"):
                break
        self.expect("]", "list of type parameters")
        return tuple(found.values())

    def _kind(self) -> Kind:
        """`: Dim` after a type parameter; without it the kind is Type."""
        if not self.take(":"):
            return Kind.TYPE
        token = self.expect_kind(TokenKind.NAME, "a kind", "type parameter")
        if token.text not in _KINDS:
            raise self.error(f"kind must be Type, Dim, Shape or BaseType, not {token.text[:40]}", token)
        return _KINDS[token.text]

    def drop_type_params(self, params: Sequence[TypeVar]) -> None:
        for param in params:
            self.pop_type_var(param)

    def type_argument(self) -> Type:
        """A type argument: a type, dimension or shape."""
        token = self.token
        var = self.type_var(token.text) if token.kind is TokenKind.NAME else None
        if var is not None and var.kind is Kind.SHAPE:
            self.advance()
            return ShapeType(var.shape)
        if var is not None and var.kind is Kind.BASE_TYPE:
            self.advance()
            return TensorType((), var.dtype)
        if token.text == "(" and self.is_dim(self.ahead()):
            return ShapeType(tuple(self._shape()))
        return DimType(self.dim()) if self.is_dim(token) else self.type()

    def _type(self) -> Type:
        token = self.token
        if self.take("("):
            return TupleType(self._types(")", "tuple type"))
        if self.take("fn"):
            return self._function_type()
        if self.take("ref"):
            self.expect("(", "reference type")
            value = self.type()
            self.expect(")", "reference type")
            return RefType(value)
        if token.kind is not TokenKind.NAME:
            raise self.wanted("a type", "text")
        self.advance()
        if token.text == "_":
            return IncompleteType()
        if token.text == "Tensor":
            return self._tensor()
        return self._named(token)

    def _types(self, close: str, where: str) -> tuple[Type, ...]:
        found: list[Type] = []
        while not self.at(close):
            found.append(self.type())
            if not self.take_comma(close, where):
                break
        self.expect(close, where)
        return tuple(found)

    def _function_type(self) -> FuncType:
        params = self.type_params()
        self.expect("(", "function type")
        args = self._types(")", "function type")
        self.expect("->", "function type")
        ret = self.type()
        where = self.where()
        self.drop_type_params(params)
        return FuncType(args, ret, params, where)

    def _tensor(self) -> TensorType:
        self.expect("[", "tensor type")
        shape = self._whole_shape() or self._shape()
        self.expect(",", "tensor type")
        name = self.expect_kind(TokenKind.NAME, "an element type", "tensor type")
        dtype = self.dtype(name)
        layout = ""
        if self.take(","):
            layout = self.expect_kind(TokenKind.NAME, "a layout", "tensor type").text
        self.expect("]", "tensor type")
        return TensorType(shape, dtype, layout)

    def dtype(self, token: Token) -> str:
        """The element type that `token` names."""
        name = _SHORT.get(token.text, token.text)
        var = self.type_var(name)
        if var is not None:
            return self.checked_kind(var, Kind.BASE_TYPE, token).dtype
        if not is_dtype(name):
            raise self.error(f"element type must be like int8, int32, float32 or bool, not {token.text[:40]}", token)
        return name

    def _named(self, token: Token) -> Type:
        name = token.text
        var = self.type_var(name)
        if var is not None:
            return self.checked_kind(var, Kind.TYPE, token)
        if name in self.types or not name.startswith(("int", "uint", "float", "bool", "bfloat")):
            self.named_types.append((name, token))
            args = self._types("]", "type arguments") if self.take("[") else ()
            return TypeCall(GlobalTypeVar(name), args)
        return TensorType((), self.dtype(token))

    def check_named_types(self) -> None:
        """Check that every type name that was read is defined. Raises ParseError."""
        for name, token in self.named_types:
            if name not in self.types:
                raise self.error(f"type {name[:40]} must be defined", token)

    # Patterns

    def pattern(self, bound: list[Var]) -> Pattern:
        """A pattern; its variables are added to `bound`."""
        return self.nested(lambda: self._pattern(bound))

    def _pattern(self, bound: list[Var]) -> Pattern:
        token = self.token
        if token.kind is TokenKind.LOCAL:
            self.advance()
            var = Var(str(token.value), self.optional_type(), span=self.span_from(token))
            bound.append(var)
            return PatternVar(var)
        if self.take("("):
            return PatternTuple(self._patterns(bound))
        if token.kind is not TokenKind.NAME:
            raise self.wanted("a pattern", "arm of match")
        self.advance()
        if token.text == "_":
            return PatternWildcard()
        constructor = self.constructors.get(token.text)
        if constructor is None:
            raise self.error(f"pattern {token.text[:40]} must be a constructor", token)
        return PatternConstructor(constructor, self._patterns(bound) if self.take("(") else ())

    def _patterns(self, bound: list[Var]) -> tuple[Pattern, ...]:
        found: list[Pattern] = []
        while not self.at(")"):
            found.append(self.pattern(bound))
            if not self.take_comma(")", "pattern"):
                break
        self.expect(")", "pattern")
        return tuple(found)

    # Definitions

    def type_definition(self) -> None:
        """`type Name[A] { Constructor(types), ... }`, or `extern type Name`."""
        is_extern = self.take("extern")
        self.expect("type", "definition")
        token = self.expect_kind(TokenKind.NAME, "a name", "definition of a type")
        header = GlobalTypeVar(token.text)
        if token.text in self.types:
            raise self.error(f"type {token.text[:40]} must be defined once", token)
        # Known from here on: the type may contain itself.
        self.types[token.text] = TypeData(header)
        params = self.type_params()
        constructors: list[Constructor] = []
        if not is_extern and self.take("{"):
            while not self.at("}"):
                constructors.append(self._constructor(header, len(constructors)))
                if not self.take_comma("}", f"type {token.text}"):
                    break
            self.expect("}", f"type {token.text}")
        self.drop_type_params(params)
        self.types[token.text] = TypeData(header, params, tuple(constructors), is_extern)

    def _constructor(self, header: GlobalTypeVar, tag: int) -> Constructor:
        token = self.expect_kind(TokenKind.NAME, "a constructor", f"type {header.name}")
        if token.text in self.constructors:
            raise self.error(f"constructor {token.text[:40]} must be defined once", token)
        fields = self._types(")", f"constructor {token.text}") if self.take("(") else ()
        constructor = Constructor(token.text, fields, header, tag, span=self.span_from(token))
        self.constructors[token.text] = constructor
        return constructor
