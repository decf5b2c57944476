"""Loads library files, and imports them into modules."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, TypeVar

from relay_hw.analysis import structural_equal
from relay_hw.errors import InputError, WellFormedError
from relay_hw.ir.expr import Constructor, Function, GlobalVar
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.types import GlobalTypeVar
from relay_hw.support.names import one_of
from relay_hw.text import parse

T = TypeVar("T", Function, TypeData)

# Each library with its dependencies.
LIBRARIES: Final = MappingProxyType(
    {
        "prelude": (),
        "nat": ("prelude",),
        "sequence": ("prelude",),
        "containers": ("prelude",),
        "gradient": (),
        "core": (),
    }
)


def load_library(name: str) -> IRModule:
    """The typed module of a library, of its file name too (`nat.rly`). Raises InputError for an unknown one."""
    stem = name.removesuffix(".rly").removesuffix(".relay")
    if stem not in LIBRARIES:
        raise InputError(one_of("library", LIBRARIES, name))
    return _load(stem)


@cache
def _load(stem: str) -> IRModule:
    """Load a library, cached: loading it twice would make two types of each name."""
    below = IRModule()
    for needed in LIBRARIES[stem]:
        below = import_from_std(below, needed)
    file = f"{stem}.relay"
    return parse(files("relay_hw.prelude").joinpath(file).read_text("utf-8"), file, init_module=below)


def import_from_std(mod: IRModule, name: str) -> IRModule:
    """`mod` with a library's types and functions, those that it has already taken once.

    Raises InputError for an unknown library, WellFormedError if `mod` defines a name of the library differently.
    """
    library = load_library(name)
    types = {key: _same("type ", key, mod.types.get(key), data) for key, data in library.types.items()}
    functions = {key: _same("@", key, mod.functions.get(key), found) for key, found in library.functions.items()}
    _check_constructors(mod, library)
    return IRModule({**mod.functions, **functions}, {**mod.types, **types}, mod.attrs)


def _same(sign: str, name: str, present: T | None, wanted: T) -> T:
    """The one that the module has, if it is the library's."""
    if present is None or present is wanted:
        return wanted
    is_equal = (
        structural_equal(IRModule(types={name: present}), IRModule(types={name: wanted}))
        if isinstance(present, TypeData) and isinstance(wanted, TypeData)
        else isinstance(present, Function) and isinstance(wanted, Function) and structural_equal(present, wanted)
    )
    if not is_equal:
        raise WellFormedError(f"{sign}{name} must be the library's or have another name")
    return present


def _check_constructors(mod: IRModule, library: IRModule) -> None:
    """A constructor belongs to one type. Raises WellFormedError."""
    wanted = {item.name_hint: name for name, data in library.types.items() for item in data.constructors}
    for name, data in mod.types.items():
        for item in data.constructors:
            if wanted.get(item.name_hint, name) != name:
                owner = wanted[item.name_hint]
                raise WellFormedError(f"constructor {item.name_hint} must belong to {owner}, not {name}")


class Prelude:
    """A module with prelude.relay and its names: `p.mod`, `p.map`, `p.get_ctor("List", "Cons")`.

    Modules are immutable, so `mod` is left as it is and `p.mod` is the one to work with.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = import_from_std(mod or IRModule(), "prelude")

    def import_from_std(self, name: str) -> None:
        """Bring one more library into `p.mod`. Raises InputError, WellFormedError."""
        self.mod = import_from_std(self.mod, name)

    def get_global_var(self, name: str) -> GlobalVar:
        """The function `name`. Raises InputError."""
        if name not in self.mod.functions:
            raise InputError(f"function must be one of the module, not {name}")
        return self.mod.get_global_var(name)

    def get_type(self, name: str) -> GlobalTypeVar:
        """The data type `name`. Raises InputError."""
        return self._data(name).header

    def get_ctor(self, type_name: str, name: str) -> Constructor:
        """A constructor of the data type `type_name`. Raises InputError."""
        found = {item.name_hint: item for item in self._data(type_name).constructors}
        if name not in found:
            raise InputError(one_of(f"constructor of {type_name}", found, name))
        return found[name]

    def _data(self, name: str) -> TypeData:
        if name not in self.mod.types:
            raise InputError(one_of("type", self.mod.types, name))
        return self.mod.types[name]

    def __getattr__(self, name: str) -> GlobalVar:
        functions = self.__dict__["mod"].functions if "mod" in self.__dict__ else {}
        if name not in functions:
            raise AttributeError(f"Prelude has no function {name!r}")
        return self.mod.get_global_var(name)
