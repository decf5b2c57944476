"""The trained language model writes the same text on the Verilog, the simulators and the interpreter. Minutes of work:
`make test-networks`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples.write_text import CALIBRATION, MODEL, PROMPT, continued, written
from relay_hw.frontend import from_onnx
from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.execute import Executor
from scripts.text_data import load_text, spread

pytestmark = pytest.mark.long

COUNT = 48


@pytest.mark.parametrize("strategy", ["int8", "w4a8"])
def test_token_for_token(strategy: str, tmp_path: Path) -> None:
    mod, params = from_onnx(MODEL)
    calibration = {"bytes": spread(load_text(), CALIBRATION)}
    options = CompileOptions(host_target="numpy", strategy=strategy)
    compiled = compile_model(mod, options, params=params, calibration=calibration)
    assert len(compiled.segments) == 1
    build = compiled.save(tmp_path / "build")
    want = written(build, "rtl", PROMPT, COUNT)
    assert want == written(build, "functional", PROMPT, COUNT)
    expected = continued(Executor(build, None), PROMPT.encode())
    assert want[:8] == bytes(next(expected) for _ in range(8))
    # Words and spaces, not one byte again and again.
    assert len(set(want)) > 8 and np.isin(list(want), list(b" ")).mean() > 0.05
    print(f"\n{strategy}: {want.decode()}")
