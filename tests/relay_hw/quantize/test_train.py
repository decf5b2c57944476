"""Training: what it may see, what it makes of few samples, what it says that it brought."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Var
from relay_hw.ir.types import TensorType
from relay_hw.quantize import Calibration, Strategy, WeightRange, realize_module
from relay_hw.quantize.methods.augment import augmented
from relay_hw.quantize.methods.train import Gain, hold_out
from relay_hw.runtime.compile import bind_params
from tests.relay_hw import recurrent
from tests.relay_hw.quantize.networks import images, network, noise

START = Strategy(
    "start", weight_bits=3, calibration=Calibration.MSE, weight_range=WeightRange.MSE, bias_correction=True
)


def test_what_training_brought_is_what_samples_show_that_it_did_not_see():
    mod, data = network(), images(128)
    found = realize_module(mod, replace(START, epochs=20, learning_rate=2e-3), data)
    assert found.gain is not None
    gain = found.gain.end_db - found.gain.start_db
    assert gain > 1.0 and found.gain.samples == 32
    assert found.notes == (found.gain.sentence(),)
    plain = realize_module(mod, START, hold_out(mod, data)[0])
    test = images(seed=2)
    brought = 10 * np.log10(noise(mod, plain.mod, test) / noise(mod, found.mod, test))
    assert brought > 0.5 * gain


def test_no_gain_keeps_the_start_and_says_so():
    mod, data = network(), images(32)
    # A rate that spoils everything at its first step.
    found = realize_module(mod, replace(START, epochs=1, learning_rate=1.0), data)
    assert found.gain is not None and found.gain.end_db == found.gain.start_db
    plain = realize_module(mod, START, hold_out(mod, data)[0])
    assert noise(plain.mod, found.mod, images(seed=2)) == 0.0
    assert found.notes[0].startswith("training: no gain on 8 held-out samples, start kept (")


def test_sentences_of_gains():
    assert Gain(12.04, 14.5, 25).sentence() == (
        "training: +2.5 dB of signal-to-noise on 25 held-out samples, 12.0 to 14.5 dB"
    )
    assert Gain(12.04, 12.04, 25).sentence() == "training: no gain on 25 held-out samples, start kept (12.0 dB)"


def test_samples_that_judge_are_no_samples_that_train():
    data = {"x": np.arange(7 * 3 * 8 * 8, dtype=np.float32).reshape(7, 3, 8, 8)}
    shown, held = hold_out(network(), data)
    np.testing.assert_array_equal(held["x"], data["x"][[1, 5]])
    np.testing.assert_array_equal(shown["x"], data["x"][[0, 2, 3, 4, 6]])
    with pytest.raises(QuantizeError, match="calibration data must hold at least 2 samples to train with, not 1"):
        hold_out(network(), {"x": data["x"][:1]})


def test_other_samples_stay_between_those_that_there_are():
    x = Var("x", TensorType((64, 3, 8, 8)))
    given = {x: images(64)["x"]}
    for axes in ({}, {x: (2, 3)}):
        found = augmented(given, axes, np.random.default_rng(0))[x]
        assert found.shape == given[x].shape and found.dtype == np.float32
        assert (found != given[x]).any(axis=(1, 2, 3)).mean() > 0.3
        assert given[x].min() <= found.min() and found.max() <= given[x].max()
    words = {x: np.arange(4), Var("y", TensorType((4,))): np.zeros(4, np.float32)}
    for key, array in augmented(words, {}, np.random.default_rng(0)).items():
        np.testing.assert_array_equal(array, words[key])


def test_fragments_with_several_results_learn_too():
    mod, weights = recurrent.lstm(16, 8, 3)
    data = {"x": recurrent.sequences(8, 3, 16).reshape(-1, 1, 16)}
    strategy = replace(START, epochs=2, learning_rate=1e-3)
    found = realize_module(bind_params(mod, weights), strategy, data)
    gains = [fragment.realized.gain for fragment in found.fragments.values() if fragment.realized.gain is not None]
    assert gains and all(gain.samples > 0 and gain.end_db >= gain.start_db > 0 for gain in gains)
    assert any("held-out samples" in note for note in found.notes)
