"""A network with a mask of padding in one launch: lengths reach the device, other masks are refused."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from examples.models import small
from examples.models.samples import samples
from relay_hw.cli.main import main
from relay_hw.errors import InputError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import close_device, open_device

MASK = "attention_mask"
OPTIONS = CompileOptions(host_target="numpy", prefix_masks=(MASK,))


@lru_cache
def _data(count: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    return dict(samples(small("bert"), count, seed))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    mod, params = from_onnx(small("bert"))
    compiled = compile_model(mod, OPTIONS, params=params, calibration=_data())
    assert len(compiled.segments) == 1 and len({row.function for row in compiled.layers if row.macs}) == 1
    return compiled.save(tmp_path_factory.mktemp("bert") / "build")


def test_every_length_on_one_program(build: Artifact) -> None:
    """As many samples as columns, each with another length."""
    columns = _data()[MASK].shape[1]
    data = {**_data(columns, 3), MASK: (np.arange(columns) < 1 + np.arange(columns)[:, None]).astype(np.int64)}
    want = Executor(build, None).run(data).outputs["last_hidden_state"]
    for name in ("functional", "cycle", "rtl"):
        device = open_device(name, build.config)
        try:
            result = Executor(build, device).run(data)
        finally:
            close_device(device)
        np.testing.assert_array_equal(result.outputs["last_hidden_state"], want)
        assert len(result.launches) == columns and len({launch.stats.cycles for launch in result.launches}) == 1
    mod, params = from_onnx(small("bert"))
    # Calibration data have half of the columns or more.
    for number in range(columns // 2, columns, 3):
        one = {name: value[number : number + 1] for name, value in data.items()}
        real = np.asarray(evaluate(mod, {**one, **params}))[0, : number + 1]
        have = want[number].reshape(columns, -1)[: number + 1]
        assert np.square(real).sum() > 100 * np.square(real - have).sum()


def test_other_masks_are_refused(build: Artifact) -> None:
    data = {name: value.copy() for name, value in _data(2, 1).items()}
    data[MASK][1, 0] = 0
    sentence = f"input {MASK} must be one or more ones and then zeros, as the model was compiled for such masks"
    with pytest.raises(InputError, match=sentence):
        Executor(build, None).run(data)
    mod, params = from_onnx(small("bert"))
    with pytest.raises(InputError, match=sentence):
        compile_model(mod, OPTIONS, params=params, calibration=data)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx

    path, data = tmp_path / "bert.onnx", tmp_path / "data.npz"
    onnx.save(small("bert"), path)
    np.savez(data, **_data())
    line = ["compile", str(path), "--calibration", str(data), "--host", "numpy", "-o", str(tmp_path / "build")]
    assert main([*line, "--prefix-mask", MASK]) == 0
    assert main(["run", str(tmp_path / "build"), "--input", str(data), "--output", str(tmp_path / "out.npz")]) == 0
    capsys.readouterr()
    assert main(line) == 0
    assert f"--prefix-mask {MASK} leaves it to the accelerator" in " ".join(capsys.readouterr().out.split())
    assert main([*line, "--prefix-mask", "words"]) != 0
    assert "mask words must be one of the inputs input_ids, attention_mask, token_type_ids" in capsys.readouterr().err
