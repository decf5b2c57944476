"""Relay's standard library, in Relay text: lists, options, trees, natural numbers, lazy gradients.

In: a module. Out: the module with the library's types and functions, and their names at hand.
"""

from relay_hw.prelude.library import LIBRARIES, Prelude, import_from_std, load_library
from relay_hw.prelude.values import list_items, list_value, nat_count, nat_value

__all__ = [
    "LIBRARIES",
    "Prelude",
    "import_from_std",
    "list_items",
    "list_value",
    "load_library",
    "nat_count",
    "nat_value",
]
