"""Data and network of the demo, packaged files.

In: `digits.npz`, grey levels from 0 to 255 of MNIST's digits, and `mnist_cnn.onnx`. Out: arrays as the network takes
them: `input` float32 [N, 1, 28, 28] in [0, 1] and `labels` int64 [N].
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MODEL: Final = Path(__file__).parent / "mnist_cnn.onnx"
DIGITS: Final = Path(__file__).parent / "digits.npz"
INPUT_NAME: Final = "input"
LABELS: Final = "labels"
# The parts of the file: calibration digits, and test digits that were not used in training.
PARTS: Final = ("calibration", "test")
WHITE: Final = np.float32(255)


@dataclass(frozen=True, slots=True)
class Digits:
    """Images float32 [N, 1, 28, 28] in [0, 1] with their labels int64 [N]."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def take(self, indices: NDArray[Any]) -> Digits:
        """Only the images at `indices`."""
        return Digits(self.images[indices], self.labels[indices])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays under their names in a data file."""
        return {INPUT_NAME: self.images, LABELS: self.labels}


def from_levels(levels: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Digits:
    """Digits from grey levels [N, 28, 28], 0 is black."""
    images = levels.reshape(-1, 1, 28, 28).astype(np.float32) / WHITE
    return Digits(images, labels.astype(np.int64))


def read_digits() -> tuple[Digits, Digits]:
    """128 calibration digits and 1,000 test digits, 100 of each class; none of the latter was used in training."""
    with np.load(DIGITS, allow_pickle=False) as file:
        first, second = (from_levels(file[part], file[f"{part}_{LABELS}"]) for part in PARTS)
    return first, second
