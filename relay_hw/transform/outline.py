"""Outlining: moves groups of calls of a dataflow function into global functions.

In: a typed function and the group of each of its calls, groups numbered in execution order. Out: one function a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from relay_hw.ir.types import FuncType, TupleType, Type
from relay_hw.ir.visit import copy_with
from relay_hw.transform.graph import typed

# Values that groups exchange: a call's tensor, an item of a call's tuple, or a parameter of the function.
Value = tuple[Call, "int | None"] | Var


def values_of(expr: Expr) -> Iterator[Value]:
    """The values that an operand refers to; tuples are looked through."""
    match expr:
        case Var():
            yield expr
        case Call():
            ty = expr.type
            items = range(len(ty.fields)) if isinstance(ty, TupleType) else (None,)
            yield from ((expr, item) for item in items)
        case Tuple(fields=parts):
            for part in parts:
                yield from values_of(part)
        case TupleGetItem(tuple_value=Call() as call, index=index):
            yield call, index
        case TupleGetItem(tuple_value=value):
            yield from values_of(value)
        case _:
            pass


def outline(
    function: Function, calls: Sequence[Call], group: Mapping[Call, int], names: Sequence[str], attrs: Mapping[str, str]
) -> tuple[dict[str, Function], Function]:
    """The new functions in execution order, and `function` calling them.

    `calls` are all calls of `function` in order of evaluation, `names[g]` the name of group g, and `attrs` maps a
    name to the value of its attribute `Compiler`. The rewritten function is not typed.
    """
    outputs = _outputs(function, calls, group, len(names))
    built: dict[Value, Expr] = {param: param for param in function.params}
    new: dict[str, Function] = {}
    for number, name in enumerate(names):
        members = [call for call in calls if group[call] == number]
        new[name], inputs = _build(name, attrs[name], members, outputs[number])
        result = Call(GlobalVar(name), [built[value] for value in inputs])
        for index, value in enumerate(outputs[number]):
            built[value] = result if len(outputs[number]) == 1 else TupleGetItem(result, index)
    body = _operand(function.body, {}, built.__getitem__)
    return new, copy_with(function, body=body, checked_type=None)


def _outputs(function: Function, calls: Sequence[Call], group: Mapping[Call, int], count: int) -> list[list[Value]]:
    """The values of each group that others, or the function's result, read; in order of evaluation."""
    used: dict[Value, None] = dict.fromkeys(values_of(function.body))
    for call in calls:
        for arg in call.args:
            outside = (v for v in values_of(arg) if not isinstance(v, Var) and group[v[0]] != group[call])
            used.update(dict.fromkeys(outside))
    position = {call: index for index, call in enumerate(calls)}
    outputs: list[list[Value]] = [[] for _ in range(count)]
    found = [value for value in used if not isinstance(value, Var)]
    for value in sorted(found, key=lambda v: (position[v[0]], v[1] or 0)):
        outputs[group[value[0]]].append(value)
    return outputs


def _build(name: str, compiler: str, members: Sequence[Call], outputs: Sequence[Value]) -> tuple[Function, list[Value]]:
    """One group as a typed function, and the values that its parameters stand for."""
    params: dict[Value, Var] = {}

    def outside(value: Value) -> Expr:
        if value not in params:
            ty = _type_of(value)
            params[value] = Var(f"x{len(params)}", ty, checked_type=ty)
        return params[value]

    local: dict[Call, Call] = {}
    for call in members:
        local[call] = copy_with(call, args=tuple(_operand(arg, local, outside) for arg in call.args))
    results = [_item(local, value) for value in outputs]
    body = results[0]
    if len(results) > 1:
        body = Tuple(results, checked_type=TupleType([result.type for result in results]))
    ty = FuncType(tuple(param.type for param in params.values()), body.type)
    attrs = {"Compiler": compiler, "global_symbol": name}
    return Function(list(params.values()), body, body.type, attrs=attrs, checked_type=ty), list(params)


def _operand(expr: Expr, local: Mapping[Call, Call], outside: Callable[[Value], Expr]) -> Expr:
    """`expr` seen from inside a group: its own calls from `local`, everything else from `outside`."""
    match expr:
        case Constant():
            return expr
        case Var():
            return outside(expr)
        case Call() if expr in local:
            return local[expr]
        case Call():
            if not isinstance(expr.type, TupleType):
                return outside((expr, None))
            return typed(Tuple([outside(value) for value in values_of(expr)]), expr.type)
        case Tuple(fields=parts):
            return copy_with(expr, fields=tuple(_operand(part, local, outside) for part in parts))
        case TupleGetItem(tuple_value=Call() as call, index=index) if call not in local:
            return outside((call, index))
        case TupleGetItem(tuple_value=value, index=index):
            inner = _operand(value, local, outside)
            return inner.fields[index] if isinstance(inner, Tuple) else copy_with(expr, tuple_value=inner)
        case _:
            raise AssertionError(f"a dataflow graph must not contain {type(expr).__name__}")


def _item(local: Mapping[Call, Call], value: Value) -> Expr:
    assert not isinstance(value, Var)
    call, index = value
    return local[call] if index is None else TupleGetItem(local[call], index, checked_type=_type_of(value))


def _type_of(value: Value) -> Type:
    if isinstance(value, Var):
        return value.type
    ty = value[0].type
    return ty.fields[value[1]] if isinstance(ty, TupleType) and value[1] is not None else ty
