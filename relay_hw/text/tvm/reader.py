"""Reads TVM's JSON, a graph of nodes by index. In: the document. Out: a program or type, without inferred types.

Written by every TVM that had Relay. A field is a literal or the index of a node, which only the kind of node tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from relay_hw.analysis.variables import free_vars
from relay_hw.errors import ParseError
from relay_hw.ir.expr import Constant, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import Type
from relay_hw.text.json.fields import fault
from relay_hw.text.metadata import MetadataError, decode_array
from relay_hw.text.tvm.attributes import is_node
from relay_hw.text.tvm.nodes import NODES, Foreign, Parts, kind_of

_FLAGS: Final = MappingProxyType({"0": False, "1": True, "False": False, "True": True})


def is_tvm_json(document: Any) -> bool:
    """Whether `document` is a graph as TVM's save_json writes it."""
    return isinstance(document, dict) and {"root", "nodes"} <= document.keys()


def read_tvm_json(document: Mapping[str, Any]) -> IRModule:
    """The module of a graph; a function or expression becomes its `main`. Raises ParseError, UnsupportedError."""
    root = read_graph(document)
    match root:
        case IRModule():
            return root
        case Function():
            return IRModule({"main": root})
        case Expr():
            return IRModule({"main": Function(free_vars(root), root)})
        case _:
            raise fault("root of the graph must be a module or an expression", type(root).__name__)


def read_graph(document: Mapping[str, Any]) -> Any:
    """The value of a graph's root: a module, an expression, a type, a text, a number, None, or a tuple or dict
    of them. Raises ParseError, UnsupportedError."""
    root = Graph(document).build()
    if isinstance(root, Foreign):
        raise root.refusal()
    return root


class Graph:
    """The nodes of one document, each built once, parts first and without recursion."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        nodes, arrays = document["nodes"], document.get("b64ndarrays", [])
        if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
            raise ParseError("nodes must be a list of objects")
        if not isinstance(arrays, list):
            raise ParseError("b64ndarrays must be a list")
        self._nodes: list[dict[str, Any]] = nodes
        self._arrays: list[Any] = arrays
        self._root = self._index(document["root"], "root")
        self._built: dict[int, Any] = {0: None}

    def build(self) -> Any:
        """The value of the root."""
        stack: list[tuple[int, bool]] = [(self._root, False)]
        open_nodes: set[int] = set()
        while stack:
            place, is_ready = stack.pop()
            if place in self._built:
                continue
            if is_ready:
                self._built[place] = self._make(place)
                open_nodes.discard(place)
                continue
            if place in open_nodes:
                raise fault(f"nodes[{place}] must not contain itself", self._kind(place))
            open_nodes.add(place)
            stack.append((place, True))
            stack.extend((part, False) for part in reversed(list(self._parts(place))) if part not in self._built)
        return self._built[self._root]

    # Nodes

    def _kind(self, place: int) -> str:
        kind = self._nodes[place].get("type_key")
        if not isinstance(kind, str):
            raise fault(f"nodes[{place}]: type_key must be a string", kind)
        return kind_of(kind)

    def _parts(self, place: int) -> Iterator[int]:
        """The nodes that must be built before."""
        kind, node = self._kind(place), self._nodes[place]
        if kind in ("Array", "Map"):
            yield from (self._index(part, f"nodes[{place}].data") for part in self._list(node, "data"))
            return
        if kind in NODES:
            yield from (self.reference(place, name) for name in NODES[kind][0])

    def _make(self, place: int) -> Any:
        kind, node = self._kind(place), self._nodes[place]
        if kind == "Array":
            return tuple(self._built[part] for part in self._parts(place))
        if kind == "Map":
            return self._map(place, node)
        if kind not in NODES:
            return Foreign(str(node["type_key"]), place)
        try:
            return NODES[kind][1](Parts(self, place))
        except ValueError as error:
            raise ParseError(f"nodes[{place}]: {error}") from None

    def _map(self, place: int, node: Mapping[str, Any]) -> dict[Any, Any]:
        data = [self._built[part] for part in self._parts(place)]
        has_names = "keys" in node
        keys, values = (self._list(node, "keys"), data) if has_names else (data[::2], data[1::2])
        if len(keys) != len(values):
            raise fault(f"nodes[{place}]: a Map must have a value for each of its {len(keys)} keys", len(values))
        if not all(isinstance(key, str if has_names else (str, int, float, Expr, Type)) for key in keys):
            raise ParseError(f"nodes[{place}]: keys of a Map must be names or nodes of a program")
        return dict(zip(keys, values, strict=True))

    # Fields

    def _index(self, value: Any, where: str) -> int:
        text = str(value)
        if isinstance(value, bool) or not text.isdecimal() or len(text) > 9 or int(text) >= len(self._nodes):
            raise fault(f"{where} must count within the {len(self._nodes)} nodes", value)
        return int(text)

    def _list(self, node: Mapping[str, Any], name: str) -> list[Any]:
        found = node.get(name, [])
        if not isinstance(found, list):
            raise fault(f"{name} of a node must be a list", found)
        return found

    def attrs(self, place: int) -> dict[str, Any]:
        """The fields of a node."""
        found = self._nodes[place].get("attrs", {})
        if not isinstance(found, dict):
            raise fault(f"nodes[{place}]: attrs must be an object", found)
        return found

    def literal(self, place: int, name: str) -> str:
        """A field that is not a node. Raises ParseError if it is missing."""
        found = self.attrs(place)
        if name not in found:
            raise ParseError(f"nodes[{place}] must have the field {name}")
        return str(found[name])

    def reference(self, place: int, name: str) -> int:
        """The node that a field names; 0, which is nothing, without the field."""
        return self._index(self.attrs(place).get(name, 0), f"nodes[{place}].{name}")

    def built(self, place: int, name: str) -> Any:
        """The value of a node that a field refers to, built already."""
        return self._built[self.reference(place, name)]

    def text(self, place: int, name: str) -> str:
        """A string, which older versions keep as a literal and newer ones as a node."""
        found = self.literal(place, name)
        if found.isdecimal() and int(found) < len(self._nodes):
            node = self._nodes[int(found)]
            if kind_of(str(node.get("type_key"))) == "String":
                return str(node.get("repr_str", ""))
        return found

    def head(self, place: int, names: Iterable[str]) -> str:
        """The string that a node itself keeps under one of `names`."""
        node = self._nodes[place]
        return str(next((node[name] for name in names if name in node), ""))

    def constant(self, place: int) -> Constant:
        """The array of a constant."""
        text = self.literal(place, "data")
        if not text.isdecimal() or int(text) >= len(self._arrays) or not isinstance(self._arrays[int(text)], str):
            raise fault(f"nodes[{place}]: data must count within the {len(self._arrays)} arrays", text)
        try:
            return Constant(decode_array(self._arrays[int(text)]))
        except MetadataError as error:
            raise ParseError(f"nodes[{place}]: {error}") from None

    # Attributes of operators and functions, whose fields' kinds the operator knows

    def attributes(self, place: int, op: str, fields: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """The attributes of a call of `op` by name; those that it does not have here, or as nothing, are left out."""
        given = self.attrs(place) if place else {}
        found = {name: self._attribute(place, name, options, op) for name, options in fields.items() if name in given}
        return {name: value for name, value in found.items() if value is not None or type(None) in fields[name]}

    def _attribute(self, place: int, name: str, options: tuple[Any, ...], op: str) -> Any:
        if is_node(op, name, options):
            return self._simple(self.reference(place, name), 0)
        if str in options:
            return self._string(place, name, type(None) in options)
        text = self.literal(place, name)
        if bool in options:
            if text not in _FLAGS:
                raise fault(f"nodes[{place}]: {name} must be 0 or 1", text)
            return _FLAGS[text]
        try:
            return float(text) if float in options else int(text)
        except ValueError:
            raise fault(f"nodes[{place}]: {name} must be a number", text) from None

    def _string(self, place: int, name: str, is_optional: bool) -> str | None:
        """A string; one that is nothing, as an index or as an element type, is None if it may be."""
        found = self.text(place, name)
        is_nothing = found in ("", "0") or (found == "void" and name.endswith("dtype"))
        return (None if is_optional else "") if is_nothing else found

    def _simple(self, place: int, depth: int) -> Any:
        """A number, a string, or a list of them."""
        if place == 0:
            return None
        if depth > 4:
            raise fault(f"nodes[{place}]: attributes must be nested at most 4 deep", depth)
        node, kind = self._nodes[place], self._kind(place)
        if kind == "Array":
            parts = self._list(node, "data")
            return tuple(self._simple(self._index(part, f"nodes[{place}].data"), depth + 1) for part in parts)
        if kind in ("IntImm", "FloatImm", "String"):
            return self._make(place)
        raise fault(f"nodes[{place}]: attribute must be a number, a string or a list", kind)
