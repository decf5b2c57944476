"""PartialEvaluate: evaluates what is known at compile time. In: a typed module. Out: the residual module.

Calls of known functions are expanded, branches on known values taken, tuples and data taken apart; a reference that
nothing unknown can see is followed by its content and disappears.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

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
    RefCreate,
    RefRead,
    RefWrite,
    Trait,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import Type, bind_type_vars
from relay_hw.transform.base import Pass
from relay_hw.transform.effects import Effect, module_effects
from relay_hw.transform.graph import is_external
from relay_hw.transform.normal_form import ATOMS, normalize
from relay_hw.transform.partial_budget import Budget, Limits
from relay_hw.transform.partial_code import Coder
from relay_hw.transform.partial_numbers import computed, known_number
from relay_hw.transform.partial_patterns import UNKNOWN, YES, matches, renamed
from relay_hw.transform.partial_values import Cell, Env, Fields, Known, Number, PartialValue, ResidualBlock


class PartialEvaluate(Pass):
    """Evaluates each global function as far as it does not depend on arguments.

    A recursive call is expanded as long as known values decide whether it is reached. Order and number of effects on
    what others can see stay. Use DeadCodeElimination to drop unused code afterwards.
    """

    name = "partial-evaluate"
    opt_level = 1

    def __init__(self, max_recursion: int = 10_000, max_calls: int = 100_000, max_growth: int = 4_000) -> None:
        """At most `max_calls` calls are expanded, and of functions that are being evaluated already at most
        `max_recursion`; the rest stay. Where it is not known what runs, in branches and closures that came from a call,
        functions of at most `max_growth` nodes altogether are expanded."""
        self._limits = Limits(max_calls, max_recursion, max_growth)

    def transform(self, mod: IRModule) -> IRModule:
        prepared = {
            name: body if is_external(body) else normalize(body, lambda node: not isinstance(node, ATOMS))
            for name, body in mod.functions.items()
        }
        effects = module_effects(mod)
        new = {
            name: body if is_external(body) else _Evaluator(prepared, effects, Budget(body, self._limits)).whole(name)
            for name, body in prepared.items()
        }
        return mod.with_functions(new)


class _Evaluator(Coder):
    """Evaluates nodes; what is not known is written as code."""

    def __init__(self, functions: Mapping[str, Function], effects: Mapping[str, Effect], budget: Budget) -> None:
        super().__init__(budget)
        self._functions = functions
        self._effects = effects
        self._globals: dict[str, PartialValue] = {}

    def whole(self, name: str) -> Function:
        """The residual program of a global function."""
        function = self._functions[name]
        env = Env()
        params = self._fresh_params(function, env)
        return replace(function, params=params, body=run(self._residual_body(function, env)), checked_type=None)

    def _sequence(self, node: Expr, env: Env) -> Recursion[PartialValue]:
        """The value of a chain of lets, evaluated in the current block."""
        while isinstance(node, Let):
            if isinstance(node.value, Function) and not _is_fused(node.value):
                value = self._close(node.value, env)
                env.bind(node.var, value)
            else:
                env.bind(node.var, (yield self._visit(node.value, env)))
            node = node.body
        return (yield self._visit(node, env))

    def _visit(self, node: Expr, env: Env) -> Recursion[PartialValue]:
        return (yield _RULES[type(node)](self, node, env))

    def _visit_all(self, nodes: Sequence[Expr], env: Env) -> Recursion[list[PartialValue]]:
        values: list[PartialValue] = []
        for node in nodes:
            values.append((yield self._visit(node, env)))
        return values

    def _var(self, node: Var, env: Env) -> Recursion[PartialValue]:
        found = env.find(node)
        return PartialValue(None, node) if found is None else found
        yield

    def _constant(self, node: Constant, env: Env) -> Recursion[PartialValue]:
        return PartialValue(Number(node.data), node)
        yield

    def _global_var(self, node: GlobalVar, env: Env) -> Recursion[PartialValue]:
        name = node.name_hint
        if name not in self._globals:
            function = self._functions[name]
            static = None if is_external(function) else Known(function, Env(), ())
            self._globals[name] = PartialValue(static, GlobalVar(name))
        return self._globals[name]
        yield

    def _constructor(self, node: Constructor, env: Env) -> Recursion[PartialValue]:
        return PartialValue(None, node)
        yield

    def _close(self, node: Function, env: Env) -> PartialValue:
        return PartialValue(Known(node, env, self._free(node)))

    def _function(self, node: Function, env: Env) -> Recursion[PartialValue]:
        return PartialValue(None, node) if _is_fused(node) else self._close(node, env)
        yield

    def _tuple(self, node: Tuple, env: Env) -> Recursion[PartialValue]:
        return PartialValue(Fields(tuple((yield self._visit_all(node.fields, env)))))

    def _tuple_get_item(self, node: TupleGetItem, env: Env) -> Recursion[PartialValue]:
        value = yield self._visit(node.tuple_value, env)
        if isinstance(value.static, Fields):
            return value.static.parts[node.index]
        return self._emit(TupleGetItem((yield self._code(value)), node.index, span=node.span))

    def _ref_create(self, node: RefCreate, env: Env) -> Recursion[PartialValue]:
        ref = PartialValue(Cell())
        self._store.set(ref, (yield self._visit(node.value, env)))
        return ref

    def _ref_read(self, node: RefRead, env: Env) -> Recursion[PartialValue]:
        ref = yield self._visit(node.ref, env)
        found = self._store.get(ref)
        if found is not None:
            return found
        value = self._emit(RefRead((yield self._code(ref)), span=node.span))
        if isinstance(ref.static, Cell):
            self._store.set(ref, value)
        return value

    def _ref_write(self, node: RefWrite, env: Env) -> Recursion[PartialValue]:
        ref = yield self._visit(node.ref, env)
        value = yield self._visit(node.value, env)
        is_cell = isinstance(ref.static, Cell)
        # A content that holds its own reference needs a real one; its old content does not hold it yet.
        if is_cell and ref.code is None and self._store.reaches(value, ref):
            yield self._materialize((ref,))
        if not is_cell or ref.code is not None:
            target, code = yield self._code_all((ref, value))
            self._emit(RefWrite(target, code, span=node.span), "_")
            if not is_cell:
                # It may be any of those that others can see.
                self._store.forget()
        if is_cell:
            self._store.set(ref, value)
        return PartialValue(Fields(()))

    def _if(self, node: If, env: Env) -> Recursion[PartialValue]:
        cond = yield self._visit(node.cond, env)
        if isinstance(cond.static, Number):
            return (yield self._sequence(node.true_branch if cond.static.data else node.false_branch, Env(env)))
        test = yield self._code(cond)
        bodies = yield self._branches(((node.true_branch, env), (node.false_branch, env)))
        return self._emit(If(test, *bodies, span=node.span))

    def _branches(self, branches: Sequence[tuple[Expr, Env]]) -> Recursion[list[Expr]]:
        """Code of branches of which one will run: what they can see is real before."""
        seen: list[PartialValue] = []
        for body, env in branches:
            seen += [value for value in map(env.find, self._free(body)) if value is not None]
        yield self._materialize(seen)
        before, ends, bodies = self._store, [], []
        for body, env in branches:
            outer, self._block, self._store = self._block, ResidualBlock(), before.copy()
            with self._budget.branching():
                result = yield self._code((yield self._sequence(body, Env(env))))
            bodies.append(self._block.close(result))
            self._block = outer
            ends.append(self._store)
        self._store = before
        self._store.meet(ends)
        return bodies

    def _match(self, node: Match, env: Env) -> Recursion[PartialValue]:
        data = yield self._visit(node.data, env)
        for clause in node.clauses:
            found: dict[Var, PartialValue] = {}
            answer = matches(clause.lhs, data, found)
            if answer is YES:
                inner = Env(env)
                for var, value in found.items():
                    inner.bind(var, value)
                return (yield self._sequence(clause.rhs, inner))
            if answer is UNKNOWN:
                return (yield self._match_later(node, data, env))
        # No arm fits: the program fails where it would have failed.
        return (yield self._match_later(node, data, env))

    def _match_later(self, node: Match, data: PartialValue, env: Env) -> Recursion[PartialValue]:
        code = yield self._code(data)
        patterns: list[Pattern] = []
        branches: list[tuple[Expr, Env]] = []
        for clause in node.clauses:
            inner = Env(env)
            patterns.append(renamed(clause.lhs, inner))
            branches.append((clause.rhs, inner))
        bodies = yield self._branches(branches)
        clauses = [Clause(pattern, body) for pattern, body in zip(patterns, bodies, strict=True)]
        return self._emit(Match(code, clauses, node.complete, span=node.span))

    # Calls

    def _call(self, node: Call, env: Env) -> Recursion[PartialValue]:
        args = yield self._visit_all(node.args, env)
        if isinstance(node.op, Op):
            return (yield self._operate(node, node.op, args))
        type_args = tuple(bind_type_vars(arg, env.types) for arg in node.type_args)
        if isinstance(node.op, Constructor):
            return PartialValue(Fields(tuple(args), node.op, type_args))
        callee = yield self._visit(node.op, env)
        if isinstance(callee.code, Constructor):
            return PartialValue(Fields(tuple(args), callee.code, type_args))
        if isinstance(callee.static, Known):
            function = callee.static.function
            if len(type_args) == len(function.type_params) and self._budget.may_unfold(function):
                return (yield self._expand(callee.static, args, type_args))
        return (yield self._call_later(node, callee, args, type_args))

    def _expand(self, known: Known, args: Sequence[PartialValue], type_args: Sequence[Type]) -> Recursion[PartialValue]:
        function = known.function
        env = Env(known.env, dict(zip(function.type_params, type_args, strict=True)))
        for param, value in zip(function.params, args, strict=True):
            env.bind(param, value)
        with self._budget.unfolding(function):
            return (yield self._sequence(function.body, env))

    def _call_later(
        self, node: Call, callee: PartialValue, args: Sequence[PartialValue], type_args: Sequence[Type]
    ) -> Recursion[PartialValue]:
        code, *given = yield self._code_all((callee, *args))
        value = self._emit(Call(code, given, node.attrs, type_args, span=node.span))
        is_harmless = (
            isinstance(code, GlobalVar) and self._effects.get(code.name_hint, Effect.WRITE) < Effect.WRITE
        ) or (isinstance(code, Function) and _is_fused(code))
        # A harmless function may still call its arguments.
        if not is_harmless or any(isinstance(arg.static, Known) for arg in args):
            self._store.forget()
        return value

    def _operate(self, node: Call, op: Op, args: Sequence[PartialValue]) -> Recursion[PartialValue]:
        numbers = [known_number(arg) for arg in args]
        if not op.has(Trait.EFFECT) and all(number is not None for number in numbers):
            found = computed(node, op, numbers)
            if found is not None:
                return found
        codes = yield self._code_all(args)
        return self._emit(Call(op, codes, node.attrs, span=node.span))


_RULES: Mapping[type[Expr], Callable[[_Evaluator, Any, Env], Recursion[PartialValue]]] = {
    Var: _Evaluator._var,
    GlobalVar: _Evaluator._global_var,
    Constant: _Evaluator._constant,
    Constructor: _Evaluator._constructor,
    Tuple: _Evaluator._tuple,
    TupleGetItem: _Evaluator._tuple_get_item,
    Call: _Evaluator._call,
    If: _Evaluator._if,
    Let: _Evaluator._sequence,
    Function: _Evaluator._function,
    RefCreate: _Evaluator._ref_create,
    RefRead: _Evaluator._ref_read,
    RefWrite: _Evaluator._ref_write,
    Match: _Evaluator._match,
}


def _is_fused(function: Function) -> bool:
    """Whether a function literal is one operator to everything around it."""
    return "Primitive" in function.attrs or "Compiler" in function.attrs
