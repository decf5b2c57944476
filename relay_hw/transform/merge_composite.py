"""MergeComposite: turns matches of patterns into composite functions that a compiler knows by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay_hw.dataflow_pattern import DFPattern
from relay_hw.ir.expr import Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external

# (name, pattern) or (name, pattern, check); `check(root of a match)` may refuse it.
Entry = tuple[str, DFPattern] | tuple[str, DFPattern, Callable[[Expr], bool]]


class MergeComposite(FunctionPass):
    """Turns each match of an entry of `pattern_table` into a call of a function with the attribute `Composite`.

    Entries are tried in their order, so that larger patterns stand first. Matches never enter other composites.
    """

    name = "merge-composite"
    opt_level = 0
    pins_effects = True

    def __init__(self, pattern_table: Sequence[Entry] = ()) -> None:
        self.pattern_table = tuple(pattern_table)

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        for name, pattern, *check in self.pattern_table:
            new = pattern.partition(function, {"Composite": name}, check[0] if check else None)
            assert isinstance(new, Function)
            function = new
        return function
