"""Data of the small network that comparisons are tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.relay_hw.small_models import CLASSES, images

NAMES = ("int8-minmax", "int8-pow2", "w4a8")


def data(count: int = 21, seed: int = 3) -> dict[str, Any]:
    return {"image": images(count, seed), "labels": np.arange(count) % CLASSES}


def calibration() -> dict[str, Any]:
    return {"image": images(8, 99)}


def seen() -> dict[str, Any]:
    """What strategies see of `calibration()`: all but every fourth sample."""
    return {"image": np.delete(images(8, 99), [3, 7], axis=0)}
