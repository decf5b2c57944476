"""The Python programs of the seeds: figure 4 trains, is exported and compiled; the attention generator generates."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from examples import attention_generator, digit_rows, digits, figure4
from relay_hw import fromtext, save_json
from relay_hw.frontend.python import relay
from relay_hw.interp import evaluate
from relay_hw.ir.expr import RefCreate, RefRead, RefWrite
from relay_hw.ir.visit import post_order


def test_a_first_script(capsys: pytest.CaptureFixture[str]) -> None:
    digits.main(["--images", "5"])
    shown = capsys.readouterr().out
    assert "100.0% of 5 images are read right" in shown and "4,211 cycles an inference" in shown
    assert "int8-pow2" in shown and "cycles on the faster of two small accelerators" in shown


def accuracy(model, images: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.argmax(model(images), axis=1) == np.argmax(labels, axis=1)))


def test_figure_4_learns_and_its_model_is_a_module() -> None:
    (images, labels), test = relay.datasets.mnist()
    assert images.shape == (4000, 1, 28, 28) and labels.shape == (4000, 10)
    model = relay.create_model(figure4.lenet)
    assert sum(param.size for param in model.params) == 431_080
    for at in range(0, 480, 8):
        batch = slice(at, at + 8)
        slopes = relay.grad(model, figure4.loss, (images[batch], labels[batch]))
        relay.update_model_params(model, slopes, learning_rate=0.1)
    exported = relay.export_model(model)
    assert accuracy(exported, *(part[:200] for part in test)) > 0.6
    mod = exported.module(batch=1)
    np.testing.assert_allclose(evaluate(mod, [images[:1]])[0], exported(images[0]), rtol=1e-3, atol=1e-4)


def test_figure_4_is_one_relay_program() -> None:
    mod = figure4.train_lenet.mod
    assert {"train_lenet", "loss_gradient"} <= set(mod.functions)
    params = [str(param.type) for param in mod["train_lenet"].params]
    assert params == ["Tensor[(4000, 1, 28, 28), float32]", "Tensor[(4000, 10), float32]", "int32"]
    nodes = list(post_order(mod["loss_gradient"]))
    assert not [node for node in nodes if isinstance(node, (RefCreate, RefRead, RefWrite))]


def rows_right(model, images: np.ndarray, labels: np.ndarray) -> float:
    rows, wanted = digit_rows.batches(images, labels)
    return float(np.mean([np.argmax(model(x), -1) == np.argmax(y, -1) for x, y in zip(rows, wanted, strict=True)]))


def test_a_loop_over_the_rows_of_digits_learns() -> None:
    assert "loss_gradient" in digit_rows.train.mod.functions
    training, test = relay.datasets.mnist()
    model = relay.create_model(digit_rows.reader, sigma=0.1)
    for x, y in zip(*digit_rows.batches(*training), strict=True):
        relay.update_model_params(model, relay.grad(model, digit_rows.loss, (x, y)), learning_rate=0.5)
    assert rows_right(model, *(part[:400] for part in test)) > 0.5


@pytest.mark.long
def test_a_loop_over_the_rows_of_digits_reaches_95_percent() -> None:
    training, test = relay.datasets.mnist()
    model = digit_rows.train(*digit_rows.batches(*training), 12)
    print(f"{rows_right(model, *test):.1%} of unseen digits, read row by row")
    assert rows_right(model, *test) >= 0.95


def test_notes_name_each_repaired_line() -> None:
    text = Path(figure4.__file__).read_text()
    assert text.count("# Was ") == 5


@pytest.mark.long
def test_figure_4_reaches_97_percent_and_is_compiled(tmp_path: Path) -> None:
    from relay_hw.cli.main import main

    training, test = relay.datasets.mnist()
    begin = time.process_time()
    model = figure4.train_lenet(*training, 5)
    seconds = time.process_time() - begin
    print(f"trained in {seconds:.0f} s, {accuracy(model, *test):.1%} of unseen digits")
    assert accuracy(model, *test) >= 0.97 and seconds < 120
    file, data, build = tmp_path / "lenet.json", tmp_path / "digits.npz", tmp_path / "build"
    file.write_text(save_json(model.module(batch=1)))
    np.savez(data, x=training[0][:32])
    assert main(["compile", str(file), "-o", str(build), "--calibration", str(data)]) == 0
    np.savez(data, x=test[0][:20], labels=test[1][:20].argmax(1))
    assert main(["run", str(build), "--input", str(data), "--output", str(tmp_path / "out.npz")]) == 0
    with np.load(tmp_path / "out.npz") as found:
        (scores,) = (found[name] for name in found.files)
    assert np.mean(scores.reshape(20, 10).argmax(1) == model(test[0][:20]).argmax(1)) >= 0.95


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("limit", [1, 2, 7, 30])
def test_the_attention_generator(limit: int) -> None:
    rng = np.random.default_rng(limit)
    state, start = (rng.normal(size=8).astype("float32") for _ in range(2))
    w, u = (rng.normal(0, 0.4, (8, 8)).astype("float32") for _ in range(2))
    found, last = attention_generator.generator(state, start, w, u, limit)
    outputs = [start]
    while True:
        weights = np.exp([state @ output for output in outputs])
        context = weights @ np.stack(outputs) / weights.sum()
        state = np.tanh(state @ w + context @ u)
        outputs.append(sigmoid(state @ w))
        if np.abs(outputs[-1] - context).sum() < 0.5 or len(outputs) >= limit:
            break
    assert len(found) == len(outputs)
    np.testing.assert_allclose(found, outputs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last, state, rtol=1e-4, atol=1e-5)
    assert fromtext(attention_generator.generator.mod.astext())
