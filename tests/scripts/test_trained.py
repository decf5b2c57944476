"""The trained transformers of `examples/`: the files are what the scripts made, and as good as docs/results say."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.demo.digits import read_digits
from relay_hw.ir.module import IRModule
from relay_hw.quantize.batch import run_samples
from scripts import measure_trained, ngram, text_data

ROOT = Path(__file__).parents[2]
FOUND = json.loads(measure_trained.RESULTS.read_text())
TEXT = text_data.load_text()
LIMIT = 3_000_000


@pytest.fixture(scope="module")
def language() -> IRModule:
    return measure_trained.float_network(measure_trained.LANGUAGE)


def test_the_files_are_those_that_were_measured_and_small() -> None:
    paths = {"vit": measure_trained.VIT, "language": measure_trained.LANGUAGE}
    assert {name: measure_trained.sha256(path) for name, path in paths.items()} == {
        name: row["sha256"] for name, row in FOUND.items()
    }
    trained = [*paths.values(), ROOT / "examples" / "mnist_cnn.onnx"]
    assert sum(path.stat().st_size for path in trained) < LIMIT


def test_the_text_is_learned_or_held_out() -> None:
    whole = text_data.text_path().read_bytes()
    parts = [part for pair in zip(TEXT.learned, TEXT.unseen, strict=True) for part in pair]
    assert b"".join(part.tobytes() for part in parts) == whole
    assert 0.08 < sum(map(len, TEXT.unseen)) / len(whole) < 0.11
    assert measure_trained.spread(TEXT, 5).shape == (5, text_data.CONTEXT)


def test_another_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").write_text("light")
    monkeypatch.setattr(text_data, "text_path", lambda: tmp_path / "other")
    with pytest.raises(ValueError, match=r"the text's SHA-256 must be d4a9ac.*, not "):
        text_data.load_text()


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_data, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="the package tvm_ffi must be there, it ships the text"):
        text_data.text_path()


def test_windows_and_three_bytes_judge_the_same_bytes() -> None:
    _, following = text_data.windows(TEXT.unseen)
    judged = [part[begin:] for part, begin in text_data.judged(TEXT.unseen)]
    np.testing.assert_array_equal(np.concatenate(judged), following[:, -text_data.STRIDE :].reshape(-1))


def kneser_ney(text: bytes) -> dict[tuple[int, ...], dict[int, float]]:
    """Probabilities of the third byte behind each two that were seen, by dictionaries, from the paper."""
    counts: list[dict[tuple[int, ...], Counter[int]]] = [defaultdict(Counter) for _ in range(3)]
    for at in range(2, len(text)):
        counts[2][text[at - 2], text[at - 1]][text[at]] += 1
    for order in (1, 0):
        for context, after in counts[order + 1].items():
            for byte in after:
                counts[order][context[1:]][byte] += 1
    tables: dict[tuple[int, ...], dict[int, float]] = {}
    for order in range(3):
        many = Counter(number for after in counts[order].values() for number in after.values())
        share = many[1] / (many[1] + 2 * many[2])
        lost = [0.0, *(k - (k + 1) * share * many[k + 1] / many[k] for k in (1, 2, 3))]
        for context, after in counts[order].items():
            discounts = {byte: lost[min(number, 3)] for byte, number in after.items()}
            total, rest = sum(after.values()), sum(discounts.values())
            below = tables[context[1:]] if context else dict.fromkeys(range(256), 1 / 256)
            tables[context] = {
                byte: (after[byte] - discounts.get(byte, 0.0) + rest * below[byte]) / total for byte in range(256)
            }
    return {context: table for context, table in tables.items() if len(context) == 2}


def test_kneser_ney_is_what_the_paper_says() -> None:
    text = TEXT.learned[0][1000:7000]
    model = ngram.KneserNey([text])
    np.testing.assert_allclose(model.probability.sum(axis=-1), 1)
    assert model.probability.min() > 0
    wanted = kneser_ney(text.tobytes())
    contexts = list(wanted)[::40]
    given = [model.probability[context] for context in contexts]
    np.testing.assert_allclose(given, [list(wanted[context].values()) for context in contexts], rtol=1e-12)
    unseen = next(pair for pair in np.ndindex(256, 256) if pair not in wanted)
    cost = model.bits(np.asarray([*unseen, 32], np.uint8), 2)
    assert cost.tolist() == [-math.log2(model.probability[unseen][32])]


def test_few_bytes_can_be_counted() -> None:
    model = ngram.KneserNey([np.frombuffer(b"abcabc", np.uint8)])
    np.testing.assert_allclose(model.probability.sum(axis=-1), 1)
    assert model.probability[ord("a"), ord("b")].argmax() == ord("c")


def test_the_vit_knows_unseen_digits() -> None:
    mod = measure_trained.float_network(measure_trained.VIT)
    _, test = read_digits()
    some = test.take(np.arange(0, len(test.labels), 5))
    logits = run_samples(mod, {"input": some.images})
    assert measure_trained.accuracy(logits, some) >= FOUND["vit"]["accuracy"] - 0.02


def test_the_language_model_beats_three_bytes(language: IRModule) -> None:
    symbols, following = (array[::32] for array in text_data.windows(TEXT.unseen))
    bits = measure_trained.bits_a_byte(measure_trained.language_logits(language, symbols), following)
    model = ngram.KneserNey(TEXT.learned)
    tails = [np.concatenate(pair) for pair in zip(symbols[:, -2:], following[:, -1:], strict=True)]
    assert bits < 0.9 * np.mean([model.bits(tail.astype(np.uint8), 2) for tail in tails])
    assert abs(bits - FOUND["language"]["bits_a_byte"]) < 0.15


def test_the_language_model_sees_nothing_that_comes_later(language: IRModule) -> None:
    symbols = measure_trained.spread(TEXT, 2)
    changed = symbols.copy()
    changed[:, -1] = ord("Q")
    given, other = (measure_trained.language_logits(language, array) for array in (symbols, changed))
    np.testing.assert_allclose(given[:, :-1], other[:, :-1], rtol=1e-4, atol=1e-4)
    assert not np.allclose(given[:, -1], other[:, -1])


def test_what_was_measured_is_within_the_bars() -> None:
    vit, language = FOUND["vit"], FOUND["language"]
    assert language["bits_a_byte"] < 0.85 * language["three_bytes"]
    agreement: dict[str, Any] = {name: row["agreement"] for name, row in vit["strategies"].items()}
    assert agreement["int8"] >= 0.99 and agreement["w4a8"] >= 0.98
    ratio = {name: row["perplexity_ratio"] for name, row in language["strategies"].items()}
    assert ratio["int8"] <= 1.01 and ratio["w4a8"] <= 1.05


def test_the_page_is_what_was_measured() -> None:
    text = measure_trained.PAGE.read_text()
    assert text == measure_trained.page(text, FOUND), "run: make measure-trained"


def test_the_files_are_what_the_scripts_write(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch must be there to make the networks anew: pip install torch")
    import onnx
    from onnx import numpy_helper

    from scripts import train_language, train_vit

    for script, network, path in (
        (train_vit, train_vit.MnistVit(), measure_trained.VIT),
        (train_language, train_language.LanguageModel(), measure_trained.LANGUAGE),
    ):
        graph = onnx.load(path).graph
        turned = {node.input[1] for node in graph.node if node.op_type == "MatMul"}
        found = {one.name: torch.from_numpy(numpy_helper.to_array(one).copy()) for one in graph.initializer}
        state = {name: found[name].T if name in turned else found[name] for name in network.state_dict()}
        network.load_state_dict(state)
        script.export(network.eval(), tmp_path / path.name)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
