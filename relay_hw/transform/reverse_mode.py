"""Reverse-mode differentiation of all of Relay, by references and back-propagators. In: functions in A-normal form.

Out: functions that also extend a chain of closures; running the chain pushes adjoints from results to arguments. Every
real tensor travels with a reference to its adjoint, so control flow, closures, data and references need no rule of
their own beyond their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.trampoline import Recursion
from relay_hw.ir.types import UNIT, FuncType, RefType, TensorType, TupleType, Type, TypeVar
from relay_hw.op import add
from relay_hw.op.gradients.accumulate import is_real, operator_slopes
from relay_hw.op.gradients.common import zeros
from relay_hw.transform.redirect import redirect
from relay_hw.transform.reverse_symbols import (
    Bindings,
    Plain,
    Product,
    Real,
    Symbol,
    add_targets,
    adjoint_of,
    is_active,
)
from relay_hw.transform.reverse_types import BACK, ReverseTypes

Body = Callable[[], Recursion[Expr]]


class Reverser:
    """Converts expressions of one function. `back` is the chain's variable, `globals` names reversed functions."""

    def __init__(self, types: ReverseTypes, globals: Mapping[str, Expr]) -> None:
        self._types = types
        self._globals = globals
        self._env: dict[Var, Symbol] = {}
        self._back: Expr = Var("back", BACK, checked_type=BACK)
        self.block = Bindings()

    # Functions

    def global_function(self, function: Function) -> Recursion[Function]:
        """The reverse-mode version of a global function: its last parameter is the chain."""
        back = Var("back", BACK, checked_type=BACK)
        self._back = back
        return (yield self._function(function, (back,)))

    def start_chain(self) -> None:
        """Begin a chain of steps in this block, with one that does nothing."""
        nothing = Function((), Tuple(()), UNIT)
        self._back = self.block.emit(RefCreate(nothing), BACK, "back")

    def run_chain(self) -> None:
        """Call the latest step."""
        self.block.emit(Call(self.block.emit(RefRead(self._back), BACK.value, "step"), ()), UNIT, "_")

    def _function(self, function: Function, more: Sequence[Var] = ()) -> Recursion[Function]:
        params = [_typed_var(param.name_hint, self._types.of(param.type)) for param in function.params]

        def body() -> Recursion[Expr]:
            for old, new in zip(function.params, params, strict=True):
                self._env[old] = self.spread(new, old.type)
            return (yield self._block_result(function.body))

        ret = self._types.of(function.func_type.ret_type)
        return Function((*params, *more), (yield self._in_block(body)), ret, function.type_params, where=function.where)

    def _in_block(self, body: Body) -> Recursion[Expr]:
        outer, self.block = self.block, Bindings()
        result = yield body()
        closed = self.block.close(result)
        self.block = outer
        return closed

    def _block_result(self, node: Expr) -> Recursion[Expr]:
        return self.whole((yield self.sequence(node)))

    def sequence(self, node: Expr) -> Recursion[Symbol]:
        """Convert a chain of lets into the current block; what its last expression stands for."""
        while isinstance(node, Let):
            if isinstance(node.value, Function):
                # It may call itself by this name.
                named = Var(node.var.name_hint)
                self._env[node.var] = Plain(named)
                self.block.bind(named, (yield self._function(node.value)))
            else:
                self._env[node.var] = yield self._convert(node.value, node.var.name_hint)
            node = node.body
        return (yield self._convert(node, "x"))

    # Symbols

    def spread(self, value: Expr, ty: Type) -> Symbol:
        """The symbol of a value of the reverse-mode type of `ty`."""
        if is_real(ty):
            number = self.block.emit(TupleGetItem(value, 0), ty)
            return Real(number, self.block.emit(TupleGetItem(value, 1), RefType(ty), "slope"), value)
        if isinstance(ty, TupleType) and self._types.has_real(ty):
            parts = [
                self.spread(self.block.emit(TupleGetItem(value, at), self._types.of(part)), part)
                for at, part in enumerate(ty.fields)
            ]
            return Product(tuple(parts), value)
        if isinstance(ty, TupleType):
            return self.constant(value, ty)
        return Plain(value)

    def constant(self, value: Expr, ty: Type) -> Symbol:
        """The symbol of a value of `ty` itself, which nothing is differentiated by."""
        if is_real(ty):
            return Real(value)
        if isinstance(ty, TupleType):
            parts = [self.constant(TupleGetItem(value, at, checked_type=p), p) for at, p in enumerate(ty.fields)]
            return Product(tuple(parts), None if self._types.has_real(ty) else value)
        return Plain(value)

    def whole(self, symbol: Symbol) -> Expr:
        """The one value of the reverse-mode type."""
        match symbol:
            case Plain(value=value):
                return value
            case Real(whole=Expr() as pair) | Product(whole=Expr() as pair):
                return pair
            case Real(value=value, adjoint=adjoint):
                return Tuple([value, RefCreate(zeros(value)) if adjoint is None else adjoint])
            case Product(parts=parts):
                return Tuple([self.whole(part) for part in parts])

    def primal(self, symbol: Symbol) -> Expr:
        """The value without adjoints."""
        match symbol:
            case Real(value=value) | Plain(value=value):
                return value
            case Product(parts=parts):
                return Tuple([self.primal(part) for part in parts])

    # Nodes

    def _convert(self, node: Expr, name: str) -> Recursion[Symbol]:
        return (yield _RULES[type(node)](self, node, name))

    def atom(self, node: Expr) -> Symbol:
        """The symbol of a variable, constant or name."""
        match node:
            case Var():
                return self._env[node] if node in self._env else self._free(node)
            case Constant():
                return self.constant(node, node.type)
            case GlobalVar():
                return Plain(self._global_value(node))
            case Constructor():
                return Plain(self._types.constructor(node))
            case _:
                raise UnsupportedError(
                    f"a differentiated program must be in A-normal form, not hold {node!r}", node.span
                )

    def _free(self, var: Var) -> Symbol:
        if self._types.has_real(var.type) and not _is_data(var.type):
            raise UnsupportedError(
                f"free variable %{var.name_hint} of a differentiated function must be of tensors, not {var.type}: "
                "lift it to a parameter",
                var.span,
            )
        return self.constant(var, var.type)

    def bind(self, var: Var, symbol: Symbol) -> None:
        """Bind `var` to `symbol`."""
        self._env[var] = symbol

    def _atom(self, node: Expr, name: str) -> Recursion[Symbol]:
        return self.atom(node)
        yield

    def _global_value(self, node: GlobalVar) -> Expr:
        """A function of the module as a value: it extends the chain of where it is mentioned."""
        reversed_name = self._globals.get(node.name_hint)
        if reversed_name is None:
            return node
        ty = node.type
        assert isinstance(ty, FuncType)
        params = [Var(f"x{at}", self._types.of(arg)) for at, arg in enumerate(ty.arg_types)]
        call = Call(reversed_name, (*params, self._back), type_args=tuple(ty.type_params))
        return Function(params, call, self._types.of(ty.ret_type), ty.type_params)

    def _tuple(self, node: Tuple, name: str) -> Recursion[Symbol]:
        return Product(tuple(map(self.atom, node.fields)))
        yield

    def _tuple_get_item(self, node: TupleGetItem, name: str) -> Recursion[Symbol]:
        symbol = self.atom(node.tuple_value)
        assert isinstance(symbol, Product)
        return symbol.parts[node.index]
        yield

    def _anonymous(self, node: Function, name: str) -> Recursion[Symbol]:
        return Plain(self.block.emit((yield self._function(node)), None, name))

    def _call(self, node: Call, name: str) -> Recursion[Symbol]:
        args = [self.atom(arg) for arg in node.args]
        if isinstance(node.op, Op):
            return self._operate(node, node.op, args, name)
        given = [self.whole(arg) for arg in args]
        type_args = tuple(map(self._types.of, node.type_args))
        callee: Expr
        if isinstance(node.op, GlobalVar) and node.op.name_hint in self._globals:
            callee, given = self._globals[node.op.name_hint], [*given, self._back]
        elif isinstance(node.op, GlobalVar):
            callee = node.op
        else:
            callee = self.whole(self.atom(node.op))
        call = Call(callee, given, node.attrs, type_args, span=node.span)
        return self.spread(self.block.emit(call, self._types.of(node.type), name), node.type)
        yield

    def _if(self, node: If, name: str) -> Recursion[Symbol]:
        cond = self.primal(self.atom(node.cond))
        then = yield self._in_block(lambda: self._block_result(node.true_branch))
        other = yield self._in_block(lambda: self._block_result(node.false_branch))
        chosen = If(cond, then, other, span=node.span)
        return self.spread(self.block.emit(chosen, self._types.of(node.type), name), node.type)

    def _match(self, node: Match, name: str) -> Recursion[Symbol]:
        data = self.whole(self.atom(node.data))
        clauses: list[Clause] = []
        for clause in node.clauses:
            found: dict[Var, Var] = {}
            pattern = self._pattern(clause.lhs, found)

            def arm(clause: Clause = clause, found: dict[Var, Var] = found) -> Recursion[Expr]:
                for old, new in found.items():
                    self._env[old] = self.spread(new, old.type)
                return (yield self._block_result(clause.rhs))

            clauses.append(Clause(pattern, (yield self._in_block(arm))))
        chosen = Match(data, clauses, node.complete, span=node.span)
        return self.spread(self.block.emit(chosen, self._types.of(node.type), name), node.type)

    def _pattern(self, pattern: Pattern, found: dict[Var, Var]) -> Pattern:
        match pattern:
            case PatternVar(var=var):
                given = var.type_annotation
                annotation = None if given is None else self._types.of(given)
                found[var] = Var(var.name_hint, annotation, checked_type=self._types.of(var.type))
                return PatternVar(found[var])
            case PatternConstructor(constructor=constructor, patterns=inner):
                return PatternConstructor(
                    self._types.constructor(constructor), [self._pattern(p, found) for p in inner]
                )
            case PatternTuple(patterns=inner):
                return PatternTuple([self._pattern(p, found) for p in inner])
            case _:
                return pattern

    def _ref_create(self, node: RefCreate, name: str) -> Recursion[Symbol]:
        return Plain(self.block.emit(RefCreate(self.whole(self.atom(node.value))), self._types.of(node.type), name))
        yield

    def _ref_read(self, node: RefRead, name: str) -> Recursion[Symbol]:
        read = RefRead(self.whole(self.atom(node.ref)))
        return self.spread(self.block.emit(read, self._types.of(node.type), name), node.type)
        yield

    def _ref_write(self, node: RefWrite, name: str) -> Recursion[Symbol]:
        ref, value = self.whole(self.atom(node.ref)), self.whole(self.atom(node.value))
        return self.constant(self.block.emit(RefWrite(ref, value), UNIT, name), UNIT)
        yield

    # Operators

    def _operate(self, node: Call, op: Op, args: Sequence[Symbol], name: str) -> Symbol:
        given = [self.primal(arg) for arg in args]
        given = [_typed(value, arg.type) for value, arg in zip(given, node.args, strict=True)]
        call = Call(op, given, node.attrs, span=node.span, checked_type=node.checked_type)
        value = self.block.emit(call, node.type, name)
        if not any(map(is_active, args)) or not self._types.has_real(node.type):
            return self.constant(value, node.type)
        result = self._with_adjoint(value, node.type)
        self._extend(call, value, args, result)
        return result

    def _with_adjoint(self, value: Expr, ty: Type) -> Symbol:
        if is_real(ty):
            return Real(value, self.block.emit(RefCreate(zeros(value)), RefType(ty), "slope"))
        if isinstance(ty, TupleType):
            items = [self.block.emit(TupleGetItem(value, at), part) for at, part in enumerate(ty.fields)]
            return Product(tuple(self._with_adjoint(*pair) for pair in zip(items, ty.fields, strict=True)))
        return Plain(value)

    def _extend(self, call: Call, value: Var, args: Sequence[Symbol], result: Symbol) -> None:
        """One more step: push the result's adjoint to the arguments, then go on with what came before."""
        before = self.block.emit(RefRead(self._back), BACK.value, "before")
        step = Bindings()
        slopes = operator_slopes(call, adjoint_of(result, step))
        targets: list[tuple[Expr, Expr]] = []
        for arg, slope in zip(args, slopes, strict=True):
            add_targets(arg, slope, targets)
        by_name: Mapping[Expr, Expr] = {call: value}
        replaced = redirect(Tuple([slope for _, slope in targets]), by_name.get)
        assert isinstance(replaced, Tuple)
        for (target, _), slope in zip(targets, replaced.fields, strict=True):
            step.emit(RefWrite(target, add(RefRead(target), slope)), UNIT, "_")
        body = step.close(Call(before, ()))
        self.block.emit(RefWrite(self._back, Function((), body, UNIT)), UNIT, "_")


def _typed_var(name: str, ty: Type) -> Var:
    """A parameter of type `ty`; gradients of operators ask for it."""
    return Var(name, ty, checked_type=ty)


def _typed(value: Expr, ty: Type) -> Expr:
    """Tuples are put together here; gradients want to know their types."""
    if isinstance(value, Tuple) and value.checked_type is None:
        return Tuple(value.fields, checked_type=ty)
    return value


def _is_data(ty: Type) -> bool:
    if isinstance(ty, TupleType):
        return all(map(_is_data, ty.fields))
    return isinstance(ty, (TensorType, TypeVar))


_RULES: Mapping[type[Expr], Callable[[Reverser, Any, str], Recursion[Symbol]]] = {
    Var: Reverser._atom,
    GlobalVar: Reverser._atom,
    Constant: Reverser._atom,
    Constructor: Reverser._atom,
    Tuple: Reverser._tuple,
    TupleGetItem: Reverser._tuple_get_item,
    Call: Reverser._call,
    If: Reverser._if,
    Function: Reverser._anonymous,
    RefCreate: Reverser._ref_create,
    RefRead: Reverser._ref_read,
    RefWrite: Reverser._ref_write,
    Match: Reverser._match,
}
