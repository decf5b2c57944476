"""Imports an ONNX model. In: a model file or protobuf. Out: a typed Relay module and its parameters.

Everything that cannot be imported is listed in one error before any work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from relay_hw.analysis import infer_type
from relay_hw.errors import InputError, RelayHwError, TypeCheckError, UnsupportedError
from relay_hw.frontend.onnx import find_converter
from relay_hw.frontend.onnx.budget import Ledger
from relay_hw.frontend.onnx.fold import computed_constant
from relay_hw.frontend.onnx.node import Arguments, Array, Node, Subgraph, Value, count_nodes, stamp
from relay_hw.frontend.onnx.sizes import Sizes, as_sizes, computed, from_array, numbers
from relay_hw.frontend.onnx.source import Shape, Source, load, read
from relay_hw.frontend.onnx.supported import UNFIT, check_supported, refuse
from relay_hw.frontend.onnx.typer import Typer
from relay_hw.frontend.onnx.valid import check_rules
from relay_hw.ir.dims import DimVar
from relay_hw.ir.expr import Constant, Expr, Function, GlobalVar, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TypeCall
from relay_hw.limits import DEFAULT, USUAL, Limits, OnnxOptions
from relay_hw.op.base import show_shape
from relay_hw.prelude import Prelude, import_from_std
from relay_hw.span import Span
from relay_hw.transform.remove_unused_functions import RemoveUnusedFunctions

if TYPE_CHECKING:
    import onnx

# Letters of a tensor's name that the variable's has.
_LONGEST = 1000
# Folding these would lose what they say: where the integers are.
KEPT = ("QuantizeLinear", "DequantizeLinear", "Quant", "IntQuant", "BipolarQuant")
# These make functions, lists and branches, which are no arrays.
CONTROL = (
    *("If", "Loop", "Scan", "LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"),
    *("Optional", "OptionalHasElement", "OptionalGetElement", "SplitToSequence", "ConcatFromSequence"),
    *("SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength"),
)


def from_onnx(
    model: onnx.ModelProto | str | PathLike[str],
    shape: Mapping[str, Shape] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    freeze_params: bool = False,
    options: OnnxOptions = USUAL,
) -> tuple[IRModule, dict[str, Array]]:
    """A Relay module whose `main` computes the model, and its parameters by name.

    `main` takes the model's inputs under their own names, then the parameters; with `freeze_params` these are
    constants and the dictionary is empty. `shape` fixes open dimensions, None or ANY keep one open. Of inputs that it
    leaves out, they are what the options' samples say; an open batch dimension is otherwise 1. `dtype` serves inputs
    that state none. The module's attributes `input_names` and `output_names` keep the order.

    Raises InputError for a file, shape or graph that is wrong, UnsupportedError with every node that cannot be
    imported (operator, name, opset, reason), TypeCheckError for a graph whose types clash.
    """
    proto, name = load(model, options.limits, options.external_data)
    source = read(proto, name, shape, dtype, options.sample_shapes, options.values)
    check_supported(source)
    module, params = Importer(source, freeze_params, limits=options.limits).run()
    check_rules(proto, name, source.inputs)
    try:
        return infer_type(module), params
    except RelayHwError as error:
        if error.span is not None:
            raise
        # Span of things without a node in the file, such as the shape of an output.
        raise type(error)(f"{name}: {error.message}") from None


class _MissingError(Exception):
    """An inner graph has a node that was refused."""


class Importer:
    """State of one import: values so far, and parameters."""

    def __init__(
        self,
        source: Source,
        freeze_params: bool,
        outer: Importer | None = None,
        captured: dict[Var, Expr] | None = None,
        limits: Limits = DEFAULT,
    ) -> None:
        """`outer`: the import of the surrounding graph; `captured`: collects variables for its values."""
        self.source = source
        self.outer = outer
        self.captured = captured
        self.freeze_params = freeze_params
        weights = sum(array.nbytes for array in source.arrays.values())
        self.ledger: Ledger = (
            Ledger(source.name, limits, weights, count_nodes(source.nodes)) if outer is None else outer.ledger
        )
        self.typer: Typer = Typer() if outer is None else outer.typer
        self.params: dict[str, Array] = {}
        self.param_vars: dict[str, Var] = {}
        self.values: dict[str, Value] = {}
        self.taken: set[str] = {"main", *source.inputs} if outer is None else outer.taken
        self.functions: dict[str, Function] = {} if outer is None else outer.functions
        self.libraries: set[str] = set() if outer is None else outer.libraries
        # Why nodes were refused during the import, and what depends on them.
        self.reasons: list[str] = [] if outer is None else outer.reasons
        self.missing: set[str] = set() if outer is None else outer.missing

    def run(self) -> tuple[IRModule, dict[str, Array]]:
        """The untyped module and the parameters."""
        inputs = [Var(name, ty, span=Span(name)) for name, ty in self.source.inputs.items()]
        self.values.update((var.name_hint, Value(var)) for var in inputs)
        self._name_open_sizes(inputs)
        if any(isinstance(ty, TypeCall) for ty in self.source.inputs.values()):
            self.library()
        for node in self.source.nodes:
            self._import_node(node)
        refuse(self.source, self.reasons)
        outputs = [self._value(name).expr for name in self.source.outputs]
        body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
        attrs = {"input_names": tuple(self.source.inputs), "output_names": self.source.outputs}
        main = Function([*inputs, *self.param_vars.values()], body)
        module = IRModule({**self.functions, "main": main}, attrs=attrs)
        for library in sorted(self.libraries):
            module = import_from_std(module, library)
        # Trials of loop bodies and libraries leave functions behind.
        return RemoveUnusedFunctions()(module) if self.functions or self.libraries else module, self.params

    def _name_open_sizes(self, inputs: Sequence[Var]) -> None:
        """Give dynamic sizes distinct names during conversion. In functions of inner graphs they are only `?`."""
        if any(node.operator in CONTROL for node in self.source.nodes):
            return
        found: dict[str, DimVar] = {}
        for var in inputs:
            ty, names = var.type_annotation, self.source.symbols.get(var.name_hint, ())
            if isinstance(ty, TensorType) and len(names) == ty.rank:
                dims = [
                    dim if isinstance(dim, int) else found.setdefault(name, DimVar(name))
                    for dim, name in zip(ty.shape, names, strict=True)
                ]
                self.typer.assume(var, TensorType(dims, ty.dtype))

    def nested(
        self, graph: Subgraph, inputs: Mapping[str, Expr], captured: dict[Var, Expr] | None = None
    ) -> list[Expr]:
        """The outputs of an inner graph; see `Scope`. Raises _MissingError if one of its nodes was refused."""
        source = Source(graph.name, graph.nodes, graph.arrays, {}, graph.outputs)
        inner = Importer(source, True, self, captured)
        inner.values.update((name, self._plain(expr)) for name, expr in inputs.items())
        for node in graph.nodes:
            inner._import_node(node)
        if not self.missing.isdisjoint(graph.outputs):
            raise _MissingError
        return [inner._value(name).expr for name in graph.outputs]

    def fresh(self, name: str) -> str:
        """See `Scope`."""
        return self._fresh(name)

    def define(self, name: str, function: Function) -> GlobalVar:
        """See `Scope`."""
        self.functions[name] = self.typer.functions[name] = function
        return GlobalVar(name)

    def library(self, name: str = "prelude") -> Prelude:
        """See `Scope`."""
        found = Prelude()
        if name != "prelude":
            found.import_from_std(name)
        self.libraries |= {"prelude", name}
        self.taken |= found.mod.functions.keys()
        self.typer.functions.update(found.mod.functions)
        return found

    def _from_outside(self, name: str) -> Value:
        assert self.outer is not None
        found = self.outer._value(name)
        if self.captured is None or isinstance(found.expr, Constant):
            return found
        var = Var(self._fresh(name), self.typer(found.expr), span=Span(name))
        self.captured[var] = found.expr
        return Value(var, found.array)

    def _value(self, name: str) -> Value:
        """The tensor called `name`; a weight becomes a parameter or constant at its first use."""
        found = self.values.get(name)
        if found is None and self.outer is not None and name not in self.source.arrays:
            found = self.values[name] = self._from_outside(name)
        if found is None:
            array = self.source.arrays.get(name)
            if array is None:
                raise InputError(f"tensor {name} must be a result of its node, which gives fewer", Span(name))
            found = self.values[name] = Value(self._parameter(name, array), array)
        return found

    def _parameter(self, name: str, array: Array) -> Expr:
        if self.freeze_params:
            return Constant(array, span=Span(name))
        plain = self._fresh(name)
        self.params[plain] = array
        self.param_vars[plain] = Var(plain, TensorType(array.shape, str(array.dtype)), span=Span(name))
        return self.param_vars[plain]

    def _fresh(self, name: str) -> str:
        """A unique variable name that is legal in Relay text."""
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name[:_LONGEST])
        plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"v{plain}"
        number = 0
        candidate = plain
        while candidate in self.taken:
            number += 1
            candidate = f"{plain}_{number}"
        self.taken.add(candidate)
        return candidate

    def _import_node(self, node: Node) -> None:
        """Import one node, or note why it is refused and what depends on it."""
        self.ledger.convert(node.span)
        if not self.missing.isdisjoint(node.inputs):
            self.missing.update(node.outputs)
            return
        try:
            self._bind_results(node)
        except _MissingError:
            self.missing.update(node.outputs)
        except UnsupportedError as error:
            self.reasons.append(f"{node.operator} (node {node.name}, opset {node.opset}): {error.message}")
            self.missing.update(node.outputs)

    def _bind_results(self, node: Node) -> None:
        """Give the node's outputs their values; where all inputs are known, as constants."""
        arrays = [self._array(name) if name else None for name in node.inputs]
        fold = (
            node.operator not in KEPT
            and node.operator not in CONTROL
            and all(array is not None for name, array in zip(node.inputs, arrays, strict=True) if name)
        )
        sizes = [None if fold or not name else self._sizes(name) for name in node.inputs]
        args = Arguments(node, lambda name: self._argument(name, fold), arrays, self.typer, self, sizes)
        # Sizes of open dimensions turn out not to be known only now.
        known = {name for name, array in zip(node.inputs, arrays, strict=True) if array is not None}
        try:
            for name, result in zip(node.outputs, self._results(node, args, known), strict=False):
                if name:
                    self.values[name] = self._folded(result, node) if fold else self._plain(result)
        except TypeCheckError as error:
            raise error if error.span is not None else TypeCheckError(error.message, node.span) from None
        except UNFIT as error:
            # Converters index shapes as the operator defines them: an axis is missing, or sizes do not fit.
            types = [self.typer(args[k]) for k in range(len(args)) if node.has_input(k)]
            given = ", ".join(show_shape(ty.shape) if isinstance(ty, TensorType) else str(ty) for ty in types)
            raise UnsupportedError(f"its inputs must have shapes that it is defined for, not {given}") from error
        if not fold:
            self._keep_sizes(node, sizes)

    def _results(self, node: Node, args: Arguments, known: set[str]) -> list[Expr]:
        """What the converter makes of a node, typed, with its span, within the limits. `known`: inputs with values."""
        converter = find_converter(node.domain, node.operator)
        assert converter is not None
        if converter.check is not None and (reason := converter.check(node, known)) is not None:
            raise UnsupportedError(reason)
        found = converter.convert(node, args)
        made = [found] if isinstance(found, Expr) else list(found)
        results = stamp(made, node.span)
        shapes = {id(expr): dims for expr, dims in args.assumed}
        for before, result in zip(made, results, strict=True):
            if id(before) in shapes:
                ty = self.typer(result)
                assert isinstance(ty, TensorType)
                self.typer.assume(result, TensorType(shapes[id(before)], ty.dtype))
        for result in results:
            ty = self.typer(result)
            if isinstance(ty, TensorType):
                self.ledger.result((dim for dim in ty.shape if isinstance(dim, int)), node.span)
        return results

    def _sizes(self, name: str) -> Sizes | None:
        found = self.values.get(name)
        return found.sizes if found is not None and found.sizes is not None else from_array(self._array(name))

    def _keep_sizes(self, node: Node, inputs: Sequence[Sizes | None]) -> None:
        """Record the dimensions that a result holds; if all are numbers, it is a constant."""
        first = node.outputs[0] if node.outputs else ""
        value = self.values.get(first)
        if value is None or value.array is not None:
            return
        if node.operator == "Shape":
            ty = self.typer(self._value(node.inputs[0]).expr)
            assert isinstance(ty, TensorType)
            found = as_sizes(ty.shape[slice(node.attr("start", 0), node.attr("end"))])
        else:
            found = computed(node, inputs)
        if found is None:
            return
        known = numbers(found)
        ty = self.typer(value.expr)
        if known is not None and isinstance(ty, TensorType):
            known = known.astype(ty.dtype)
            self.values[first] = Value(Constant(known, span=node.span), known)
        elif known is None:
            self.values[first] = replace(value, sizes=found)

    def _array(self, name: str) -> Array | None:
        found = self.values.get(name)
        if found is not None:
            return found.array
        array = self.source.arrays.get(name)
        return self.outer._array(name) if array is None and self.outer is not None else array

    def _argument(self, name: str, fold: bool) -> Expr:
        """An argument of a node. Weights of folded nodes, and shapes, become constants instead of parameters."""
        array = self._array(name)
        if array is not None and (fold or (name not in self.values and self._only_shapes(array))):
            return Constant(array, span=Span(name))
        return self._value(name).expr

    @staticmethod
    def _only_shapes(array: Array) -> bool:
        """Whether a weight only holds sizes, axes or indices, so that it is not a parameter for users."""
        return array.dtype == np.int64 and array.ndim <= 1

    @staticmethod
    def _plain(result: Expr) -> Value:
        return Value(result, result.data if isinstance(result, Constant) else None)

    def _folded(self, result: Expr, node: Node) -> Value:
        data = np.asarray(computed_constant(result, self.typer, self.ledger))
        return Value(Constant(data, span=node.span), data)
