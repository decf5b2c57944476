"""What scripts make known by name: functions, tables of patterns, operators that a compiler takes.

In: names as TVM has them. Out: what was registered. `relay.ext.NAME` also makes NAME a target of `relay_hw.target`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from relay_hw.errors import InputError
from relay_hw.ir.expr import Call
from relay_hw.op import get
from relay_hw.transform.merge_composite import Entry

GENERATOR: Final = "relay.ext."
LOADER: Final = "runtime.module.loadbinary_"
_ATTRIBUTE: Final = "target."

Support = bool | Callable[[Call], bool]
Table = Sequence[Entry]

_functions: Final[dict[str, Callable[..., Any]]] = {}
_tables: Final[dict[str, Table]] = {}
_supported: Final[dict[str, dict[str, Support]]] = {}


def register_func(func_name: Any, f: Callable[..., Any] | None = None, override: bool = False) -> Any:
    """Make `f` known as `func_name`; without `f` a decorator, whose function's own name serves where none is given.

    `relay.ext.NAME` is a code generator: NAME becomes a target. Raises InputError for a name that is taken.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name)
    if f is None:
        return lambda function: register_func(func_name, function, override)
    if func_name in _functions and not override:
        raise InputError(f"the name of a global function must be new, not {func_name}: give override=True")
    name = _compiler(func_name)
    if name and func_name not in _functions:
        from relay_hw.compat.tvm.byoc.target import make_target
        from relay_hw.target.registry import register

        register(name, lambda variant: make_target(name, variant))
    _functions[func_name] = f
    return f


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """The function of this name. Raises InputError for an unknown one, unless it may be missing."""
    if name not in _functions and not allow_missing:
        raise InputError(f"global function must be a registered one, not {name}")
    return _functions.get(name)


def remove_global_func(name: str) -> None:
    """Forget a function, and the target that it made."""
    if _functions.pop(name, None) is not None and _compiler(name):
        from relay_hw.target.registry import unregister

        unregister(_compiler(name))


def list_global_func_names() -> list[str]:
    """The names of all of them."""
    return sorted(_functions)


def register_pattern_table(compiler: str, table: Callable[[], Table] | None = None) -> Any:
    """Make a compiler's patterns known, as (name, pattern) or (name, pattern, check); without `table` a decorator."""

    def keep(make: Callable[[], Table]) -> Callable[[], Table]:
        _tables[compiler] = tuple(make())
        return make

    return keep if table is None else keep(table)


def get_pattern_table(compiler: str) -> Table | None:
    """A compiler's patterns; None where it has none."""
    return _tables.get(compiler)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Say by `target.NAME` whether compiler NAME takes an operator: always, or as a function of the call says.

    Without `value` a decorator. Raises InputError for another attribute, UnsupportedError for an unknown operator.
    """
    name = attr_key.removeprefix(_ATTRIBUTE)
    if not attr_key.startswith(_ATTRIBUTE) or not name:
        raise InputError(f"attribute of an operator must be {_ATTRIBUTE}NAME, of a compiler, not {attr_key}")
    get(op_name)

    def keep(support: Support) -> Support:
        _supported.setdefault(name, {})[op_name] = support
        return support

    return keep if value is None else keep(value)


def supported_by(compiler: str) -> dict[str, Support]:
    """The operators that a compiler takes by themselves."""
    return dict(_supported.get(compiler, {}))


def forget(compiler: str) -> None:
    """Remove all that was registered for a compiler."""
    for name in (f"{GENERATOR}{compiler}", f"{LOADER}{compiler}"):
        remove_global_func(name)
    _tables.pop(compiler, None)
    _supported.pop(compiler, None)


def _compiler(name: str) -> str:
    """Of a code generator: whose it is; empty for other functions, such as `relay.ext.NAME.constant_updater`."""
    found = name.removeprefix(GENERATOR) if name.startswith(GENERATOR) else ""
    return "" if "." in found else found
