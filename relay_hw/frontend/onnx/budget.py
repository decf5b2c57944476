"""Checks the size of an ONNX model before importing it. In: a protobuf, limits. Out: nothing, or one error.

Everything here goes without calls into what lies inside, so that no depth of a model is a depth of this program, and
what functions written out would take is computed from their sizes, not by writing them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from relay_hw.analysis.folding import Work, width_of
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.walk import attributes, bodies, graphs, roots, tensors
from relay_hw.limits import MOST_AXES, OF_WEIGHTS, Limits, product
from relay_hw.span import Span

# Overhead of a string, and of a number in an attribute, as Python objects.
_ENTRY: Final = 16
_NUMBER: Final = 8
# Inputs and outputs of a node that count as one with it: an LSTM has eleven.
_FEW: Final = 16
# Weight of an inner graph: onnx's checker copies the names that are visible in it.
_GRAPH: Final = 8
# Weight of a node that is converted again: bodies of nested loops are, for each trial of the outer one.
_AGAIN: Final = 10

Key = tuple[str, str, str]


def check_budget(proto: Any, name: str, limits: Limits) -> None:
    """Raise InputError if the model `name` exceeds `limits`."""
    nodes = texts = 0
    for root in roots(proto):
        for body, depth in bodies(root):
            limits.check("nesting", f"graphs inside of graphs of {name}", depth)
            nodes += sum(map(_pieces, body.node))
            limits.check("nodes", f"nodes of {name}", nodes)
            texts += _texts(body, name)
            limits.check("string_bytes", f"the bytes of names, texts and lists of {name}", texts)
            for tensor in tensors(body):
                check_tensor(tensor, name, limits)
            for item in (*body.input, *body.output) if hasattr(body, "initializer") else ():
                _check_type(item, name, limits)
    if proto.functions:
        _check_functions(proto, name, limits)


def _pieces(node: Any) -> int:
    """Weight of a node: one, more with unusually many inputs and outputs, and for graphs in it."""
    inner = sum(1 for attr in node.attribute for _ in graphs(attr))
    return 1 + max(0, len(node.input) + len(node.output) - _FEW) + _GRAPH * inner


def check_tensor(tensor: Any, name: str, limits: Limits) -> None:
    """Raise InputError for a tensor with illegal sizes, or with more elements than `limits` allow."""
    what = f"tensor {tensor.name} of {name}" if tensor.name else f"a tensor of {name}"
    if len(tensor.dims) > MOST_AXES:
        raise InputError(f"{what} must have at most {MOST_AXES} axes, not {len(tensor.dims):,}")
    if any(size < 0 for size in tensor.dims):
        raise InputError(f"{what} must have sizes of at least 0, not {'x'.join(map(str, tensor.dims))}")
    limits.check("tensor_elements", f"the elements of {what}", product(tensor.dims))


def _check_type(item: Any, name: str, limits: Limits) -> None:
    """Limit the nesting of sequence and optional types, which are read recursively."""
    kind, depth = item.type, 0
    while True:
        value = kind.WhichOneof("value")
        if value not in ("sequence_type", "optional_type", "map_type"):
            break
        inner = getattr(kind, value)
        kind = inner.value_type if value == "map_type" else inner.elem_type
        depth += 1
        limits.check("nesting", f"types inside of types of {item.name} of {name}", depth)
    if value != "tensor_type":
        return
    dims = kind.tensor_type.shape.dim
    if len(dims) > MOST_AXES:
        raise InputError(f"tensor {item.name} of {name} must have at most {MOST_AXES} axes, not {len(dims):,}")
    known = product(dim.dim_value for dim in dims if dim.dim_value > 0)
    limits.check("tensor_elements", f"the elements of tensor {item.name} of {name}", known)


def _texts(body: Any, name: str) -> int:
    """Bytes of memory for the names, strings and lists of numbers of one graph or function."""
    found = 0
    for text in _names(body):
        # Names that are not UTF-8 arrive as bytes.
        if not isinstance(text, str):
            raise InputError(f"names of {name} must be UTF-8, not {text[:40]!r}")
        found += len(text) + _ENTRY
    for attr in attributes(body):
        found += _size((attr.s, *attr.strings)) + _NUMBER * (len(attr.ints) + len(attr.floats))
    return found + sum(_size(tensor.string_data) for tensor in tensors(body) if tensor.string_data)


def _names(body: Any) -> Iterator[str | bytes]:
    yield body.name
    for item in (*body.input, *body.output, *body.value_info, *getattr(body, "initializer", ())):
        # A function's inputs are names, a graph's have types too.
        yield item.name if hasattr(item, "name") else item
        for dim in item.type.tensor_type.shape.dim if hasattr(item, "type") else ():
            yield dim.dim_param
    for node in body.node:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
    for attr in attributes(body):
        yield from (attr.name, attr.ref_attr_name)


def _size(texts: Iterable[bytes]) -> int:
    return sum(len(text) + _ENTRY for text in texts)


@dataclass(frozen=True, slots=True)
class _Size:
    """Nodes and bytes of a function with all calls inlined, and how often it uses its caller's attributes."""

    nodes: int = 0
    size: int = 0
    uses: int = 0

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.nodes + other.nodes, self.size + other.size, self.uses + other.uses)


def _key(item: Any) -> Key:
    """The key of a function: a node's domain, operator and overload, or a function's own."""
    operator = item.op_type if hasattr(item, "op_type") else item.name
    return ("" if item.domain == "ai.onnx" else item.domain, operator, item.overload)


def _check_functions(proto: Any, name: str, limits: Limits) -> None:
    functions: dict[Key, Any] = {}
    for function in proto.functions:
        if _key(function) in functions:
            raise InputError(f"a function of {name} must be defined once, unlike {function.domain}.{function.name}")
        functions[_key(function)] = function
    sizes: dict[Key, _Size] = {}
    depths: dict[Key, int] = {}
    for key, called in _in_order(functions, name):
        depths[key] = 1 + max((depths[one] for one in called), default=0)
        limits.check("nesting", f"functions that call functions of {name}", depths[key])
        sizes[key] = _Size(size=functions[key].ByteSize()) + _written(functions[key], sizes)
        _check_size(sizes[key], f"function {functions[key].name} of {name}", limits)
    _check_size(_written(proto.graph, sizes), name, limits)


def _check_size(size: _Size, what: str, limits: Limits) -> None:
    limits.check("nodes", f"nodes of {what} with its functions written out", size.nodes)
    limits.check("inlined_bytes", f"bytes of functions of {what} when they are written out", size.size)


def _in_order(functions: Mapping[Key, Any], name: str) -> list[tuple[Key, set[Key]]]:
    """Functions in call order, callees first. Raises InputError for recursion."""
    called = {
        key: {_key(node) for body, _ in bodies(function) for node in body.node} & functions.keys()
        for key, function in functions.items()
    }
    try:
        return [(key, called[key]) for key in TopologicalSorter(called).static_order()]
    except CycleError as error:
        cycle = " calls ".join(operator for _domain, operator, _overload in error.args[1])
        raise InputError(f"functions of {name} must not call themselves: {cycle}") from None


def _written(body: Any, sizes: Mapping[Key, _Size]) -> _Size:
    """The inlined size of a graph or function whose callees have `sizes`; `nesting`: depth of graphs inside."""
    found = _Size()
    for node in body.node:
        inner = sum((_written(graph, sizes) for attr in node.attribute for graph in graphs(attr)), _Size())
        uses = sum(bool(attr.ref_attr_name) for attr in node.attribute) + inner.uses
        found += _Size(_pieces(node) + inner.nodes, inner.size, uses)
        callee = sizes.get(_key(node))
        if callee is not None:
            # A graph or tensor that a call gives is copied to every place where the function uses it.
            given = node.ByteSize() + inner.size
            copied = _Size(callee.uses * inner.nodes, callee.uses * given, callee.uses * uses)
            found += _Size(callee.nodes, callee.size) + copied
    return found


class Ledger:
    """Counts what converting a model has used. Every method raises InputError before a limit is exceeded."""

    def __init__(self, name: str, limits: Limits, weight_bytes: int = 0, nodes: int = 0) -> None:
        """`weight_bytes`, `nodes`: of the model."""
        self._name, self._limits = name, limits
        self._free, self._first = OF_WEIGHTS * weight_bytes, nodes
        self._nodes = self._bytes = 0

    def convert(self, span: Span) -> None:
        """Count a converted node. Loop bodies are converted again until the types of loop variables are stable."""
        self._nodes += 1 if self._first > 0 else _AGAIN
        self._first -= 1
        what = f"nodes of {self._name}, {_AGAIN} for each that a loop has converted again,"
        self._limits.check("nodes", what, self._nodes, span)

    def parts(self, count: int, span: Span) -> None:
        """Count the Relay nodes made for one ONNX node."""
        self._nodes += count
        self._limits.check("nodes", f"nodes of {self._name} and the parts of this one", self._nodes, span)

    def result(self, sizes: Iterable[int], span: Span) -> None:
        """Count a tensor that is computed at run time."""
        self._limits.check("tensor_elements", "the elements of a result", product(sizes), span)

    def reserve(self, sizes: Iterable[int], dtype: str, span: Span, passes: bool = False) -> None:
        """Count a constant that a converter makes; `passes`: it is temporary."""
        elements, before = product(sizes), self._bytes
        self.compute(Work(elements, elements * width_of(dtype), elements), span)
        if passes:
            self._bytes = before

    def compute(self, work: Work, span: Span) -> None:
        """Count a constant that is folded from others."""
        self._limits.check("tensor_elements", "the elements of a constant", work.elements, span)
        self._limits.check("folded_steps", "the steps to compute a constant", work.steps, span)
        self._bytes += work.size
        beyond = max(self._bytes - self._free, 0)
        self._limits.check("folded_bytes", f"the bytes of constants of {self._name} beyond its weights", beyond, span)
