"""Code of partly known values. In: values. Out: atoms in the current block, what they need bound before them.

A function whose code is asked for becomes a closure: specialised to what it captures while the budget allows, or as
it is written. A reference that others will see becomes a real one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from relay_hw.analysis.variables import free_vars
from relay_hw.ir.expr import Call, Constant, Expr, Function, RefCreate, Tuple, Var
from relay_hw.ir.trampoline import Recursion
from relay_hw.ir.types import bind_type_vars
from relay_hw.transform.partial_budget import Budget
from relay_hw.transform.partial_values import Cell, Env, Fields, Known, Number, PartialValue, ResidualBlock, Store


class Coder(ABC):
    """Writes the residual program, block by block."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._captured: dict[Expr, tuple[Var, ...]] = {}
        self._store = Store()
        self._block = ResidualBlock()

    @abstractmethod
    def _sequence(self, node: Expr, env: Env) -> Recursion[PartialValue]:
        """The value of a chain of lets, evaluated in the current block."""

    def _free(self, node: Expr) -> tuple[Var, ...]:
        if node not in self._captured:
            self._captured[node] = free_vars(node)
        return self._captured[node]

    # Code

    def _emit(self, value: Expr, name: str = "x") -> PartialValue:
        return PartialValue(None, self._block.emit(value, name), self._block)

    def _code(self, value: PartialValue) -> Recursion[Expr]:
        """An atom for `value` in the current block."""
        atom = value.atom
        if atom is not None:
            return atom
        match value.static:
            case Number(data=data):
                value.code, value.block = Constant(data), None
            case Fields():
                yield self._code_fields(value, value.static)
            case Known():
                yield self._code_function(value, value.static)
            case Cell():
                yield self._materialize((value,))
            case None:
                raise AssertionError("a value without code must be known")
        assert value.code is not None
        return value.code

    def _code_all(self, values: Sequence[PartialValue]) -> Recursion[list[Expr]]:
        yield self._materialize(values)
        codes: list[Expr] = []
        for value in values:
            codes.append((yield self._code(value)))
        return codes

    def _code_fields(self, value: PartialValue, static: Fields) -> Recursion[None]:
        parts = yield self._code_all(static.parts)
        made: Expr = Tuple(parts)
        if static.constructor is not None:
            made = Call(static.constructor, parts, type_args=static.type_args)
        value.code, value.block = self._block.emit(made, "x"), self._block

    def _code_function(self, value: PartialValue, static: Known) -> Recursion[None]:
        """The function as a closure: whatever it captures is computed before."""
        yield self._materialize((value,))
        function, env, home = static.function, Env(static.env), self._block
        name = Var("f")
        # It may call itself.
        value.code, value.block = name, home
        is_special = self._budget.may_specialise(function)
        if not is_special:
            yield self._generalise(static, env)
        params = self._fresh_params(function, env)
        outer, self._store = self._store, Store()
        with self._budget.closing(function, is_special):
            body = yield self._residual_body(function, env)
        self._store = outer
        ret = None if function.ret_type is None else bind_type_vars(function.ret_type, env.types)
        home.bind(name, Function(params, body, ret, function.type_params, function.attrs, function.where))

    def _generalise(self, static: Known, env: Env) -> Recursion[None]:
        """Captured values by their code alone, numbers excepted; code in the current block, where all share it."""
        for var in static.captured:
            found = static.env.find(var)
            if found is not None and not isinstance(found.static, Number):
                env.bind(var, PartialValue(None, (yield self._code(found))))

    def _fresh_params(self, function: Function, env: Env) -> list[Var]:
        params: list[Var] = []
        for param in function.params:
            new = Var(param.name_hint, bind_type_vars(param.type, env.types))
            env.bind(param, PartialValue(None, new))
            params.append(new)
        return params

    def _residual_body(self, function: Function, env: Env) -> Recursion[Expr]:
        outer, self._block = self._block, ResidualBlock()
        result = yield self._code((yield self._sequence(function.body, env)))
        body = self._block.close(result)
        self._block = outer
        return body

    def _materialize(self, values: Sequence[PartialValue]) -> Recursion[None]:
        """Make real references of those that can be reached from `values`: someone else may see them from now on."""
        for ref in self._store.reachable(values):
            if ref.code is not None:
                continue
            content = self._store.get(ref)
            assert content is not None
            code = yield self._code(content)
            ref.code, ref.block = self._block.emit(RefCreate(code), "r"), self._block
