"""The pass InferType: returns the module with every node typed."""

from __future__ import annotations

from relay_hw.analysis.infer import infer_type
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import Pass


class InferType(Pass):
    """Types every node. Raises TypeCheckError if a node has no type."""

    name = "infer-type"

    def _run(self, mod: IRModule) -> IRModule:
        return self.transform(mod)

    def transform(self, mod: IRModule) -> IRModule:
        return infer_type(mod)
