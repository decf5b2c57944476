"""Builders of the `image.*` operators under Relay's names."""

from __future__ import annotations

from relay_hw.op.resize import crop_and_resize, resize1d, resize2d, resize3d
from relay_hw.op.sampling import affine_grid, grid_sample

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "grid_sample",
    "resize1d",
    "resize2d",
    "resize3d",
]
