"""Batches a dataflow network of batch size 1, if that does not change its results; runs many samples.

In: a typed module. Out: one whose inputs have N samples on their first axis, or None; and a quick evaluator of graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import RelayHwError
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, Type
from relay_hw.transform.graph import dataflow_order, dtype_of, known_shape, op_name, remake, shape_of, typed_tuple

Array = NDArray[Any]
BATCH = 32


class Values:
    """Values of expressions of one dataflow graph for one set of inputs; each is computed once."""

    def __init__(self, given: Mapping[Expr, Any]) -> None:
        self._values: dict[Expr, Any] = dict(given)

    def of(self, root: Expr) -> Any:
        """Evaluate `root` by the operators' reference semantics."""
        stack = [root]
        while stack:
            node = stack[-1]
            waiting = [part for part in _parts(node) if part not in self._values]
            if node in self._values or not waiting:
                stack.pop()
                if node not in self._values:
                    self._values[node] = self._compute(node)
            else:
                stack.extend(waiting)
        return self._values[root]

    def set(self, node: Expr, value: Any) -> None:
        """Set the value of `node`."""
        self._values[node] = value

    def forget(self, node: Expr) -> None:
        """Drop the value of `node`; it is recomputed when needed."""
        self._values.pop(node, None)

    def _compute(self, node: Expr) -> Any:
        match node:
            case Constant():
                return node.data
            case Tuple(fields=parts):
                return tuple(self._values[part] for part in parts)
            case TupleGetItem(tuple_value=value, index=index):
                return self._values[value][index]
            case Call(op=Op() as op):
                return op.reference(node.attrs, [self._values[arg] for arg in node.args], node.type)
            case _:
                raise AssertionError(node)


def _parts(node: Expr) -> Sequence[Expr]:
    match node:
        case Call(op=Op(), args=args):
            return args
        case Tuple(fields=parts):
            return parts
        case TupleGetItem(tuple_value=value):
            return (value,)
        case _:
            return ()


def batched(mod: IRModule, size: int) -> IRModule | None:
    """`main` of `mod` for `size` samples at once; None if a value would differ, or that is unknown."""
    main = mod["main"]
    inputs = [shape_of(param) for param in main.params]
    if size < 2 or not inputs or any(not shape or shape[0] != 1 for shape in inputs):
        return None
    try:
        new = _rebuild(main, size)
    except RelayHwError:
        return None
    found = IRModule({"main": new}, mod.types)
    return found if _same_results(main, new, size) else None


def _rebuild(main: Function, size: int) -> Function:
    """Raises RelayHwError for what is no dataflow graph or does not fit."""
    params: dict[Expr, Var] = {param: _wider(param, size) for param in main.params}
    new: dict[Expr, Expr] = dict(params)
    for node in dataflow_order(main.body, "main"):
        if node not in new:
            new[node] = _copy(node, new, size)
    body = new[main.body]
    return Function(list(params.values()), body, checked_type=None, attrs=main.attrs, span=main.span)


def _wider(param: Var, size: int) -> Var:
    ty = TensorType((size, *param.tensor_type.static_shape[1:]), param.tensor_type.dtype)
    return Var(param.name_hint, ty, span=param.span, checked_type=ty)


def _copy(node: Expr, new: Mapping[Expr, Expr], size: int) -> Expr:
    match node:
        case Call(op=Op()):
            args = [new[arg] for arg in node.args]
            if all(arg is old for arg, old in zip(args, node.args, strict=True)):
                return node
            return remake(node, args, _reshaped(node, args, size))
        case Tuple(fields=parts):
            return typed_tuple([new[part] for part in parts])
        case TupleGetItem(tuple_value=value, index=index):
            ty = new[value].type.fields[index]  # type: ignore[union-attr]
            return TupleGetItem(new[value], index, span=node.span, checked_type=ty)
        case Constant():
            return node
        case _:
            raise RelayHwError("a network must be made of operator calls and tuples to run on several samples at once")


def _reshaped(call: Call, args: Sequence[Expr], size: int) -> Any:
    """Attributes of a call; a reshape to fixed sizes gets `size` times its first size."""
    shape = shape_of(args[0])
    if op_name(call) != "reshape" or shape is None or any(code < 1 for code in call.attrs.newshape[1:]):
        return call.attrs
    first, *rest = call.attrs.newshape
    if first < 1 or prod((first, *rest)) * size != prod(shape):
        return call.attrs
    return replace(call.attrs, newshape=(first * size, *rest))


def _same_results(old: Function, new: Function, size: int) -> bool:
    """Whether two samples in a batch give the same results as each alone."""
    if not _scaled(old.body.type, new.body.type, size):
        return False
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal((size, *known_shape(param)[1:])).astype(dtype_of(param)) for param in old.params]
    together = Values(dict(zip(new.params, samples, strict=True))).of(new.body)
    for index in (0, size - 1):
        alone = Values({p: s[index : index + 1] for p, s in zip(old.params, samples, strict=True)}).of(old.body)
        for one, many in zip(_leaves(alone), _leaves(together), strict=True):
            part = many.reshape(size, *one.shape)[index] if one.shape[:1] != (1,) else many[index : index + 1]
            largest = float(np.abs(one[np.isfinite(one)]).max(initial=0.0))
            if not np.allclose(one, part, rtol=1e-3, atol=1e-4 * max(largest, 1e-30)):
                return False
    return True


def _scaled(old: Type, new: Type, size: int) -> bool:
    """Whether every result has `size` times its first axis."""
    if isinstance(old, TensorType) and isinstance(new, TensorType):
        return bool(old.shape) and old.shape[0] == 1 and new.shape == (size, *old.shape[1:])
    olds, news = getattr(old, "fields", ()), getattr(new, "fields", ())
    return len(olds) == len(news) > 0 and all(_scaled(a, b, size) for a, b in zip(olds, news, strict=True))


def _leaves(value: Any) -> Iterator[Array]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield np.asarray(value)


def run_samples(mod: IRModule, data: Mapping[str, Array], size: int = BATCH) -> Any:
    """Results of `main` for every sample of `data`, stacked: an array, or a tuple of them.

    `data`: one array for each input, samples on the first axis, as long as each other. Batches of `size` where the
    network allows them, and bit by bit what one sample at a time gives for integer networks.
    """
    main = mod["main"]
    count = len(next(iter(data.values())))
    size = min(size, count)
    many = batched(mod, size)
    done = (count // size) * size if many is not None else 0
    parts: list[Any] = []
    if many is not None:
        params = many["main"].params
        for start in range(0, done, size):
            given: dict[Expr, Any] = {
                p: np.asarray(data[p.name_hint])[start : start + size].astype(dtype_of(p)) for p in params
            }
            parts.append(Values(given).of(many["main"].body))
    for index in range(done, count):
        shapes = ((p, known_shape(p)) for p in main.params)
        given = {p: np.asarray(data[p.name_hint])[index].reshape(shape).astype(dtype_of(p)) for p, shape in shapes}
        parts.append(Values(given).of(main.body))
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
    return np.concatenate(parts)
