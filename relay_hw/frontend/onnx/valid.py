"""Checks that a model is valid by onnx's own rules. In: a protobuf within the budget. Out: nothing, or one error.

`check_form` looks at what reading needs: versions, attributes, operators' names. `check_rules` asks onnx's checker,
with its strict inference of shapes, about a model that could be converted, so that nothing is accepted that it refuses.
What is accepted though the checker refuses it, and why:

- Weights of IR version 3 that are no inputs too: the rule is older than weights that nobody may give, and onnxruntime
  reads such models.
- A node whose operator onnx defines by others and that leaves attributes out: its inference does not know their
  defaults (MeanVarianceNormalization without axes).
- Outputs of the model without a type or shape, and inputs without one where the caller gives it: onnxruntime infers it.
- An operator of onnx's own domains that there is not: all of them are listed in one message by the importer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from relay_hw.errors import InputError
from relay_hw.frontend.onnx.walk import bodies, roots
from relay_hw.ir.types import TensorType, Type
from relay_hw.limits import MOST_AXES, product

# Weights of fewer elements may be sizes or axes, which inference of shapes reads.
_LARGE: Final = 1 << 12
# Attributes of onnx that say yes or no.
_FLAGS: Final = frozenset(
    ("align_corners", "allowzero", "antialias", "broadcast", "ceil_mode", "center_point_box", "count_include_pad",
     "detect_negative", "detect_positive", "exclude_outside", "exclusive", "fmod", "input_forget", "interleaved",
     "inverse", "is_case_sensitive", "is_causal", "is_test", "keepdims", "largest", "layout", "linear_before_reset",
     "new_axis", "noop_with_empty_axes", "onesided", "output_sequence", "periodic", "reverse", "saturate",
     "select_last_index", "sorted", "spatial", "storage_order", "training_mode", "transA", "transB", "upper")
)  # fmt: skip
# Older models say no opset.
_OLDEST_IR: Final = 3
_MOST_VERSION: Final = (1 << 31) - 1
_ONNX: Final = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training")
# Placeholder for unknown operators while the rest is checked.
_NOWHERE: Final = "nowhere"


def check_form(proto: Any, name: str) -> None:
    """Raise InputError for versions, nodes and attributes that cannot be read."""
    import onnx

    if not proto.graph.output:
        what = "an output" if proto.graph.node else "a graph"
        raise InputError(f"model must hold {what}, not {name}, which holds none")
    if not _OLDEST_IR <= proto.ir_version <= onnx.IR_VERSION:
        most = onnx.IR_VERSION
        raise InputError(f"the IR version of {name} must be from {_OLDEST_IR} to {most}, not {proto.ir_version}")
    for owner in (proto, *proto.functions):
        _check_opsets(owner.opset_import, name)
    for root in roots(proto):
        is_function = not hasattr(root, "initializer")
        for body, _depth in bodies(root):
            # Of a function they are names, of a graph they have types too.
            if not all(getattr(item, "name", item) for item in (*body.input, *body.output)):
                raise InputError(f"inputs and outputs of {name} must have names")
            for node in body.node:
                _check_node(node, name, is_function)


def _check_opsets(opsets: Any, name: str) -> None:
    from onnx import defs

    newest = {"": defs.onnx_opset_version(), "ai.onnx.ml": defs.onnx_ml_opset_version()}
    seen: set[str] = set()
    for item in opsets:
        if not isinstance(item.domain, str):
            raise InputError(f"domains of {name} must be UTF-8, not {item.domain[:40]!r}")
        domain = "" if item.domain == "ai.onnx" else item.domain
        most = newest.get(domain, _MOST_VERSION)
        if domain in seen:
            raise InputError(f"{name} must import each domain once, unlike {domain or 'ai.onnx'}")
        if not 1 <= item.version <= most:
            which = "the opset" if not domain else f"the version of domain {domain}"
            raise InputError(f"{which} of {name} must be from 1 to {most:,}, not {item.version}")
        seen.add(domain)


def _check_node(node: Any, name: str, is_function: bool) -> None:
    label = node.name or next((output for output in node.output if output), "")
    what = f"node {label} of {name}" if label else f"a node of {name}"
    if not node.op_type:
        raise InputError(f"{what} must have an operator")
    seen: set[str] = set()
    for attr in node.attribute:
        if not attr.name or attr.name in seen:
            raise InputError(f"{what} must have attributes of different names, unlike {attr.name or 'an empty one'}")
        seen.add(attr.name)
        if attr.ref_attr_name:
            if not is_function:
                raise InputError(f"attribute {attr.name} of {what} must have a value outside of functions")
        elif _KINDS.get(attr.type) is None:
            raise InputError(f"attribute {attr.name} of {what} must have a type that onnx knows, not {attr.type}")
        elif stray := next((field for field in _given(attr) if field != _KINDS[attr.type]), None):
            raise InputError(f"attribute {attr.name} of {what} must hold {_KINDS[attr.type]} by its type, not {stray}")
        if node.domain in ("", "ai.onnx"):
            _check_attribute(attr, node, what)


def _check_attribute(attr: Any, node: Any, what: str) -> None:
    """Check attributes where onnx itself assumes that they are valid."""
    if attr.name in ("axis", "axes"):
        # onnx cuts it to 32 bits before it compares.
        far = next((axis for axis in (attr.i, *attr.ints) if abs(axis) > MOST_AXES), None)
        if far is not None:
            raise InputError(f"{attr.name} of {what} must be at most {MOST_AXES} from 0, not {far}")
    if attr.name in _FLAGS and not attr.ref_attr_name and attr.i not in (0, 1):
        # Implementations differ in what another number means.
        raise InputError(f"{attr.name} of {what} must be 0 or 1, not {attr.i}")
    if attr.name == "num_outputs" and (attr.ref_attr_name or attr.i != len(node.output)):
        # onnx writes the types of all outputs into a list of the declared length.
        said = f"attribute {attr.ref_attr_name}" if attr.ref_attr_name else f"{attr.i}"
        raise InputError(f"num_outputs of {what} must be its {len(node.output)} outputs, not {said}")


def _given(attr: Any) -> Iterator[str]:
    """The fields of an attribute that are set."""
    for field, _value in attr.ListFields():
        if field.name in _VALUES:
            yield field.name


_KINDS: Final = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs",
    11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos",
}  # fmt: skip
_VALUES: Final = frozenset(_KINDS.values())


def check_rules(proto: Any, name: str, inputs: Mapping[str, Type]) -> None:
    """Raise InputError, with the message of onnx's checker, for an invalid model with these `inputs`."""
    from onnx import checker

    try:
        checker.check_model(_skeleton(proto, inputs).SerializeToString(), full_check=True)
    except Exception as error:  # its own, those of inference, and bare ones of Python and protobuf
        raise InputError(f"{name} must be a model by onnx's rules: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """The sentence of a checker's error, without the node's text after it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    context = [line for line in lines[1:] if line.startswith("==> Context")]
    text = " ".join([*lines[:1], *context[:1]]) or type(error).__name__
    return text.replace("[ShapeInferenceError] ", "")[:500]


def _skeleton(proto: Any, inputs: Mapping[str, Type]) -> Any:
    """The model with inputs in place of large weights."""
    import onnx
    from onnx import helper

    found = onnx.ModelProto()
    found.ir_version = max(proto.ir_version, 4)
    for field in ("opset_import", "functions"):
        getattr(found, field).extend(getattr(proto, field))
    large = {tensor.name: tensor for tensor in proto.graph.initializer if _is_large(tensor)}
    graph = found.graph
    graph.name = proto.graph.name
    for node in proto.graph.node:
        value = next((attr.t for attr in node.attribute if attr.name == "value"), None)
        if node.op_type == "Constant" and value is not None and _is_large(value) and len(node.output) == 1:
            large[node.output[0]] = value
        else:
            graph.node.add().CopyFrom(node)
    graph.initializer.extend(tensor for tensor in proto.graph.initializer if tensor.name not in large)
    graph.sparse_initializer.extend(proto.graph.sparse_initializer)
    graph.input.extend(_shaped(item, inputs.get(item.name)) for item in proto.graph.input if item.name not in large)
    graph.input.extend(
        helper.make_tensor_value_info(key, tensor.data_type, tensor.dims) for key, tensor in large.items()
    )
    graph.output.extend(item for item in proto.graph.output if _is_whole(item))
    _explain_nodes(found)
    return found


def _shaped(item: Any, ty: Type | None) -> Any:
    """An input with the caller's shape and element type if the model has none."""
    from onnx import helper

    given = item.type.tensor_type
    if ty is None or not isinstance(ty, TensorType) or (given.HasField("shape") and given.elem_type):
        return item
    kind = given.elem_type or helper.np_dtype_to_tensor_dtype(np.dtype(ty.dtype))
    return helper.make_tensor_value_info(item.name, kind, [dim if isinstance(dim, int) else None for dim in ty.shape])


def _is_whole(item: Any) -> bool:
    """Whether an output has everything that the checker needs."""
    if item.type.HasField("tensor_type"):
        return item.type.tensor_type.HasField("shape") and bool(item.type.tensor_type.elem_type)
    return item.HasField("type")


def _is_large(tensor: Any) -> bool:
    return product(tensor.dims) > _LARGE


def _explain_nodes(proto: Any) -> None:
    """Give nodes the defaults that inference leaves out, and move unknown operators into a separate domain."""
    from onnx import defs

    versions = {"" if item.domain == "ai.onnx" else item.domain: item.version for item in proto.opset_import}
    local = {(function.domain, function.name) for function in proto.functions}
    is_strange = False
    for body, _depth in bodies(proto.graph):
        for node in body.node:
            domain = "" if node.domain == "ai.onnx" else node.domain
            if (node.domain, node.op_type) in local or domain not in _ONNX or domain not in versions:
                continue
            if not defs.has(node.op_type, domain):
                node.domain, is_strange = _NOWHERE, True
            elif defs.has(node.op_type, versions[domain], domain):
                add_defaults(node, defs.get_schema(node.op_type, versions[domain], domain))
    if is_strange:
        proto.opset_import.add(domain=_NOWHERE, version=1)


def add_defaults(node: Any, schema: Any) -> None:
    """Give `node`, whose operator onnx defines as a function, its missing attributes."""
    if not (schema.has_function or schema.has_context_dependent_function):
        return
    given = {attr.name for attr in node.attribute}
    node.attribute.extend(
        attr.default_value
        for name, attr in schema.attributes.items()
        if name not in given and attr.default_value.name == name
    )
