"""Translates one decorated function to Relay. In: its source. Out: `Translated`, with the functions that it uses.

Each call of a layer in a model has hidden parameters of its own; a call of another model has a set of all of that
model's. They become parameters of the Relay function, behind the declared ones.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relay_hw.errors import UnsupportedError
from relay_hw.frontend.python.annotations import Model as ModelAnnotation
from relay_hw.frontend.python.gradients import gradient_function
from relay_hw.frontend.python.source import Source
from relay_hw.frontend.python.statements import Statements
from relay_hw.frontend.python.translated import Decorated, Translated, Translation
from relay_hw.frontend.python.values import Env, Static, Symbol, Value
from relay_hw.ir.expr import Constant, Expr, Function, GlobalVar, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type
from relay_hw.ir.visit import copy_with
from relay_hw.op import const, multiply, subtract

LEARNING_RATE = 0.01


class Translator(Statements):
    """Translates one function and the library's special functions in it."""

    def __init__(self, source: Source, owner: Decorated, batch: int | None) -> None:
        super().__init__(source)
        self._owner = owner
        self._batch = batch
        self._hidden: list[Var] = []
        self._needs: dict[str, Function] = {}
        self._uses: dict[tuple[Decorated, int | None], Translation] = {}
        self._model: Any = None
        self._is_nested = False

    def translate(self) -> Translated:
        """The whole function."""
        tree = self.source.tree
        types = [(arg.arg, self.parameter(arg, {})) for arg in self._arguments(tree)]
        params = [Var(name, ty, span=self.source.span(tree), checked_type=ty) for name, ty in types]
        env: Env = {param.name_hint: Value(param, param.type) for param in params}
        ret = self.result(tree)
        last, found = self.body(tree, env, ret)
        function = Function([*params, *self._hidden], self.block.close(last), found, span=self.source.span(tree))
        hidden = tuple((var.name_hint, var.tensor_type) for var in self._hidden)
        whole = FuncType((*(ty for _, ty in types), *(ty for _, ty in hidden)), found)
        return Translated(function, whole, hidden, self._needs, tuple(self._uses.values()), self._model)

    def _arguments(self, tree: ast.FunctionDef) -> Sequence[ast.arg]:
        args = tree.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
            self.source.refuse(tree, f"parameters of {tree.name} must be plain: without *, defaults and keywords")
        return args.args

    def result(self, tree: ast.FunctionDef) -> Type | None:
        """The annotated result; None if it is open, or a model."""
        if tree.returns is None or self.annotation(tree.returns, {}) is ModelAnnotation:
            return None
        return self._batched(self.annotated(tree.returns, {}))

    def parameter(self, arg: ast.arg, env: Env) -> Type:
        ty = super().parameter(arg, env)
        return ty if env else self._batched(ty)

    def _batched(self, ty: Type) -> Type:
        """Batch samples; a number becomes the mean over the batch."""
        if self._batch is None or not isinstance(ty, TensorType) or not ty.rank:
            return ty
        return TensorType((self._batch, *ty.shape), ty.dtype)

    def returned(self, value: Value) -> None:
        self._model = value.model

    # Hidden parameters

    def hidden_of(self, node: ast.Call, name: str) -> Callable[[str, TensorType], Expr]:
        self._check_hidden(node, f"relay.{name}")
        prefix = self._fresh(self.site if self.site not in ("x", "done", "result") else name)
        return lambda part, ty: self._hide(f"{prefix}.{part}", ty)

    def _check_hidden(self, node: ast.AST, name: str) -> None:
        if not self._owner.is_model:
            self.source.refuse(
                node,
                f"{name} has hidden parameters: {self._owner.name}, which calls it, must be decorated with relay_model",
            )

    def _hide(self, name: str, ty: TensorType) -> Var:
        var = Var(name, ty, checked_type=ty)
        self._hidden.append(var)
        return var

    def _fresh(self, prefix: str) -> str:
        taken = {var.name_hint.split(".")[0] for var in self._hidden}
        name, count = prefix, 1
        while name in taken:
            count += 1
            name = f"{prefix}{count}"
        return name

    # Calls

    def call_static(self, node: ast.Call, callee: Any, named: Mapping[str, ast.expr], env: Env) -> Symbol:
        special = getattr(callee, "relay_special", None)
        if special is not None:
            return _SPECIAL[special](
                self, node, [self.expr(arg, env) for arg in node.args], self._options(named, env), env
            )
        if hasattr(callee, "intrinsic"):
            return super().call_static(node, callee.intrinsic, named, env)
        if getattr(callee, "is_relay_function", False):
            return self._call_decorated(node, callee, env)
        return super().call_static(node, callee, named, env)

    def _options(self, named: Mapping[str, ast.expr], env: Env) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for name, value in named.items():
            symbol = self.expr(value, env)
            if not isinstance(symbol, Static):
                self.source.refuse(value, f"{name} must be a Python number, not computed by the program")
            options[name] = symbol.value
        return options

    def _call_decorated(self, node: ast.Call, callee: Decorated, env: Env) -> Value:
        if callee.is_model:
            self._check_hidden(node, callee.name)
        translation = self._use(callee)
        ty, hidden = self._signature(node, callee)
        count = len(ty.arg_types) - len(hidden)
        prefix = self._fresh(self.site if self.site not in ("x", "done", "result") else callee.name) if hidden else ""
        own = [self._hide(f"{prefix}.{name}", hidden_type) for name, hidden_type in hidden]
        plain = FuncType(ty.arg_types[:count], ty.ret_type)
        bound = _Bound(translation.name, own)
        value = self.apply(node, bound.callee, plain, node.args, env)
        return self._with_hidden(value, bound)

    def _with_hidden(self, value: Value, bound: _Bound) -> Value:
        """Add hidden arguments to the last call."""
        if not bound.hidden:
            return value
        var, call = self.block.bound[-1]
        self.block.bound[-1] = (var, copy_with(call, args=(*call.args, *bound.hidden)))  # type: ignore[attr-defined]
        return value

    def _use(self, callee: Decorated) -> Translation:
        key = (callee, self._batch)
        if key not in self._uses:
            self._uses[key] = Translation(callee, self._batch)
        return self._uses[key]

    def _signature(self, node: ast.Call, callee: Decorated) -> tuple[FuncType, tuple[tuple[str, TensorType], ...]]:
        if not callee.is_open(self._batch):
            translated = callee.translated(self._batch)
            return translated.type, translated.hidden
        if callee.is_model:
            self.source.refuse(node, f"{callee.name} must not call itself: each call has parameters of its own")
        ty = callee.declared_type(self._batch)
        if ty is None:
            self.source.refuse(node, f"{callee.name}, which calls itself, must have an annotation of its result")
        return ty, ()

    # Models

    def _create_model(self, node: ast.Call, args: Sequence[Symbol], options: dict[str, Any], env: Env) -> Symbol:
        match args:
            case [Static(value=function)] if getattr(function, "is_model", False):
                params = function.initial(**options)
            case _:
                self.source.refuse(node, "create_model must get a function decorated with relay_model")
        hidden = function.translated().hidden
        parts = [Value(Constant(p, checked_type=ty), ty) for p, (_, ty) in zip(params, hidden, strict=True)]
        value = self.tuple(parts)
        return Value(value.expr, value.type, function)

    def _grad(self, node: ast.Call, args: Sequence[Symbol], options: dict[str, Any], env: Env) -> Symbol:
        match args:
            case [Value(model=model) as params, Static(value=loss), batch] if model is not None:
                pass
            case _:
                self.source.refuse(node, "grad must get a model, its loss function and a tuple of the loss's arguments")
        self._check_loss(node, loss)
        given = self.value(batch)
        count = len(given.type.fields) if isinstance(given.type, TupleType) else -1
        name = f"{loss.name}_gradient"
        function = gradient_function(loss, model, None)
        self._needs[name] = function
        wanted = [param.type_annotation for param in function.params]
        have = [*(given.type.fields if isinstance(given.type, TupleType) else ())]
        if count < 0 or have != wanted[:count] or len(wanted) - count != len(model.translated(None).hidden):
            shown = ", ".join(map(str, wanted[: len(wanted) - len(model.translated(None).hidden)]))
            self.source.refuse(node, f"arguments of {loss.name} must be ({shown}), not {given.type}")
        inputs = [self.item(given, index) for index in range(count)]
        hidden = [self.item(params, index) for index in range(len(wanted) - count)]
        ret = TupleType([value.type for value in hidden])
        return self.call(GlobalVar(name), [*inputs, *hidden], ret)

    def _check_loss(self, node: ast.Call, loss: Any) -> None:
        if not getattr(loss, "is_model", False):
            self.source.refuse(node, "loss function of grad must be decorated with relay_model")

    def _update(self, node: ast.Call, args: Sequence[Symbol], options: dict[str, Any], env: Env) -> Symbol:
        match args, node.args:
            case [Value(model=model) as params, Value() as slopes], [ast.Name(id=name), _] if model is not None:
                pass
            case _:
                self.source.refuse(node, "update_model_params must get the name of a model and its gradients")
        if slopes.type != params.type:
            self.source.refuse(node, f"gradients must be those of the model, {params.type}, not {slopes.type}")
        rate = float(options.get("learning_rate", LEARNING_RATE))
        new: list[Value] = []
        for index, ty in enumerate(params.type.fields if isinstance(params.type, TupleType) else ()):
            assert isinstance(ty, TensorType)
            step = multiply(self.item(slopes, index).expr, const(rate, ty.dtype))
            new.append(self.graph(subtract(self.item(params, index).expr, step)))
        value = self.tuple(new)
        env[name] = Value(value.expr, value.type, model)
        return Static(None)

    def _export(self, node: ast.Call, args: Sequence[Symbol], options: dict[str, Any], env: Env) -> Symbol:
        match args:
            case [Value(model=model) as value] if model is not None:
                return value
            case _:
                self.source.refuse(node, "export_model must get a model")

    def _call_model(self, node: ast.Call, params: Value, env: Env) -> Value:
        """A model as a function: its parameters follow the arguments."""
        model: Decorated = params.model
        translated = model.translated(None)
        translation = Translation(model, None)
        self._uses[(model, None)] = translation
        count = len(translated.type.arg_types) - len(translated.hidden)
        hidden = [self.item(params, index).expr for index in range(len(translated.hidden))]
        bound = _Bound(translation.name, hidden)
        plain = FuncType(translated.type.arg_types[:count], translated.type.ret_type)
        return self._with_hidden(self.apply(node, bound.callee, plain, node.args, env), bound)

    def call_of(self, node: ast.Call, env: Env) -> Symbol:
        if isinstance(node.func, ast.Name) and isinstance(env.get(node.func.id), Value):
            value = env[node.func.id]
            if isinstance(value, Value) and value.model is not None:
                return self._call_model(node, value, env)
        return super().call_of(node, env)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A global function with the hidden arguments of one call."""

    name: str
    hidden: Sequence[Expr]

    @property
    def callee(self) -> GlobalVar:
        return GlobalVar(self.name)


_SPECIAL: Mapping[str, Callable[[Translator, ast.Call, Sequence[Symbol], dict[str, Any], Env], Symbol]] = {
    "create_model": Translator._create_model,
    "grad": Translator._grad,
    "update_model_params": Translator._update,
    "export_model": Translator._export,
}


def assemble(translation: Translation, translated: Translated) -> IRModule:
    """The module of a function and of all that it uses, with the prelude if needed."""
    functions: dict[str, Function] = {}
    waiting = [(translation.name, translated)]
    while waiting:
        name, part = waiting.pop()
        if name in functions:
            continue
        functions[name] = part.function
        functions.update(part.needs)
        waiting += [(use.name, use.owner.translated(use.batch)) for use in part.uses]
    library = IRModule().import_from_std("prelude")
    clash = next((name for name in functions if name in library.functions), None)
    if clash is not None:
        raise UnsupportedError(f"function {clash} must have another name: the standard library has one of this name")
    return library.with_functions(functions)
