"""Passes: typed module in, typed module out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from relay_hw.analysis.infer import infer_type
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule


class Pass(ABC):
    """A transformation of modules. Subclasses set `name` and write `transform`."""

    name: ClassVar[str]

    @abstractmethod
    def transform(self, mod: IRModule) -> IRModule:
        """`mod` is typed; the result need not be."""

    def __call__(self, mod: IRModule) -> IRModule:
        """The transformed module, typed. Raises TypeCheckError where `mod` or the result has no type."""
        typed = mod if is_typed(mod) else infer_type(mod)
        new = self.transform(typed)
        return new if new is typed else infer_type(new)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class FunctionPass(Pass):
    """A pass that treats each global function by itself."""

    @abstractmethod
    def transform_function(self, function: Function, mod: IRModule) -> Function:
        """`function` is typed; return it unchanged where there is nothing to do."""

    def transform(self, mod: IRModule) -> IRModule:
        new = {name: self.transform_function(function, mod) for name, function in mod.functions.items()}
        if all(new[name] is function for name, function in mod.functions.items()):
            return mod
        return mod.with_functions(new)


class Sequential(Pass):
    """Passes one after the other."""

    name = "sequential"

    def __init__(self, passes: Sequence[Pass]) -> None:
        self.passes = tuple(passes)

    def transform(self, mod: IRModule) -> IRModule:
        for step in self.passes:
            mod = step(mod)
        return mod

    def __repr__(self) -> str:
        return f"Sequential([{', '.join(map(repr, self.passes))}])"


def is_typed(mod: IRModule) -> bool:
    """True when every function of `mod` has been through type inference."""
    return all(function.checked_type is not None for function in mod.functions.values())
