"""Turns a network of batch size N into one for a single sample, if no operator mixes samples.

In: a typed module. Out: the module of batch 1 with where the samples lie in its inputs and outputs, or the reason why
they cannot be told apart. The proof is by operator: `batch_axes.py` lists those that keep samples apart, and every
call's type is inferred again.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import RelayHwError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Trait, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op import get
from relay_hw.transform.batch_axes import RULES, MixedError, Place, Where, mixed, reshaped
from relay_hw.transform.fold_constant import FoldConstant
from relay_hw.transform.graph import (
    constant,
    dataflow_order,
    has_trait,
    op_name,
    remake,
    shape_of,
    typed_call,
    typed_tuple,
)
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.inline_let import InlineLet

# The accelerator takes images one by one: tensors with this many axes.
IMAGE_AXES = 4


@dataclass(frozen=True, slots=True, eq=False)
class OneSample:
    """`mod` computes one of `batch` samples; `inputs` and `outputs`: the axis of samples of each, None without one."""

    mod: IRModule
    batch: int
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]


def one_sample(mod: IRModule) -> OneSample | str | None:
    """The network of one sample; the reason why there is none; None for a network that has no batch of images.

    Samples lie along the first axis of inputs. A network of rows alone has no images: a row needs no launch of its own.
    """
    shapes = [shape_of(param) for param in mod["main"].params]
    images = [shape[0] for shape in shapes if shape is not None and len(shape) == IMAGE_AXES]
    batch = max(images or [shape[0] for shape in shapes if shape], default=1)
    if batch < 2:
        return None
    # Names and what can be known of constants are in the way.
    main = FoldConstant()(InlineLet()(mod))["main"]
    places = {
        param: Place(0) if shape and shape[0] == batch else None
        for param, shape in zip(main.params, shapes, strict=True)
    }
    try:
        split = _Split(batch, places)
        found = split.function(main)
        outputs = split.outputs(main.body)
    except (MixedError, RelayHwError) as error:
        return f"the {batch} samples of a batch cannot run one by one: {error}" if images else None
    if not split.has_images:
        return None
    inputs = tuple(None if place is None else place.axis for place in places.values())
    return OneSample(InferType()(mod.with_functions({"main": found})), batch, inputs, outputs)


def one_row(function: Function, rows: int) -> Function:
    """A graph whose inputs and outputs hold `rows` rows on their first axis, for one of them.

    Raises MixedError where an operator mixes rows, or an output has none; RelayHwError.
    """
    split = _Split(rows, dict.fromkeys(function.params, Place(0)))
    found = split.function(function)
    if set(split.outputs(function.body)) != {0}:
        raise MixedError("an output does not hold rows on its first axis")
    return found


class _Split:
    """State of the rewriting: new nodes, and batch axes of the old ones."""

    def __init__(self, batch: int, inputs: Mapping[Var, Place | None]) -> None:
        self.batch = batch
        self.has_images = False
        self._inputs = inputs
        self._new: dict[Expr, Expr] = {}
        self._where: dict[Expr, Where] = {}

    def function(self, main: Function) -> Function:
        """`main` for one sample. Raises MixedError, RelayHwError."""
        params: list[Var] = []
        for param in main.params:
            place = self._inputs[param]
            ty = param.type if place is None else _single(param.type, place)
            new = Var(param.name_hint, ty, span=param.span, checked_type=ty)
            params.append(new)
            self._new[param], self._where[param] = new, place
        for node in dataflow_order(main.body, "main"):
            if node not in self._new:
                self._new[node], self._where[node] = self._made(node)
            ty = node.checked_type
            if self._where[node] is not None and isinstance(ty, TensorType) and len(ty.shape) == IMAGE_AXES:
                self.has_images = True
        return Function(params, self._new[main.body], attrs=main.attrs, span=main.span)

    def outputs(self, body: Expr) -> tuple[int | None, ...]:
        """The axis of samples of each result. Raises MixedError."""
        where = self._where[body]
        axes: list[int | None] = []
        for number, place in enumerate(where if isinstance(where, tuple) else (where,)):
            if isinstance(place, tuple) or (place is not None and place.outer != 1):
                raise MixedError(f"output {number} does not hold samples one after the other")
            axes.append(None if place is None else place.axis)
        return tuple(axes)

    def _made(self, node: Expr) -> tuple[Expr, Where]:
        match node:
            case Constant():
                return node, None
            case Tuple(fields=parts):
                return typed_tuple([self._new[part] for part in parts]), tuple(self._where[part] for part in parts)
            case TupleGetItem(tuple_value=value, index=index):
                new, where = self._new[value], self._where[value]
                assert isinstance(new.type, TupleType)
                place = where[index] if isinstance(where, tuple) else None
                return TupleGetItem(new, index, span=node.span, checked_type=new.type.fields[index]), place
            case Call(op=Op()):
                return self._call(node)
            case _:
                raise MixedError("it calls functions")

    def _call(self, call: Call) -> tuple[Expr, Where]:
        name = op_name(call)
        if all(_is_empty(self._where[arg]) for arg in call.args):
            args = [self._new[arg] for arg in call.args]
            return call if all(map(operator.is_, args, call.args)) else remake(call, args), None
        if has_trait(call, Trait.ELEMENTWISE):
            return self._elementwise(call)
        if name in ("concatenate", "stack"):
            return self._joined(call)
        places = [self._place(call, arg) for arg in call.args]
        args = [self._new[arg] for arg in call.args]
        if name == "reshape":
            assert places[0] is not None
            shape, place = reshaped(call, places[0], self.batch)
            op = get("reshape")
            assert op.attrs_type is not None
            return typed_call(op, args[:1], op.attrs_type(newshape=shape), call.span), place
        rule = RULES.get(name)
        if rule is None:
            raise mixed(call, "is not known to keep samples apart")
        new = remake(call, args, rule(call, places, self.batch))
        source = next(place for place in places if place is not None)
        return new, self._moved(call, call.type, new.type, source)

    def _place(self, call: Call, arg: Expr) -> Place | None:
        where = self._where[arg]
        if isinstance(where, tuple):
            raise mixed(call, "reads a tuple of samples")
        return where

    def _moved(self, call: Call, old: Type, new: Type, source: Place) -> Where:
        """Where the samples lie in the result: at the one axis whose size is another for one sample."""
        if isinstance(old, TupleType) and isinstance(new, TupleType):
            if op_name(call) == "nn.batch_norm":
                # Mean and variance are those that it was given.
                return (self._moved(call, old.fields[0], new.fields[0], source), None, None)
            return tuple(self._moved(call, a, b, source) for a, b in zip(old.fields, new.fields, strict=True))
        if not isinstance(old, TensorType) or not isinstance(new, TensorType) or len(old.shape) != len(new.shape):
            raise mixed(call, "gives values of another form for one sample")
        axes = [axis for axis, (a, b) in enumerate(zip(old.shape, new.shape, strict=True)) if a != b]
        place = Place(axes[0], source.outer, source.inner) if len(axes) == 1 else None
        if place is None or old.shape[place.axis] != place.single * self.batch or new.shape[place.axis] != place.single:
            raise mixed(call, "does not keep the axis of samples")
        return place

    def _elementwise(self, call: Call) -> tuple[Expr, Where]:
        """Samples lie at one place of the result, counted from the last axis; other arguments must fit all of them."""
        shape = shape_of(call)
        if shape is None:
            raise mixed(call, "must give a known shape")
        ranks = [len(_shape(call, arg)) for arg in call.args]
        places = [self._place(call, arg) for arg in call.args]
        found = {
            Place(place.axis + len(shape) - rank, place.outer, place.inner)
            for place, rank in zip(places, ranks, strict=True)
            if place is not None
        }
        if len(found) != 1:
            raise mixed(call, "pairs samples that lie along different axes")
        (place,) = found
        args = [
            self._new[arg] if own is not None else self._lifted(call, arg, place, place.axis - len(shape) + rank)
            for arg, own, rank in zip(call.args, places, ranks, strict=True)
        ]
        return remake(call, args), place

    def _joined(self, call: Call) -> tuple[Expr, Where]:
        where = self._where[call.args[0]]
        parts = call.args[0].fields if isinstance(call.args[0], Tuple) else None
        if parts is None or not isinstance(where, tuple):
            raise mixed(call, "must read a tuple of its own")
        found = {place for place in where if place is not None}
        place = found.pop()
        if found or isinstance(place, tuple):
            raise mixed(call, "joins samples that lie along different axes")
        axis, rank = call.attrs.axis, len(_shape(call, parts[0]))
        stacks = op_name(call) == "stack"
        axis %= rank + stacks
        if not stacks and axis == place.axis:
            raise mixed(call, f"works along axis {axis}, where the samples lie")
        args = [
            self._new[part] if own is not None else self._lifted(call, part, place, place.axis)
            for part, own in zip(parts, where, strict=True)
        ]
        moved = place.axis + (stacks and axis <= place.axis)
        return remake(call, [typed_tuple(args)]), Place(moved, place.outer, place.inner)

    def _lifted(self, call: Call, arg: Expr, place: Place, axis: int) -> Expr:
        """What one sample gets of an argument that has none, whose `axis` stands beside that of the samples."""
        shape = _shape(call, arg)
        if axis < 0 or shape[axis] == 1:
            return self._new[arg]
        if not isinstance(arg, Constant):
            raise mixed(call, "reads numbers that may differ from sample to sample")
        split = arg.data.reshape(*shape[:axis], place.outer, self.batch, place.inner, *shape[axis + 1 :])
        first = np.take(split, [0], axis + 1)
        if not np.array_equal(np.broadcast_to(first, split.shape), split):
            raise mixed(call, "reads numbers that differ from sample to sample")
        return constant(first.reshape(*shape[:axis], place.single, *shape[axis + 1 :]), arg.span)


def _is_empty(where: Where) -> bool:
    return all(map(_is_empty, where)) if isinstance(where, tuple) else where is None


def _shape(call: Call, arg: Expr) -> tuple[int, ...]:
    shape = shape_of(arg)
    if shape is None:
        raise mixed(call, "must read tensors of known shape")
    return shape


def _single(ty: Type, place: Place) -> TensorType:
    assert isinstance(ty, TensorType)
    shape = list(ty.shape)
    shape[place.axis] = place.single
    return TensorType(shape, ty.dtype)
