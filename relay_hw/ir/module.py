"""A Relay module: global functions and type definitions by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from relay_hw.ir.expr import Constructor, Function, GlobalVar
from relay_hw.ir.lazy_import import lazy_import
from relay_hw.ir.types import GlobalTypeVar, TypeVar


def _name(key: str | GlobalVar | GlobalTypeVar) -> str:
    """The name of a function or type, also given as its variable."""
    match key:
        case GlobalVar(name_hint=name) | GlobalTypeVar(name=name):
            return name
        case _:
            return key


@dataclass(frozen=True, eq=False)
class TypeData:
    """`type header[type_vars] { constructors }`; an extern type has no constructors and `extern` set."""

    header: GlobalTypeVar
    type_vars: Sequence[TypeVar] = ()
    constructors: Sequence[Constructor] = ()
    extern: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class IRModule:
    """An immutable module. `functions` keeps the order of definition; the entry point is `main`."""

    functions: Mapping[str, Function] = field(default_factory=dict[str, Function])
    types: Mapping[str, TypeData] = field(default_factory=dict[str, TypeData])
    attrs: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        functions = {_name(key): function for key, function in self.functions.items()}
        types = {_name(key): data for key, data in self.types.items()}
        object.__setattr__(self, "functions", MappingProxyType(functions))
        object.__setattr__(self, "types", MappingProxyType(types))
        object.__setattr__(self, "attrs", MappingProxyType(dict(self.attrs)))

    def __getitem__(self, name: str | GlobalVar) -> Function:
        return self.functions[_name(name)]

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable for the function `name`. Raises KeyError for an unknown one."""
        return GlobalVar(name, checked_type=self.functions[name].checked_type)

    def get_type(self, name: str) -> tuple[GlobalTypeVar | Constructor, ...]:
        """The data type `name`, then its constructors. Raises KeyError for an unknown one."""
        data = self.types[name]
        return (data.header, *data.constructors)

    def import_from_std(self, name: str) -> IRModule:
        """The module with the library `name` added: `prelude.rly`, `nat.rly`, `gradient.rly` or `core.rly`.

        Raises InputError for an unknown one, WellFormedError where names clash.
        """
        return lazy_import("relay_hw.prelude").import_from_std(self, name)

    def with_functions(self, functions: Mapping[str, Function]) -> IRModule:
        """The same module with `functions` added or replaced."""
        return replace(self, functions={**self.functions, **functions})

    @staticmethod
    def from_expr(expr: Function) -> IRModule:
        """A module whose `main` is `expr`."""
        return IRModule({"main": expr})

    def astext(self, show_types: bool = False, show_meta_data: bool = True) -> str:
        """The module in Relay's text format; with `show_types`, every type in a comment.

        `show_meta_data` False leaves the section of large constants out, and the text cannot be read again.
        """
        return lazy_import("relay_hw.text").print_module(self, show_types, show_meta_data)

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def _repr_html_(self) -> str:
        """Rich display in notebooks: the text, coloured."""
        return lazy_import("relay_hw.text").highlighted(str(self))

    def __repr__(self) -> str:
        return f"<IRModule {', '.join('@' + name for name in self.functions)}>"
