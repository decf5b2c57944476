"""The small network, and one comparison of it."""

from __future__ import annotations

import pytest

from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.ir.module import IRModule
from relay_hw.runtime.compile import bind_params
from relay_hw.runtime.models import load_model
from tests.relay_hw.compare.given import NAMES, calibration, data
from tests.relay_hw.small_models import save_plain


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> IRModule:
    model = load_model(save_plain(tmp_path_factory.mktemp("compare") / "plain.onnx"))
    return bind_params(model.mod, model.params)


@pytest.fixture(scope="session")
def found(plain: IRModule) -> Comparison:
    return compare(
        plain, data(), CompareOptions(strategies=NAMES, configs=["tiny"], name="plain"), calibration=calibration()
    )
