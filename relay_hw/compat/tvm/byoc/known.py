"""State of the BYOC registries: functions, pattern tables and supported operators by name.

In: names as TVM has them. Out: what was registered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from relay_hw.errors import InputError
from relay_hw.ir.expr import Call
from relay_hw.transform.merge_composite import Entry

GENERATOR: Final = "relay.ext."
LOADER: Final = "runtime.module.loadbinary_"

Support = bool | Callable[[Call], bool]
Table = Sequence[Entry]

functions: Final[dict[str, Callable[..., Any]]] = {}
tables: Final[dict[str, Table]] = {}
supported: Final[dict[str, dict[str, Support]]] = {}


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """The function of this name. Raises InputError for an unknown one, unless it may be missing."""
    if name not in functions and not allow_missing:
        raise InputError(f"global function must be a registered one, not {name}")
    return functions.get(name)


def list_global_func_names() -> list[str]:
    """The names of all of them."""
    return sorted(functions)


def get_pattern_table(compiler: str) -> Table | None:
    """A compiler's patterns; None if it has none."""
    return tables.get(compiler)


def supported_by(compiler: str) -> dict[str, Support]:
    """The operators that a compiler takes by themselves."""
    return dict(supported.get(compiler, {}))
