"""Types: equality, text, and walks."""

from __future__ import annotations

import pytest

import relay_hw as relay
from relay_hw.ir.types import DimVar, bind_type_vars, map_type, type_leaves

F32 = relay.TensorType((2, 3))


def test_variables_and_holes_are_equal_only_to_themselves() -> None:
    assert relay.TypeVar("A") != relay.TypeVar("A")
    assert relay.IncompleteType() != relay.IncompleteType()
    assert len({relay.TypeVar("A"), relay.TypeVar("A")}) == 2
    assert DimVar("n") != DimVar("n")


def test_other_types_are_equal_by_structure() -> None:
    assert relay.TensorType([2, 3], "float32") == F32
    assert relay.TupleType([F32]) == relay.TupleType((F32,))
    assert relay.RefType(F32) != F32


@pytest.mark.parametrize(
    ("ty", "text"),
    [
        (relay.scalar_type("int8"), "int8"),
        (relay.TensorType((10,), "bool"), "Tensor[(10), bool]"),
        (relay.TensorType((1, relay.ANY)), "Tensor[(1, ?), float32]"),
        (relay.TupleType([]), "()"),
        (relay.TupleType([F32]), "(Tensor[(2, 3), float32],)"),
        (relay.FuncType((F32,), relay.scalar_type("int32")), "fn (Tensor[(2, 3), float32]) -> int32"),
        (relay.RefType(relay.scalar_type("int32")), "ref(int32)"),
        (relay.GlobalTypeVar("List"), "List"),
        (relay.TypeCall(relay.GlobalTypeVar("List"), (relay.scalar_type("int32"),)), "List[int32]"),
        (relay.IncompleteType(), "_"),
    ],
)
def test_text(ty: relay.Type, text: str) -> None:
    assert str(ty) == text


def test_text_of_a_polymorphic_function() -> None:
    a = relay.TypeVar("A")
    assert str(relay.FuncType((a,), a, (a,))) == "fn [A](A) -> A"


def test_map_type_keeps_unchanged_parts() -> None:
    a = relay.TypeVar("A")
    ty = relay.FuncType((relay.TupleType([F32, a]),), relay.RefType(relay.TypeCall(relay.GlobalTypeVar("L"), (a,))))
    assert map_type(ty, lambda leaf: leaf) is ty
    bound = bind_type_vars(ty, {a: F32})
    assert list(type_leaves(bound)) == [F32, F32, relay.GlobalTypeVar("L"), F32]
    assert bound.arg_types[0].fields[0] is F32  # type: ignore[attr-defined]


def test_static_shape_of_an_unknown_dimension() -> None:
    with pytest.raises(ValueError, match="shape must be static, not"):
        _ = relay.TensorType((relay.ANY,)).static_shape
