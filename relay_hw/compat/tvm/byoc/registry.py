"""TVM's BYOC registration functions: for functions, pattern tables, and operators that a compiler supports.

In: names as TVM has them. Out: entries of `known.py`. `relay.ext.NAME` also makes NAME a target of `relay_hw.target`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from relay_hw.compat.tvm.byoc.known import (
    GENERATOR,
    LOADER,
    Support,
    Table,
    functions,
    get_global_func,
    get_pattern_table,
    list_global_func_names,
    supported,
    supported_by,
    tables,
)
from relay_hw.errors import InputError
from relay_hw.op import get

# As TVM's module of this name has them.
__all__ = [
    "forget",
    "get_global_func",
    "get_pattern_table",
    "list_global_func_names",
    "register_func",
    "register_op_attr",
    "register_pattern_table",
    "remove_global_func",
    "supported_by",
]

_ATTRIBUTE: Final = "target."


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Make `f` known as `func_name`; without `f` a decorator, whose function's own name serves where none is given.

    `relay.ext.NAME` is a code generator: NAME becomes a target. Raises InputError for a name that is taken.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name)
    if f is None:
        return lambda function: register_func(func_name, function, override)
    if func_name in functions and not override:
        raise InputError(f"the name of a global function must be new, not {func_name}: give override=True")
    name = _compiler(func_name)
    if name and func_name not in functions:
        from relay_hw.compat.tvm.byoc.target import make_target
        from relay_hw.target.registry import register

        register(name, lambda variant: make_target(name, variant))
    functions[func_name] = f
    return f


def remove_global_func(name: str) -> None:
    """Forget a function, and the target that it made."""
    if functions.pop(name, None) is not None and _compiler(name):
        from relay_hw.target.registry import unregister

        unregister(_compiler(name))


def register_pattern_table(compiler: str, table: Callable[[], Table] | None = None) -> Any:
    """Make a compiler's patterns known, as (name, pattern) or (name, pattern, check); without `table` a decorator."""

    def keep(make: Callable[[], Table]) -> Callable[[], Table]:
        tables[compiler] = tuple(make())
        return make

    return keep if table is None else keep(table)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Say by `target.NAME` whether compiler NAME takes an operator: always, or as a function of the call says.

    Without `value` a decorator. Raises InputError for another attribute, UnsupportedError for an unknown operator.
    """
    name = attr_key.removeprefix(_ATTRIBUTE)
    if not attr_key.startswith(_ATTRIBUTE) or not name:
        raise InputError(f"attribute of an operator must be {_ATTRIBUTE}NAME, of a compiler, not {attr_key}")
    get(op_name)

    def keep(support: Support) -> Support:
        supported.setdefault(name, {})[op_name] = support
        return support

    return keep if value is None else keep(value)


def forget(compiler: str) -> None:
    """Remove all that was registered for a compiler."""
    for name in (f"{GENERATOR}{compiler}", f"{LOADER}{compiler}"):
        remove_global_func(name)
    tables.pop(compiler, None)
    supported.pop(compiler, None)


def _compiler(name: str) -> str:
    """Of a code generator: whose it is; empty for other functions, such as `relay.ext.NAME.constant_updater`."""
    found = name.removeprefix(GENERATOR) if name.startswith(GENERATOR) else ""
    return "" if "." in found else found
