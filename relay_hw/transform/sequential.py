"""Sequences of passes. In: passes, and the context that enables them. Out: one pass."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.analysis.infer import infer_type
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import Pass, is_typed
from relay_hw.transform.context import PassContext, PassInfo
from relay_hw.transform.passes import get_pass


class Sequential(Pass):
    """Passes one after the other: those that the context enables, each after the passes that it requires."""

    name = "sequential"

    def __init__(
        self,
        passes: Sequence[Pass] = (),
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] = (),
    ) -> None:
        self.passes = tuple(passes)
        self._info = PassInfo(opt_level, name, tuple(required))

    @property
    def info(self) -> PassInfo:
        return self._info

    def transform(self, mod: IRModule) -> IRModule:
        context = PassContext.current()
        for step in self.passes:
            if context.pass_enabled(step.info):
                for needed in step.info.required:
                    mod = get_pass(needed)(mod)
                mod = step(mod)
        return mod

    def _run(self, mod: IRModule) -> IRModule:
        new = self.transform(mod)
        return new if is_typed(new) else infer_type(new)

    def __repr__(self) -> str:
        return f"Sequential([{', '.join(map(repr, self.passes))}])"


class Pipeline(Sequential):
    """Passes that belong together: all of them run, whatever the level of the context."""

    def transform(self, mod: IRModule) -> IRModule:
        for step in self.passes:
            mod = step(mod)
        return mod
