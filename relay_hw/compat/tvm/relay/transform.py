"""TVM's `relay.transform`: the passes, and the infrastructure beside them."""

from collections.abc import Sequence

from relay_hw import transform as _transform
from relay_hw.compat.tvm.byoc.registry import supported_by as _supported_by
from relay_hw.transform import *  # noqa: F403
from relay_hw.transform import __all__  # noqa: F401


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> _transform.AnnotateTarget:
    """The pass, with the operators that were registered for each compiler by `tvm.ir.register_op_attr`."""
    names = (targets,) if isinstance(targets, str) else tuple(targets)
    supported = {name: _supported_by(name) for name in names}
    return _transform.AnnotateTarget(names, include_non_call_ops, supported)
