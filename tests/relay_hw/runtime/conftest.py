"""Builds that the tests of this folder share: they are only read, or copied first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from tests.relay_hw.small_models import images, save_mixed, save_plain

Build = tuple[CompiledModel, Artifact]


def build(folder: Path, save: Callable[[Path], Path], config: str) -> Build:
    """Compile a small model and save it."""
    model = load_model(save(folder / f"{save.__name__}.onnx"))
    compiled = compile_model(
        model.mod,
        CompileOptions(config=config, name=model.name),
        params=model.params,
        calibration={"image": images(8, 99)},
    )
    return compiled, compiled.save(folder / "build")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """All on the accelerator, for `tiny`."""
    return build(tmp_path_factory.mktemp("plain"), save_plain, "tiny")


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Two regions around host operators that TVM compiles, for `default`."""
    pytest.importorskip("tvm")
    return build(tmp_path_factory.mktemp("mixed"), save_mixed, "default")
