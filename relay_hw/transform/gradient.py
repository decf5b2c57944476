"""Gradients of functions: `gradient(f)` takes the arguments of `f` and gives its value with all partial derivatives.

In: a typed or untyped function. Out: a typed one, Relay again, so that it can be differentiated again. The derivative
is that of the sum of the result's elements; of a tuple, of its first field's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from relay_hw.analysis.call_graph import call_order, globals_used
from relay_hw.analysis.infer import infer_expr, infer_type
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import Expr, Function, GlobalVar, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import Kind, RefType, TensorType, TupleType, Type
from relay_hw.ir.visit import Rewriter, copy_with, post_order
from relay_hw.op import ones, ones_like
from relay_hw.op.gradients.accumulate import is_real, zero_of
from relay_hw.op.gradients.common import known_type, number, zeros
from relay_hw.support.names import one_of
from relay_hw.transform.first_order_gradient import first_order_gradient
from relay_hw.transform.names import unused_name
from relay_hw.transform.normal_form import ATOMS, normalize
from relay_hw.transform.reverse_data import DataFunctions
from relay_hw.transform.reverse_mode import Reverser
from relay_hw.transform.reverse_symbols import Plain, Product, Real, Symbol
from relay_hw.transform.reverse_types import ReverseTypes

MODES = ("higher_order", "first_order")


def gradient(
    expr: Function | GlobalVar, mod: IRModule | None = None, mode: str = "higher_order", memory: int | None = None
) -> Function:
    """`fn (x1: T1, ...) -> R` becomes `fn (x1: T1, ...) -> (R, (T1, ...))`.

    `mode` "higher_order" takes the whole language and leaves references in the result; "first_order" takes programs of
    operator calls, tuples and lets, and leaves none. `memory` bounds the bytes that values of a first-order gradient
    take at a time: what would wait for the way back is computed again. Functions of `mod` that `expr` calls are
    reversed inside of the result; see `gradient_module` for functions that call each other. Parameters are tensors,
    tuples and data types, whose derivatives have the same form; integers have zeros. The result is of tensors and
    tuples. Raises UnsupportedError for others and for operators without gradient, InputError for an unknown mode and
    for a bound that is too small.
    """
    if mode not in MODES:
        raise InputError(one_of("mode of gradient", MODES, mode))
    whole = mod or IRModule()
    function = whole[expr] if isinstance(expr, GlobalVar) else expr
    if mode == "first_order":
        return first_order_gradient(function, whole, memory)
    if memory is not None:
        raise InputError(f"memory of a gradient must be bounded in mode first_order, not {mode}")
    whole = infer_type(whole)
    typed = cast(Function, infer_expr(_unfused(function), whole))
    types = ReverseTypes(whole.types)
    needed = _needed(typed, whole, types)
    _check_local([typed, *(whole[name] for name in needed)], needed, whole, types)
    local: dict[str, Expr] = {name: Var(f"{name}_reverse") for name in needed}
    data = DataFunctions(types, whole.types, Var)
    body = run(_gradient(_anf(typed), types, local, data))
    if data.is_mutual:
        raise UnsupportedError(
            "gradient by data types that hold each other must be taken of the module: gradient_module"
        )
    result = body.body
    for own, conversion in reversed(data.definitions):
        result = Let(cast(Var, own), conversion, result)
    for name in reversed(needed):
        result = Let(cast(Var, local[name]), _reverse(whole[name], types, local), result)
    return cast(Function, infer_expr(replace(body, body=result), whole))


def gradient_module(mod: IRModule, entry: str = "main", name: str | None = None) -> IRModule:
    """`mod` with the gradient of `@entry` as `@name`, which is `entry` itself unless given.

    What `@entry` calls is reversed into functions and data types of their own. Raises InputError for an unknown
    function, or where another function calls the one to be replaced; UnsupportedError as `gradient` does.
    """
    target = entry if name is None else name
    if entry not in mod.functions:
        raise InputError(one_of("entry", mod.functions, entry))
    typed = infer_type(mod.with_functions({one: _unfused(body) for one, body in mod.functions.items()}))
    users = [user for user, body in typed.functions.items() if user != target and target in globals_used(body)]
    if target in typed.functions and users:
        raise InputError(f"name of the gradient must be a new one, not {target}, which @{users[0]} calls")
    types = ReverseTypes(typed.types)
    needed = _needed(typed[entry], typed, types)
    names = {one: GlobalVar(unused_name(f"{one}_reverse", typed.functions)) for one in needed}
    reversed_functions = {names[one].name_hint: _reverse(typed[one], types, names) for one in needed}
    data = DataFunctions(types, typed.types, lambda stem: GlobalVar(unused_name(stem, {*typed.functions, *data.names})))
    new = run(_gradient(_anf(typed[entry]), types, names, data))
    conversions = {cast(GlobalVar, own).name_hint: conversion for own, conversion in data.definitions}
    return infer_type(types.extend(typed.with_functions({**reversed_functions, **conversions, target: new})))


def _anf(function: Function) -> Function:
    return normalize(function, lambda node: not isinstance(node, ATOMS))


class _Unfuse(Rewriter):
    """Fused functions become ordinary ones."""

    def rewrite_function(self, old: Function, new: Function) -> Expr:
        if "Primitive" not in new.attrs:
            return new
        attrs = {key: value for key, value in new.attrs.items() if key != "Primitive"}
        return copy_with(new, attrs=attrs)


def _unfused(function: Function) -> Function:
    return cast(Function, _Unfuse().rewrite(function))


def _needed(function: Function, mod: IRModule, types: ReverseTypes) -> list[str]:
    """The functions below `function` that work on real numbers themselves, callees first.

    The others only hand values on: they are their own reverse-mode versions.
    """
    reached = set(globals_used(function))
    order = [name for group in call_order(mod) for name in group]
    stack = list(reached)
    while stack:
        for name in globals_used(mod[stack.pop()]):
            if name not in reached:
                reached.add(name)
                stack.append(name)
    needed = {name for name in reached if any(types.has_real(node.checked_type) for node in post_order(mod[name]))}
    while True:
        more = {name for name in reached - needed if needed.intersection(globals_used(mod[name]))}
        if not more:
            return [name for name in order if name in needed]
        needed |= more


def _check_local(functions: Sequence[Function], needed: Sequence[str], mod: IRModule, types: ReverseTypes) -> None:
    """One function alone can hold neither data types nor functions that call each other. Raises UnsupportedError."""
    for group in call_order(mod):
        if len(group) > 1 and set(group) <= set(needed):
            names = " and ".join(f"@{name}" for name in group)
            raise UnsupportedError(
                f"gradient of functions that call each other, {names}, must be taken of the module: gradient_module"
            )
    if any(types.has_real_data(node.checked_type) for function in functions for node in post_order(function)):
        raise UnsupportedError(
            "gradient of a program whose data types hold real numbers must be taken of the module: gradient_module"
        )


def _reverse(function: Function, types: ReverseTypes, names: Mapping[str, Expr]) -> Function:
    return run(Reverser(types, names).global_function(_anf(function)))


def _gradient(
    function: Function, types: ReverseTypes, names: Mapping[str, Expr], data: DataFunctions
) -> Recursion[Function]:
    _check_type_params(function)
    reverser = Reverser(types, names)
    params = [Var(param.name_hint, param.type, checked_type=param.type) for param in function.params]
    reverser.start_chain()
    lifted = [_lift(reverser, data, param, param.type, param.name_hint) for param in params]
    for old, symbol in zip(function.params, lifted, strict=True):
        reverser.bind(old, symbol)
    result = yield reverser.sequence(function.body)
    ret = function.func_type.ret_type
    _check_result(ret, function)
    _seed(reverser, result)
    reverser.run_chain()
    slopes = [_slope(data, symbol, param, param.type) for symbol, param in zip(lifted, params, strict=True)]
    body = reverser.block.close(Tuple([reverser.primal(result), Tuple(slopes)]))
    types_of = TupleType([param.type for param in params])
    return Function(params, body, TupleType([ret, types_of]), function.type_params, where=function.where)


def _check_type_params(function: Function) -> None:
    """Sizes and shapes may be parameters; of other types it is not known whether they have derivatives."""
    for param in function.type_params:
        if param.kind not in (Kind.DIM, Kind.SHAPE):
            raise UnsupportedError(
                f"type parameters of a differentiated function must be shapes and sizes, not {param}", function.span
            )


def _lift(reverser: Reverser, data: DataFunctions, value: Expr, ty: Type, name: str) -> Symbol:
    """A parameter with fresh references for its tensors."""
    if is_real(ty):
        return Real(value, reverser.block.emit(RefCreate(zeros(value)), RefType(ty), f"{name}_slope"))
    if isinstance(ty, TupleType):
        items = [reverser.block.emit(TupleGetItem(value, at), part, name) for at, part in enumerate(ty.fields)]
        parts = [_lift(reverser, data, item, part, name) for item, part in zip(items, ty.fields, strict=True)]
        return Product(tuple(parts))
    if _is_tensor(ty):
        return Plain(value)
    return Plain(reverser.block.emit(data.lift(value, ty, f"%{name}"), None, f"{name}_lifted"))


def _is_tensor(ty: Type) -> bool:
    return isinstance(ty, TensorType)


def _check_result(ty: Type, function: Function) -> None:
    first = ty
    while isinstance(first, TupleType) and first.fields:
        first = first.fields[0]
    if not is_real(first):
        raise UnsupportedError(
            f"result of a differentiated function must be a real tensor, or a tuple that starts with one, not {ty}",
            function.span,
        )
    if not _is_plain(ty):
        raise UnsupportedError(f"result of a differentiated function must be of tensors and tuples, not {ty}")


def _is_plain(ty: Type) -> bool:
    return all(map(_is_plain, ty.fields)) if isinstance(ty, TupleType) else _is_tensor(ty)


def _seed(reverser: Reverser, symbol: Symbol) -> None:
    """The result's own adjoint is one."""
    while isinstance(symbol, Product):
        symbol = symbol.parts[0]
    if isinstance(symbol, Real) and symbol.adjoint is not None:
        reverser.block.emit(RefWrite(symbol.adjoint, _ones(symbol.value)), name="_")


def _ones(value: Expr) -> Expr:
    ty = known_type(value)
    if ty is None:
        return ones_like(value)
    return ones(ty.static_shape, ty.dtype) if ty.shape else number(1, value)


def _slope(data: DataFunctions, symbol: Symbol, value: Expr, ty: Type) -> Expr:
    match symbol:
        case Real(adjoint=Expr() as adjoint):
            return RefRead(adjoint)
        case Product(parts=parts):
            assert isinstance(ty, TupleType)
            items = [TupleGetItem(value, at, checked_type=part) for at, part in enumerate(ty.fields)]
            return Tuple([_slope(data, *three) for three in zip(parts, items, ty.fields, strict=True)])
        case Plain(value=lifted) if not _is_tensor(ty):
            return data.slopes(lifted, ty, "argument")
        case _:
            return zero_of(ty, value)
