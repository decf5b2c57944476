"""Base classes of passes: typed module in, typed module out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from relay_hw.analysis.infer import infer_type
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.context import PassContext, PassInfo
from relay_hw.transform.effects import pin_effects


class Pass(ABC):
    """A transformation of modules. Subclasses set `name` and write `transform`.

    `opt_level` says from which level of the context on a `Sequential` runs the pass; `required` names passes that a
    `Sequential` runs before it.
    """

    name: ClassVar[str]
    opt_level: ClassVar[int] = 0
    required: ClassVar[tuple[str, ...]] = ()

    @property
    def info(self) -> PassInfo:
        """Level, name and requirements, under Relay's name of the pass."""
        return PassInfo(self.opt_level, type(self).__name__, self.required)

    @abstractmethod
    def transform(self, mod: IRModule) -> IRModule:
        """`mod` is typed; the result need not be."""

    def __call__(self, mod: IRModule) -> IRModule:
        """The transformed module, typed. Raises TypeCheckError if `mod` or the result has a type error."""
        context, info = PassContext.current(), self.info
        if not context.before(mod, info):
            return mod
        new = self._run(mod)
        context.after(new, info)
        return new

    def _run(self, mod: IRModule) -> IRModule:
        typed = mod if is_typed(mod) else infer_type(mod)
        new = self.transform(typed)
        return new if new is typed else infer_type(new)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class FunctionPass(Pass):
    """A pass that transforms each global function separately.

    With `pins_effects` it gets functions in which everything that has an effect stands in a `let` of its own
    (`pin_effects`): then it may move, merge and drop all other nodes freely.
    """

    pins_effects: ClassVar[bool] = False

    @abstractmethod
    def transform_function(self, function: Function, mod: IRModule) -> Function:
        """Transform `function`, which is typed; return it unchanged if there is nothing to do."""

    def transform(self, mod: IRModule) -> IRModule:
        if self.pins_effects:
            mod = pin_effects(mod)
        return map_functions(mod, lambda function: self.transform_function(function, mod))


def map_functions(mod: IRModule, apply: Callable[[Function], Function]) -> IRModule:
    """The module with `apply` on each function; the same object where nothing changes."""
    new = {name: apply(function) for name, function in mod.functions.items()}
    if all(new[name] is function for name, function in mod.functions.items()):
        return mod
    return mod.with_functions(new)


def is_typed(mod: IRModule) -> bool:
    """True when every function of `mod` has been through type inference."""
    return all(function.checked_type is not None for function in mod.functions.values())
