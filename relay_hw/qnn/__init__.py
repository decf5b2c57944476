"""The QNN dialect under Relay's names: `relay.qnn.op.quantize` builds operators, `relay.qnn.transform` lowers them."""

import importlib
from typing import TYPE_CHECKING, Any

from relay_hw.op import qnn as op

if TYPE_CHECKING:
    from relay_hw.qnn import transform

__all__ = ["op", "transform"]


def __getattr__(name: str) -> Any:
    """The passes, when they are first asked for."""
    if name == "transform":
        return importlib.import_module("relay_hw.qnn.transform")
    raise AttributeError(f"relay_hw.qnn has no attribute {name!r}")
