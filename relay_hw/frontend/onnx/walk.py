"""Iterates over all graphs, nodes and tensors of an ONNX model. In: a protobuf. Out: parts of it, without recursion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def bodies(root: Any) -> Iterator[tuple[Any, int]]:
    """A graph or function and the graphs inside it, each with the number of graphs around it."""
    waiting = [(root, 0)]
    while waiting:
        body, depth = waiting.pop()
        yield body, depth
        waiting += [(graph, depth + 1) for attr in attributes(body) for graph in graphs(attr)]


def attributes(body: Any) -> Iterator[Any]:
    """Attributes of the nodes of a graph or function, and a function's default attributes."""
    for node in body.node:
        yield from node.attribute
    yield from getattr(body, "attribute_proto", ())


def graphs(attr: Any) -> Iterator[Any]:
    """The graphs of an attribute."""
    if attr.HasField("g"):
        yield attr.g
    yield from attr.graphs


def roots(proto: Any) -> Iterator[Any]:
    """The graph of a model, and its functions."""
    yield proto.graph
    yield from proto.functions


def tensors(body: Any) -> Iterator[Any]:
    """Tensors of one graph or function, without those of graphs inside it."""
    yield from getattr(body, "initializer", ())
    for sparse in getattr(body, "sparse_initializer", ()):
        yield from (sparse.values, sparse.indices)
    for attr in attributes(body):
        if attr.HasField("t"):
            yield attr.t
        yield from attr.tensors
        for sparse in [*([attr.sparse_tensor] if attr.HasField("sparse_tensor") else []), *attr.sparse_tensors]:
            yield from (sparse.values, sparse.indices)


def all_tensors(proto: Any) -> Iterator[Any]:
    """Every tensor of a model."""
    for root in roots(proto):
        for body, _depth in bodies(root):
            yield from tensors(body)
