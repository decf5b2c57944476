"""Relay's operators, with attributes, type relation and reference semantics in numpy; and builders by Relay's names.

A family is a file. It exports its builders by its `__all__`, here or in `nn`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Op, Trait
from relay_hw.op import (
    activation,
    annotation,
    blocks,
    boxes,
    broadcast,
    casts,
    contraction,
    conv,
    conv_transpose,
    counting,
    create,
    dense,
    dynamic,
    dynamic_elements,
    dynamic_shape,
    elementwise,
    expand,
    fixed,
    fixed_scale,
    fixed_sums,
    flatten,
    image,
    join,
    layout,
    loss,
    nn,
    norm,
    padding,
    patches,
    placing,
    plain_norm,
    pool,
    qnn,
    qnn_arith,
    qnn_floats,
    qnn_products,
    qnn_scale,
    random,
    reduce,
    region_align,
    region_pool,
    resample,
    resize,
    rows,
    sampling,
    selection,
    shape,
    signal,
    simulated,
    sizes,
    slices,
    softmax,
    upsampling,
    vision,
)
from relay_hw.op import arange as arange_family
from relay_hw.op import einsum as einsum_family
from relay_hw.op import gather as gather_family
from relay_hw.op import sort as sort_family
from relay_hw.op.annotation import *
from relay_hw.op.arange import *
from relay_hw.op.base import const
from relay_hw.op.broadcast import *
from relay_hw.op.casts import *
from relay_hw.op.contraction import *
from relay_hw.op.create import *
from relay_hw.op.einsum import *
from relay_hw.op.elementwise import *
from relay_hw.op.expand import *
from relay_hw.op.gather import *
from relay_hw.op.join import *
from relay_hw.op.layout import *
from relay_hw.op.placing import *
from relay_hw.op.reduce import *
from relay_hw.op.selection import *
from relay_hw.op.shape import *
from relay_hw.op.signal import *
from relay_hw.op.sizes import *
from relay_hw.op.slices import *
from relay_hw.op.sort import *
from relay_hw.op.tvm_operators import is_known
from relay_hw.support.names import did_you_mean

FAMILIES: Final = (
    elementwise,
    activation,
    casts,
    broadcast,
    reduce,
    shape,
    flatten,
    sizes,
    layout,
    expand,
    create,
    arange_family,
    join,
    slices,
    padding,
    gather_family,
    conv,
    conv_transpose,
    dense,
    pool,
    region_pool,
    norm,
    plain_norm,
    softmax,
    upsampling,
    loss,
    qnn_scale,
    qnn_arith,
    qnn_products,
    qnn_floats,
    fixed_scale,
    fixed_sums,
    rows,
    annotation,
    blocks,
    sort_family,
    dynamic_shape,
    dynamic_elements,
    selection,
    placing,
    einsum_family,
    contraction,
    resample,
    resize,
    sampling,
    region_align,
    boxes,
    patches,
    signal,
    counting,
    random,
    simulated,
)
OPS: Final[tuple[Op, ...]] = tuple(op for family in FAMILIES for op in family.OPS)
_BY_NAME: Final = MappingProxyType({op.name: op for op in OPS})


def with_trait(*traits: Trait) -> tuple[str, ...]:
    """Names of all operators with these traits."""
    return tuple(op.name for op in OPS if op.traits.issuperset(traits))


def get(name: str) -> Op:
    """The operator called `name`. Raises UnsupportedError if there is none."""
    found = _BY_NAME.get(name)
    if found is None and is_known(name):
        raise UnsupportedError(f"operator {name} is not implemented yet")
    if found is None:
        hint = did_you_mean(name, _BY_NAME)
        raise UnsupportedError(f"an operator must be one of the {len(OPS)} in relay_hw.op.OPS, not {name}{hint}")
    return found


__all__ = [
    "FAMILIES",
    "OPS",
    "annotation",
    "const",
    "contraction",
    "counting",
    "dynamic",
    "fixed",
    "get",
    "image",
    "nn",
    "patches",
    "qnn",
    "random",
    "selection",
    "signal",
    "simulated",
    "vision",
    "with_trait",
]
__all__ += annotation.__all__
__all__ += arange_family.__all__
__all__ += broadcast.__all__
__all__ += casts.__all__
__all__ += contraction.__all__
__all__ += create.__all__
__all__ += einsum_family.__all__
__all__ += elementwise.__all__
__all__ += expand.__all__
__all__ += gather_family.__all__
__all__ += join.__all__
__all__ += layout.__all__
__all__ += placing.__all__
__all__ += reduce.__all__
__all__ += selection.__all__
__all__ += shape.__all__
__all__ += signal.__all__
__all__ += sizes.__all__
__all__ += slices.__all__
__all__ += sort_family.__all__
