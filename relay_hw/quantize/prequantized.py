"""Converts prequantized networks (QDQ, QOperator, QONNX and QNN graphs) to fixed-point operators.

In: a typed dataflow module whose quantization is in the graph. Out: the same with `fixed.*` in the place of every
layer whose scales are constants. Scales and zero points stay; uint8 becomes int8; the rest stays as it is.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import children, copy_with, post_order
from relay_hw.quantize.affine import OFFSET, grid_of, make_grid
from relay_hw.quantize.integer_layers import Target, add
from relay_hw.quantize.prequantized_layers import LayerReader, Source
from relay_hw.transform.common_subexpr import EliminateCommonSubexpr
from relay_hw.transform.constant_arguments import ConstantArguments
from relay_hw.transform.dead_code import DeadCodeElimination
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.fragments import OutlineFragments, fragments_of
from relay_hw.transform.graph import constant, dataflow_order, dtype_of, is_op, make, op_name, remake
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.inline_let import InlineLet
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions
from relay_hw.transform.sequential import Pipeline

ROUNDING: Final = {"None": "half_up", "UPWARD": "half_up", "TONEAREST": "half_away", "TONEAREST_EVEN": "half_even"}


def is_prequantized(mod: IRModule) -> bool:
    """Whether the network is prequantized: it quantizes, dequantizes or computes on integers itself."""
    bodies = (function.body for function in mod.functions.values())
    return any(op_name(node).startswith("qnn.") for body in bodies for node in post_order(body))


def realize_prequantized(mod: IRModule, multiplier_bits: int = 31) -> IRModule:
    """`mod`, with bound parameters, with its quantized layers as `fixed.*`; docs/prequantized.md has the rounding.

    In a program with control flow each straight-line fragment is converted separately.
    """
    plain = OutlineFragments()(_before()(InferType()(mod)))
    new: dict[str, Function] = {}
    for name in fragments_of(plain):
        function = plain[name]
        body = _Walk(function.body, multiplier_bits).run()
        new[name] = copy_with(function, body=body, checked_type=None)
    return _after()(InferType()(plain.with_functions(new)))


def _before() -> Pipeline:
    """Whether to fold a call: not the QNN dialect, since a weight folded to floats has lost its integers."""
    return Pipeline(
        [
            RemoveUnusedFunctions(),
            DeadCodeElimination(),
            InlineLet(),
            ConstantArguments(),
            RemoveUnusedFunctions(),
            FoldConstant(),
            EliminateCommonSubexpr(),
        ]
    )


def _after() -> Pipeline:
    return Pipeline([FoldConstant(fold_qnn=True), EliminateCommonSubexpr()])


class _Walk(LayerReader):
    """Converts each int8 or uint8 tensor of the old graph to int8, operands first."""

    def __init__(self, body: Expr, bits: int) -> None:
        super().__init__(body, bits)
        self._body = body
        self._host: dict[Expr, Expr] = {}

    def run(self) -> Expr:
        """The new body."""
        for node in dataflow_order(self._body, "a fragment"):
            if dtype_of(node) in OFFSET:
                new = self._integers(node)
                if new is not None:
                    self._ints[node] = new
        return self.as_host(self._body)

    def as_host(self, expr: Expr) -> Expr:
        """`expr` of the old graph with its own type in the new one."""
        stack = [expr]
        while stack:
            node = stack[-1]
            if node in self._host:
                stack.pop()
                continue
            needed = [part for part in self._host_parts(node) if part not in self._host]
            if needed:
                stack.extend(needed)
                continue
            self._host[stack.pop()] = self._host_form(node)
        return self._host[expr]

    def _host_parts(self, node: Expr) -> list[Expr]:
        if node in self._ints or (is_op(node, "qnn.dequantize") and self._is_shifted(node)):
            return []
        if self._moved_source(node) is not None:
            return []
        return [part for part in children(node) if isinstance(part, (Call, Tuple, TupleGetItem))]

    def _moved_source(self, node: Expr) -> Source | None:
        """Integers that an operator moves after their dequantize; they can be moved before it."""
        return None if is_op(node, "qnn.dequantize") or dtype_of(node) != "float32" else self._source(node)

    def _is_shifted(self, node: Expr) -> bool:
        assert isinstance(node, Call)
        data = node.args[0]
        return dtype_of(data) == "uint8" and data in self._ints and isinstance(node.args[2], Constant)

    def _host_form(self, node: Expr) -> Expr:
        if node in self._ints:
            data = self._ints[node]
            return data if dtype_of(node) == "int8" or isinstance(node, Constant) else _to_uint8(data, node)
        source = self._moved_source(node)
        if source is not None:
            scale, zero = constant(np.float32(source.grid.scale)), constant(np.int32(source.grid.zero))
            return make("qnn.dequantize", (source.data, scale, zero), out_dtype="float32", span=node.span)
        match node:
            case Call(args=(data, scale, zero)) if is_op(node, "qnn.dequantize") and self._is_shifted(node):
                assert isinstance(zero, Constant)
                return remake(node, (self._ints[data], scale, constant(zero.data - np.int32(128))))
            case Call(args=args):
                return copy_with(node, args=tuple(self._host.get(arg, arg) for arg in args))
            case Tuple(fields=fields):
                return copy_with(node, fields=tuple(self._host.get(part, part) for part in fields))
            case TupleGetItem(tuple_value=value):
                return copy_with(node, tuple_value=self._host.get(value, value))
            case _:
                return node

    def _from_host(self, expr: Expr) -> Expr:
        """An int8 or uint8 tensor that the host computes, as int8."""
        data = self.as_host(expr)
        if dtype_of(expr) == "int8":
            return data
        if isinstance(data, Constant):
            return constant((data.data.astype(np.int16) - 128).astype(np.int8), data.span)
        return _shifted(data, 128, 0, "int8", expr)

    def _integers(self, node: Expr) -> Expr | None:
        if not isinstance(node, Call):
            return None
        try:
            match op_name(node):
                case "qnn.quantize":
                    return self._quantized(node)
                case "qnn.requantize":
                    return self._requantized(node)
                case "qnn.add":
                    return self._sum_of_integers(node)
                case "qnn.concatenate":
                    return self._joined(node)
                case _:
                    return self.moved(node)
        except QuantizeError:  # a scale that no multiplier and shift can hold
            return None

    def _quantized(self, node: Call) -> Expr | None:
        grid = grid_of(node, OFFSET[dtype_of(node)])
        if grid is None:
            return None
        real, low, high, single = self._activations(node.args[0])
        target = Target(grid, grid.index(low), grid.index(high), node.attrs.rounding, self._bits, node.span)
        found = self.layer(real, target, single)
        if found is not None:
            return found
        zero = constant(np.int32(grid.zero))
        args = (self.as_host(node.args[0]), node.args[1], zero)
        return make("qnn.quantize", args, out_dtype="int8", axis=-1, rounding=node.attrs.rounding, span=node.span)

    def _activations(self, real: Expr) -> tuple[Expr, float, float, bool]:
        """The input of the activations behind a layer, their range, and whether it has no other reader."""
        low, high, single = -math.inf, math.inf, True
        while is_op(real, "nn.relu", "clip", "copy"):
            assert isinstance(real, Call)
            if not is_op(real, "copy"):
                inner = (0.0, math.inf) if is_op(real, "nn.relu") else (real.attrs.a_min, real.attrs.a_max)
                low, high = (min(max(bound, low), high) for bound in inner)
            single = single and self._uses[real] == 1
            real = real.args[0]
        return real, low, high, single

    def _requantized(self, node: Call) -> Expr | None:
        acc, *numbers = node.args
        if not all(isinstance(number, Constant) for number in numbers):
            return None
        in_scale, in_zero, out_scale, out_zero = (np.asarray(number.data) for number in numbers)  # type: ignore[attr-defined]
        grid = make_grid(out_scale, out_zero, OFFSET[dtype_of(node)])
        if grid is None:
            return None
        target = Target(grid, -128, 127, ROUNDING[node.attrs.rounding], self._bits, node.span)
        if dtype_of(acc) in OFFSET:
            given = make_grid(in_scale, in_zero, OFFSET[dtype_of(acc)])
            single = self._uses[acc] == 1
            return None if given is None else self.rescaled(self._int(acc), given, target, single)
        if dtype_of(acc) != "int32" or in_zero.any():
            return None
        return self.integer_layer(acc, in_scale, out_scale, target, node.attrs.compute_dtype == "None")

    def _sum_of_integers(self, node: Call) -> Expr | None:
        left, right, *numbers = node.args
        if not all(isinstance(number, Constant) for number in numbers):
            return None
        data = [np.asarray(number.data) for number in numbers]  # type: ignore[attr-defined]
        offset = OFFSET[dtype_of(node)]
        grids = [make_grid(data[k], data[k + 1], offset) for k in (0, 2, 4)]
        if grids[0] is None or grids[1] is None or grids[2] is None or left.type != right.type:
            return None
        target = Target(grids[2], -128, 127, "half_up", self._bits, node.span)
        return add((self._int(left), self._int(right)), grids[:2], target)  # type: ignore[arg-type]

    def _joined(self, node: Call) -> Expr | None:
        parts, scales, zeros, out_scale, out_zero = node.args
        if not all(isinstance(group, Tuple) for group in (parts, scales, zeros)):
            return None
        offset = OFFSET[dtype_of(node)]
        grid = make_grid(_data(out_scale), _data(out_zero), offset)
        if grid is None:
            return None
        target = Target(grid, -128, 127, "half_up", self._bits, node.span)
        done: list[Expr] = []
        groups = (parts.fields, scales.fields, zeros.fields)  # type: ignore[attr-defined]
        for part, scale, zero in zip(*groups, strict=True):
            given = make_grid(_data(scale), _data(zero), offset)
            if given is None:
                return None
            done.append(self.rescaled(self._int(part), given, target, False))
        return self._concatenated(node, done)


def _data(number: Expr) -> Any:
    """The value of a constant; of anything else an array of no number, which no grid takes."""
    return number.data if isinstance(number, Constant) else np.zeros(0)


def _shifted(data: Expr, zero: int, out_zero: int, dtype: str, like: Expr) -> Call:
    """The same numbers of scale 1 around another zero point."""
    one: Any = constant(np.float32(1))
    args = (data, one, constant(np.int32(zero)), one, constant(np.int32(out_zero)))
    record: dict[str, Any] = {"axis": -1, "rounding": "None", "compute_dtype": "None", "out_dtype": dtype}
    return make("qnn.requantize", args, span=like.span, **record)


def _to_uint8(data: Expr, like: Expr) -> Call:
    return _shifted(data, -128, 0, "uint8", like)
