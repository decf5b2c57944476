"""Converts Relax functions to Relay: bindings become a graph; branches, recursion and closures are kept.

In: a Relax module. Out: a typed Relay module, or one message that names every call that has no form in Relay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from relay_hw.analysis import infer_type
from relay_hw.errors import UnsupportedError
from relay_hw.frontend.relax import elementwise, network, shape
from relay_hw.frontend.relax.site import Refusal, Site, Table, read_type
from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import Type

CONVERTERS: Table = MappingProxyType({**elementwise.CONVERTERS, **shape.CONVERTERS, **network.CONVERTERS})
# Arguments that are not values.
_NUMBERS = ("ShapeExpr", "IntImm", "FloatImm", "PrimValue", "StringImm", "DataTypeImm", "ExternFunc")


def from_relax(mod: Any) -> IRModule:
    """The Relay module of a Relax module (`tvm.ir.IRModule`), its functions under their names.

    Raises UnsupportedError that names all calls without a form in Relay, each once: TIR functions, packed functions,
    operators that Relay lacks.
    """
    found = [(gv.name_hint, function) for gv, function in mod.functions_items()]
    functions = {name: f for name, f in found if type(f).__name__ == "Function"}
    if not functions:
        raise UnsupportedError("a Relax module must hold a Relax function, not only functions of other kinds")
    reader = _Reader({name: GlobalVar(name) for name in functions})
    result = {name: reader.function(function, {}) for name, function in functions.items()}
    if reader.refused:
        raise UnsupportedError("calls of Relax must have a form in Relay: " + "; ".join(reader.refused))
    return infer_type(IRModule(result))


class _Reader:
    def __init__(self, names: Mapping[str, GlobalVar]) -> None:
        self.names = names
        self.refused: list[str] = []

    def function(self, function: Any, outer: Mapping[Any, Expr]) -> Function:
        """A function, which may use the variables of `outer`."""
        values = dict(outer)
        params: list[Var] = []
        for param in function.params:
            params.append(Var(str(getattr(param, "name_hint", None) or param.name), read_type(param.ty)))
            values[param] = params[-1]
        return Function(params, self.sequence(function.body, values), _result_type(function))

    def sequence(self, body: Any, values: dict[Any, Expr]) -> Expr:
        """The value of bindings and a result."""
        if type(body).__name__ != "SeqExpr":
            return self.expr(body, values)
        for block in body.blocks:
            for binding in block.bindings:
                # A match of shapes binds the same value; Relay finds its shape by inference.
                values[binding.var] = self.expr(binding.value, values)
        return self.expr(body.body, values)

    def expr(self, expr: Any, values: Mapping[Any, Expr]) -> Expr:
        """One expression."""
        match type(expr).__name__:
            case "Var" | "DataflowVar":
                return values[expr]
            case "GenericConst" | "Constant":
                return Constant((expr.value if hasattr(expr, "value") else expr.data).numpy())
            case "Tuple":
                return Tuple([self.expr(field, values) for field in expr.fields])
            case "TupleGetItem":
                return _get(self.expr(expr.tuple_value, values), int(expr.index))
            case "GlobalVar" if expr.name_hint in self.names:
                return self.names[expr.name_hint]
            case "If":
                cond = self.expr(expr.cond, values)
                branches = [self.sequence(part, dict(values)) for part in (expr.true_branch, expr.false_branch)]
                return If(cond, *branches)
            case "Function":
                return self.function(expr, values)
            case "Call":
                return self.call(expr, values)
            case kind:
                return self.refuse(f"{kind} has no value in Relay", expr)

    def call(self, call: Any, values: Mapping[Any, Expr]) -> Expr:
        """A call of an operator, of a function of the module, or of a function value."""
        if type(call.op).__name__ != "Op":
            return Call(self.expr(call.op, values), [self.expr(arg, values) for arg in call.args])
        name = str(call.op.name).removeprefix("relax.")
        convert = CONVERTERS.get(name)
        if convert is None:
            return self.refuse(f"{name} ({_callee(call)})" if name.startswith("call_") else name, call)
        args = [None if _is_number(arg) else self.expr(arg, values) for arg in call.args]
        try:
            return convert(Site(call, list(call.args), args))
        except Refusal as reason:
            return self.refuse(f"{name}: {reason}", call)

    def refuse(self, what: str, expr: Any) -> Expr:
        """Record a refusal, and go on with a value of the same type to find the others."""
        if what not in self.refused:
            self.refused.append(what)
        try:
            return Var("refused", read_type(expr.ty))
        except (UnsupportedError, AttributeError):
            return Var("refused")


def _is_number(arg: Any) -> bool:
    kind = type(arg).__name__
    return kind in _NUMBERS or (kind == "Tuple" and len(arg.fields) > 0 and all(map(_is_number, arg.fields)))


def _callee(call: Any) -> str:
    callee: Sequence[Any] = list(call.args)
    return str(getattr(callee[0], "name_hint", getattr(callee[0], "global_symbol", callee[0])))


def _get(value: Expr, index: int) -> Expr:
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)


def _result_type(function: Any) -> Type | None:
    try:
        return read_type(function.ret_ty)
    except UnsupportedError:
        return None
