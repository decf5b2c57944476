"""scripts/measure_mixed.py, measure_methods.py and train_mobilenet.py without their hours: rules, pages, one step."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
mixed: ModuleType = __import__("measure_mixed")
methods: ModuleType = __import__("measure_methods")
training: ModuleType = __import__("train_mobilenet")
sys.path.pop(0)


def test_what_dominates() -> None:
    def ask(cycles: int, decibels: float) -> list[str]:
        front = [mixed.Point("a", 100, 20.0), mixed.Point("b", 200, 30.0), mixed.Point("c", 250, 29.0)]
        return mixed.dominating([mixed.Point("u", cycles, decibels)], front)

    assert ask(99, 21.0) == ["u"] and ask(199, 31.0) == ["u"]
    # As good as a point of the front; faster than all, but noisier; between two points.
    assert not ask(200, 30.0) and not ask(90, 19.0) and not ask(150, 25.0)
    # It beats one choice, but another one is as good.
    assert not ask(240, 29.5)


def test_the_page_is_what_was_measured() -> None:
    text = mixed.PAGE.read_text()
    for module, command in ((mixed, "make measure-mixed"), (methods, "make measure-methods")):
        assert text == module.page(text, json.loads(module.RESULTS.read_text())), f"run: {command}"


def test_what_is_shown_leaves_every_fourth_sample_out() -> None:
    assert methods.shown({"x": np.arange(9)})["x"].tolist() == [0, 1, 2, 4, 5, 6, 8]


def test_a_compressed_image_is_the_same_image() -> None:
    rng = np.random.default_rng(0)
    others = rng.uniform(0, 255, size=(5, 3, 32, 32))
    images = np.concatenate([others[2:3] + rng.normal(size=(1, 3, 32, 32)) * 5, 255 - others[:1]])
    assert training.unseen(images, others).tolist() == [False, True]


def test_steps_bring_answers_nearer_and_stay_in_the_network() -> None:
    mod = training.untrained()
    lesson = training.Lesson(mod)
    rng = np.random.default_rng(0)
    images = rng.normal(size=(training.BATCH, 3, training.SIZE, training.SIZE)).astype(np.float32)
    wanted = rng.normal(size=(training.BATCH, training.CLASSES)).astype(np.float32)
    losses = [lesson.step(images, wanted, 1e-3, number) for number in range(1, 6)]
    assert losses[-1] < losses[0]
    found = training.learned(mod, lesson.values)
    name = mod["main"].params[0].name_hint
    assert not np.array_equal(methods.results(found, {name: images[:4]}), methods.results(mod, {name: images[:4]}))
