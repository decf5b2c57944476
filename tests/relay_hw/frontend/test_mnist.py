"""The demo's network and data: what the issue asks of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from relay_hw.demo.digits import DIGITS, read_digits
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate

ROOT = Path(__file__).parents[3]
MODEL = ROOT / "examples" / "mnist_cnn.onnx"


@pytest.fixture(scope="module")
def data() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_data", ROOT / "scripts" / "make_data.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["make_data"] = module
    spec.loader.exec_module(module)
    return module


def test_the_split_is_stratified_and_disjoint(data: ModuleType) -> None:
    train, held_out = data.load_split()
    assert len(train.labels) == 4000 and np.bincount(held_out.labels).tolist() == [100] * 10
    assert train.images.shape == (4000, 1, 28, 28) and train.images.dtype == np.float32
    assert train.images.min() >= 0 and train.images.max() == 1
    seen = {image.tobytes() for image in train.images}
    assert not any(image.tobytes() in seen for image in held_out.images)


def test_the_files_are_the_same_every_time(data: ModuleType, tmp_path: Path) -> None:
    _, held_out = data.load_split()
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    data.write(first, held_out.take(np.arange(20)))
    data.write(second, data.load_split()[1].take(np.arange(20)))
    assert first.read_bytes() == second.read_bytes()
    with np.load(first) as found:
        assert sorted(found) == ["input", "labels"] and found["labels"].dtype == np.int64


def test_the_digits_of_the_package_are_of_this_split(data: ModuleType, tmp_path: Path) -> None:
    data.write_package(tmp_path / "digits.npz")
    assert (tmp_path / "digits.npz").read_bytes() == DIGITS.read_bytes()
    calibration, test = read_digits()
    train, held_out = data.load_split()
    np.testing.assert_array_equal(calibration.images, train.images[:128])
    np.testing.assert_array_equal(test.images, held_out.images)
    np.testing.assert_array_equal(test.labels, held_out.labels)
    assert test.images.dtype == np.float32 and test.labels.dtype == np.int64
    assert DIGITS.stat().st_size + MODEL.stat().st_size < 1_000_000


def test_the_network_is_small_and_accurate(data: ModuleType) -> None:
    _, held_out = data.load_split()
    module, params = from_onnx(MODEL, shape=None)
    found = [int(np.argmax(evaluate(module, {"input": image[None], **params}))) for image in held_out.images]
    assert np.mean(np.array(found) == held_out.labels) >= 0.985
