"""The entry points of ONNX: mutated bytes, and mutated fields. In: small models. Out: entries.

What is accepted and small is computed by onnxruntime as well, if that accepts it too.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from relay_hw.errors import RelayHwError
from relay_hw.interp import evaluate
from relay_hw.ir.types import TensorType
from relay_hw.runtime.models import Model, load_model
from tests.fuzz import mutate
from tests.fuzz.judge import Entry, Outcome, Wrong
from tests.relay_hw import qdq_networks, small_models

# Of all inputs of a model whose results are compared.
_MOST_ELEMENTS: Final = 1 << 14
# It divides by a step of 0, which an input may be.
_ENDS_ONNXRUNTIME: Final = ("STFT",)
_LARGEST_CASE: Final = 1 << 16
_MOST_NODES: Final = 8
_STRINGS: Final = (
    "",
    "image",
    "Conv",
    "Relu",
    "Loop",
    "If",
    "Identity",
    "axis",
    "nowhere",
    "ai.onnx.ml",
    *mutate.STRINGS,
)


@cache
def _models() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        saved = [save(path).read_bytes() for save in (small_models.save_plain, small_models.save_mixed)]
    drawn = [qdq_networks.RandomNet(seed).model().SerializeToString() for seed in range(6)]
    return (*saved, *drawn, *_controls(), *_cases())


def _cases() -> list[bytes]:
    """One small model of each operator, from onnx's own tests: half of the seeds would be its variants otherwise."""
    from onnx.backend.test.case.node import collect_testcases

    found: dict[tuple[str, ...], bytes] = {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None or case.name.endswith("_expanded"):
            continue
        operators = tuple(node.op_type for node in case.model.graph.node)
        data = case.model.SerializeToString()
        if len(data) <= _LARGEST_CASE and len(operators) <= _MOST_NODES:
            found.setdefault(operators, data)
    return list(found.values())


def _controls() -> list[bytes]:
    """A branch, a loop, a function, and shapes that are computed."""
    texts = (
        """<ir_version: 8, opset_import: ["" : 17]>
        branch (bool c, float[2, 3] x) => (float[2, 3] y) {
          y = If (c) <then_branch = a () => (float[2, 3] p) { p = Relu(x) },
                      else_branch = b () => (float[2, 3] q) { q = Neg(x) }>
        }""",
        """<ir_version: 8, opset_import: ["" : 17]>
        loop (float[2] x) => (float[2] y) <int64 n = {3}, bool t = {1}> {
          y = Loop (n, t, x) <body = step (int64 i, bool c, float[2] s) => (bool d, float[2] r) {
            d = Identity(c)
            r = Add(s, x)
          }>
        }""",
        """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        call (float[2, 3] x) => (float[N] y) <int64[1] flat = {-1}> {
          h = own.twice(x)
          y = Reshape(h, flat)
        }
        <opset_import: ["" : 17], domain: "own">
        twice (a) => (b) { b = Add(a, a) }""",
        """<ir_version: 8, opset_import: ["" : 17]>
        shapes (float[2, 3, 4] x) => (float[N, M] y) <int64[1] one = {1}, int64[1] rest = {-1}, int64 zero = {0}> {
          s = Shape(x)
          n = Gather(s, zero)
          u = Unsqueeze(n, one0)
          t = Concat <axis = 0> (u, rest)
          y = Reshape(x, t)
        }""".replace("one0", "first").replace("int64 zero", "int64[1] first = {0}, int64 zero"),
    )
    return [onnx.parser.parse_model(text).SerializeToString() for text in texts]


def _make_bytes(rng: Random) -> bytes:
    return mutate.bytes_of(rng, _models())


def _make_fields(rng: Random) -> bytes:
    model = onnx.ModelProto.FromString(rng.choice(_models()))
    other = onnx.ModelProto.FromString(rng.choice(_models()))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        _change(rng, model, other)
    return model.SerializeToString()


def _messages(root: Message) -> list[Message]:
    """A message and all that lie in it."""
    found = [root]
    for message in found:
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                found += list(value) if isinstance(value, (list,)) or hasattr(value, "add") else [value]
    return found


def _change(rng: Random, model: Message, other: Message) -> None:
    """Change one field of one message in `model`."""
    message: Any = rng.choice(_messages(model))
    field = rng.choice(message.DESCRIPTOR.fields)
    if rng.random() < 0.7 and message.ListFields():
        field = rng.choice(message.ListFields())[0]
    if hasattr(getattr(message, field.name), "append"):
        _change_list(rng, message, field, other)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        alike = [m for m in _messages(other) if m.DESCRIPTOR is field.message_type]
        if alike and rng.random() < 0.7:
            getattr(message, field.name).CopyFrom(rng.choice(alike))
        else:
            message.ClearField(field.name)
    elif rng.random() < 0.2:
        message.ClearField(field.name)
    else:
        _set(message, field, _scalar(rng, field))


def _change_list(rng: Random, message: Any, field: Any, other: Message) -> None:
    items = getattr(message, field.name)
    place = rng.randrange(len(items)) if len(items) else -1
    match rng.randrange(5):
        case 0 if len(items):
            del items[place]
        case 1 if len(items) > 1:
            kept = list(items)
            rng.shuffle(kept)
            del items[:]
            items.extend(kept)
        case 2 if len(items) and field.type == FieldDescriptor.TYPE_MESSAGE:
            items.append(items[place])
        case _ if field.type == FieldDescriptor.TYPE_MESSAGE:
            alike = [m for m in _messages(other) if m.DESCRIPTOR is field.message_type]
            if alike:
                items.append(rng.choice(alike))
        case 3 if len(items):
            items[place] = _scalar(rng, field)
        case _:
            items.append(_scalar(rng, field))


def _set(message: Any, field: Any, value: Any) -> None:
    try:
        setattr(message, field.name, value)
    except ValueError:  # a number that the field does not hold, a string that is no UTF-8
        message.ClearField(field.name)


def _scalar(rng: Random, field: Any) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            text = rng.choice(_STRINGS).encode(errors="replace")
            return text if field.type == FieldDescriptor.TYPE_BYTES else text.decode()
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5))
        case FieldDescriptor.CPPTYPE_ENUM:
            return rng.choice(field.enum_type.values).number
        case FieldDescriptor.CPPTYPE_INT32:
            return rng.choice([n for n in mutate.INTEGERS if -(1 << 31) <= n < 1 << 31] + list(range(28)))
        case FieldDescriptor.CPPTYPE_UINT64:
            return rng.choice([n for n in mutate.INTEGERS if n >= 0])
        case _:
            return rng.choice((*mutate.INTEGERS, (1 << 63) - 1, -(1 << 63), *range(-4, 24)))


def _take(data: bytes, folder: Path) -> Outcome | None:
    path = folder / "in.onnx"
    path.write_bytes(data)
    found = load_model(path)
    inputs = _inputs(found)
    if inputs is None:
        return None
    if any(node.op_type in _ENDS_ONNXRUNTIME for node in onnx.ModelProto.FromString(data).graph.node):
        return Outcome.ALONE
    try:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level, options.enable_cpu_mem_arena = 4, False
        session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
        wanted = session.run(None, {row.name: inputs[row.name] for row in session.get_inputs() if row.name in inputs})
    except Exception:  # onnxruntime has many
        return Outcome.ALONE
    problem = _compared(found, inputs, wanted)
    # With a NaN among the weights onnxruntime gives NaN, or numbers where it optimizes: no measure for anybody.
    if problem and all(np.isfinite(value).all() for value in found.params.values() if value.dtype.kind == "f"):
        raise Wrong(problem)
    return None


def _inputs(model: Model) -> dict[str, np.ndarray[Any, Any]] | None:
    """Values for the model's inputs; None where these are no small tensors of numbers."""
    rng = np.random.default_rng(0)
    names: Any = model.mod.attrs["input_names"]
    types = {param.name_hint: param.type for param in model.mod["main"].params if param.name_hint in names}
    made: dict[str, np.ndarray[Any, Any]] = {}
    for name, ty in types.items():
        if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
            return None
        shape = tuple(dim for dim in ty.shape if isinstance(dim, int))
        if np.prod(shape, dtype=object) * len(types) > _MOST_ELEMENTS:
            return None
        made[name] = _values(rng, shape, ty.dtype)
    return made


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    if dtype[:5] == "float":
        return rng.normal(size=shape).astype(dtype)
    if len(shape) == 1 and dtype == "int64":
        return rng.permutation(shape[0])  # axes, which must differ
    return rng.integers(0, 2, shape).astype(dtype)


def _compared(model: Model, inputs: Mapping[str, Any], wanted: Sequence[Any]) -> str:
    """What is wrong with the results here, or nothing."""
    try:
        value = evaluate(model.mod, {**inputs, **model.params})
    except RelayHwError as error:
        return f"refused while it ran: {error}"
    names: Any = model.mod.attrs["output_names"]
    found = list(value) if len(names) > 1 else [value]
    if len(found) != len(wanted):
        return f"{len(found)} outputs, not {len(wanted)}"
    return next((text for pair in zip(found, wanted, strict=True) if (text := _difference(*pair))), "")


def _difference(got: Any, want: Any) -> str:
    if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray):
        return ""  # sequences and options are compared by the conformance tests
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        # Where floats lie between two integers, either may be right.
        far = np.abs(got.astype(object) - want.astype(object)) > (want.dtype.kind != "b") if want.size else np.array([])
    else:
        scale = np.abs(want[np.isfinite(want)]).max(initial=0)
        far = ~np.isclose(got, want, rtol=1e-3, atol=1e-4 * float(scale) + 1e-6, equal_nan=True)
    return f"{int(np.sum(far))} of {want.size} elements differ" if np.any(far) else ""


# The file, or the name of a node in front.
_PLACE: Final = r"in\.onnx|input|^.*?: "
ENTRIES: Final = (
    Entry("onnx-bytes", 2_000, ".onnx", _make_bytes, _take, _PLACE),
    Entry("onnx-fields", 2_000, ".onnx", _make_fields, _take, _PLACE),
)
