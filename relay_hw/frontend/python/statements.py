"""Translates Python statements to Relay: assignments become lets, loops become recursive functions.

In: the tree of a function. Out: its body as an expression. What comes after a statement that may leave early is a
function that both ways call.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from relay_hw.errors import RelayHwError, UnsupportedError
from relay_hw.frontend.python.emit import is_list, item_type
from relay_hw.frontend.python.repetition import Control, Loops, Retyped, packed
from relay_hw.frontend.python.source import always_jumps, assigned_names, captured_and_changed, has_jump
from relay_hw.frontend.python.values import EmptyList, Env, LetBlock, Static, Symbol, Value, constant, fields_of
from relay_hw.ir.expr import Call, Expr, Function, If, Var
from relay_hw.ir.types import FuncType, TupleType, Type


class Statements(Loops):
    """Translates statements."""

    def sequence(self, body: Sequence[ast.stmt], env: Env, control: Control) -> Expr:
        """Translate `body` into the current block; returns the block's last expression. Changes `env`."""
        for index, statement in enumerate(body):
            self.span, self.site = self.source.span(statement), "x"
            rest = body[index + 1 :]
            try:
                last = self._statement(statement, rest, env, control)
            except RelayHwError as error:
                raise error if error.detail else self.source.place(error, statement) from None
            if last is not None:
                return last
        return control.end(env)

    def _statement(self, node: ast.stmt, rest: Sequence[ast.stmt], env: Env, control: Control) -> Expr | None:
        """Translate one statement; returns the block's last expression if nothing can follow."""
        match node:
            case ast.Return(value=value):
                self.site = "result"
                found = self.relay(value, env, self.wanted()) if value is not None else self.tuple([])
                return control.give(found, node)
            case ast.Break() if control.leave is not None:
                return control.leave(env)
            case ast.Continue() if control.again is not None:
                return control.again(env)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return None
            case ast.Assign(targets=targets, value=value):
                self.site = targets[0].id if isinstance(targets[0], ast.Name) else "x"
                symbol = self.expr(value, env)
                for target in targets:
                    self.bind(target, symbol, env)
            case ast.AnnAssign(target=ast.Name(id=name) as target, annotation=annotation, value=ast.expr() as value):
                self.site = name
                wanted = self.annotated(annotation, env)
                found = self.relay(value, env, wanted)
                if found.type != wanted:
                    self.source.refuse(value, f"{name} must be {wanted}, not {found.type}")
                self.bind(target, found, env)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                self.site = name
                left = self._expr(ast.copy_location(ast.Name(name, ast.Load()), target), env)
                self.bind(target, self.binary(type(op), left, self.expr(value, env)), env)
            case ast.Expr(value=ast.Call() as call):
                self._effect(call, env)
            case ast.If(test=test, body=then, orelse=other):
                return self._if(self.expr(test, env), then, other, rest, env, control)
            case ast.While() | ast.For():
                return self.loop(node, rest, env, control)
            case ast.FunctionDef():
                self._define(node, env)
            case _:
                self.source.refuse(node, f"{_statement_name(node)} must not be used in a relay function")
        return None

    def bind(self, target: ast.expr, symbol: Symbol, env: Env) -> None:
        match target:
            case ast.Name(id=name):
                env[name] = symbol
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part, item in zip(parts, self._items(target, symbol, len(parts)), strict=True):
                    self.bind(part, item, env)
            case _:
                self.source.refuse(target, f"{ast.unparse(target)} must be a name: relay values do not change")

    def _items(self, node: ast.AST, symbol: Symbol, count: int) -> Sequence[Symbol]:
        if isinstance(symbol, Static) and isinstance(symbol.value, (tuple, list)) and len(symbol.value) == count:
            return [Static(part) for part in symbol.value]
        if isinstance(symbol, Value) and len(fields_of(symbol.type)) == count:
            return [self.item(symbol, index) for index in range(count)]
        shown = symbol.type if isinstance(symbol, Value) else getattr(symbol, "value", "an empty list")
        self.source.refuse(node, f"value must be a tuple of {count} to be unpacked, not {shown}")

    def _effect(self, node: ast.Call, env: Env) -> None:
        """A call for its side effect: `xs.append(x)`, or one of the library."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[arg]) if name in env:
                self.site = name
                env[name] = self._appended(node, env[name], self.relay(arg, env, self._element(env[name])))
            case _:
                self.call_of(node, env)

    def _element(self, items: Symbol) -> Type | None:
        """The type of a list's elements, if known."""
        return item_type(items.type) if isinstance(items, Value) and is_list(items.type) else None

    def _appended(self, node: ast.Call, items: Symbol, item: Value) -> Symbol:
        if isinstance(items, EmptyList):
            if items.name is not None:
                raise Retyped(items.name, self.list([item]).type)
            return self.list([item])
        whole = self.value(items)
        if not is_list(whole.type):
            self.source.refuse(node, f"append must be called on a list, not on {whole.type}")
        return self.append(whole, item)

    # Decisions

    def _if(
        self,
        test: Symbol,
        then: list[ast.stmt],
        other: list[ast.stmt],
        rest: Sequence[ast.stmt],
        env: Env,
        control: Control,
    ) -> Expr | None:
        if isinstance(test, Static):
            return self.sequence([*(then if test.value else other), *rest], env, control)
        cond = self.truth(self.value(test))
        if not has_jump(then) and not has_jump(other):
            self._join(cond, then, other, env)
            return None
        if always_jumps(then):
            bodies = self._ways(((then, env), ([*other, *rest], env)), control)
        elif always_jumps(other):
            bodies = self._ways((([*then, *rest], env), (other, env)), control)
        else:
            bodies = self._ways_to(then, other, rest, env, control)
        return If(cond.expr, *bodies, span=self.span)

    def _ways(self, ways: Sequence[tuple[Sequence[ast.stmt], Env]], control: Control) -> list[Expr]:
        """Translate alternative sequences, each in its own block and environment."""
        bodies: list[Expr] = []
        for body, env in ways:
            outer, self.block = self.block, LetBlock()
            last = self.sequence(body, dict(env), control)
            bodies.append(self.block.close(last))
            self.block = outer
        return bodies

    def _ways_to(
        self, then: list[ast.stmt], other: list[ast.stmt], rest: Sequence[ast.stmt], env: Env, control: Control
    ) -> list[Expr]:
        """If both branches may continue, the rest becomes a function of the variables that they assign."""
        assigned = dict.fromkeys([*assigned_names(then), *assigned_names(other)])
        both = set(assigned_names(then)) & set(assigned_names(other))
        names = [name for name in assigned if name in env or name in both]
        self._settle(names, env)
        join, types = Var("rest"), dict[str, Value]()

        def end(inner: Env) -> Expr:
            values = [self._kept(name, inner, types, env.get(name)) for name in names]
            return Call(join, [value.expr for value in values])

        bodies = self._ways(((then, env), (other, env)), replace(control, end=end))
        params = [Var(name, types[name].type, checked_type=types[name].type) for name in names if name in types]
        outer, self.block = self.block, LetBlock()
        inner = {**env, **{p.name_hint: replace(types[p.name_hint], expr=p) for p in params}}
        body = self.block.close(self.sequence(rest, inner, control))
        self.block = outer
        self.block.bound.append((join, Function(params, body)))
        return bodies

    def _kept(self, name: str, env: Env, types: dict[str, Value], before: Symbol | None) -> Value:
        """The value of a variable, which must keep its type."""
        if name not in env:
            raise UnsupportedError(f"variable {name} must be assigned on every path to here")
        like = types.get(name, before)
        value = self.value(env[name], like.type if isinstance(like, Value) else None)
        known = types.setdefault(name, value)
        if known.type != value.type or known.model is not value.model:
            raise UnsupportedError(f"variable {name} must keep its type, {known.type}, not become {value.type}")
        return value

    def _settle(self, names: Sequence[str], env: Env) -> None:
        """Turn Python numbers that will vary into Relay values."""
        for name in names:
            if isinstance(env.get(name), Static):
                env[name] = self.value(env[name])

    def _join(self, cond: Value, then: list[ast.stmt], other: list[ast.stmt], env: Env) -> None:
        """Join the branches of an if that only assign: variables that differ are the if's result."""
        ends: list[tuple[LetBlock, Env]] = []
        for body in (then, other):
            outer, self.block = self.block, LetBlock()
            inner = dict(env)
            self.sequence(body, inner, Control(lambda _: constant(0).expr, self.no_return))
            ends.append((self.block, inner))
            self.block = outer
        (block, a), (other_block, b) = ends
        changed: list[str] = []
        for name in dict.fromkeys([*assigned_names(then), *assigned_names(other)]):
            if name not in a or name not in b:
                env.pop(name, None)
            elif a[name] is b[name] or (isinstance(a[name], Static) and a[name] == b[name]):
                env[name] = a[name]
            else:
                changed.append(name)
        if not changed:
            return
        pairs = [
            self.merge([(block, a[n]), (other_block, b[n])], f"variable {n} after if", env.get(n)) for n in changed
        ]
        bodies = [block.close(packed([p[0][1] for p in pairs])), other_block.close(packed([p[1][1] for p in pairs]))]
        firsts = [pair[0][1] for pair in pairs]
        result = self.emit(If(cond.expr, *bodies), TupleType([value.type for value in firsts]))
        for index, (name, first) in enumerate(zip(changed, firsts, strict=True)):
            self.site = name
            env[name] = replace(self.item(result, index), model=first.model)

    # Functions

    def _define(self, node: ast.FunctionDef, env: Env) -> None:
        """A function in a function: a closure."""
        changed = captured_and_changed(node, self._around)
        if changed is not None:
            self.source.refuse(node, f"variable {changed}, which {node.name} reads, must be assigned only once")
        types = [(arg.arg, self.parameter(arg, env)) for arg in node.args.args]
        ret = None if node.returns is None else self.annotated(node.returns, env)
        own = Var(node.name, None if ret is None else FuncType(tuple(ty for _, ty in types), ret))
        params = [Var(name, ty, checked_type=ty) for name, ty in types]
        inner = {**env, **{name: Value(p, p.type) for (name, _), p in zip(types, params, strict=True)}}
        if own.type_annotation is not None:
            inner[node.name] = Value(own, own.type_annotation)
        outer, self.block = self.block, LetBlock()
        names, self.own_names = self.own_names, frozenset(assigned_names(node.body))
        body, found = self.body(node, inner, ret)
        self.own_names = names
        function = Function(params, self.block.close(body), ret)
        self.block = outer
        whole = FuncType(tuple(ty for _, ty in types), found)
        self.block.bound.append((own, function))
        env[node.name] = Value(own, whole)

    def body(self, node: ast.FunctionDef, env: Env, ret: Type | None) -> tuple[Expr, Type]:
        """Translate a function's body into the current block; also returns its result type."""
        found: list[Type] = [] if ret is None else [ret]

        def give(value: Value, place: ast.AST) -> Expr:
            if found and found[0] != value.type:
                self.source.refuse(place, f"result of {node.name} must be {found[0]}, not {value.type}")
            found.append(value.type)
            self.returned(value)
            return value.expr

        outer, self._wanted = self.wanted(), ret
        around, self._around = getattr(self, "_around", node), node
        last = self.sequence(node.body, env, Control(lambda _: give(self.tuple([]), node), give))
        self._wanted, self._around = outer, around
        return last, found[-1]

    _wanted: Type | None = None
    _around: ast.FunctionDef

    def wanted(self) -> Type | None:
        """The annotated result of the function that is being translated."""
        return self._wanted

    @abstractmethod
    def returned(self, value: Value) -> None:
        """Called with every value that a function returns."""

    def parameter(self, arg: ast.arg, env: Env) -> Type:
        """The type of a parameter. Raises UnsupportedError without annotation."""
        if arg.annotation is None:
            self.source.refuse(arg, f"parameter {arg.arg} must have an annotation such as {arg.arg}: Float")
        return self.annotated(arg.annotation, env)


def _statement_name(node: ast.stmt) -> str:
    names = {"Delete": "del", "AsyncFor": "async for", "ClassDef": "class", "ImportFrom": "import"}
    return names.get(type(node).__name__, type(node).__name__.lower())


__all__ = ["Control", "Statements"]
