"""Stored functions that no compiler writes are refused; those that it writes are taken."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from relay_hw.backend.check import check_functions
from relay_hw.backend.flatten import flatten
from relay_hw.backend.nodes import FlatFunction
from relay_hw.backend.store import ConstantPool, flat_from_json, flat_to_json
from relay_hw.errors import ArtifactError
from relay_hw.text import parse
from relay_hw.transform import InferType

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %c: bool) {
  let %r = ref(%x);
  let %f = fn (%a: Tensor[(2, 3), float32]) { add(%a, %x) };
  let %p = split(%x, indices_or_sections=3, axis=1);
  ref_write(%r, %f(%x));
  let %s = ref_read(%r);
  if (%c) { concatenate((%p.0, %p.2), axis=1) } else { strided_slice(%s, begin=[0, 0], end=[2, 2], strides=[1, 1]) }
}
"""


def stored() -> Any:
    pool = ConstantPool()
    module = InferType()(parse(TEXT))
    return json.loads(json.dumps(flat_to_json(flatten(module["main"], "main"), pool)))


def read(row: Any) -> FlatFunction:
    return flat_from_json(row, ConstantPool())


def nodes(row: Any) -> list[Any]:
    return [node for part in (row, *row["inner"]) for node in part["nodes"]]


def find(row: Any, key: str) -> Any:
    return next(node for node in nodes(row) if key in node)


def call(row: Any, name: str) -> Any:
    return next(node for node in nodes(row) if node.get("call") == name)


def test_what_the_compiler_writes_is_taken() -> None:
    check_functions(read(stored()), {})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda row: call(row, "split").update(args=[]), "split must get 1 arguments, not 0"),
        (lambda row: call(row, "add").update(args=[0, 0, 0]), "add must get 2 arguments, not 3"),
        (lambda row: call(row, "split")["attrs"].update(axis=7), "the axis of split must be in [-2, 2), not 7"),
        (
            lambda row: call(row, "add").update(type={"shape": [1 << 62], "dtype": "float32"}),
            "the result of add must be Tensor[(2, 3), float32], not Tensor[(4611686018427387904), float32]",
        ),
        (lambda row: find(row, "get").update(index=3), "field 3 must be of a tuple that has it, not of "),
        (lambda row: find(row, "get").update(get=1), "field 0 must be of a tuple that has it, not of Tensor"),
        (lambda row: find(row, "if").update({"if": 0}), "the condition must be bool, not Tensor[(2, 3), float32]"),
        (lambda row: find(row, "apply").update(args=[]), "what is called must be a function of 0, not fn"),
        (lambda row: find(row, "ref_read").update(ref_read=0), "what is read or written must be a reference, "),
        (
            lambda row: row["nodes"].append({"invoke": "gone", "args": [], "type": {"tuple": []}}),
            "function gone must be in the build",
        ),
        (
            lambda row: row["nodes"].append({"invoke": "main", "args": [0], "type": {"tuple": []}}),
            "function main must get 2 arguments, not 1",
        ),
        (
            lambda row: row["nodes"].append({"input": "late", "type": {"tuple": []}}),
            "parameters must come first",
        ),
    ],
)  # fmt: skip
def test_what_no_compiler_writes_is_refused(change: Any, sentence: str) -> None:
    row = stored()
    change(row)
    main = read(row)
    with pytest.raises(ArtifactError, match=r"function \w+: node \d+: " + re.escape(sentence)):
        check_functions(main, {"main": main})


def test_attributes_are_of_their_own_kinds() -> None:
    row = stored()
    call(row, "split")["attrs"].update(axis="1")
    with pytest.raises(ArtifactError, match='attribute axis of split must be an integer, not "1"'):
        read(row)
