"""Flattens the functions of a partitioned module, and selects those that TVM compiles.

In: a partitioned module. Out: what `main` reaches, by name; the host functions that are worth compiling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Final

from relay_hw.backend.flat import FlatFunction, FlatGlobal, FlatInvoke, flatten, nested, used_operators
from relay_hw.backend.nodes import FlatCall, FlatConstant, FlatInput
from relay_hw.backend.tvm import HOW_TO_GET
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import NARROW_DTYPES, TensorType, TupleType, Type
from relay_hw.target.partition import BORDER_OPERATORS, MOVING_OPERATORS
from relay_hw.transform.batch_fragments import by_function, forms_of
from relay_hw.transform.fragments import FRAGMENT

# A function between branches that computes fewer elements is done by numpy before TVM has been called.
WORTH_A_CALL: Final = 1024


def flat_functions(mod: IRModule) -> dict[str, FlatFunction]:
    """`main` and every function that it may call, flattened; calls of fragments without batched forms are inlined."""
    forms = by_function(forms_of(mod))
    fragments = {n: function for n, function in mod.functions.items() if FRAGMENT in function.attrs and n not in forms}
    found: dict[str, FlatFunction] = {}
    waiting = ["main"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = flatten(mod[name], name, fragments)
        waiting += [*called(found[name]), *(row.form for row in forms.get(name, ()))]
    return {name: found[name] for name in mod.functions if name in found}


def reached(functions: Mapping[str, FlatFunction], name: str) -> dict[str, FlatFunction]:
    """Function `name` and every function that it may call, of flat functions by name."""
    found: dict[str, FlatFunction] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in found and one in functions:
            found[one] = functions[one]
            waiting += called(functions[one])
    return found


def called(function: FlatFunction) -> Iterable[str]:
    """Functions of the module that a function may call, those of its inner functions included."""
    for inner in nested(function):
        for node in inner.nodes:
            if isinstance(node, (FlatInvoke, FlatGlobal)):
                yield node.function


def compiled_by_tvm(
    mod: IRModule, functions: Mapping[str, FlatFunction], is_straight: bool = False
) -> tuple[FlatFunction, ...]:
    """Host functions with more than border operators, on tensors of known shape and of the usual element types.

    Where `main` is no graph, those that are called again and again for little stay with numpy, unless the fragments of
    the module are those of a graph (`is_straight`); so do those of fragments with batched forms, whose bits must not
    depend on how many rows there are.
    """
    batched = {name for row in forms_of(mod) for name in (row.function, row.form) if name in functions}
    alike = {callee for name in batched for callee in called(functions[name])}
    plain = BORDER_OPERATORS | MOVING_OPERATORS
    is_repeated = not is_straight and any(FRAGMENT in function.attrs for function in mod.functions.values())
    least = WORTH_A_CALL if is_repeated else 0
    ours = [name for name in functions if name in mod.functions and name not in alike]
    hosts = [functions[name] for name in ours if mod[name].attrs.get("Compiler") == "host"]
    return tuple(f for f in hosts if not used_operators(f).keys() <= plain and _is_static(f) and _work(f) >= least)


def left_to_numpy(mod: IRModule, functions: Mapping[str, FlatFunction]) -> str:
    """A sentence on operators that run on numpy because TVM is missing; empty if there are none."""
    operators = sorted({name for function in compiled_by_tvm(mod, functions) for name in used_operators(function)})
    return f"numpy computes {', '.join(operators)} on the host; TVM is faster: {HOW_TO_GET}" if operators else ""


def _is_static(function: FlatFunction) -> bool:
    # TVM cannot read back a constant without elements.
    if any(isinstance(node, FlatConstant) and node.data.size == 0 for node in function.nodes):
        return False
    return all(_sizes(node.type) is not None for node in function.nodes if isinstance(node, (FlatInput, FlatCall)))


def _work(function: FlatFunction) -> int:
    """Elements that the calls read and write."""
    return sum(sum(_sizes(node.type) or ()) for node in function.nodes if isinstance(node, (FlatInput, FlatCall)))


def _sizes(ty: Type) -> list[int] | None:
    """Elements of each tensor of a type; None if one is not known, or of a type that TVM cannot take from numpy."""
    match ty:
        case TensorType(dtype=dtype) if dtype in NARROW_DTYPES:
            return None
        case TensorType():
            known = [dim for dim in ty.shape if isinstance(dim, int)]
            return [prod(known)] if len(known) == len(ty.shape) else None
        case TupleType():
            parts = [_sizes(field) for field in ty.fields]
            return None if None in parts else [size for part in parts if part is not None for size in part]
        case _:
            return None
