"""Reads one `@accel_k` function as a list of layers on numbered activations.

In: a Relay function whose body calls composite functions on each other's results. Out: `Region`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import TensorLayout
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Array, Call, Constant, Expr, Function, Op, Tuple, TupleGetItem
from relay_hw.tensorize.kernel import Image, KernelSpec, kernel_inputs
from relay_hw.tensorize.layout import image_of
from relay_hw.tensorize.match.composite import PREFIX, match
from relay_hw.tensorize.match.reading import var_type

# The operators that give a layer its name; of several the innermost.
_CORES = (
    "nn.conv2d",
    "nn.dense",
    "nn.batch_matmul",
    "nn.max_pool2d",
    "fixed.sum_pool2d",
    "fixed.conv2d_transpose",
    "fixed.add",
    "fixed.mul",
    "fixed.table",
    "fixed.softmax",
    "fixed.layer_norm",
    "fixed.rms_norm",
    "concatenate",
)


@dataclass(frozen=True, slots=True, eq=False)
class Activation:
    """An int8 tensor of the region: logical shape [1, C, H, W] or [1, C]; `value` where it is a constant."""

    shape: tuple[int, ...]
    value: Array | None = None
    layout: TensorLayout = TensorLayout.NHWC

    @property
    def image(self) -> Image:
        """Size of the activation."""
        return image_of(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class LayerSpec:
    """A kernel on activations, given by number: inputs in the kernel's order, and the output."""

    name: str
    composite: str
    function: Function
    kernel: KernelSpec
    inputs: tuple[int, ...]
    output: int


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Layers in an order in which each reads only what came before. `outputs` may name an activation twice."""

    name: str
    activations: tuple[Activation, ...]
    layers: tuple[LayerSpec, ...]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[int, ...]


def read_region(function: Function, config: AccelConfig, name: str) -> Region:
    """Match every composite of the function. Raises TensorizeError naming what cannot run."""
    reader = _Reader(config)
    inputs: list[tuple[str, int]] = []
    for param in function.params:
        ty = var_type(param)
        if ty.dtype != "int8":
            raise TensorizeError(f"input {param.name_hint} of {name} must be int8, not {ty.dtype}", param.span)
        inputs.append((param.name_hint, reader.bind(param, Activation(ty.static_shape))))
    body = function.body
    results = body.fields if isinstance(body, Tuple) else (body,)
    outputs = tuple(reader.read(result) for result in results)
    for result, number in zip(results, outputs, strict=True):
        if number not in {layer.output for layer in reader.layers}:
            raise TensorizeError(f"result of {name} must be computed by it, not be its input", result.span)
    return Region(name, tuple(reader.activations), tuple(reader.layers), tuple(inputs), outputs)


class _Reader:
    """Numbers activations while it walks the calls, operands first."""

    def __init__(self, config: AccelConfig) -> None:
        self._config = config
        self._known: dict[Expr, int] = {}
        self.activations: list[Activation] = []
        self.layers: list[LayerSpec] = []

    def bind(self, expr: Expr, activation: Activation) -> int:
        """Give `expr` the next number."""
        self._known[expr] = len(self.activations)
        self.activations.append(activation)
        return self._known[expr]

    def read(self, result: Expr) -> int:
        """Number of the activation that `result` is, after its layers were added."""
        stack: list[Expr] = [_through_tuples(result)]
        while stack:
            expr = stack[-1]
            missing = [operand for operand in _operands(expr) if operand not in self._known]
            if expr in self._known:
                stack.pop()
            elif missing:
                stack.extend(reversed(missing))
            else:
                self._visit(expr)
        return self._known[_through_tuples(result)]

    def _visit(self, expr: Expr) -> None:
        if isinstance(expr, Constant):
            if str(expr.data.dtype) != "int8":
                raise TensorizeError(f"constant operand must be int8, not {expr.data.dtype}", expr.span)
            self.bind(expr, Activation(expr.data.shape, expr.data))
            return
        if not isinstance(expr, Call) or not isinstance(expr.op, Function):
            what = type(expr.op if isinstance(expr, Call) else expr).__name__
            raise TensorizeError(f"accelerator function must call composite functions, not {what}", expr.span)
        self._add_layer(expr, expr.op)

    def _constant(self, value: Array) -> int:
        """Number of a constant activation that a kernel brings along; equal ones are one."""
        for number, known in enumerate(self.activations):
            if known.value is not None and np.array_equal(known.value, value):
                return number
        self.activations.append(Activation(value.shape, value))
        return len(self.activations) - 1

    def _add_layer(self, call: Call, composite: Function) -> None:
        found = match(composite, self._config)
        operands = [self._known[_through_tuples(arg)] for arg in call.args]
        inputs = tuple(operands[number] for number in found.params)
        inputs += tuple(self._constant(value) for value in found.constants)
        kind = str(composite.attrs["Composite"]).removeprefix(PREFIX)
        for number, image in zip(inputs, kernel_inputs(found.kernel), strict=True):
            given = self.activations[number].image
            if given != image:
                raise TensorizeError(f"operand of {kind} must be {image}, not {given}", call.span)
        output = self.bind(call, Activation(found.shape))
        name = f"{len(self.layers)}:{_source(composite, call) or kind}"
        self.layers.append(LayerSpec(name, f"{PREFIX}{kind}", composite, found.kernel, inputs, output))


def _through_tuples(expr: Expr) -> Expr:
    """The value behind projections of tuples that are written out."""
    while isinstance(expr, TupleGetItem) and isinstance(expr.tuple_value, Tuple):
        expr = expr.tuple_value.fields[expr.index]
    return expr


def _operands(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Call):
        for arg in expr.args:
            yield _through_tuples(arg)


def _source(composite: Function, call: Call) -> str:
    """Name of the model's node that the layer comes from: the source of its core operator, where it names one."""
    spans = [call.span or composite.span]
    expr: Expr = composite.body
    while isinstance(expr, Call):
        if isinstance(expr.op, Op) and expr.op.name in _CORES:
            spans.append(expr.span)
        expr = next((arg for arg in expr.args if isinstance(arg, Call)), composite)
    names = [span.source for span in spans if span is not None and not span.line]
    # Programs are text too: a name there has no spaces, and a semicolon begins a comment.
    return "".join("_" if c in " ;" or not c.isprintable() else c for c in names[-1]) if names else ""
