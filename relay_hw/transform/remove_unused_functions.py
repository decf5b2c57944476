"""RemoveUnusedFunctions: removes global functions that no entry point reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relay_hw.ir.expr import GlobalVar
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform.base import Pass


class RemoveUnusedFunctions(Pass):
    """Keeps `entries` and what they call, directly or not."""

    name = "remove-unused-functions"

    def __init__(self, entries: Sequence[str] = ("main",)) -> None:
        self.entries = tuple(entries)

    def transform(self, mod: IRModule) -> IRModule:
        reached: set[str] = set()
        waiting = [name for name in self.entries if name in mod.functions]
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            called = (node.name_hint for node in post_order(mod[name]) if isinstance(node, GlobalVar))
            waiting.extend(other for other in called if other in mod.functions)
        if len(reached) == len(mod.functions):
            return mod
        return replace(mod, functions={name: f for name, f in mod.functions.items() if name in reached})
