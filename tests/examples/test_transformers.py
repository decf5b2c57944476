"""The example transformers: published sizes, sane activations, one meaning, equal bytes, inputs of every kind."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest

from examples.models import NETWORKS, SMALL, TRANSFORMERS, Example, find, small
from examples.models.__main__ import main
from examples.models.samples import samples
from relay_hw.analysis.products import total_macs
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.visit import post_order
from tests.examples.test_models import digest

NAMES = [example.name for example in TRANSFORMERS]
# Parameters as published (timm, apple's MobileViT, Berg et al.), in thousands.
PUBLISHED = {"deit_tiny": 5717, "mobilevit_xxs": 1272, "kwt_1": 607}
LARGE = ("bert", "llama_prefill", "llama_decode")


@lru_cache
def values(name: str) -> dict[str, tuple[str, np.ndarray]]:
    """Operator and result of every node of the small network, for two samples, from onnxruntime."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model = small(name)
    nodes = {node.output[0]: node.op_type for node in model.graph.node}
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(one) for one in nodes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    data = samples(model, 2, seed=7)
    runs = [session.run(list(nodes), {key: array[at : at + 1] for key, array in data.items()}) for at in range(2)]
    return {key: (nodes[key], np.stack(pair)) for key, pair in zip(nodes, zip(*runs, strict=True), strict=True)}


@pytest.mark.parametrize(
    "example",
    [pytest.param(e, id=e.name, marks=[pytest.mark.long] if e.name in LARGE else []) for e in TRANSFORMERS],
)
def test_work_and_parameters_are_the_published_ones(example: Example) -> None:
    model = example.model()
    mod, _ = from_onnx(model)
    assert total_macs(post_order(mod["main"].body)) == example.macs
    for given, text in ((model.graph.input[0], example.input), (model.graph.output[0], example.output)):
        assert "x".join(str(axis.dim_value) for axis in given.type.tensor_type.shape.dim[1:]) == text
    statistics = ("running_mean", "running_var")
    weights = [one for one in model.graph.initializer if one.data_type == onnx.TensorProto.FLOAT and one.dims]
    count = sum(prod(one.dims) for one in weights if not one.name.endswith(statistics))
    assert abs(count / 1000 - PUBLISHED.get(example.name, count / 1000)) < 2


@pytest.mark.parametrize("name", NAMES)
def test_activations_neither_vanish_nor_explode(name: str) -> None:
    for key, (kind, value) in values(name).items():
        if kind in ("LayerNormalization", "BatchNormalization"):
            assert 0.4 < value.std() < 2.5, f"{key} has deviation {value.std()}"
        if kind in ("Conv", "Gemm") or key.endswith(("fc1.Add.out", "fc2.Add.out", "proj.Add.out", "_proj.MatMul.out")):
            assert 0.1 < value.std() < 4 and np.abs(value).max() < 40, f"{key} has deviation {value.std()}"
        if kind == "Softmax":
            # Neither the mean of all columns nor one of them alone.
            assert 1.5 / value.shape[-1] < value.max(axis=-1).mean() < 0.9, key
    # The network still sees its input at its end: two samples do not give nearly the same.
    first, second = values(name)[small_output(name)][1]
    assert (first - second).std() > 0.1 * first.std()


def small_output(name: str) -> str:
    return small(name).graph.output[0].name


def test_norms_have_outliers() -> None:
    model = find("deit_tiny").model()
    norms = {
        one.name: np.abs(onnx.numpy_helper.to_array(one))
        for one in model.graph.initializer
        if one.name.endswith(("norm1.weight", "norm2.weight"))
    }
    assert len(norms) == 24
    for factors in norms.values():
        assert 3 <= (factors > 3).sum() <= 4 and factors.max() < 5
    assert len({tuple(np.flatnonzero(factors > 3)) for factors in norms.values()}) > 12


@pytest.mark.parametrize("name", NAMES)
def test_the_importer_and_onnxruntime_agree(name: str) -> None:
    model = small(name)
    mod, params = from_onnx(model)
    data = {key: array[:1] for key, array in samples(model, 2, seed=7).items()}
    have = evaluate(mod, {**data, **params})
    for one, result in zip(model.graph.output, have if isinstance(have, tuple) else (have,), strict=True):
        want = values(name)[one.name][1][0]
        np.testing.assert_allclose(result, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_decode_is_prefill_of_one_more_word() -> None:
    """The caches that a prompt leaves, and the word behind it, give what the longer prompt gives."""
    longer, step = (from_onnx(small(name)) for name in ("llama_prefill", "llama_decode"))
    count = SMALL["llama_decode"][0]
    ids = samples(small("llama_prefill"), 1, seed=3)["input_ids"]
    assert ids.shape == (1, count)
    want = evaluate(longer[0], {"input_ids": ids, **longer[1]})
    past = {
        f"past_key_values.{at // 2}.{('key', 'value')[at % 2]}": part[:, :, :-1] for at, part in enumerate(want[1:])
    }
    place = {"input_ids": ids[:, -1:], "position_ids": np.full((1, 1), count - 1)}
    have = evaluate(step[0], {**place, **past, **step[1]})
    for one, other in zip(have, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_inputs_are_of_their_kinds() -> None:
    given = samples(small("bert"), 50, seed=1)
    mask = given["attention_mask"]
    assert (
        mask.dtype == np.int64 and (np.diff(mask) <= 0).all() and mask[:, 0].all() and len(np.unique(mask.sum(1))) > 5
    )
    assert given["input_ids"].max() == 299 and set(np.unique(given["token_type_ids"])) == {0, 1}
    given = samples(small("llama_decode"), 3, seed=1)
    assert (given["position_ids"] == SMALL["llama_decode"][0] - 1).all()
    assert given["past_key_values.1.value"].shape == (3, 2, SMALL["llama_decode"][0] - 1, 48)


def test_bytes_depend_on_the_seed_alone() -> None:
    assert digest(small("kwt_1")) == digest(small("kwt_1")) == "8093de3ecdedd137"
    assert digest(small("kwt_1", seed=1)) != digest(small("kwt_1"))


def test_the_page_has_every_network() -> None:
    page = (Path(__file__).parents[2] / "examples" / "models" / "README.md").read_text()
    assert SMALL.keys() == set(NAMES) and not {example.name for example in NETWORKS} & {*NAMES}
    for example in TRANSFORMERS:
        assert f"| `{example.name}` | {example.input} | {example.output} | {example.macs:,} |" in page


def test_the_command_line_writes_all_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kwt.onnx"
    assert main(["kwt_1", "-o", str(path), "--images", "3", "--size", "10"]) == 0
    with np.load(path.with_suffix(".npz")) as data:
        assert data["input"].shape == (3, 1, 40, 10)
    assert "3 samples of 1x40x10" in capsys.readouterr().out


SIZES = [
    ("deit_tiny", 15, "size must be at least 16, not 15"),
    ("mobilevit_xxs", 100, "size must be a multiple of 64, not 100"),
    ("llama_prefill", 513, "tokens must be 1 to 512, not 513"),
    ("llama_decode", 1, "positions must be 2 to 512, not 1"),
]


@pytest.mark.parametrize(("name", "size", "sentence"), SIZES)
def test_sizes_that_do_not_fit(name: str, size: int, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        find(name).model(size)
