"""Compiles a function of layers to one program.

In: a function whose calls are composites of VTA. Out: `Program`: layers in order, each after those that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relay_hw.ir.expr import Call, Expr, Function, Tuple, Var
from relay_hw.ir.visit import post_order
from relay_hw.transform.graph import op_name
from relay_hw.vta.geometry import Buffer, Geometry
from relay_hw.vta.half import Code
from relay_hw.vta.isa import Alu, Finish, Gemm, Queue, encode, encode_uops
from relay_hw.vta.kernel import Kernel, Kind
from relay_hw.vta.layout import entries, pack_vectors, pack_weight, scaled_identity
from relay_hw.vta.lower import Places, carrier, lower
from relay_hw.vta.match import kernel_of, shape_of
from relay_hw.vta.program import Head, LayerCode, Program, ProgramPort, Section
from relay_hw.vta.tiles import Plan, choose


@dataclass(slots=True)
class _Memory:
    """Sections as they come, with the bytes of constants."""

    geometry: Geometry
    sections: list[Section] = field(default_factory=list[Section])
    data: dict[int, bytes] = field(default_factory=dict[int, bytes])

    def constant(self, name: str, array: Any, buffer: Buffer) -> int:
        """A section with what is in it."""
        raw = np.ascontiguousarray(array).tobytes()
        self.data[len(self.sections)] = raw
        return self._add(Section(name, len(raw), self.geometry.entry_bytes(buffer), True))

    def tensor(self, name: str, value: Expr) -> int:
        """A section for a tensor."""
        entry = self.geometry.entry_bytes(Buffer.INP)
        return self._add(Section(name, entries(shape_of(value), self.geometry) * entry, entry, False))

    def _add(self, section: Section) -> int:
        self.sections.append(section)
        return len(self.sections) - 1


def compile_region(function: Function, geometry: Geometry) -> Program:
    """The program of a function. Raises InputError where a layer has no tile."""
    memory, code, layers = _Memory(geometry), list[Code](), list[LayerCode]()
    where: dict[Expr, int] = {}
    for number, param in enumerate(function.params):
        where[param] = memory.tensor(f"x{number}", param)
    calls = [node for node in post_order(function.body) if isinstance(node, Call) and isinstance(node.op, Function)]
    for number, call in enumerate(calls):
        assert isinstance(call.op, Function)
        kernel = kernel_of(call.op, geometry.block)
        assert isinstance(kernel, Kernel), kernel
        where[call] = memory.tensor(f"t{number}", call)
        plan = choose(kernel, geometry)
        own = _layer(plan, number, _operands(call, where), where[call], memory)
        layers.append(_about(plan, own, len(code)))
        code += own
    # FINISH waits for the load module too: nothing may be left when the next program begins.
    ends = (carrier(Queue.LOAD, push_next=True), carrier(Queue.COMPUTE, pop_prev=True), Finish())
    code += [(insn, -1) for insn in ends]
    results = function.body.fields if isinstance(function.body, Tuple) else [function.body]
    inputs, outputs = _ports("x", function.params, where), _ports("y", results, where)
    head = Head(geometry, tuple(memory.sections), inputs, outputs, tuple(layers), len(code))
    words = encode([insn for insn, _ in code], geometry)
    return Program(head, words, np.array([section for _, section in code], np.int32), memory.data)


def _layer(plan: Plan, number: int, data: tuple[int, ...], result: int, memory: _Memory) -> list[Code]:
    """The code of a layer, with its constants in memory."""
    kernel, geometry = plan.kernel, plan.geometry
    if kernel.kind is Kind.DENSE:
        assert kernel.weight is not None
        weight = memory.constant(f"wgt{number}", pack_weight(kernel.weight, geometry), Buffer.WGT)
    else:
        weight = memory.constant(f"wgt{number}", scaled_identity(kernel.scales, geometry), Buffer.WGT)
    vectors = -1
    if kernel.tail is not None:
        vectors = memory.constant(f"acc{number}", pack_vectors(kernel.tail.vectors, geometry), Buffer.ACC)
    code, uops = lower(plan, Places(data, weight, vectors, len(memory.sections), result))
    memory.constant(f"uop{number}", encode_uops(uops, geometry), Buffer.UOP)
    return code


def _operands(call: Call, where: Mapping[Expr, int]) -> tuple[int, ...]:
    """Sections of a layer's data, in the order of its operator's arguments."""
    function = call.op
    assert isinstance(function, Function) and isinstance(function.body, Call)
    given = dict(zip(function.params, call.args, strict=True))
    if op_name(function.body) == "fixed.add":
        return tuple(where[given[arg]] for arg in function.body.args if isinstance(arg, Var))
    return tuple(where[arg] for arg in call.args)


def _about(plan: Plan, code: Sequence[Code], begin: int) -> LayerCode:
    tile = plan.tile
    uops = sum(
        insn.loops.iter_out * insn.loops.iter_in * (insn.loops.uop_end - insn.loops.uop_bgn)
        for insn, _ in code
        if isinstance(insn, Gemm | Alu)
    )
    text = f"{tile.rows}x{tile.columns} outs={tile.outs} ins={tile.ins}"
    return LayerCode(begin, begin + len(code), text, uops)


def _ports(name: str, values: Sequence[Expr], where: dict[Expr, int]) -> tuple[ProgramPort, ...]:
    return tuple(
        ProgramPort(f"{name}{number}", value.tensor_type.static_shape, shape_of(value), where[value])
        for number, value in enumerate(values)
    )
