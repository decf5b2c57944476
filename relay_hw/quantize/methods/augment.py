"""Augments calibration samples for training, which needs no labels: the float network is the teacher.

In: arrays of samples. Out: as many others, mixed of pairs; images are flipped and shifted, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Expr
from relay_hw.quantize.steps import LinearStep, Plan
from relay_hw.transform.graph import is_op

Array = NDArray[Any]
SHIFT: Final = 8  # images move by up to this part of their size


def image_axes(plan: Plan) -> dict[Expr, tuple[int, int]]:
    """Height and width of each input that a convolution of `plan` reads."""
    found: dict[Expr, tuple[int, int]] = {}
    for step in plan.steps:
        if isinstance(step, LinearStep) and is_op(step.linear.anchor, "nn.conv2d"):
            layout = step.linear.anchor.attrs.data_layout
            found[step.inputs[0]] = (layout.index("H"), layout.index("W"))
    return found


def augmented(
    given: Mapping[Expr, Array], images: Mapping[Expr, tuple[int, int]], rng: np.random.Generator
) -> dict[Expr, Array]:
    """Other samples like those of `given`, which has samples on the first axes.

    Half of the samples become a mixture with another one. Where an image is all that is given, each is flipped or not,
    and moved, its edge repeated. What is no float stays as it is, with all that comes with it.
    """
    if any(array.dtype.kind != "f" or array.ndim == 0 for array in given.values()):
        return dict(given)
    count = len(next(iter(given.values())))
    other, share = rng.permutation(count), rng.random(count) * (rng.random(count) < 0.5)
    found: dict[Expr, Array] = {}
    for key, array in given.items():
        spread = share.astype(array.dtype).reshape(-1, *(1,) * (array.ndim - 1))
        found[key] = array + spread * (array[other] - array)
    if len(found) == 1:
        key, array = next(iter(found.items()))
        if key in images:
            found[key] = np.stack([_moved(one, images[key], rng) for one in array])
    return found


def _moved(image: Array, axes: tuple[int, int], rng: np.random.Generator) -> Array:
    """One sample, flipped or not, and shifted along both axes."""
    height, width = (axis - 1 for axis in axes)
    if rng.random() < 0.5:
        image = np.flip(image, width)
    for axis in (height, width):
        size = image.shape[axis]
        places = np.arange(size) + rng.integers(-(size // SHIFT), size // SHIFT + 1)
        image = np.take(image, np.clip(places, 0, size - 1), axis)
    return image
