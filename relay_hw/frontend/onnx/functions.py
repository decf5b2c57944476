"""Inlines operators that onnx defines as functions of others. In: a model. Out: one of operators with converters.

Every node of a body carries the name of the node that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relay_hw.errors import InputError
from relay_hw.frontend.onnx.valid import add_defaults
from relay_hw.span import Span

HasConverter = Callable[[str, str], bool]


def write_out_functions(proto: Any, converters: Sequence[tuple[str, str]], has_converter: HasConverter) -> Any:
    """Replace operators without converter in `proto` by their definitions, if onnx has one.

    `converters` are (domain, operator) pairs that stay. The model given is not changed.
    """
    import onnx

    if not any(_is_function(node, has_converter) for node in _all_nodes(proto.graph)):
        return proto
    try:
        proto = onnx.shape_inference.infer_shapes(proto)
    except Exception:  # inference gives types where it can; a graph without them keeps its nodes
        copy = onnx.ModelProto()
        copy.CopyFrom(proto)
        proto = copy
    kept = [("" if domain == "ai.onnx" else domain, operator) for domain, operator in converters]
    _Writer(proto, kept, has_converter).graph(proto.graph, {})
    return proto


def _all_nodes(graph: Any) -> Any:
    for node in graph.node:
        yield node
        for attr in node.attribute:
            for inner in [*([attr.g] if attr.HasField("g") else []), *attr.graphs]:
                yield from _all_nodes(inner)


def _is_function(node: Any, has_converter: HasConverter) -> bool:
    return not has_converter(node.domain or "ai.onnx", node.op_type) and has_definition(node.domain, node.op_type)


def has_definition(domain: str, operator: str) -> bool:
    """Whether onnx defines an operator as a function of others."""
    import onnx

    if not onnx.defs.has(operator, domain):
        return False
    schema: Any = onnx.defs.get_schema(operator, domain)
    return schema.has_function or schema.has_context_dependent_function


class _Writer:
    """Replaces function nodes in the graphs of one model."""

    def __init__(self, proto: Any, kept: Sequence[tuple[str, str]], has_converter: HasConverter) -> None:
        self.proto = proto
        self.kept = list(kept)
        self.has_converter = has_converter

    def graph(self, graph: Any, outer: Mapping[str, Any]) -> None:
        """Replace the function nodes of `graph` and of the graphs inside; `outer` are types around it."""
        from onnx import helper

        types = dict(outer)
        for item in (*graph.input, *graph.value_info, *graph.output):
            types[item.name] = item.type
        for item in graph.initializer:
            types.setdefault(item.name, helper.make_tensor_type_proto(item.data_type, item.dims))
        nodes: list[Any] = []
        for node in graph.node:
            for attr in node.attribute:
                for inner in [*([attr.g] if attr.HasField("g") else []), *attr.graphs]:
                    self.graph(inner, types)
            nodes.extend(self._written(node, types) if _is_function(node, self.has_converter) else [node])
        kept = [self._copy(node) for node in nodes]
        del graph.node[:]
        graph.node.extend(kept)

    @staticmethod
    def _copy(node: Any) -> Any:
        import onnx

        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        return copy

    def _written(self, node: Any, types: Mapping[str, Any]) -> Sequence[Any]:
        """The nodes of the definition, or the node itself if its types are unknown."""
        from onnx import helper, inliner

        def info(name: str) -> Any:
            found = helper.make_empty_tensor_value_info(name)
            if name in types:
                found.type.CopyFrom(types[name])
            return found

        if node.op_type == "SequenceMap" and not _is_typed(types, node.input[0]):
            # The inliner reads the type of its first input, be it there or not.
            what = f"SequenceMap must read a list whose type is known, unlike {node.input[0]}"
            raise InputError(what, Span(_label(node)))
        node = self._with_defaults(node)
        names = list(dict.fromkeys(name for name in node.input if name))
        outputs = [name for name in node.output if name]
        graph = helper.make_graph([node], "node", [info(name) for name in names], [info(name) for name in outputs])
        model = helper.make_model(graph, opset_imports=self.proto.opset_import, ir_version=self.proto.ir_version)
        try:
            body = inliner.inline_selected_functions(model, self.kept, exclude=True, inline_schema_functions=True)
        except Exception:  # the inliner asks for the types of inputs that are left out
            body = self._by_definition(node, model, types)
        return [node] if body is None else self._named(node, body.graph, {*names, *outputs})

    def _by_definition(self, node: Any, model: Any, types: Mapping[str, Any]) -> Any:
        """`model` with its one node inlined by the definition for its input types; None without one."""
        import onnx
        from onnx import inliner

        opsets = {item.domain: item.version for item in self.proto.opset_import}
        version = opsets.get(node.domain, 1)
        given = [types.get(name, onnx.TypeProto()).SerializeToString() for name in node.input]
        function = onnx.FunctionProto()
        try:
            schema: Any = onnx.defs.get_schema(node.op_type, version, node.domain)
            made = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), given)
            function.ParseFromString(made)
            function.domain, function.name = "definition", node.op_type
            model.functions.append(function)
            model.opset_import.append(onnx.helper.make_opsetid("definition", 1))
            model.graph.node[0].domain = "definition"
            body = onnx.shape_inference.infer_shapes(inliner.inline_local_functions(model))
        except Exception:  # a definition that does not fit the node
            return None
        self.graph(body.graph, {})
        return body

    def _with_defaults(self, node: Any) -> Any:
        """`node` with all attributes, since definitions that refer to a missing one would lose its default."""
        import onnx

        opsets = {item.domain: item.version for item in self.proto.opset_import}
        try:
            schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        except onnx.defs.SchemaError:
            return node
        full = self._copy(node)
        add_defaults(full, schema)
        return full

    def _named(self, node: Any, graph: Any, outside: set[str]) -> Sequence[Any]:
        """The body's nodes with the node's name, and with unique tensor names."""
        label = _label(node)
        prefix = next((out for out in node.output if out), label)
        _rename(graph, lambda name: name if not name or name in outside else f"{prefix}/{name}")
        for inner in graph.node:
            inner.name = label
        return list(graph.node)


def _label(node: Any) -> str:
    return node.name or f"{node.op_type}_{next((out for out in node.output if out), '')}"


def _is_typed(types: Mapping[str, Any], name: str) -> bool:
    return name in types and types[name].WhichOneof("value") is not None


def _rename(graph: Any, new: Callable[[str], str]) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new(name) for name in names]
        for attr in node.attribute:
            for inner in [*([attr.g] if attr.HasField("g") else []), *attr.graphs]:
                for item in (*inner.input, *inner.output, *inner.value_info, *inner.initializer):
                    item.name = new(item.name)
                _rename(inner, new)
