"""Translates Python loops to Relay: recursive functions of the variables that the loop changes.

In: `for` and `while` trees. Out: a function in the current block and its call.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relay_hw.errors import UnsupportedError
from relay_hw.frontend.python.calls import Calls
from relay_hw.frontend.python.loops import Iteration, over, over_range, over_several
from relay_hw.frontend.python.source import assigned_names, has_jump, has_return
from relay_hw.frontend.python.values import EmptyList, Env, LetBlock, Static, Symbol, Value, constant, is_number
from relay_hw.ir.expr import Call, Expr, Function, If, Tuple, Var
from relay_hw.ir.types import TupleType, Type


@dataclass(frozen=True, slots=True)
class Control:
    """Continuations of a sequence of statements: each makes the last expression of the current block."""

    end: Callable[[Env], Expr]
    give: Callable[[Value, ast.AST], Expr]
    leave: Callable[[Env], Expr] | None = None
    again: Callable[[Env], Expr] | None = None


class Retyped(Exception):
    """A loop variable has another type than its initial value; the loop is translated again with it."""

    def __init__(self, name: str, ty: Type) -> None:
        super().__init__(name)
        self.name = name
        self.ty = ty


class Loops(Calls):
    """Translates loops; subclasses translate the statements in them."""

    @abstractmethod
    def sequence(self, body: Sequence[ast.stmt], env: Env, control: Control) -> Expr:
        """Translate `body` into the current block; returns the block's last expression. Changes `env`."""

    @abstractmethod
    def bind(self, target: ast.expr, symbol: Symbol, env: Env) -> None:
        """Assign `symbol` to a target."""

    def no_return(self, value: Value, node: ast.AST) -> Expr:
        """Refuse a return."""
        self.source.refuse(node, "return must not be used here")

    def loop(self, node: ast.While | ast.For, rest: Sequence[ast.stmt], env: Env, control: Control) -> Expr | None:
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
            except Retyped as found:
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
        """The elements of a tuple or of a Python list; a loop over them is unrolled."""
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
            self.source.refuse(node, "loop over a tuple must not be exited by break, continue or return")
        for element in elements:
            self.bind(node.target, element, env)
            self.sequence(node.body, env, Control(lambda _: constant(0).expr, self.no_return))
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
                is_weak = isinstance(first, Static) and isinstance(first.value, (int, float)) and name not in types
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

        outer, self.block = self.block, LetBlock()
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
        """What follows the loop's call, and how the loop ends."""
        if not has_return(node.body):

            def leave(inner: Env) -> Expr:
                return packed([self._carried(name, inner, starts) for name in carried])

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
        outer, self.block = self.block, LetBlock()
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
        outer, self.block = self.block, LetBlock()
        inner = dict(env)
        if isinstance(node, ast.For) and iteration is not None:
            self.bind(node.target, iteration.element(states), inner)
        body = self.block.close(self.sequence(node.body, inner, control))
        self.block = LetBlock()
        end = self.block.close(control.leave(dict(env)))
        self.block = outer
        return If(cond.expr, body, end, span=self.source.span(node))

    def _carried(self, name: str, env: Env, starts: dict[str, Value]) -> Value:
        """A loop variable at the end of a step, converted to its initial type."""
        start = starts[name]
        value = self.value(env[name], start.type)
        if value.type == start.type and value.model is start.model:
            return value
        if start.is_weak and is_number(value.type) and str(value.type).startswith("float"):
            raise Retyped(name, value.type)
        raise UnsupportedError(
            f"variable {name} must keep its type through the loop, {start.type}, not become {value.type}"
        )


def _is_weak(symbol: Symbol) -> bool:
    return isinstance(symbol, Value) and symbol.is_weak


def packed(values: Sequence[Value]) -> Expr:
    return Tuple([value.expr for value in values], checked_type=TupleType([value.type for value in values]))
