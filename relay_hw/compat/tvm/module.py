"""TVM's mutable IRModule: functions may be added in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from relay_hw.ir.expr import Expr, Function, GlobalVar
from relay_hw.ir.module import IRModule as Base
from relay_hw.ir.module import TypeData
from relay_hw.prelude import import_from_std


@dataclass(frozen=True, eq=False, repr=False)
class IRModule(Base):
    """`mod["main"] = function`, `mod.update(other)` and `mod.import_from_std(name)` change this very module."""

    def __setitem__(self, name: str | GlobalVar, function: Function) -> None:
        key = name.name_hint if isinstance(name, GlobalVar) else name
        self._become(self.with_functions({key: function}))

    def __contains__(self, name: str | GlobalVar) -> bool:
        return (name.name_hint if isinstance(name, GlobalVar) else name) in self.functions

    def update(self, other: Base | Mapping[str, Function]) -> None:
        """Add the functions, and of a module the types, of `other`."""
        new = self.with_functions(other.functions if isinstance(other, Base) else other)
        types: dict[str, TypeData] = {**self.types, **(other.types if isinstance(other, Base) else {})}
        self._become(Base(new.functions, types, self.attrs))

    def update_func(self, var: str | GlobalVar, function: Function) -> None:
        """Replace one function."""
        self[var] = function

    def import_from_std(self, name: str) -> IRModule:
        """Add a library such as `prelude.rly`."""
        self._become(import_from_std(Base(self.functions, self.types, self.attrs), name))
        return self

    def get_global_vars(self) -> list[GlobalVar]:
        """The names of the functions."""
        return [GlobalVar(name) for name in self.functions]

    @staticmethod
    def from_expr(expr: Expr, functions: Mapping[Any, Function] | None = None) -> IRModule:
        """A module whose `main` is `expr`, or a function that gives it."""
        from relay_hw.analysis import free_vars

        main = expr if isinstance(expr, Function) else Function(free_vars(expr), expr)
        return IRModule({**(functions or {}), "main": main})

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The text; without `show_meta_data` the constants at its end are left out."""
        return Base.astext(self, show_meta_data=show_meta_data)

    def _become(self, other: Base) -> None:
        for name in ("functions", "types", "attrs"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(other, name))))


def as_module(mod: Base | Function) -> IRModule:
    """Convert a module or function to this class."""
    if isinstance(mod, Function):
        return IRModule.from_expr(mod)
    return mod if isinstance(mod, IRModule) else IRModule(mod.functions, mod.types, mod.attrs)
