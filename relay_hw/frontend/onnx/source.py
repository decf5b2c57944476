"""Reads an ONNX file or protobuf into plain nodes, arrays and typed inputs, or fails with one clear sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from relay_hw.errors import InputError
from relay_hw.frontend.onnx import CONVERTERS, FOREIGN, find_converter
from relay_hw.frontend.onnx.budget import check_budget
from relay_hw.frontend.onnx.cast import DTYPES
from relay_hw.frontend.onnx.external import read_external, refuse_external
from relay_hw.frontend.onnx.functions import write_out_functions
from relay_hw.frontend.onnx.node import Array, Node, Subgraph
from relay_hw.frontend.onnx.valid import check_form
from relay_hw.ir.types import ANY, Dim, GlobalTypeVar, TensorType, Type, TypeCall
from relay_hw.ir.types import Any as AnyDim
from relay_hw.limits import DEFAULT, Limits
from relay_hw.support.durable import read_given

OLDEST_OPSET = 7
Shape = Sequence[int | AnyDim | None]
_CONVERTED = (*(("ai.onnx", name) for name in CONVERTERS), *FOREIGN)


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed model: nodes in order of evaluation, known arrays, inputs and outputs by name."""

    name: str
    nodes: tuple[Node, ...]
    arrays: Mapping[str, Array]
    inputs: Mapping[str, Type]
    outputs: tuple[str, ...]
    # The model's names of the dynamic dimensions of each input.
    symbols: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def load(model: Any, limits: Limits = DEFAULT, external_data: bool = False) -> tuple[Any, str]:
    """(ModelProto, its name in messages). Raises InputError for anything but an ONNX model."""
    import onnx

    if isinstance(model, onnx.ModelProto):
        name = model.graph.name or "model"
        check_budget(model, name, limits)
        check_form(model, name)
        refuse_external(model, name, "give the path of the model, with external_data=True")
        return model, name
    if not isinstance(model, (str, PathLike)):
        raise InputError(f"model must be a path or an onnx.ModelProto, not {type(model).__name__}")
    path = Path(model)
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "is missing"
        raise InputError(f"model must be an ONNX file, not {path}, which {kind}")
    try:
        proto = onnx.ModelProto.FromString(_bytes(path, limits))
    except InputError:
        raise
    except Exception as error:  # those of protobuf's three implementations and of files have no common base
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"model must be an ONNX file, not {path}, which cannot be read: {reason}") from None
    check_budget(proto, str(path), limits)
    check_form(proto, str(path))
    if external_data:
        read_external(proto, path, limits)
    else:
        refuse_external(proto, str(path), "--external-data, or external_data=True, reads files below its folder")
    return proto, str(path)


def _bytes(path: Path, limits: Limits) -> bytes:
    limits.check("file_bytes", f"the bytes of {path}", path.stat().st_size)
    return read_given(path, limits.file_bytes)


def read(
    proto: Any,
    name: str,
    shapes: Mapping[str, Shape] | None,
    dtypes: str | Mapping[str, str],
    samples: Mapping[str, tuple[int, ...]] | None = None,
    values: Mapping[str, float] | None = None,
) -> Source:
    """The model as plain data. `shapes`, `dtypes`, `samples` and `values`: arguments of from_onnx."""
    if proto.functions:
        proto = _without_functions(proto, name)
    proto = write_out_functions(proto, _CONVERTED, lambda domain, name: find_converter(domain, name) is not None)
    graph = proto.graph
    if graph.sparse_initializer:
        raise InputError(f"the weights of {name} must be dense, not sparse")
    arrays = _arrays(graph, name)
    shapes = _shapes(graph, shapes or {}, samples or {})
    inputs = _inputs(graph, name, arrays, shapes, dtypes)
    for key, value in (values or {}).items():
        if key not in inputs:
            raise InputError(f"value must name inputs of {name} ({', '.join(inputs)}), not {key}")
        arrays[key] = _filled(key, inputs.pop(key), value)
    nodes = _nodes(proto, name)
    _check_names(nodes, graph, name, {*arrays, *inputs})
    outputs = tuple(output.name for output in graph.output)
    symbols = {item.name: _symbols(item) for item in graph.input if item.type.HasField("tensor_type")}
    return Source(name, nodes, arrays, inputs, outputs, symbols)


def _without_functions(proto: Any, name: str) -> Any:
    """The model with its functions inlined. Raises InputError if they do not fit their calls."""
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(proto)
    except Exception as error:  # the inliner raises what its C++ throws
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"functions of {name} must fit where they are called: {reason}") from None


def _shapes(graph: Any, shapes: Mapping[str, Shape], samples: Mapping[str, tuple[int, ...]]) -> Mapping[str, Shape]:
    """`shapes`, with dynamic sizes of other tensors taken from their samples."""
    found = dict(shapes)
    for item in graph.input:
        if item.name in found or item.name not in samples or not item.type.tensor_type.HasField("shape"):
            continue
        declared = _declared(item)
        shown = _shown(declared, samples[item.name])
        if shown is None or None not in declared:
            continue
        if all(have in (None, size) for have, size in zip(declared, shown, strict=True)):
            found[item.name] = shown
    return found


def _filled(name: str, ty: Type, value: float) -> Array:
    """A tensor of this type filled with `value`. Raises InputError."""
    if not isinstance(ty, TensorType):
        raise InputError(f"input {name} must be a tensor to have one value, not {ty}")
    with np.errstate(invalid="ignore"):
        found = np.full(ty.static_shape, value).astype(ty.dtype)
    if found.dtype.kind != "f" and not (found == value).all():
        raise InputError(f"value of input {name} must be {ty.dtype}, not {value:g}")
    return found


def _shown(declared: Sequence[int | None], samples: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of one sample, with a batch axis of 1 if the array lacks it; None for another rank."""
    inner = samples[1:]
    if len(inner) == len(declared) - 1:
        return (declared[0] or 1, *inner)
    return inner if len(inner) == len(declared) else None


def _declared(item: Any) -> list[int | None]:
    """Declared sizes of a tensor; some exporters write -1 for dynamic ones."""
    dims = item.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None for dim in dims]


def _symbols(item: Any) -> tuple[str, ...]:
    dims = item.type.tensor_type.shape.dim
    return tuple(dim.dim_param or f"{item.name}_{axis}" for axis, dim in enumerate(dims))


def _arrays(graph: Any, name: str) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for item in graph.initializer:
        if item.name in found:
            raise InputError(f"weight {item.name} of {name} must occur once")
        found[item.name] = _array(item, f"weight {item.name} of {name}")
    return found


def _array(tensor: Any, what: str) -> Array:
    from onnx import numpy_helper

    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:  # too few bytes, unknown element type, missing external file
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{what} must be a whole tensor, not one that fails: {reason}") from None


def _inputs(
    graph: Any,
    name: str,
    arrays: Mapping[str, Array],
    shapes: Mapping[str, Shape],
    dtypes: str | Mapping[str, str],
) -> dict[str, Type]:
    given = {item.name: item for item in graph.input if item.name not in arrays}
    for wanted in shapes:
        if wanted not in given:
            raise InputError(f"shape must name inputs of {name} ({', '.join(given)}), not {wanted}")
    return {key: _type_of(item, shapes.get(key), dtypes) for key, item in given.items()}


def _type_of(item: Any, wanted: Shape | None, dtypes: str | Mapping[str, str]) -> Type:
    """The Relay type: a tensor, a sequence as a list, an optional as an option."""
    for kind, data in (("sequence_type", "List"), ("optional_type", "Option")):
        if item.type.HasField(kind):
            import onnx

            inner = onnx.ValueInfoProto()
            inner.name = item.name
            inner.type.CopyFrom(getattr(item.type, kind).elem_type)
            if wanted is None and inner.type.tensor_type.HasField("shape"):
                # The tensors of a sequence need not have one size.
                dims = inner.type.tensor_type.shape.dim
                wanted = [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]
            return TypeCall(GlobalTypeVar(data), (_type_of(inner, wanted, dtypes),))
    return _input_type(item, wanted, dtypes)


def _input_type(item: Any, wanted: Shape | None, dtypes: str | Mapping[str, str]) -> TensorType:
    if not item.type.HasField("tensor_type"):
        raise InputError(f"input {item.name} must be a tensor, not a {item.type.WhichOneof('value') or 'nothing'}")
    kind = item.type.tensor_type
    fallback = dtypes if isinstance(dtypes, str) else dtypes.get(item.name, "float32")
    if kind.elem_type and kind.elem_type not in DTYPES:
        raise InputError(f"the element type of input {item.name} must be a numpy one, not ONNX type {kind.elem_type}")
    dtype = DTYPES[kind.elem_type] if kind.elem_type else fallback
    if wanted is None and not kind.HasField("shape"):
        way = f"give shape={{'{item.name}': (...)}}, or --shape {item.name}=1x..."
        raise InputError(f"the shape of input {item.name} must be known: {way}")
    declared = _declared(item)
    names = [dim.dim_param or "unknown" for dim in kind.shape.dim]
    if wanted is None:
        return TensorType(_sizes(item.name, declared, names), dtype)
    fixed: tuple[Dim, ...] = tuple(ANY if size is None or isinstance(size, AnyDim) else int(size) for size in wanted)
    clash = kind.HasField("shape") and (
        len(fixed) != len(declared) or any(have not in (None, want) for have, want in zip(declared, fixed, strict=True))
    )
    if clash or any(isinstance(size, int) and size < 0 for size in fixed):
        shown = "x".join(str(size) if size is not None else names[axis] for axis, size in enumerate(declared))
        raise InputError(f"the shape of input {item.name} must fit {shown}, not be {'x'.join(map(str, fixed))}")
    return TensorType(fixed, dtype)


def _sizes(name: str, declared: Sequence[int | None], symbols: Sequence[str]) -> list[int]:
    """Dimensions; a dynamic batch dimension becomes 1. Raises InputError for another dynamic one."""
    found = [1 if size is None and axis == 0 else size for axis, size in enumerate(declared)]
    for axis, size in enumerate(found):
        if size is None:
            way = "x".join(symbols[at] if have is None else str(have) for at, have in enumerate(found))
            raise InputError(
                f"dimension {axis} of input {name} must be a number, not {symbols[axis]}: "
                f"give shape={{'{name}': (...)}}, or --shape {name}={way}"
            )
    return [size for size in found if size is not None]


def _nodes(proto: Any, name: str) -> tuple[Node, ...]:
    opsets = {item.domain or "ai.onnx": item.version for item in proto.opset_import}
    opset = opsets.get("ai.onnx", 1)
    if opset < OLDEST_OPSET and not all(_unchanged(node, opset) for node in proto.graph.node):
        raise InputError(f"the opset of {name} must be at least {OLDEST_OPSET}, not {opset}")
    return _graph_nodes(proto.graph, opsets, name)


def _graph_nodes(graph: Any, opsets: Mapping[str, int], name: str) -> tuple[Node, ...]:
    found: list[Node] = []
    for node in graph.node:
        domain = node.domain or "ai.onnx"
        label = node.name or f"{node.op_type}_{next((out for out in node.output if out), len(found))}"
        attrs = {attr.name: _attribute(attr, opsets, name) for attr in node.attribute}
        found.append(
            Node(node.op_type, label, domain, opsets.get(domain, 1), tuple(node.input), tuple(node.output), attrs)
        )
    return tuple(found)


def _unchanged(node: Any, opset: int) -> bool:
    """Whether the operator has the same semantics in the oldest supported opset."""
    import onnx

    if node.domain not in ("", "ai.onnx"):
        return True
    if not onnx.defs.has(node.op_type):
        return False
    try:
        old = onnx.defs.get_schema(node.op_type, opset)
    except onnx.defs.SchemaError:
        return False
    return old.since_version == onnx.defs.get_schema(node.op_type, OLDEST_OPSET).since_version


def _attribute(attr: Any, opsets: Mapping[str, int], name: str) -> Any:
    """The value of an attribute: number, string, list; tensors as arrays, graphs as `Subgraph`."""
    import onnx
    from onnx import helper

    value = helper.get_attribute_value(attr)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return np.array(_array(value, f"attribute {attr.name} of {name}"))
    if isinstance(value, onnx.GraphProto):
        return Subgraph(
            value.name,
            _graph_nodes(value, opsets, name),
            _arrays(value, name),
            tuple(item.name for item in value.input),
            tuple(item.name for item in value.output),
        )
    return list(value) if attr.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS) else value


def _check_names(nodes: Sequence[Node], graph: Any, name: str, known: set[str]) -> None:
    """Check that every name is defined before it is read. Raises InputError."""
    _check_reads(nodes, name, known)
    for output in graph.output:
        if output.name not in known:
            raise InputError(f"output {output.name} of {name} must be defined by a node")


def _check_reads(nodes: Sequence[Node], name: str, known: set[str]) -> None:
    """Check names that `nodes` read, and add their outputs to `known`."""
    for node in nodes:
        for read_name in node.inputs:
            if read_name and read_name not in known:
                raise InputError(f"node {node.name} of {name} must read a defined tensor, not {read_name}")
        for inner in node.attrs.values():
            if isinstance(inner, Subgraph):
                around = known | set(inner.arrays) | set(inner.inputs)
                _check_reads(inner.nodes, name, around)
                for output in inner.outputs:
                    if output not in around:
                        raise InputError(f"output {output} of graph {inner.name} of {name} must be defined by a node")
        known |= set(node.outputs)
