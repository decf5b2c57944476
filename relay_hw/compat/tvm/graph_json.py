"""TVM's load_json and save_json. In: text, or a program. Out: mutable modules; and back."""

from __future__ import annotations

from typing import Any

from relay_hw.compat.tvm.module import as_module
from relay_hw.ir.module import IRModule
from relay_hw.text import load_json as load_typed
from relay_hw.text.json.reader import read_document
from relay_hw.text.tvm.reader import is_tvm_json, read_graph
from relay_hw.text.tvm.writer import save_tvm_json as save_json

__all__ = ["load_json", "save_json"]


def load_json(json_str: str) -> Any:
    """Load TVM's JSON: a module, a function or expression, a type, or a map of them; also this package's JSON.

    Raises ParseError for text that cannot be read, UnsupportedError for operators that are not implemented.
    """
    document = read_document(json_str)
    if not is_tvm_json(document):
        return as_module(load_typed(json_str))
    found = read_graph(document)
    return as_module(found) if isinstance(found, IRModule) else found
