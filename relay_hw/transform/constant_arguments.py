"""ConstantArguments: specialises functions for the constants that they are called with.

In: a typed module. Out: the module in which weights that loops hand on unchanged are constants inside of the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, copy_with, post_order, substitute
from relay_hw.transform.base import Pass
from relay_hw.transform.graph import is_external
from relay_hw.transform.names import numbered_name

_Key = tuple[str, tuple[tuple[int, Constant], ...]]
# Copies made of one function; with more kinds of calls it stays as it is.
MAX_COPIES = 16


class ConstantArguments(Pass):
    """Only parameters that the function itself hands on unchanged to its own calls become constants.

    Functions with type parameters, and those of an external compiler, stay as they are.
    """

    name = "constant-arguments"

    def transform(self, mod: IRModule) -> IRModule:
        for _ in range(len(mod.functions)):
            new = _Specializer(mod).run()
            if new is mod:
                return mod
            # A copy may call further functions with its constants.
            mod = new
        return mod


class _Specializer:
    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._fixed = {name: _fixed(name, function) for name, function in mod.functions.items()}
        self._copies: dict[_Key, str] = {}
        self._taken = set(mod.functions)
        self._counts: dict[str, int] = {}

    def run(self) -> IRModule:
        """The module with one round of copies; the same object where there is nothing to copy."""
        functions: dict[str, Function] = {}
        for name, function in self._mod.functions.items():
            if is_external(function):
                functions[name] = function
                continue
            new = _Calls(name, self).rewrite(function)
            assert isinstance(new, Function)
            functions[name] = new
        for (name, bound), copy in self._copies.items():
            functions[copy] = _bound(functions[name], name, copy, dict(bound))
        return self._mod.with_functions(functions) if self._copies else self._mod

    def copy(self, name: str, args: Sequence[Expr]) -> tuple[str, Sequence[Expr]] | None:
        """The specialised function to call instead of `@name`, and the remaining arguments; None: unchanged."""
        fixed = self._fixed.get(name, ())
        bound = tuple((k, arg) for k in fixed if isinstance(arg := args[k], Constant))
        if not bound:
            return None
        key = (name, bound)
        if key not in self._copies:
            if self._counts.get(name, 0) >= MAX_COPIES:
                return None
            self._counts[name] = self._counts.get(name, 0) + 1
            self._copies[key] = numbered_name(name, self._taken)
        return self._copies[key], _without(args, dict(bound))


def _fixed(name: str, function: Function) -> tuple[int, ...]:
    """The parameters that every recursive call in `@name` passes on unchanged."""
    if function.type_params or is_external(function) or name == "main":
        return ()
    found = set(range(len(function.params)))
    calls: set[Expr] = set()
    for node in post_order(function.body):
        if isinstance(node, Call) and _is_call(node, name):
            calls.add(node.op)
            found = {k for k in found if node.args[k] is function.params[k]}
    # A function that hands itself on as a value could be called with anything.
    is_value = any(isinstance(n, GlobalVar) and n.name_hint == name and n not in calls for n in post_order(function))
    return () if is_value else tuple(sorted(found))


def _is_call(node: Expr, name: str) -> bool:
    return isinstance(node, Call) and isinstance(node.op, GlobalVar) and node.op.name_hint == name


def _without(items: Sequence[Expr], bound: Mapping[int, Constant]) -> tuple[Expr, ...]:
    return tuple(item for k, item in enumerate(items) if k not in bound)


class _Calls(Rewriter):
    """Calls of one function's body go to copies; its own calls of itself stay."""

    def __init__(self, name: str, specializer: _Specializer) -> None:
        super().__init__()
        self._name = name
        self._specializer = specializer

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not isinstance(new.op, GlobalVar) or new.op.name_hint == self._name:
            return new
        found = self._specializer.copy(new.op.name_hint, new.args)
        if found is None:
            return new
        return copy_with(new, op=GlobalVar(found[0]), args=tuple(found[1]), checked_type=None)


class _Own(Rewriter):
    """Calls of a function in its own copy."""

    def __init__(self, name: str, copy: str, bound: Mapping[int, Constant]) -> None:
        super().__init__()
        self._name = name
        self._copy = copy
        self._bound = bound

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not _is_call(new, self._name):
            return new
        return copy_with(new, op=GlobalVar(self._copy), args=_without(new.args, self._bound), checked_type=None)


def _bound(function: Function, name: str, copy: str, bound: Mapping[int, Constant]) -> Function:
    """The copy of `@name` for the constants `bound`, by the number of the parameter."""
    own = _Own(name, copy, bound).rewrite(function.body)
    body = substitute(own, {function.params[k]: constant for k, constant in bound.items()})
    params = tuple(param for k, param in enumerate(function.params) if k not in bound)
    return copy_with(function, params=params, body=body, checked_type=None)
