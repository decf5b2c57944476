"""A word of a language model, with caches of those before it: one launch, caches lie as weights, bytes everywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples.models import small
from examples.models.samples import samples as examples_samples
from relay_hw import op
from relay_hw.accel.isa.program import TensorLayout
from relay_hw.analysis import infer_type
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime import Artifact, CompileOptions, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import close_device, open_device
from relay_hw.tensorize.segment import Segment
from tests.relay_hw.runtime.test_deploy import export, run

PAST, WIDTH, HEADS, WORDS = 37, 96, 2, 3
EACH = WIDTH // HEADS


def step() -> IRModule:
    """Attention of one word, [1, WIDTH], to itself and PAST others; the caches that the next word takes."""
    rng = np.random.default_rng(0)

    def dense(x: Expr) -> Expr:
        return op.nn.dense(x, op.const((rng.normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)))

    x = Var("x", TensorType((1, WIDTH)))
    before = [Var(name, TensorType((1, HEADS, PAST, EACH))) for name in ("keys", "values")]
    q, *new = (op.transpose(op.reshape(dense(x), (1, 1, HEADS, EACH)), (0, 2, 1, 3)) for _ in range(3))
    keys, values = (op.concatenate([a, b], axis=2) for a, b in zip(before, new, strict=True))
    flat = [op.reshape(part, (HEADS, -1, EACH)) for part in (q, keys, values)]
    scores = op.multiply(op.nn.batch_matmul(flat[0], flat[1], transpose_b=True), op.const(np.float32(0.2)))
    mixed = op.nn.batch_matmul(op.nn.softmax(scores), flat[2], transpose_b=False)
    y = op.add(x, dense(op.reshape(op.transpose(mixed, (1, 0, 2)), (1, WIDTH))))
    later = [op.strided_slice(cache, (1,), (PAST + 1,), (1,), axes=(2,)) for cache in (keys, values)]
    main = Function([x, *before], Tuple([y, *later]))
    return infer_type(IRModule({"main": main}, attrs={"output_names": ("y", "keys_n", "values_n")}))


def samples(count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    caches = {name: rng.normal(size=(count, HEADS, PAST, EACH)).astype(np.float32) for name in ("keys", "values")}
    return {"x": rng.normal(size=(count, WIDTH)).astype(np.float32), **caches}


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    compiled = compile_model(step(), CompileOptions(host_target="numpy"), calibration=samples(8, 1))
    (segment,) = compiled.segments.values()
    assert isinstance(segment, Segment)
    tiles = [port for port in segment.inputs if port.layout is TensorLayout.TILES]
    whole = PAST // 16 * 16
    assert {port.shape for port in tiles} == {(HEADS, EACH, whole), (HEADS, whole, EACH)}
    # Of the rows behind whole blocks the device gets these alone.
    rest = [port.shape for port in segment.inputs if port.shape == (HEADS, PAST - whole, EACH)]
    assert len(rest) == 2 and len(segment.inputs) == 5
    assert sorted(port.shape for port in segment.outputs) == [(1, WIDTH), (HEADS, 1, EACH), (HEADS, 1, EACH)]
    assert segment.certificate is not None
    return compiled.save(tmp_path_factory.mktemp("caches") / "build")


@pytest.mark.parametrize("device", ["functional", "cycle", "rtl"])
def test_bytes(build: Artifact, device: str) -> None:
    data = samples(2, 2)
    want = Executor(build, None).run(data).outputs
    opened = open_device(device, build.config)
    try:
        have = Executor(build, opened).run(data).outputs
    finally:
        close_device(opened)
    for name, array in want.items():
        np.testing.assert_array_equal(have[name], array, err_msg=name)
    plain = evaluate(step(), {name: array[:1].reshape(shape) for (name, array), shape in zip(
        data.items(), ((1, WIDTH), *[(1, HEADS, PAST, EACH)] * 2), strict=True)})  # fmt: skip
    for one, other in zip(plain, have.values(), strict=True):
        noise = np.square(one - other[:1].reshape(one.shape)).mean() / np.square(one).mean()
        assert noise < 0.01


def test_caches_go_from_word_to_word(build: Artifact) -> None:
    data = samples(WORDS, 3)
    device = open_device("functional", build.config)
    feeds = {"keys": "keys_n", "values": "values_n"}
    have = Executor(build, device).run({"x": data["x"]}, feeds=feeds).outputs
    state = {name: np.zeros((1, HEADS, PAST, EACH), np.float32) for name in feeds}
    for number in range(WORDS):
        found = Executor(build, None).run({"x": data["x"][number : number + 1], **state}).outputs
        state = {name: found[output] for name, output in feeds.items()}
        np.testing.assert_array_equal(have["y"][number], found["y"][0])


def test_exported_c(build: Artifact, tmp_path: Path) -> None:
    data = samples(2, 4)
    folder = export(tmp_path, build.path)
    paths = [tmp_path / f"{name}.bin" for name in data]
    for path, array in zip(paths, data.values(), strict=True):
        array.tofile(path)
    want = Executor(build, None).run(data).outputs
    results = [tmp_path / f"{name}.bin" for name in want]
    done = run(folder, *paths, *results)
    assert (done.returncode, done.stderr) == (0, "")
    for path, array in zip(results, want.values(), strict=True):
        assert path.read_bytes() == array.tobytes()


def test_a_decoder_of_onnx_steps_on(tmp_path: Path) -> None:
    """Its outputs have one position more than the inputs that they become; the next word is what came out."""
    model = small("llama_decode")
    mod, params = from_onnx(model)
    calibration = examples_samples(model, 4, 0)
    built = compile_model(mod, CompileOptions(host_target="numpy"), params=params, calibration=calibration)
    artifact = built.save(tmp_path / "build")
    first = {name: array[0] for name, array in calibration.items() if name.startswith("past_key_values")}
    texts: list[list[int]] = []
    for name in (None, "functional"):
        device = None if name is None else open_device(name, artifact.config)
        stepper = Executor(artifact, device).stepper([("present.*", "past_key_values.*")], first)
        text = [7]
        for _ in range(WORDS):
            found = stepper.step(input_ids=[[text[-1]]], position_ids=[[23 + stepper.steps]])
            text.append(int(found["logits"].argmax()))
        for cache, output in ((name, name.replace("past_key_values", "present")) for name in first):
            np.testing.assert_array_equal(stepper.state[cache], found[output][:, :, 1:])
        texts.append(text)
        if device is not None:
            close_device(device)
    assert texts[0] == texts[1]
