"""Outputs that are fed back: the bytes of a loop that does it by hand, on every device and in C; refusals."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.cli.main import main
from relay_hw.errors import InputError
from relay_hw.ir.expr import Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op import const, nn
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.feed import check_feeds, read_steps
from relay_hw.runtime.manifest import Manifest, TensorInfo
from relay_hw.runtime.module import Module
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.devices import close_device, open_device
from tests.relay_hw.runtime.test_deploy import CC, device_command, export

STEPS = 6
Captured = pytest.CaptureFixture[str]


def cell(batch: int = 1) -> IRModule:
    """One step of a recurrent network of two states."""
    rng = np.random.default_rng(5)

    def dense(x: Expr, units: int, inputs: int) -> Expr:
        return nn.dense(x, const((rng.normal(size=(units, inputs)) / np.sqrt(inputs)).astype(np.float32)))

    x, h, c = (Var(name, TensorType((batch, size))) for name, size in (("x", 8), ("h", 16), ("c", 16)))
    new_h = nn.relu(op.add(dense(x, 16, 8), dense(h, 16, 16)))
    new_c = nn.relu(op.subtract(new_h, dense(c, 16, 16)))
    main = Function([x, h, c], Tuple([nn.softmax(dense(new_c, 4, 16)), new_h, new_c]))
    return IRModule({"main": main}, attrs={"output_names": ("scores", "h_n", "c_n")})


def steps(batch: int = 1, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(STEPS, batch, 8)).astype(np.float32)


def compiled(folder: Path, batch: int = 1) -> Artifact:
    rng = np.random.default_rng(1)
    states = {name: np.abs(rng.normal(size=(STEPS, batch, 16))).astype(np.float32) for name in "hc"}
    data = {"x": steps(batch, 2), **states}
    return compile_model(cell(batch), CompileOptions(config="tiny", host_target="numpy"), calibration=data).save(folder)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return compiled(tmp_path_factory.mktemp("feed") / "build")


FEEDS = {"h": "h_n", "c": "c_n"}


def looped(executor: Executor, data: np.ndarray, first: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a loop gives that feeds back by hand."""
    state, found = first, []
    for step in data:
        outputs = executor.run({"x": step[None], **state}).outputs
        state = {name: outputs[output] for name, output in FEEDS.items()}
        found.append(outputs)
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def same(got: Mapping[str, Any], want: Mapping[str, Any]) -> None:
    assert list(got) == list(want)
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


@pytest.mark.parametrize("device", ["functional", "cycle", "rtl"])
def test_the_bytes_are_those_of_a_loop(build: Artifact, device: str) -> None:
    opened = open_device(device, build.config)
    try:
        executor, data = Executor(build, opened), steps()
        zeros = {name: np.zeros((1, 16), np.float32) for name in FEEDS}
        got = executor.run({"x": data}, feeds=FEEDS)
        same(got.outputs, looped(executor, data, zeros))
        assert got.samples == STEPS and np.ptp(got.outputs["h_n"], axis=0).max() > 0
        assert (got.cycles is None) == (device == "functional")
    finally:
        close_device(opened)


def test_the_first_state_is_the_first_sample_of_the_data(build: Artifact) -> None:
    executor, data = Executor(build, None), steps()
    first = np.abs(np.random.default_rng(7).normal(size=(3, 16))).astype(np.float32)
    want = looped(executor, data, {"h": first[:1], "c": np.zeros((1, 16), np.float32)})
    same(executor.run({"x": data, "h": first}, feeds=FEEDS).outputs, want)
    assert not np.array_equal(want["h_n"], executor.run({"x": data}, feeds=FEEDS).outputs["h_n"])
    few = executor.run({"x": data, "h": first}, 2, feeds=FEEDS)
    same(few.outputs, {name: array[:2] for name, array in want.items()})


def test_each_part_of_a_batch_has_a_state_of_its_own(tmp_path: Path) -> None:
    executor, data = Executor(compiled(tmp_path / "build", 2), None), steps(2)
    zeros = {name: np.zeros((1, 2, 16), np.float32) for name in FEEDS}
    same(executor.run({"x": data}, feeds=FEEDS).outputs, looped(executor, data, zeros))


def test_states_alone_take_as_many_steps_as_asked(tmp_path: Path) -> None:
    h = Var("h", TensorType((1, 2)))
    mod = IRModule({"main": Function([h], op.add(h, const(np.float32(1))))})
    artifact = compile_model(mod, CompileOptions(strategy="float", host_target="numpy")).save(tmp_path / "build")
    found = Executor(artifact, None).run({}, 4, feeds={"h": "output"})
    np.testing.assert_array_equal(found.outputs["output"], np.repeat([[1], [2], [3], [4]], 2, axis=1))
    with pytest.raises(InputError, match="the number of samples must be given where every input is fed back"):
        Executor(artifact, None).run({}, feeds={"h": "output"})


def test_samples_of_a_chunk_are_no_steps(build: Artifact) -> None:
    with pytest.raises(InputError, match="chunk must be 1 sample where outputs are fed back, not 4"):
        Executor(build, None).run({"x": steps()}, chunk=4, feeds=FEEDS)


def records(build: Artifact, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> Manifest:
    return replace(build.manifest, inputs=tuple(inputs), outputs=tuple(outputs))


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([("h_m", "h")], "output that is fed back must be one of scores, h_n, c_n, not h_m; did you mean h_n?"),
        ([("zzz", "h")], "output that is fed back must be one of scores, h_n, c_n, not zzz"),
        ([("h_n", "hh")], "input that is fed back must be one of x, h, c, not hh; did you mean h?"),
        ([("h_n", "h"), ("c_n", "h")], "input h must be fed by one output, not by h_n and c_n"),
        (
            [("scores", "h")],
            "output scores must have the shape of input h to be fed back, (1, 16), or more along one axis, not (1, 4)",
        ),
    ],
)
def test_what_cannot_be_fed_back(build: Artifact, pairs: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        check_feeds(pairs, build.manifest)
    assert str(error.value) == sentence


def test_names_with_a_star_stand_for_all_that_fit(build: Artifact) -> None:
    assert check_feeds([("*_n", "*")], build.manifest) == FEEDS
    with pytest.raises(InputError, match=r"output that is fed back must be one of scores, h_n, c_n, not \*_m"):
        check_feeds([("*_m", "*")], build.manifest)
    with pytest.raises(InputError, match=r"input that is fed back must be one of x, h, c, not cell\.h"):
        check_feeds([("*_n", "cell.*")], build.manifest)


def remembering() -> IRModule:
    """One more position behind a cache of three, and what they add up to."""
    x, past = Var("x", TensorType((2, 1, 4))), Var("past", TensorType((2, 3, 4)))
    present = op.concatenate((past, x), axis=1)
    return IRModule(
        {"main": Function([x, past], Tuple([op.sum(present, axis=1), present]))},
        attrs={"output_names": ("sum", "present")},
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    options = CompileOptions(strategy="float", host_target="numpy")
    return compile_model(remembering(), options).save(tmp_path_factory.mktemp("cache") / "build")


def words() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(7, 2, 1, 4)).astype(np.float32)


def remembered() -> np.ndarray:
    """What a cache of the last three words and the word itself is at each step."""
    padded = np.concatenate([np.zeros((3, 2, 1, 4), np.float32), words()])
    return np.stack([np.concatenate(padded[at : at + 4], axis=1) for at in range(7)])


def test_of_a_cache_the_oldest_positions_drop_out(cache: Artifact) -> None:
    found = Executor(cache, None).run({"x": words()}, feeds={"past": "present"}).outputs
    np.testing.assert_array_equal(found["present"], remembered())
    other = TensorInfo("past", (2, 3, 3), "float32")
    for row, sentence in (
        (other, r"of input past to be fed back, \(2, 3, 3\), or more along one axis, not \(2, 4, 4\)"),
        (replace(other, shape=(2, 5, 4)), r"not \(2, 4, 4\)"),
        (replace(other, shape=(2, 3, 4), batch_axis=1), "or more along one axis"),
    ):
        with pytest.raises(InputError, match=sentence):
            check_feeds([("present", "past")], records(cache, [row], cache.manifest.outputs))


def test_a_stepper_keeps_states(cache: Artifact, build: Artifact) -> None:
    stepper = Executor(cache, None).stepper([("present", "past")])
    for word, want in zip(words(), remembered(), strict=True):
        found = stepper.step(x=word)
        np.testing.assert_array_equal(found["present"], want)
        np.testing.assert_array_equal(stepper.state["past"], want[:, 1:])
    assert stepper.steps == 7 and stepper.result is not None
    stepper.reset({"past": remembered()[4, :, 1:]})
    assert stepper.steps == 0
    np.testing.assert_array_equal(stepper.step(x=words()[5])["present"], remembered()[5])
    want = Executor(build, None).run({"x": steps()}, feeds=FEEDS).outputs
    module = Module(build)
    cells = module.stepper([("*_n", "*")])
    got = [cells.step(x=step) for step in steps()]
    module.close()
    same({name: np.stack([one[name] for one in got]).reshape(want[name].shape) for name in want}, want)


def test_what_a_stepper_refuses(cache: Artifact) -> None:
    executor = Executor(cache, None)
    with pytest.raises(InputError, match="state must be one of past, not x"):
        executor.stepper([("present", "past")], {"x": np.zeros((2, 1, 4))})
    with pytest.raises(InputError, match="input past must have shape"):
        executor.stepper([("present", "past")], {"past": np.zeros((2, 4, 4), np.float32)})
    stepper = executor.stepper([("present", "past")])
    with pytest.raises(InputError, match="input past must be left to the stepper, which keeps it as a state"):
        stepper.step(x=words()[0], past=np.zeros((2, 3, 4), np.float32))
    with pytest.raises(InputError, match="input x must be given"):
        stepper.step()


@pytest.mark.skipif(CC is None, reason="no C compiler on PATH")
def test_exported_c_slides_caches(cache: Artifact, tmp_path: Path) -> None:
    folder = export(tmp_path, cache.path)
    words().tofile(tmp_path / "x.bin")
    (tmp_path / "none.bin").touch()
    files = [str(tmp_path / f"{name}.bin") for name in ("x", "none", "sum", "present")]
    command = [str(folder / "model"), "--folder", str(folder), "--feed", "present=past", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "present.bin").read_bytes() == remembered().tobytes()


def test_types_that_do_not_fit(build: Artifact) -> None:
    a = TensorInfo("a", (2, 4), "float32", batch_axis=0)
    for given, sentence in (
        (TensorInfo("b", (2, 4), "int32", batch_axis=0), "must have the dtype of input a to be fed back, float32, not"),
        (TensorInfo("b", (2, 4), "float32"), "must have the batch axis of input a to be fed back, 0, not None"),
        (TensorInfo("b", (), "", type={}), "output b must be a tensor of known shape to be fed back"),
    ):
        with pytest.raises(InputError, match=sentence):
            check_feeds([("b", "a")], records(build, [a], [given]))


def test_a_state_of_another_shape_is_refused(build: Artifact) -> None:
    with pytest.raises(InputError, match="input h must have shape"):
        read_steps(build.manifest, {"x": steps(), "h": np.zeros((1, 5), np.float32)}, FEEDS, None)


def test_the_command_line(build: Artifact, tmp_path: Path, capsys: Captured) -> None:
    np.savez(tmp_path / "x.npz", x=steps())
    run = ["run", str(build.path), "--input", str(tmp_path / "x.npz"), "--output", str(tmp_path / "out.npz")]
    capsys.readouterr()
    assert main([*run, "--feed", "h_n=h", "--feed", "c_n=c", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["feeds"] == FEEDS and captured.err == ""
    want = Executor(build, None).run({"x": steps()}, feeds=FEEDS).outputs
    with np.load(tmp_path / "out.npz") as got:
        same(dict(got), want)
    assert main([*run, "--feed", "h_n=h", "--feed", "c_n=c"]) == 0
    assert "output c_n is input c of the next sample" in capsys.readouterr().out
    for texts, sentence in (
        (["--feed", "h_n=h", "--feed", "c_m=c"], "not c_m; did you mean c_n?"),
        (["--feed", "h_n"], "a feed must be OUTPUT=INPUT, such as h_n=h, not h_n"),
        (["--feed", "h_n=h", "--feed", "c_n=c", "--chunk", "2"], "chunk must be 1 sample where outputs are fed back"),
        (["--feed", "h_n=h"], "input c must be given"),
    ):
        assert main([*run, *texts]) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.skipif(CC is None, reason="no C compiler on PATH")
def test_exported_c_feeds_back(build: Artifact, tmp_path: Path) -> None:
    folder = export(tmp_path, build.path)
    first = np.abs(np.random.default_rng(7).normal(size=(3, 16))).astype(np.float32)
    steps().tofile(tmp_path / "x.bin")
    first.tofile(tmp_path / "h.bin")
    (tmp_path / "none.bin").touch()
    files = [str(tmp_path / f"{name}.bin") for name in ("x", "h", "none", "scores", "h_n", "c_n")]

    def run(*feeds: str) -> subprocess.CompletedProcess[str]:
        options = ["--device", device_command(folder), "--folder", str(folder)]
        return subprocess.run(
            [str(folder / "model"), *options, *(text for one in feeds for text in ("--feed", one)), *files],
            capture_output=True,
            text=True,
        )

    done = run("h_n=h", "c_n=c")
    assert done.returncode == 0, done.stderr
    want = Executor(build, None).run({"x": steps(), "h": first}, feeds=FEEDS).outputs
    for name in want:
        assert (tmp_path / f"{name}.bin").read_bytes() == want[name].tobytes(), name
    for feeds, sentence in (
        (("h_n=h",), "inputs must hold the same number of whole samples"),
        (("h_n",), "a feed must be OUTPUT=INPUT"),
        (("h_m=h",), "a feed must name an output and an input of the model"),
        (("h_n=h", "c_n=h"), "an input must be fed by one output"),
        (
            ("scores=h",),
            "an output must have the dtype and shape of the input that it is fed back into, or more along one axis",
        ),
        (("h_n=h", "c_n=c", "x=x"), "a feed must name an output and an input of the model"),
    ):
        done = run(*feeds)
        assert (done.returncode, done.stderr) == (2, f"error: {sentence}\n"), feeds
