"""Generates model.c of a model with control flow: its native code, launches of its regions, and the run of a sample.

In: an `Artifact`. Out: the text of model.c, and the constants that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from relay_hw.analysis.live_bytes import bytes_of
from relay_hw.backend.native.library import c_source
from relay_hw.backend.native.lower import Program, lower
from relay_hw.backend.native.stream import Codec
from relay_hw.backend.native.values import native_type, result_type, tag_of
from relay_hw.backend.nodes import STRAIGHT, FlatCall, FlatFunction, FlatInvoke, Value
from relay_hw.errors import UnsupportedError
from relay_hw.ir.types import GlobalTypeVar, TensorType, TupleType, Type, TypeCall
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.deploy.operators import finite_check
from relay_hw.runtime.deploy.source import Types, model_head, model_tables
from relay_hw.runtime.watch import quantizations

RUNTIME = ("native.h", "numbers.h", "stream.h")
_ARGUMENTS = "(rhw_context *c, const void *const *inputs, void *const *outputs)"


@dataclass(frozen=True, slots=True)
class ControlPlan:
    """`inputs`, `outputs`: types of the tensors of one sample, None for a value of a data type.

    `constants`: a stream.
    """

    program: Program
    inputs: Types
    outputs: tuple[TensorType, ...]
    constants: bytes


def has_control_flow(artifact: Artifact) -> bool:
    """Whether `main` does more than call straight functions and regions, one after the other."""
    regions = {row.name for row in artifact.manifest.regions}
    hosts = [function for name, function in artifact.functions.items() if name not in regions]
    return not (all(isinstance(node, (*STRAIGHT, FlatInvoke)) for node in artifact.main.nodes)
                and all(function.is_straight for function in hosts))  # fmt: skip


def plan_control(artifact: Artifact) -> ControlPlan:
    """The plan of a build. Raises UnsupportedError for operators without a C form, and for inputs and outputs that a
    file of plain numbers cannot hold."""
    regions = {row.name for row in artifact.manifest.regions}
    functions: dict[str, FlatFunction] = {"main": artifact.main}
    functions |= {name: function for name, function in artifact.functions.items() if name not in regions}
    program = lower(functions, {}, quantizations(functions, artifact.manifest.layers))
    operators = [call.op.name for call in program.callbacks if isinstance(call, FlatCall)]
    if operators:
        names = ", ".join(dict.fromkeys(operators))
        raise UnsupportedError(f"operators must have a C form to be exported, not {names}")
    inputs = tuple(_input(param.type) for param in artifact.main.params)
    outputs = _leaves(result_type(artifact.main))
    return ControlPlan(program, inputs, outputs, Codec(program.constructors).encode(program.constants))


def _input(ty: Type) -> TensorType | None:
    if isinstance(ty, (GlobalTypeVar, TypeCall)):
        return None
    tensor = native_type(ty)
    if tensor is None:
        raise UnsupportedError(f"an input must be a tensor of known shape or of a data type to be exported, not {ty}")
    return tensor


def _leaves(ty: Type) -> tuple[TensorType, ...]:
    """The tensors of a result, left to right."""
    if isinstance(ty, TupleType):
        return tuple(leaf for part in ty.fields for leaf in _leaves(part))
    tensor = native_type(ty)
    if tensor is None:
        raise UnsupportedError(f"an output must be a tensor of known shape to be exported, not {ty}")
    return (tensor,)


def value_bytes(artifact: Artifact, value: Value) -> bytes:
    """A value of a data type as an exported model reads it from a file: how many words, and these words.

    Raises EvalError for another value, or for constructors that the model does not know.
    """
    raw = Codec(plan_control(artifact).program.constructors).encode([value])
    return (len(raw) // 8).to_bytes(8, "little") + raw


def control_source(artifact: Artifact, plan: ControlPlan, weights_hash: bytes) -> str:
    """model.c. Raises UnsupportedError for programs that do not fit into 4 GiB together."""
    native = c_source(plan.program, "\n".join([*(f'#include "{name}"' for name in RUNTIME), *_regions(artifact, plan)]))
    parts = ["#define _POSIX_C_SOURCE 200809L", *model_head(artifact)]
    parts += model_tables(artifact, (plan.inputs, plan.outputs), 0, weights_hash)
    return "\n".join([*parts, "", native, *_start(plan), "", *_run(artifact, plan)]) + "\n"


def _regions(artifact: Artifact, plan: ControlPlan) -> list[str]:
    """`rhw_ask`: the regions are what a program asks for."""
    numbers = {row.name: k for k, row in enumerate(artifact.manifest.regions)}
    lines = [
        "static RHW_NOINLINE rhw_value *rhw_ask(rhw_run *r, int32_t number, rhw_value **args, uint32_t count) {",
        "    rhw_context *c = r->self;",
        "    (void)c, (void)args, (void)count;",
        "    switch (number) {",
    ]
    for number, call in enumerate(plan.program.callbacks):
        assert isinstance(call, FlatInvoke)
        body = _region(numbers[call.function], call.type)
        lines += [f"    case {number}: {{", *(f"        {line}" for line in body), "    }"]
    return [*lines, "    }", '    rhw_fail(r, "a region must be one of the model");', "}"]


def _region(program: int, ty: Type) -> list[str]:
    """The launch of a region on its arguments: tensors, all of int8."""
    lines: list[str] = []
    outputs = _leaves(ty)
    for k, tensor in enumerate(outputs):
        rank, count = len(tensor.shape), prod(tensor.static_shape)
        lines += [f"rhw_value *o{k} = rhw_new_tensor(r, {tag_of(tensor.dtype)}, {rank}, {count});"]
        lines += [f"rhw_sizes(o{k})[{axis + 1}] = {size};" for axis, size in enumerate(tensor.static_shape)]
    steps = [f"rhw_launch(c, {program})"]
    steps += [f"rhw_load(c, {program}, &out_{program}[{k}], rhw_data(o{k}))" for k in range(len(outputs))]
    lines += [
        "for (uint32_t k = 0; k < count; k++)",
        f"    if (rhw_store(c, {program}, &in_{program}[k], rhw_data(args[k]))) rhw_fail(r, c->error);",
        *(f"if ({step}) rhw_fail(r, c->error);" for step in steps),
    ]
    if not isinstance(ty, TupleType):
        return [*lines, "return o0;"]
    lines += [f"rhw_value *all = rhw_new_fields(r, RHW_TUPLE, RHW_NO_TAG, {len(outputs)});"]
    return [*lines, *(f"rhw_fields(all)[{k}] = o{k};" for k in range(len(outputs))), "return all;"]


def _start(plan: ControlPlan) -> list[str]:
    """The function that makes what all samples share, with the constants, which begin the file of weights."""
    return [
        "static void ended(void *program) { rhw_native_close(program); }",
        "",
        "static int started(rhw_context *c) {",
        "    rhw_run *r = rhw_native_open(NULL, c);",
        f"    int64_t *at = r ? rhw_native_stream(r, {len(plan.constants) // 8} + 1) : NULL;",
        "    c->program = r;",
        "    c->end_program = ended;",
        "    if (at) {",
        f"        memcpy(at, c->weights, {len(plan.constants)});",
        "        r->stream_words--;",
        "        if (!rhw_native_keep_constants(r)) return 0;",
        "    }",
        '    snprintf(c->error, sizeof c->error, "memory must have room for the constants");',
        "    return -1;",
        "}",
    ]


def _run(artifact: Artifact, plan: ControlPlan) -> list[str]:
    """`model_run`: inputs into a stream, the call, outputs out of its stream."""
    known = [ty for ty in plan.inputs if ty is not None]
    fixed = sum(len(_head(ty)) + _words(ty) for ty in known)
    words = [str(fixed)] + [f"(size_t){_count(k)}" for k, ty in enumerate(plan.inputs) if ty is None]
    given = [line for k, ty in enumerate(plan.inputs) for line in _input_words(k, ty)]
    entry = plan.program.entries["main"]
    lines = [
        *_checks(artifact, plan),
        "if (!c->program && started(c)) return -1;",
        "r = c->program;",
        f"at = rhw_native_stream(r, {' + '.join(words)});",
        "if (at) {",
        *(f"    {line}" for line in given),
        "}",
        f"if (!at || rhw_native_call(r, {entry})) {{",
        '    snprintf(c->error, sizeof c->error, "%s", r->error);',
        "    return -1;",
        "}",
        "at = r->stream;",
    ]
    for k, ty in enumerate(plan.outputs):
        begin = len(_head(ty))
        lines += ["while (*at == RHW_TUPLE) at += 2;", f"memcpy(outputs[{k}], at + {begin}, {bytes_of(ty)});"]
        lines += [f"at += {begin + _words(ty)};"]
    head = ["int model_run" + _ARGUMENTS + " {", "    rhw_run *r;", "    int64_t *at;"]
    return [*head, *(f"    {line}" for line in lines), "    return 0;", "}"]


def _checks(artifact: Artifact, plan: ControlPlan) -> list[str]:
    """Statements that check that quantized inputs are finite."""
    found: list[str] = []
    for k, (row, ty) in enumerate(zip(artifact.manifest.inputs, plan.inputs, strict=True)):
        check = finite_check(f"input {row.name}", ty) if ty is not None and artifact.manifest.is_quantized else None
        found += [] if check is None else [check.replace("$0", f"inputs[{k}]")]
    return found


def _head(ty: TensorType) -> list[int]:
    return [0, tag_of(ty.dtype), len(ty.shape), *ty.static_shape]


def _words(ty: TensorType) -> int:
    """The words of a tensor's elements in a stream."""
    return -(-bytes_of(ty) // 8)


def _input_words(k: int, ty: TensorType | None) -> list[str]:
    """A tensor, or a value of a data type, into the stream at `at`."""
    if ty is None:
        size = f"8 * (size_t){_count(k)}"
        return [f"memcpy(at, (const int64_t *)inputs[{k}] + 1, {size});", f"at += {_count(k)};"]
    head, words = _head(ty), _words(ty)
    lines = [f"static const int64_t head{k}[] = {{{', '.join(map(str, head))}}};"]
    lines += [f"memcpy(at, head{k}, sizeof head{k});", f"at += {len(head)};"]
    if words:
        lines += [f"at[{words - 1}] = 0;", f"memcpy(at, inputs[{k}], {bytes_of(ty)});", f"at += {words};"]
    return lines


def _count(k: int) -> str:
    """How many words a value of a data type has."""
    return f"*(const int64_t *)inputs[{k}]"
