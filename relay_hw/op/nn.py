"""Builders of the `nn.*` operators under Relay's names: those that their families export."""

from __future__ import annotations

from relay_hw.op import (
    activation,
    blocks,
    conv,
    conv_transpose,
    flatten,
    loss,
    norm,
    padding,
    patches,
    plain_norm,
    pool,
    region_pool,
)
from relay_hw.op import dense as dense_family
from relay_hw.op import softmax as softmax_family
from relay_hw.op import upsampling as upsampling_family
from relay_hw.op.activation import *
from relay_hw.op.blocks import *
from relay_hw.op.conv import *
from relay_hw.op.conv_transpose import *
from relay_hw.op.dense import *
from relay_hw.op.flatten import *
from relay_hw.op.loss import *
from relay_hw.op.norm import *
from relay_hw.op.padding import *
from relay_hw.op.patches import *
from relay_hw.op.plain_norm import *
from relay_hw.op.pool import *
from relay_hw.op.region_pool import *
from relay_hw.op.softmax import *
from relay_hw.op.upsampling import *

__all__: list[str] = []
__all__ += activation.__all__
__all__ += blocks.__all__
__all__ += conv.__all__
__all__ += conv_transpose.__all__
__all__ += dense_family.__all__
__all__ += flatten.__all__
__all__ += loss.__all__
__all__ += norm.__all__
__all__ += padding.__all__
__all__ += patches.__all__
__all__ += plain_norm.__all__
__all__ += pool.__all__
__all__ += region_pool.__all__
__all__ += softmax_family.__all__
__all__ += upsampling_family.__all__
