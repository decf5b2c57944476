"""Compiles Relay to readable Python: each function of a module becomes a Python function on numpy arrays.

In: a typed module. Out: `PythonModule`. It computes what the interpreter computes, several times as fast, in Python's
own stack: functions that call themselves last are loops, other recursion is limited by the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relay_hw.analysis.infer import infer_type
from relay_hw.analysis.scope import Scopes, find_scopes
from relay_hw.errors import EvalError, InputError
from relay_hw.interp.evaluate import arguments
from relay_hw.interp.values import ConstructorValue, RefValue, show
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
from relay_hw.ir.types import TensorType
from relay_hw.support.names import one_of
from relay_hw.support.quote import identifier, line
from relay_hw.transform.base import is_typed


@dataclass(frozen=True, slots=True, eq=False)
class PythonModule:
    """Compiled functions by name; `source` is their text, which refers to operators and constants by name."""

    mod: IRModule
    source: str
    functions: Mapping[str, Callable[..., Any]]

    def __str__(self) -> str:
        return self.source

    def run(self, name: str, args: Sequence[Any] | Mapping[str, Any]) -> Any:
        """The value of `@name` for `args`, by position or name. Raises InputError, EvalError; RecursionError."""
        if name not in self.functions:
            raise InputError(one_of("entry", self.functions, name))
        values = arguments(self.mod.functions[name], args, name)
        with np.errstate(all="ignore"):
            return self.functions[name](*values)


def to_python(mod: IRModule) -> PythonModule:
    """`mod` as a readable Python program with the same results: `print` shows it, `run` runs one of its functions.

    Raises TypeCheckError, SyntaxError for a program nested deeper than Python allows.
    """
    mod = mod if is_typed(mod) else infer_type(mod)
    names = {name: f"g{number}_{identifier(name)}" for number, name in enumerate(mod.functions)}
    pool = _Pool({"asarray": np.asarray, "value_of": _value_of, "Data": ConstructorValue, "Ref": RefValue,
                  "no_arm": _no_arm, "again": _Again, "loop": _loop})  # fmt: skip
    lines: list[str] = []
    for name, function in mod.functions.items():
        lines += ["", f"# @{line(name)}: {line(str(function.checked_type))}"]
        lines += _FunctionCoder(names, pool, find_scopes(function)).definition(names[name], function, name)
    source = "\n".join(lines[1:]) + "\n"
    space = dict(pool.values)
    # The text is made here, of names that are made here.
    exec(compile(source, "<relay>", "exec"), space)
    return PythonModule(mod, source, {name: space[python] for name, python in names.items()})


class _Pool:
    """Objects that the source refers to by name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)
        self._names: dict[int, str] = {}
        self._kept: list[object] = []

    def name(self, value: object, stem: str) -> str:
        """The name of `value`, the same for the same object."""
        found = self._names.get(id(value))
        if found is None:
            found = f"{stem}{len(self._names)}"
            self._names[id(value)] = found
            self._kept.append(value)
            self.values[found] = value
        return found


@dataclass(slots=True)
class _Own:
    """The function being written: its name, and whether it is tail-recursive."""

    names: frozenset[Expr] | frozenset[str]
    is_loop: bool = False


@dataclass(slots=True)
class _FunctionCoder:
    globals: Mapping[str, str]
    pool: _Pool
    plan: Scopes
    lines: list[str] = field(default_factory=list)
    indent: int = 0
    names: dict[Expr, str] = field(default_factory=dict)
    # What variables are called that stand for a node.
    stems: dict[Expr, str] = field(default_factory=dict)
    count: int = 0
    own: _Own = field(default_factory=lambda: _Own(frozenset()))

    def definition(self, python: str, function: Function, name: str) -> list[str]:
        """The lines of a global function."""
        run(self._define(python, function, _Own(frozenset((name,)))))
        return self.lines

    # Text

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def fresh(self, stem: str = "v") -> str:
        """A new name; `_` and a number end no name of an object or operator."""
        self.count += 1
        name = f"{stem}_{self.count}"
        return name if name not in self.globals.values() else self.fresh(stem)

    def assign(self, node: Expr, value: str) -> str:
        """A new name for the Python expression that computes `node`."""
        name = self.fresh(self.stems.get(node, "v"))
        self.write(f"{name} = {value}")
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.write(head)
        self.indent += 1
        yield
        self.indent -= 1

    # Functions

    def _define(self, python: str, function: Function, own: _Own) -> Recursion[None]:
        outer, self.own = self.own, own
        params = [self.fresh(_stem(param)) for param in function.params]
        self.names.update(zip(function.params, params, strict=True))
        own.is_loop = any(_calls(call, own) for call in _tail_calls(function.body))
        with self.block(f"def {python}({', '.join(params)}):"):
            if own.is_loop:
                with self.block(f"def body({', '.join(params)}):"):
                    yield self._tail(function.body)
                self.write(f"return loop(body, ({''.join(param + ', ' for param in params)}))")
            else:
                yield self._tail(function.body)
        self.own = outer

    def _tail(self, node: Expr) -> Recursion[None]:
        """Statements that end with the value of `node` returned."""
        while isinstance(node, Let) and node not in self.names:
            yield self._let(node)
            node = node.body
        if node in self.names or self.plan.uses.get(node, 1) > 1:
            self.write(f"return {(yield self.visit(node))}")
            return
        match node:
            case If():
                yield self._branches(node, (yield self._test(node)), None)
            case Match():
                yield self._arms(node, None)
            case Call(args=args) if self.own.is_loop and _calls(node, self.own):
                values = yield self._all(args)
                self.write(f"return again(({''.join(value + ', ' for value in values)}))")
            case _:
                self.write(f"return {(yield self.visit(node))}")

    # Nodes

    def visit(self, node: Expr) -> Recursion[str]:
        """A Python name or literal for the value of `node`, computed before in the lines."""
        found = self.names.get(node)
        if found is None:
            found = yield _RULES[type(node)](self, node)
            self.names[node] = found
        return found

    def _all(self, nodes: Sequence[Expr]) -> Recursion[list[str]]:
        names: list[str] = []
        for node in nodes:
            names.append((yield self.visit(node)))
        return names

    def _hoisted(self, node: Expr) -> Recursion[None]:
        for shared in self.plan.hoisted.get(node, ()):
            yield self.visit(shared)

    def _var(self, node: Var) -> Recursion[str]:
        raise EvalError(f"%{node.name_hint} must be bound to be compiled to Python", node.span)
        yield

    def _global_var(self, node: GlobalVar) -> Recursion[str]:
        return self.globals[node.name_hint]
        yield

    def _constant(self, node: Constant) -> Recursion[str]:
        return self.pool.name(node.data, "c")
        yield

    def _constructor(self, node: Constructor) -> Recursion[str]:
        return self.assign(node, f"lambda *fields: Data({self.pool.name(node, 'k')}, fields)")
        yield

    def _tuple(self, node: Tuple) -> Recursion[str]:
        return self.assign(node, f"({''.join(part + ', ' for part in (yield self._all(node.fields)))})")

    def _tuple_get_item(self, node: TupleGetItem) -> Recursion[str]:
        return self.assign(node, f"{(yield self.visit(node.tuple_value))}[{node.index}]")

    def _let_value(self, node: Let) -> Recursion[str]:
        yield self._let(node)
        return (yield self.visit(node.body))

    def _let(self, node: Let) -> Recursion[None]:
        if isinstance(node.value, Function) and node.value not in self.names:
            python = self.fresh(_stem(node.var))
            self.names[node.var] = self.names[node.value] = python
            yield self._hoisted(node.value)
            yield self._define(python, node.value, _Own(frozenset((node.var,))))
            return
        self.stems.setdefault(node.value, _stem(node.var))
        self.names[node.var] = yield self.visit(node.value)

    def _function(self, node: Function) -> Recursion[str]:
        yield self._hoisted(node)
        python = self.fresh("f")
        yield self._define(python, node, _Own(frozenset()))
        return python

    def _test(self, node: If) -> Recursion[str]:
        cond = yield self.visit(node.cond)
        yield self._hoisted(node)
        return cond

    def _if(self, node: If) -> Recursion[str]:
        result = self.fresh()
        yield self._branches(node, (yield self._test(node)), result)
        return result

    def _branches(self, node: If, cond: str, result: str | None) -> Recursion[None]:
        with self.block(f"if {cond}:"):
            yield self._end(node.true_branch, result)
        with self.block("else:"):
            yield self._end(node.false_branch, result)

    def _end(self, node: Expr, result: str | None) -> Recursion[None]:
        """The end of a branch: its value returned, or assigned."""
        if result is None:
            yield self._tail(node)
        else:
            self.write(f"{result} = {(yield self.visit(node))}")

    def _match(self, node: Match) -> Recursion[str]:
        result = self.fresh()
        yield self._arms(node, result)
        return result

    def _arms(self, node: Match, result: str | None) -> Recursion[None]:
        data = yield self.visit(node.data)
        yield self._hoisted(node)
        for number, clause in enumerate(node.clauses):
            tests: list[str] = []
            bound: list[tuple[Var, str]] = []
            self._pattern(clause.lhs, data, tests, bound)
            with self.block(f"{'el' if number else ''}if {' and '.join(tests) or 'True'}:"):
                for var, path in bound:
                    self.names[var] = self.assign(var, path)
                yield self._end(clause.rhs, result)
        with self.block("else:"):
            self.write(f"no_arm({data})")

    def _pattern(self, pattern: Pattern, path: str, tests: list[str], bound: list[tuple[Var, str]]) -> None:
        match pattern:
            case PatternVar(var=var):
                self.stems[var] = _stem(var)
                bound.append((var, path))
            case PatternConstructor(constructor=constructor, patterns=inner):
                tests.append(f"{path}.constructor.name_hint == {constructor.name_hint!r}")
                for index, part in enumerate(inner):
                    self._pattern(part, f"{path}.fields[{index}]", tests, bound)
            case PatternTuple(patterns=inner):
                for index, part in enumerate(inner):
                    self._pattern(part, f"{path}[{index}]", tests, bound)
            case _:
                pass

    def _ref_create(self, node: RefCreate) -> Recursion[str]:
        return self.assign(node, f"Ref({(yield self.visit(node.value))})")

    def _ref_read(self, node: RefRead) -> Recursion[str]:
        return self.assign(node, f"{(yield self.visit(node.ref))}.value")

    def _ref_write(self, node: RefWrite) -> Recursion[str]:
        ref = yield self.visit(node.ref)
        self.write(f"{ref}.value = {(yield self.visit(node.value))}")
        return "()"

    def _call(self, node: Call) -> Recursion[str]:
        if isinstance(node.op, Op):
            return self.assign(node, self._operation(node, node.op, (yield self._all(node.args))))
        if isinstance(node.op, Constructor):
            parts = "".join(part + ", " for part in (yield self._all(node.args)))
            return self.assign(node, f"Data({self.pool.name(node.op, 'k')}, ({parts}))")
        callee = yield self.visit(node.op)
        return self.assign(node, f"{callee}({', '.join((yield self._all(node.args)))})")

    def _operation(self, node: Call, op: Op, args: Sequence[str]) -> str:
        attrs = "None" if node.attrs is None else self.pool.name(node.attrs, "a")
        meaning = self.pool.name(op.reference, f"op_{identifier(op.name)}")
        made = f"{meaning}({attrs}, ({''.join(arg + ', ' for arg in args)}), {self.pool.name(node.type, 't')})"
        return f"asarray({made})" if isinstance(node.checked_type, TensorType) else f"value_of({made})"


_RULES: Mapping[type[Expr], Callable[[_FunctionCoder, Any], Recursion[str]]] = {
    Var: _FunctionCoder._var,
    GlobalVar: _FunctionCoder._global_var,
    Constant: _FunctionCoder._constant,
    Constructor: _FunctionCoder._constructor,
    Tuple: _FunctionCoder._tuple,
    TupleGetItem: _FunctionCoder._tuple_get_item,
    Let: _FunctionCoder._let_value,
    If: _FunctionCoder._if,
    Function: _FunctionCoder._function,
    RefCreate: _FunctionCoder._ref_create,
    RefRead: _FunctionCoder._ref_read,
    RefWrite: _FunctionCoder._ref_write,
    Match: _FunctionCoder._match,
    Call: _FunctionCoder._call,
}


def _stem(var: Var) -> str:
    """What Python calls a variable: its own name as far as that is one."""
    found = identifier(var.name_hint)
    return found if found.isidentifier() else f"v{found}"


def _calls(call: Call, own: _Own) -> bool:
    key: Any = call.op.name_hint if isinstance(call.op, GlobalVar) else call.op
    return key in own.names


def _tail_calls(root: Expr) -> Iterator[Call]:
    """The tail calls of `root`."""
    stack = [root]
    seen: set[Expr] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        match node:
            case Let(body=body):
                stack.append(body)
            case If(true_branch=then, false_branch=other):
                stack += (then, other)
            case Match(clauses=clauses):
                stack.extend(clause.rhs for clause in clauses)
            case Call(op=Var() | GlobalVar()):
                yield node
            case _:
                pass


class _Again:
    """The arguments of a tail-recursive call, which becomes the next loop iteration."""

    __slots__ = ("args",)

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.args = args


def _loop(body: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    while True:
        result = body(*args)
        if type(result) is not _Again:
            return result
        args = result.args


def _value_of(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return tuple(_value_of(part) for part in result)
    return np.asarray(result)


def _no_arm(data: Any) -> None:
    raise EvalError(f"match must have an arm for {show(data)}")
