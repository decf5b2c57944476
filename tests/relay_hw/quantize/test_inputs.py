"""What calibration saw against what comes later: every mistake of preparation is named, chance never is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from relay_hw.quantize.inputs import LEAST_SAMPLES, complaint, look, shape_hint

MODELS = Path(__file__).parents[3].parent / "shared" / "models"
Draw = Callable[[np.random.Generator, int], np.ndarray]


def pictures(rng: np.random.Generator, count: int) -> np.ndarray:
    """Smooth images [count, 3, 16, 16] in [0, 1], whose channels resemble one another."""
    waves = rng.normal(size=(count, 1, 3, 1, 1)) + 0.3 * rng.normal(size=(count, 3, 3, 1, 1))
    y, x = np.mgrid[0:1:16j, 0:1:16j]
    shapes = np.stack([np.ones_like(x) / 3, np.sin(7 * x + 2 * y), np.cos(6 * y - 3 * x)])
    return 1 / (1 + np.exp(-(waves * shapes).sum(axis=2)))


DRAWS: dict[str, Draw] = {
    "pictures": pictures,
    "normal": lambda rng, n: rng.normal(size=(n, 3, 8, 8)),
    "uniform": lambda rng, n: rng.uniform(-1, 1, (n, 24)),
    "lognormal": lambda rng, n: np.exp(rng.normal(size=(n, 10))),
    "heavy tails": lambda rng, n: rng.standard_t(3, size=(n, 16)),
    "sparse": lambda rng, n: rng.normal(size=(n, 64)) * (rng.uniform(size=(n, 64)) < 0.05),
    "random walks": lambda rng, n: np.cumsum(rng.normal(size=(n, 1, 100)), axis=2),
    "loud and quiet": lambda rng, n: rng.normal(size=(n, 100)) * rng.exponential(size=(n, 1)),
    "counts": lambda rng, n: rng.poisson(3, (n, 20)),
    "bits": lambda rng, n: rng.integers(0, 2, (n, 30)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_samples_of_one_kind_raise_no_alarm(name: str) -> None:
    rng = np.random.default_rng(crc32(name.encode()))
    for calibrated in (1, 8, LEAST_SAMPLES, 32, 128):
        for given in (1, 2, 10, 100):
            for _ in range(10):
                seen = look(DRAWS[name](rng, calibrated))
                assert complaint(DRAWS[name](rng, given), seen) == ""


@pytest.mark.parametrize("network", ["mnist_cnn8", "resnet8_cifar10", "mobilenet_v1_0.25_128", "mnist_lstm"])
def test_test_data_of_trained_networks_raise_no_alarm(network: str) -> None:
    if not (MODELS / network).is_dir():
        pytest.skip(f"the data of {network} must be in {MODELS}")
    rng = np.random.default_rng(0)
    calibration, test = (dict(np.load(MODELS / network / f"{name}.npz")) for name in ("calibration", "test"))
    (name,) = (name for name in calibration if name in test and calibration[name].dtype.kind == "f")
    for calibrated in (8, LEAST_SAMPLES, 64):
        for given in (1, 20):
            for _ in range(5):
                seen = look(rng.permutation(calibration[name])[:calibrated])
                assert complaint(rng.permutation(test[name])[:given], seen) == ""


def reshaped(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 2, 3, 1).reshape(x.shape)


@pytest.mark.parametrize(
    ("calibrated", "given", "sentence"),
    [
        (lambda x: x, lambda x: x * 255, " times as far; is it scaled alike?"),
        (lambda x: x, lambda x: (x * 255).astype(np.uint8), "uint8 where calibration had float64"),
        (lambda x: x * 255, lambda x: x, " of the calibrated range ["),
        (lambda x: x, lambda x: (x - 0.45) / 0.25, "% of values are outside the calibrated range"),
        (lambda x: x, lambda x: 2 * x - 1, "% of values are outside the calibrated range"),
        (lambda x: (x - 0.45) / 0.12, lambda x: x, "; is it normalised alike?"),
        (lambda x: 2 * x - 1, lambda x: x, "; is it normalised alike?"),
        (lambda x: x, reshaped, "are its axes in the same order?"),
    ],
)
@pytest.mark.parametrize("count", [20, 200])
def test_data_prepared_in_another_way_are_named(
    calibrated: Callable[[np.ndarray], np.ndarray],
    given: Callable[[np.ndarray], np.ndarray],
    sentence: str,
    count: int,
) -> None:
    rng = np.random.default_rng(0)
    seen = look(calibrated(pictures(rng, 64)))
    assert sentence in complaint(given(pictures(rng, count)), seen)


def test_the_share_outside_is_counted() -> None:
    before = look(np.linspace(-1, 1, 200).reshape(100, 2))
    now = np.concatenate([np.full(62, 1.5), np.zeros(38)]).reshape(50, 2)
    text = "62 % of values are outside the calibrated range [-1, 1]: they are 0 to 1.5; is it normalised alike?"
    assert complaint(now, before) == text


def test_constants_and_empty_shapes() -> None:
    zeros = look(np.zeros((20, 4)))
    assert zeros.is_constant and complaint(np.zeros((3, 4)), zeros) == ""
    assert complaint(np.ones((3, 4)), zeros).startswith("100 % of values are outside the calibrated range [0, 0]")
    numbers = look(np.arange(20.0))
    assert not numbers.is_constant and complaint(np.array([7.0]), numbers) == ""


@pytest.mark.parametrize(
    ("given", "wanted", "hint"),
    [
        ((32, 32, 3), (3, 32, 32), "; its axes are in another order: transpose it by (0, 3, 1, 2)"),
        ((3, 16, 32), (16, 32, 3), "; its axes are in another order: transpose it by (0, 2, 3, 1)"),
        ((784,), (1, 28, 28), "; it has as many elements: reshape it"),
        ((28, 28), (1, 28, 28), "; it has as many elements: reshape it"),
        ((28, 27), (1, 28, 28), ""),
        ((), (), ""),
    ],
)
def test_what_to_do_about_a_shape(given: tuple[int, ...], wanted: tuple[int, ...], hint: str) -> None:
    assert shape_hint(given, wanted) == hint
    if "transpose" in hint:
        order = [int(k) for k in hint.rstrip(")").split("(")[1].split(", ")]
        assert np.zeros((2, *given)).transpose(order).shape[1:] == wanted
