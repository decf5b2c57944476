"""The decorators `relay` and `relay_model`: Python functions that run as Relay, and models of them.

In: Python functions with annotations. Out: objects that translate themselves when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.backend.python_code import PythonModule, to_python
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend.python.annotations import LIST
from relay_hw.frontend.python.gradients import gradient_function
from relay_hw.frontend.python.source import Source, read_source
from relay_hw.frontend.python.translate import Translator, assemble
from relay_hw.frontend.python.translated import Translated, Translation
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Constant, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type, TypeCall
from relay_hw.ir.visit import copy_with, substitute
from relay_hw.prelude import list_items, list_value
from relay_hw.transform import InferType, RemoveUnusedFunctions

Array = NDArray[Any]


class RelayFunction:
    """A function in Relay. Call it with arrays, numbers, tuples and lists; `mod` is its module.

    It may call other functions decorated with `relay`, and closures, but none that has hidden parameters. Raises
    UnsupportedError and TypeCheckError with the place in the Python file.
    """

    is_relay_function = True
    is_model = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._source = read_source(function)
        self._translated: dict[int | None, Translated] = {}
        self._open: set[int | None] = set()
        self._runner: Runner | None = None
        self._check_annotations()

    def _check_annotations(self) -> None:
        for arg in self._source.tree.args.args:
            if arg.annotation is None:
                self._source.refuse(arg, f"parameter {arg.arg} must have an annotation such as {arg.arg}: Float")

    @property
    def source(self) -> Source:
        """The source of the function."""
        return self._source

    def is_open(self, batch: int | None) -> bool:
        """Whether the function is being translated, so that a call of it is recursive."""
        return batch in self._open

    def translated(self, batch: int | None = None) -> Translated:
        """The function in Relay, for samples or for batches of `batch` of them."""
        if batch not in self._translated:
            self._open.add(batch)
            try:
                self._translated[batch] = Translator(self._source, self, batch).translate()
            finally:
                self._open.discard(batch)
        return self._translated[batch]

    def declared_type(self, batch: int | None) -> FuncType | None:
        """The type by the annotations; None without one of the result."""
        translator = Translator(self._source, self, batch)
        tree = self._source.tree
        ret = translator.result(tree)
        if ret is None:
            return None
        return FuncType(tuple(translator.parameter(arg, {}) for arg in tree.args.args), ret)

    def module(self, batch: int | None = None) -> IRModule:
        """The typed module; the function stands under its own name."""
        mod = InferType()(assemble(Translation(self, batch), self.translated(batch)))
        entry = Translation(self, batch).name
        used = RemoveUnusedFunctions([entry])(mod)
        return used

    @property
    def mod(self) -> IRModule:
        """The typed module; the function stands under its own name."""
        return self.module()

    def __call__(self, *args: Any) -> Any:
        if self._runner is None:
            self._runner = Runner(self.module(), self.name)
        found = self._runner(*args)
        model = self.translated().model
        return found if model is None else model.with_params(found).export()

    def __repr__(self) -> str:
        return f"<relay function {self.name}>"


class RelayModel(RelayFunction):
    """A function with hidden parameters: `relay.create_model` makes a model of it, which can be called."""

    is_model = True

    def __call__(self, *args: Any) -> Any:
        raise UnsupportedError(f"{self.name} has hidden parameters: make a model of it with relay.create_model")

    def initial(self, seed: int = 0, sigma: float = 0.05) -> list[Array]:
        """Values for the hidden parameters, drawn from a normal distribution of mean 0 and deviation `sigma`."""
        rng = np.random.Generator(np.random.PCG64(seed))
        return [rng.normal(0, sigma, ty.static_shape).astype(ty.dtype) for _, ty in self.translated().hidden]

    def with_params(self, params: Sequence[Any]) -> Model:
        """A model with these parameters."""
        return Model(self, [np.asarray(param) for param in params])

    def __repr__(self) -> str:
        return f"<relay model {self.name}>"


class Model:
    """A `relay_model` function and values for its hidden parameters. Call it like the function."""

    def __init__(self, function: RelayModel, params: Sequence[Array]) -> None:
        self.function = function
        self.params = list(params)
        self._runners: dict[int | None, Runner] = {}
        self._gradients: dict[tuple[RelayFunction, int | None], Runner] = {}

    @property
    def hidden(self) -> tuple[tuple[str, TensorType], ...]:
        """Names and types of the parameters."""
        return self.function.translated().hidden

    def __call__(self, *args: Any) -> Any:
        """Evaluate the function; samples may be batched, with an additional first axis."""
        batch = self._batch(self.function, args)
        if batch not in self._runners:
            name = self.function.name if batch is None else f"{self.function.name}_{batch}"
            self._runners[batch] = Runner(self.function.module(batch), name)
        return self._runners[batch](*args, *self.params)

    def gradients(self, loss: RelayModel, args: Sequence[Any]) -> tuple[Array, ...]:
        """The gradient of `loss` at `args` for every parameter."""
        batch = self._batch(loss, args)
        key = (loss, batch)
        if key not in self._gradients:
            function = gradient_function(loss, self.function, batch)
            mod = InferType()(IRModule({"main": function}, loss.module(batch).types))
            self._gradients[key] = Runner(mod, "main")
        return self._gradients[key](*args, *self.params)

    def _batch(self, function: RelayFunction, args: Sequence[Any]) -> int | None:
        declared = function.translated().function.params
        if len(args) != len(declared) - len(function.translated().hidden):
            return None
        sizes = {
            np.shape(arg)[0]
            for arg, param in zip(args, declared, strict=False)
            if isinstance(param.type_annotation, TensorType) and np.ndim(arg) == param.type_annotation.rank + 1
        }
        return sizes.pop() if len(sizes) == 1 else None

    def export(self) -> ExportedModel:
        """A callable with the current parameters."""
        return ExportedModel(self.function, [np.array(param) for param in self.params])

    def __repr__(self) -> str:
        return f"<model of {self.function.name}, {sum(param.size for param in self.params)} parameters>"


class ExportedModel(Model):
    """A trained model: it can be called, and written as a Relay module."""

    def module(self, batch: int | None = None) -> IRModule:
        """A typed module whose `main` is the model with its parameters as constants."""
        name = self.function.name if batch is None else f"{self.function.name}_{batch}"
        whole = self.function.module(batch)[name]
        count = len(whole.params) - len(self.params)
        body = whole.body
        constants = {
            param: Constant(value, checked_type=param.type)
            for param, value in zip(whole.params[count:], self.params, strict=True)
        }
        main = copy_with(whole, params=whole.params[:count], body=substitute(body, dict(constants)), checked_type=None)
        mod = self.function.module(batch).with_functions({"main": main})
        return RemoveUnusedFunctions(["main"])(InferType()(mod))

    def __repr__(self) -> str:
        return f"<exported model of {self.function.name}>"


class Runner:
    """Runs one function of a module: compiled to Python, or by the interpreter if Python's stack is too small."""

    def __init__(self, mod: IRModule, entry: str) -> None:
        self._mod = mod
        self._entry = entry
        self._compiled: PythonModule | None = to_python(mod)
        self._function: Function = mod[entry]

    def __call__(self, *args: Any) -> Any:
        params = self._function.params
        if len(args) != len(params):
            raise InputError(
                f"{self._entry} must get {len(params)} argument{'s' * (len(params) != 1)}, not {len(args)}"
            )
        values = [to_relay(arg, param.type) for arg, param in zip(args, params, strict=True)]
        return as_python(self._run(values), self._function.func_type.ret_type)

    def _run(self, values: Sequence[Any]) -> Any:
        if self._compiled is not None:
            try:
                return self._compiled.run(self._entry, values)
            except RecursionError:
                self._compiled = None
        return Interpreter(self._mod).call_global(self._entry, values)


def to_relay(given: Any, ty: Type) -> Any:
    """Convert Python lists to Relay's, and arrays to the wanted float type."""
    match ty:
        case TypeCall(func=func, args=(item,)) if func == LIST and isinstance(given, (list, tuple)):
            return list_value([to_relay(part, item) for part in given])
        case TupleType(fields=parts) if isinstance(given, (list, tuple)) and len(given) == len(parts):
            return tuple(to_relay(part, field) for part, field in zip(given, parts, strict=True))
        case TensorType(dtype=dtype):
            array = np.asarray(given)
            is_same_kind = array.dtype.kind == np.dtype(str(dtype)).kind or array.dtype.kind in "iu"
            return array.astype(str(dtype)) if is_same_kind and array.dtype.kind != "b" else given
        case _:
            return given


def as_python(found: Any, ty: Type) -> Any:
    """Convert Relay's lists to Python lists."""
    match ty:
        case TypeCall(func=func, args=(item,)) if func == LIST:
            return [as_python(part, item) for part in list_items(found)]
        case TupleType(fields=parts):
            return tuple(as_python(part, field) for part, field in zip(found, parts, strict=True))
        case _:
            return found
