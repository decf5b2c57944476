"""The reference interpreter, which defines Relay's semantics. In: a module, argument values. Out: the result.

Strict, left to right. A shared node is computed once in each run of the innermost scope that holds all its uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relay_hw.analysis.infer import infer_expr, infer_type
from relay_hw.analysis.scope import Scopes, find_scopes
from relay_hw.analysis.unify import TypeSolver
from relay_hw.errors import EvalError, InputError
from relay_hw.interp.sizes import check_sizes
from relay_hw.interp.values import (
    Closure,
    ConstructorValue,
    Frame,
    RefValue,
    Value,
    fits,
    has_dtype,
    show,
    to_value,
    type_of,
)
from relay_hw.ir.expr import (
    Call,
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
from relay_hw.ir.module import IRModule
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import DtypeVar, TensorType, Type, has_unknown_rank, type_leaves
from relay_hw.span import Span
from relay_hw.support.names import one_of

Observe = Callable[[Expr, Value], object]

# Calls inside calls; a program that nests deeper most likely never ends.
MAX_CALL_DEPTH = 200_000

_MISSING = object()
# Exceptions of numpy if run-time sizes do not fit.
_UNFORESEEN = (ArithmeticError, LookupError, TypeError, ValueError, MemoryError)


def evaluate(
    mod: IRModule,
    args: Sequence[Any] | Mapping[str, Any] = (),
    entry: str = "main",
    observe: Observe | None = None,
) -> Value:
    """The value of `@entry` for `args`, by position or by parameter name: an array, a tuple, or a value of a data type.

    `observe(node, value)` is called for every value of a call or variable, and with the reference for every write.
    Raises InputError for arguments that do not fit the parameters, EvalError for a program that fails.
    """
    return Interpreter(mod, observe).call_global(entry, args)


class Interpreter:
    """Evaluates functions and expressions of one module."""

    def __init__(self, mod: IRModule, observe: Observe | None = None) -> None:
        typed = all(function.checked_type is not None for function in mod.functions.values())
        self.mod = mod if typed else infer_type(mod)
        self._observe = observe
        self._closures: dict[str, Closure] = {}
        self._depth = 0

    def call_global(self, name: str, args: Sequence[Any] | Mapping[str, Any]) -> Value:
        """The value of `@name` for `args`."""
        if name not in self.mod.functions:
            raise InputError(one_of("entry", self.mod.functions, name))
        function = self.mod.functions[name]
        return self.apply(self._global(name), arguments(function, args, name))

    def evaluate(self, expr: Expr, binds: Mapping[Var, Any] | None = None) -> Value:
        """The value of `expr`; `binds` gives its free variables."""
        typed = infer_expr(expr, self.mod) if expr.checked_type is None else expr
        frame = Frame(0)
        names = {var.name_hint: value for var, value in (binds or {}).items()}
        plan = find_scopes(typed)
        for node in plan.of:
            if isinstance(node, Var) and node not in plan.binders and node.name_hint in names:
                frame.values[node] = to_value(names[node.name_hint], node.type, f"%{node.name_hint}")
        self._depth = 0
        return run(self._eval(typed, frame, plan))

    def apply(self, callee: Value, args: Sequence[Value]) -> Value:
        """The value of a closure or constructor for `args`."""
        self._depth = 0
        return run(self._apply(callee, list(args), None))

    # Nodes

    def _eval(self, node: Expr, frame: Frame, plan: Scopes) -> Recursion[Value]:
        home = frame.at(plan.of[node].level) if node in plan.of else frame
        found = home.values.get(node, _MISSING)
        if found is not _MISSING:
            return found
        value = yield _RULES[type(node)](self, node, home, plan)
        home.values[node] = value
        return value

    def _eval_all(self, nodes: Sequence[Expr], frame: Frame, plan: Scopes) -> Recursion[list[Value]]:
        values: list[Value] = []
        for node in nodes:
            values.append((yield self._eval(node, frame, plan)))
        return values

    def _hoisted(self, node: Expr, frame: Frame, plan: Scopes) -> Recursion[None]:
        for shared in plan.hoisted.get(node, ()):
            yield self._eval(shared, frame, plan)

    def _var(self, node: Var, frame: Frame, plan: Scopes) -> Recursion[Value]:
        binder = plan.binders.get(node)
        place: Frame | None = frame
        while place is not None:
            if (binder is None or place.level == binder.level) and node in place.values:
                return place.values[node]
            place = place.parent
        raise EvalError(f"%{node.name_hint} must have a value before it is used", node.span)
        yield

    def _global_var(self, node: GlobalVar, frame: Frame, plan: Scopes) -> Recursion[Value]:
        if node.name_hint not in self.mod.functions:
            raise EvalError(f"@{node.name_hint} must be a function of the module", node.span)
        return self._global(node.name_hint)
        yield

    def _constant(self, node: Constant, frame: Frame, plan: Scopes) -> Recursion[Value]:
        return node.data
        yield

    def _constructor(self, node: Constructor, frame: Frame, plan: Scopes) -> Recursion[Value]:
        return node
        yield

    def _tuple(self, node: Tuple, frame: Frame, plan: Scopes) -> Recursion[Value]:
        return tuple((yield self._eval_all(node.fields, frame, plan)))

    def _tuple_get_item(self, node: TupleGetItem, frame: Frame, plan: Scopes) -> Recursion[Value]:
        return (yield self._eval(node.tuple_value, frame, plan))[node.index]

    def _let(self, node: Let, frame: Frame, plan: Scopes) -> Recursion[Value]:
        value = yield self._eval(node.value, frame, plan)
        self._bind(node.var, value, frame)
        return (yield self._eval(node.body, frame, plan))

    def _if(self, node: If, frame: Frame, plan: Scopes) -> Recursion[Value]:
        cond = yield self._eval(node.cond, frame, plan)
        yield self._hoisted(node, frame, plan)
        return (yield self._eval(node.true_branch if cond else node.false_branch, frame, plan))

    def _function(self, node: Function, frame: Frame, plan: Scopes) -> Recursion[Value]:
        yield self._hoisted(node, frame, plan)
        return Closure(node, frame, plan)

    def _ref_create(self, node: RefCreate, frame: Frame, plan: Scopes) -> Recursion[Value]:
        return RefValue((yield self._eval(node.value, frame, plan)))

    def _ref_read(self, node: RefRead, frame: Frame, plan: Scopes) -> Recursion[Value]:
        return (yield self._eval(node.ref, frame, plan)).value

    def _ref_write(self, node: RefWrite, frame: Frame, plan: Scopes) -> Recursion[Value]:
        ref = yield self._eval(node.ref, frame, plan)
        ref.value = yield self._eval(node.value, frame, plan)
        if self._observe is not None:
            self._observe(node, ref)
        return ()

    def _match(self, node: Match, frame: Frame, plan: Scopes) -> Recursion[Value]:
        return (yield self._eval((yield self._arm(node, frame, plan)), frame, plan))

    def _arm(self, node: Match, frame: Frame, plan: Scopes) -> Recursion[Expr]:
        """The arm that matches, with its variables bound."""
        data = yield self._eval(node.data, frame, plan)
        yield self._hoisted(node, frame, plan)
        for clause in node.clauses:
            found: list[tuple[Var, Value]] = []
            if not _matches(clause.lhs, data, found):
                continue
            for var, value in found:
                self._bind(var, value, frame)
            return clause.rhs
        raise EvalError(f"match must have an arm for {show(data)}", node.span)

    def _call(self, node: Call, frame: Frame, plan: Scopes) -> Recursion[Value]:
        if isinstance(node.op, Op):
            args = yield self._eval_all(node.args, frame, plan)
            value = operate(node.op, node.attrs, args, node.type, node.span)
        else:
            callee = yield self._eval(node.op, frame, plan)
            args = yield self._eval_all(node.args, frame, plan)
            value = yield self._apply(callee, args, node)
        if self._observe is not None:
            self._observe(node, value)
        return value

    # Parts of the rules

    def _apply(self, callee: Value, args: list[Value], call: Call | None) -> Recursion[Value]:
        if isinstance(callee, Constructor):
            return ConstructorValue(callee, tuple(args))
        if not isinstance(callee, Closure):
            raise EvalError(f"called value must be a function, not {show(callee)}", call.span if call else None)
        self._depth += 1
        if self._depth > MAX_CALL_DEPTH:
            raise EvalError(f"calls must be nested at most {MAX_CALL_DEPTH} deep", call.span if call else None)
        value: Value = None
        tail: tuple[Closure, list[Value]] | None = (callee, args)
        while tail is not None:
            closure, args = tail
            frame = Frame(closure.frame.level + 1, closure.frame)
            for param, value in zip(closure.function.params, args, strict=True):
                self._bind(param, value, frame)
            value, tail = yield self._body(closure.function.body, frame, closure.plan)
        self._depth -= 1
        return value

    def _body(
        self, node: Expr, frame: Frame, plan: Scopes
    ) -> Recursion[tuple[Value, tuple[Closure, list[Value]] | None]]:
        """The value of a function's body, or its tail call, which does not need the frame."""
        while plan.uses.get(node) == 1:
            match node:
                case Let(var=var, value=value, body=body):
                    self._bind(var, (yield self._eval(value, frame, plan)), frame)
                    node = body
                case If(cond=cond, true_branch=then, false_branch=other):
                    is_true = yield self._eval(cond, frame, plan)
                    yield self._hoisted(node, frame, plan)
                    node = then if is_true else other
                case Match():
                    node = yield self._arm(node, frame, plan)
                case Call(op=op, args=args) if self._observe is None and not isinstance(op, (Op, Constructor)):
                    callee = yield self._eval(op, frame, plan)
                    given = yield self._eval_all(args, frame, plan)
                    if isinstance(callee, Closure):
                        return None, (callee, given)
                    return (yield self._apply(callee, given, node)), None
                case _:
                    break
        return (yield self._eval(node, frame, plan)), None

    def _bind(self, var: Var, value: Value, frame: Frame) -> None:
        frame.values[var] = value
        if self._observe is not None:
            self._observe(var, value)

    def _global(self, name: str) -> Closure:
        if name not in self._closures:
            function = self.mod.functions[name]
            self._closures[name] = Closure(function, Frame(0), find_scopes(function))
        return self._closures[name]


_RULES: Mapping[type[Expr], Callable[[Interpreter, Any, Frame, Scopes], Recursion[Value]]] = {
    Var: Interpreter._var,
    GlobalVar: Interpreter._global_var,
    Constant: Interpreter._constant,
    Constructor: Interpreter._constructor,
    Tuple: Interpreter._tuple,
    TupleGetItem: Interpreter._tuple_get_item,
    Let: Interpreter._let,
    If: Interpreter._if,
    Function: Interpreter._function,
    RefCreate: Interpreter._ref_create,
    RefRead: Interpreter._ref_read,
    RefWrite: Interpreter._ref_write,
    Match: Interpreter._match,
    Call: Interpreter._call,
}


def arguments(function: Function, args: Sequence[Any] | Mapping[str, Any], name: str) -> list[Value]:
    """`args` as values of the parameters of `@name`, in order. Raises InputError."""
    names = [param.name_hint for param in function.params]
    if isinstance(args, Mapping):
        if set(args) != set(names):
            raise InputError(f"inputs of @{name} must be {', '.join(names) or 'none'}, not {', '.join(map(str, args))}")
        args = [args[param] for param in names]
    if len(args) != len(names):
        raise InputError(f"@{name} must get {len(names)} argument{'s' * (len(names) != 1)}, not {len(args)}")
    values = [
        to_value(given, param.type, f"input {param.name_hint} of @{name}")
        for param, given in zip(function.params, args, strict=True)
    ]
    check_sizes(function, values, f"@{name}")
    return values


def operate(op: Op, attrs: Any, args: Sequence[Value], ty: Type, span: Span | None = None) -> Value:
    """Evaluate a call of `op` of type `ty`. Raises EvalError if the arguments do not fit."""
    try:
        with np.errstate(all="ignore"):
            value = _as_value(op.reference(attrs, args, _result_type(ty, op, attrs, args)))
    except EvalError as error:
        raise error if error.span is not None else EvalError(error.message, span) from None
    except _UNFORESEEN as error:
        shown = ", ".join(map(show, args))
        raise EvalError(f"arguments of {op.name} must fit together, not ({shown}): {error}", span) from error
    if isinstance(ty, TensorType) and not (has_dtype(value, ty) and fits(value.shape, ty)):
        raise EvalError(f"result of {op.name} must be {ty}, not {show(value)}", span)
    return value


def _result_type(ty: Type, op: Op, attrs: Any, args: Sequence[Value]) -> Type:
    """The type of the call, with type parameters replaced by their values in this run."""
    if not any(isinstance(leaf, TensorType) and _is_open(leaf) for leaf in type_leaves(ty)):
        return ty
    return op.relation([type_of(value) for value in args], attrs, TypeSolver()) or ty


def _is_open(ty: TensorType) -> bool:
    return isinstance(ty.dtype, DtypeVar) or has_unknown_rank(ty)


def _as_value(result: Any) -> Value:
    if isinstance(result, (tuple, list)):
        return tuple(_as_value(part) for part in result)
    return np.asarray(result)


def _matches(pattern: Pattern, value: Value, found: list[tuple[Var, Value]]) -> bool:
    """Whether `value` matches `pattern`; collects the values of its variables, left to right."""
    waiting: list[tuple[Pattern, Value]] = [(pattern, value)]
    while waiting:
        part, item = waiting.pop()
        match part:
            case PatternVar(var=var):
                found.append((var, item))
            case PatternConstructor(constructor=constructor, patterns=inner):
                if item.constructor.name_hint != constructor.name_hint:
                    return False
                waiting.extend(reversed(list(zip(inner, item.fields, strict=True))))
            case PatternTuple(patterns=inner):
                waiting.extend(reversed(list(zip(inner, item, strict=True))))
            case _:
                pass
    return True
