"""Python statements as Relay: assignments become lets, loops become functions that call themselves.

In: the tree of a function. Out: its body as an expression. What comes after a statement that may leave early is a
function that both ways call.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relay_hw.errors import RelayHwError, UnsupportedError
from relay_hw.frontend.python.emit import is_list
from relay_hw.frontend.python.expressions import Expressions
from relay_hw.frontend.python.loops import Iteration, over, over_range, over_several
from relay_hw.frontend.python.source import always_jumps, assigned_names, has_jump, has_return
from relay_hw.frontend.python.values import Block, EmptyList, Env, Static, Symbol, Value, constant, fields_of, is_number
from relay_hw.ir.expr import Call, Expr, Function, If, Tuple, Var
from relay_hw.ir.types import FuncType, TupleType, Type


@dataclass(frozen=True, slots=True)
class Control:
    """Where a sequence of statements goes on: each makes the last expression of the current block."""

    end: Callable[[Env], Expr]
    give: Callable[[Value, ast.AST], Expr]
    leave: Callable[[Env], Expr] | None = None
    again: Callable[[Env], Expr] | None = None


class _Retyped(Exception):
    """A loop variable has another type than its first value tells; the loop is translated again with it."""

    def __init__(self, name: str, ty: Type) -> None:
        super().__init__(name)
        self.name = name
        self.ty = ty


class Statements(Expressions):
    """Translates statements."""

    def sequence(self, body: Sequence[ast.stmt], env: Env, control: Control) -> Expr:
        """`body` in the current block; what the block ends with. Changes `env`."""
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
        """Translates one statement; the expression that ends the block if nothing comes after it any more."""
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
                    self._bind(target, symbol, env)
            case ast.AnnAssign(target=ast.Name(id=name) as target, annotation=annotation, value=ast.expr() as value):
                self.site = name
                wanted = self.annotated(annotation, env)
                found = self.relay(value, env, wanted)
                if found.type != wanted:
                    self.source.refuse(value, f"{name} must be {wanted}, not {found.type}")
                self._bind(target, found, env)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                self.site = name
                left = self._expr(ast.copy_location(ast.Name(name, ast.Load()), target), env)
                self._bind(target, self.binary(type(op), left, self.expr(value, env)), env)
            case ast.Expr(value=ast.Call() as call):
                self._effect(call, env)
            case ast.If(test=test, body=then, orelse=other):
                return self._if(self.expr(test, env), then, other, rest, env, control)
            case ast.While() | ast.For():
                return self._loop(node, rest, env, control)
            case ast.FunctionDef():
                self._define(node, env)
            case _:
                self.source.refuse(node, f"{_statement_name(node)} must not be used in a relay function")
        return None

    def _bind(self, target: ast.expr, symbol: Symbol, env: Env) -> None:
        match target:
            case ast.Name(id=name):
                env[name] = symbol
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part, item in zip(parts, self._items(target, symbol, len(parts)), strict=True):
                    self._bind(part, item, env)
            case _:
                self.source.refuse(target, f"{ast.unparse(target)} must be a name: relay values do not change")

    def _items(self, node: ast.AST, symbol: Symbol, count: int) -> Sequence[Symbol]:
        if isinstance(symbol, Static) and isinstance(symbol.value, (tuple, list)) and len(symbol.value) == count:
            return [Static(part) for part in symbol.value]
        if isinstance(symbol, Value) and len(fields_of(symbol.type)) == count:
            return [self.item(symbol, index) for index in range(count)]
        shown = symbol.type if isinstance(symbol, Value) else getattr(symbol, "value", "an empty list")
        self.source.refuse(node, f"value must be a tuple of {count} to be taken apart, not {shown}")

    def _effect(self, node: ast.Call, env: Env) -> None:
        """A call for what it changes: `xs.append(x)`, or what the library changes."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[arg]) if name in env:
                self.site = name
                env[name] = self._appended(node, env[name], self.relay(arg, env))
            case _:
                self.call_of(node, env)

    def _appended(self, node: ast.Call, items: Symbol, item: Value) -> Symbol:
        if isinstance(items, EmptyList):
            if items.name is not None:
                raise _Retyped(items.name, self.list([item]).type)
            return self.list([item])
        whole = self.value(items)
        if not is_list(whole.type):
            self.source.refuse(node, f"append must be of a list, not of {whole.type}")
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
        """Sequences of which one runs, each in a block and an environment of its own."""
        bodies: list[Expr] = []
        for body, env in ways:
            outer, self.block = self.block, Block()
            last = self.sequence(body, dict(env), control)
            bodies.append(self.block.close(last))
            self.block = outer
        return bodies

    def _ways_to(
        self, then: list[ast.stmt], other: list[ast.stmt], rest: Sequence[ast.stmt], env: Env, control: Control
    ) -> list[Expr]:
        """Both ways may reach what follows: it becomes a function of the variables that they assign."""
        assigned = dict.fromkeys([*assigned_names(then), *assigned_names(other)])
        both = set(assigned_names(then)) & set(assigned_names(other))
        names = [name for name in assigned if name in env or name in both]
        self._settle(names, env)
        join, types = Var("rest"), dict[str, Value]()

        def end(inner: Env) -> Expr:
            values = [self._kept(name, inner, types) for name in names]
            return Call(join, [value.expr for value in values])

        bodies = self._ways(((then, env), (other, env)), replace(control, end=end))
        params = [Var(name, types[name].type, checked_type=types[name].type) for name in names if name in types]
        outer, self.block = self.block, Block()
        inner = {**env, **{p.name_hint: replace(types[p.name_hint], expr=p) for p in params}}
        body = self.block.close(self.sequence(rest, inner, control))
        self.block = outer
        self.block.bound.append((join, Function(params, body)))
        return bodies

    def _kept(self, name: str, env: Env, types: dict[str, Value]) -> Value:
        """The value of a variable, of the same type each time."""
        if name not in env:
            raise UnsupportedError(f"variable {name} must be assigned on every way to here")
        value = self.value(env[name], types[name].type if name in types else None)
        known = types.setdefault(name, value)
        if known.type != value.type or known.model is not value.model:
            raise UnsupportedError(f"variable {name} must keep its type, {known.type}, not become {value.type}")
        return value

    def _settle(self, names: Sequence[str], env: Env) -> None:
        """Python numbers that are about to vary become Relay values."""
        for name in names:
            if isinstance(env.get(name), Static):
                env[name] = self.value(env[name])

    def _join(self, cond: Value, then: list[ast.stmt], other: list[ast.stmt], env: Env) -> None:
        """An if whose branches only assign: variables that differ are the if's result."""
        ends: list[tuple[Block, Env]] = []
        for body in (then, other):
            outer, self.block = self.block, Block()
            inner = dict(env)
            self.sequence(body, inner, Control(lambda _: constant(0).expr, self._no_return))
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
        pairs = [self.merge([(block, a[n]), (other_block, b[n])], f"variable {n} after if") for n in changed]
        bodies = [block.close(_tuple([p[0][1] for p in pairs])), other_block.close(_tuple([p[1][1] for p in pairs]))]
        firsts = [pair[0][1] for pair in pairs]
        result = self.emit(If(cond.expr, *bodies), TupleType([value.type for value in firsts]))
        for index, (name, first) in enumerate(zip(changed, firsts, strict=True)):
            self.site = name
            env[name] = replace(self.item(result, index), model=first.model)

    def _no_return(self, value: Value, node: ast.AST) -> Expr:
        self.source.refuse(node, "return must not stand here")

    # Loops

    def _loop(self, node: ast.While | ast.For, rest: Sequence[ast.stmt], env: Env, control: Control) -> Expr | None:
        if node.orelse:
            self.source.refuse(node.orelse[0], "else of a loop must not be used in a relay function")
        if isinstance(node, ast.For):
            elements = self._fixed(node.iter, env)
            if elements is not None:
                return self._unroll(node, elements, env)
        types: dict[str, Type] = {}
        while True:
            block, mark, before = self.block, len(self.block.bound), dict(env)
            try:
                return self._try_loop(node, rest, env, control, types)
            except _Retyped as found:
                first = before.get(found.name)
                if not isinstance(first, Static) and not (isinstance(first, EmptyList) and first.name is None):
                    # It comes from a loop around this one.
                    raise
                if types.get(found.name) == found.ty:
                    raise UnsupportedError(f"variable {found.name} must keep its type through the loop") from None
                types[found.name] = found.ty
                self.block = block
                del self.block.bound[mark:]
                env.clear()
                env.update(before)

    def _fixed(self, node: ast.expr, env: Env) -> Sequence[Symbol] | None:
        """The elements of a tuple or of a Python list: a loop over them is written out."""
        if isinstance(node, ast.Call):
            return None
        symbol = self.expr(node, env)
        if isinstance(symbol, Static) and isinstance(symbol.value, (tuple, list, range)):
            return [Static(part) for part in symbol.value]
        if isinstance(symbol, Value) and isinstance(symbol.type, TupleType):
            return [self.item(symbol, index) for index in range(len(symbol.type.fields))]
        return None

    def _unroll(self, node: ast.For, elements: Sequence[Symbol], env: Env) -> None:
        if has_jump(node.body):
            self.source.refuse(node, "loop over a tuple must not be left by break, continue or return")
        for element in elements:
            self._bind(node.target, element, env)
            self.sequence(node.body, env, Control(lambda _: constant(0).expr, self._no_return))
        return None

    def _iteration(self, node: ast.expr, env: Env) -> Iteration:
        match node:
            case ast.Call(keywords=[keyword, *_]):
                self.source.refuse(node, f"what a for goes through must be without keywords, not with {keyword.arg}")
            case ast.Call(func=ast.Name(id="range"), args=args) if "range" not in env:
                symbols = [self.expr(arg, env) for arg in args]
                step = symbols[2] if len(symbols) > 2 else Static(1)
                if not isinstance(step, Static) or not isinstance(step.value, int):
                    self.source.refuse(args[2], "step of range must be a number")
                begin, end = (Static(0), symbols[0]) if len(symbols) == 1 else symbols[:2]
                return over_range(self, self.value(begin), self.value(end), step.value)
            case ast.Call(func=ast.Name(id="zip"), args=args) if "zip" not in env and args:
                return over_several(self, [self._iteration(arg, env) for arg in args])
            case ast.Call(func=ast.Name(id="enumerate"), args=[arg]) if "enumerate" not in env:
                inner = self._iteration(arg, env)
                count = over_range(self, constant(0), constant(2**31 - 1), 1)
                return over_several(self, [count, inner])
            case _:
                return over(self, self.relay(node, env))

    def _try_loop(
        self, node: ast.While | ast.For, rest: Sequence[ast.stmt], env: Env, control: Control, types: dict[str, Type]
    ) -> Expr | None:
        iteration = self._iteration(node.iter, env) if isinstance(node, ast.For) else None
        names = [name for name in assigned_names([node]) if name in env]
        for name in names:
            first = env[name]
            if isinstance(first, EmptyList) and name not in types:
                env[name] = EmptyList(name)
            else:
                is_weak = isinstance(first, Static) and isinstance(first.value, int) and name not in types
                env[name] = replace(self.value(first, types.get(name)), is_weak=is_weak or _is_weak(first))
        carried = [name for name in names if isinstance(env[name], Value)]
        starts = {name: self.value(env[name]) for name in carried}
        loop = Var("loop")
        states = [Var("state", s.type, checked_type=s.type) for s in (iteration.start if iteration else ())]
        params = [Var(name, starts[name].type, checked_type=starts[name].type) for name in carried]
        inside = {**env, **{n: replace(starts[n], expr=p) for n, p in zip(carried, params, strict=True)}}
        state_values = [Value(var, var.type) for var in states]
        after, leaves = self._after(node, rest, env, control, carried, starts)

        def again(last: Env) -> Expr:
            moved = iteration.step(state_values) if iteration else []
            values = [self._carried(name, last, starts) for name in carried]
            return Call(loop, [value.expr for value in (*moved, *values)])

        outer, self.block = self.block, Block()
        inner = replace(control, end=again, leave=leaves, again=again)
        body = self._loop_body(node, iteration, state_values, inside, inner)
        function = Function([*states, *params], self.block.close(body))
        self.block = outer
        self.block.bound.append((loop, function))
        call = Call(loop, [value.expr for value in (*(iteration.start if iteration else ()), *starts.values())])
        return after(call)

    def _after(
        self,
        node: ast.While | ast.For,
        rest: Sequence[ast.stmt],
        env: Env,
        control: Control,
        carried: Sequence[str],
        starts: dict[str, Value],
    ) -> tuple[Callable[[Expr], Expr | None], Callable[[Env], Expr]]:
        """What happens to the loop's call, and how the loop ends."""
        if not has_return(node.body):

            def leave(inner: Env) -> Expr:
                return _tuple([self._carried(name, inner, starts) for name in carried])

            def goes_on(call: Expr) -> None:
                self.site = "done"
                result = self.emit(call, TupleType([starts[name].type for name in carried]))
                for index, name in enumerate(carried):
                    self.site = name
                    env[name] = replace(self.item(result, index), model=starts[name].model)

            return goes_on, leave
        # The loop may end the function: what follows it is called in its last step.
        follow = Var("after")
        params = [Var(name, starts[name].type, checked_type=starts[name].type) for name in carried]
        outer, self.block = self.block, Block()
        inner = {**env, **{n: replace(starts[n], expr=p) for n, p in zip(carried, params, strict=True)}}
        body = self.block.close(self.sequence(rest, inner, control))
        self.block = outer
        self.block.bound.append((follow, Function(params, body)))
        return lambda call: call, lambda last: Call(
            follow, [self._carried(name, last, starts).expr for name in carried]
        )

    def _loop_body(
        self,
        node: ast.While | ast.For,
        iteration: Iteration | None,
        states: Sequence[Value],
        env: Env,
        control: Control,
    ) -> Expr:
        assert control.leave is not None
        if isinstance(node, ast.While):
            test = self.expr(node.test, env)
            if isinstance(test, Static):
                return self.sequence(node.body, env, control) if test.value else control.leave(env)
            cond = self.truth(self.value(test))
        else:
            assert iteration is not None
            cond = iteration.test(states)
        outer, self.block = self.block, Block()
        inner = dict(env)
        if isinstance(node, ast.For) and iteration is not None:
            self._bind(node.target, iteration.element(states), inner)
        body = self.block.close(self.sequence(node.body, inner, control))
        self.block = Block()
        end = self.block.close(control.leave(dict(env)))
        self.block = outer
        return If(cond.expr, body, end, span=self.source.span(node))

    def _carried(self, name: str, env: Env, starts: dict[str, Value]) -> Value:
        """A loop variable at the end of a step: of the type that it began with."""
        start = starts[name]
        value = self.value(env[name], start.type)
        if value.type == start.type and value.model is start.model:
            return value
        if start.is_weak and is_number(value.type) and str(value.type).startswith("float"):
            raise _Retyped(name, value.type)
        raise UnsupportedError(
            f"variable {name} must keep its type through the loop, {start.type}, not become {value.type}"
        )

    # Functions

    def _define(self, node: ast.FunctionDef, env: Env) -> None:
        """A function in a function: a closure."""
        types = [(arg.arg, self.parameter(arg, env)) for arg in node.args.args]
        ret = None if node.returns is None else self.annotated(node.returns, env)
        own = Var(node.name, None if ret is None else FuncType(tuple(ty for _, ty in types), ret))
        params = [Var(name, ty, checked_type=ty) for name, ty in types]
        inner = {**env, **{name: Value(p, p.type) for (name, _), p in zip(types, params, strict=True)}}
        if own.type_annotation is not None:
            inner[node.name] = Value(own, own.type_annotation)
        outer, self.block = self.block, Block()
        body, found = self.body(node, inner, ret)
        function = Function(params, self.block.close(body), ret)
        self.block = outer
        whole = FuncType(tuple(ty for _, ty in types), found)
        self.block.bound.append((own, function))
        env[node.name] = Value(own, whole)

    def body(self, node: ast.FunctionDef, env: Env, ret: Type | None) -> tuple[Expr, Type]:
        """The body of a function in the current block, and the type of its result."""
        found: list[Type] = [] if ret is None else [ret]

        def give(value: Value, place: ast.AST) -> Expr:
            if found and found[0] != value.type:
                self.source.refuse(place, f"result of {node.name} must be {found[0]}, not {value.type}")
            found.append(value.type)
            self.returned(value)
            return value.expr

        outer, self._wanted = self.wanted(), ret
        last = self.sequence(node.body, env, Control(lambda _: give(self.tuple([]), node), give))
        self._wanted = outer
        return last, found[-1]

    _wanted: Type | None = None

    def wanted(self) -> Type | None:
        """The annotated result of the function that is being translated."""
        return self._wanted

    @abstractmethod
    def returned(self, value: Value) -> None:
        """Told of every value that a function returns."""

    def parameter(self, arg: ast.arg, env: Env) -> Type:
        """The type of a parameter. Raises UnsupportedError without annotation."""
        if arg.annotation is None:
            self.source.refuse(arg, f"parameter {arg.arg} must have an annotation such as {arg.arg}: Float")
        return self.annotated(arg.annotation, env)


def _is_weak(symbol: Symbol) -> bool:
    return isinstance(symbol, Value) and symbol.is_weak


def _tuple(values: Sequence[Value]) -> Expr:
    return Tuple([value.expr for value in values], checked_type=TupleType([value.type for value in values]))


def _statement_name(node: ast.stmt) -> str:
    names = {"Delete": "del", "AsyncFor": "async for", "ClassDef": "class", "ImportFrom": "import"}
    return names.get(type(node).__name__, type(node).__name__.lower())


__all__ = ["Control", "Statements"]
