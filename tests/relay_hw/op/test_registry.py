"""The registry: every operator once, every family listed, every record usable by text and printers."""

from __future__ import annotations

import dataclasses
import pkgutil
from typing import get_type_hints

import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import ParseError, UnsupportedError
from relay_hw.op import tvm_operators
from relay_hw.op.base import Attrs

NAMESPACES = {
    "attributes", "base", "dynamic", "fixed", "gradients", "image", "nn", "number_formats", "qnn", "tvm_operators",
    "vision",
}  # fmt: skip
SIMPLE = {
    "int", "float", "str", "bool", "int | None", "str | None", "tuple[int, ...]", "tuple[int, ...] | None",
    "float | None", "tuple[float, ...] | None", "tuple[tuple[int, int], ...]", "int | tuple[int, ...]",
}  # fmt: skip


def test_names_are_unique_and_found() -> None:
    names = [one.name for one in op.OPS]
    assert len(set(names)) == len(names)
    assert all(op.get(name).name == name for name in names)


def test_every_module_of_the_folder_is_a_family_or_a_namespace() -> None:
    modules = {module.name for module in pkgutil.iter_modules(op.__path__)}
    families = {family.__name__.rsplit(".", 1)[-1] for family in op.FAMILIES}
    assert modules == families | NAMESPACES


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(UnsupportedError, match=r"an operator must be one of the \d+ .*, not nn\.conv2; did you mean"):
        op.get("nn.conv2")
    with pytest.raises(UnsupportedError, match=r"not zzzzzz$"):
        op.get("zzzzzz")


MINE = {one.name for one in op.OPS}


def test_every_operator_of_relay_is_executed_or_refused_by_name() -> None:
    assert len(tvm_operators.NAMES) == 299, "TVM 0.18 has 299 operators"
    assert len(MINE & tvm_operators.NAMES) >= 200


def test_what_relay_lacks_is_told_apart() -> None:
    extras = {name for name in MINE if not tvm_operators.is_known(name)}
    assert {"fixed.requantize", "simulated.format", "nn.max_pool2d_argmax"} <= extras
    assert not extras & {"add", "nn.conv2d", "qnn.requantize"}


@pytest.mark.parametrize("name", sorted(tvm_operators.NAMES - MINE))
def test_a_known_operator_without_semantics_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        op.get(name)
    assert str(caught.value) == f"operator {name} is not implemented yet"


def test_the_parser_says_where_such_an_operator_stands() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), int32]) {\n  nn.correlation(%x)\n}'
    with pytest.raises(ParseError, match=r"<text>:3:3: operator nn\.correlation is not implemented yet"):
        relay.fromtext(text)


@pytest.mark.parametrize("one", op.OPS, ids=lambda one: one.name)
def test_every_operator_is_documented_and_has_readable_attributes(one: op.Op) -> None:
    assert one.doc and not one.doc.endswith(".")
    if one.attrs_type is None:
        return
    assert issubclass(one.attrs_type, Attrs)
    for field in dataclasses.fields(one.attrs_type):
        assert field.type in SIMPLE, f"{one.name}.{field.name}: {field.type}"
    assert set(get_type_hints(one.attrs_type)) == {field.name for field in dataclasses.fields(one.attrs_type)}


def test_attributes_compare_by_value_however_they_are_written() -> None:
    from relay_hw.op.conv import Conv2DAttrs

    written = Conv2DAttrs(strides=[1, 1], out_dtype="")  # type: ignore[arg-type]
    assert written == Conv2DAttrs() and hash(written) == hash(Conv2DAttrs())


def test_builders_have_relays_names() -> None:
    for name in ("add", "reshape", "strided_slice", "argmax", "full", "layout_transform", "clip", "where"):
        assert callable(getattr(op, name))
    for name in ("conv2d", "dense", "batch_norm", "softmax", "pad", "relu", "avg_pool2d", "conv2d_transpose"):
        assert callable(getattr(op.nn, name))
    for name in ("quantize", "dequantize", "requantize", "conv2d", "dense", "add"):
        assert callable(getattr(op.qnn, name))
    for name in ("requantize", "add", "sum_pool2d", "softmax", "layer_norm", "rms_norm"):
        assert callable(getattr(op.fixed, name))
