"""onnx's node tests: a sample of each operator here, all of them in `make conformance`; nothing may be wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]


def load(name: str) -> ModuleType:
    """A module of the folder scripts."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def conformance() -> ModuleType:
    load("conformance_page")
    return load("conformance")


@pytest.fixture(scope="module")
def cases(conformance: ModuleType) -> list[Any]:
    return conformance.load_tests()


@pytest.fixture(scope="module")
def outcomes(conformance: ModuleType, cases: list[Any]) -> list[Any]:
    return [conformance.run_case(case, conformance.interpreter) for case in cases]


def test_nothing_is_wrong(outcomes: list[Any]) -> None:
    assert [f"{one.name}: {one.reason}" for one in outcomes if one.state.value == "wrong"] == []


def test_most_pass_and_the_rest_says_why_not(outcomes: list[Any]) -> None:
    assert len(outcomes) == 1404
    assert sum(one.state.value == "passed" for one in outcomes) >= 1100
    assert all(one.reason for one in outcomes if one.state.value == "refused")


def test_the_page_is_fresh(conformance: ModuleType, outcomes: list[Any]) -> None:
    assert (ROOT / "docs" / "onnx.md").read_text() == sys.modules["conformance_page"].page(outcomes), (
        "docs/onnx.md must be what `make conformance` writes"
    )


# Products, a resize, sizes that are values, an element type that TVM does not take, a loop.
COMPILED = (
    *("test_gemm_all_attributes", "test_resize_upsample_scales_linear", "test_reshape_negative_dim"),
    *("test_cast_FLOAT_to_BFLOAT16", "test_loop11"),
)


@pytest.mark.parametrize("name", COMPILED)
def test_a_few_through_the_compiled_host(
    conformance: ModuleType, cases: list[Any], outcomes: list[Any], name: str
) -> None:
    """All of them: `make conformance FLAGS=--host=llvm`."""
    pytest.importorskip("tvm", reason="apache-tvm is not installed")
    assert {one.name: one.state.value for one in outcomes}[name] == "passed"
    case = next(case for case in cases if case.name == name)
    outcome = conformance.run_case(case, conformance.host("llvm"))
    assert outcome.state.value == "passed", outcome.reason


ONES = np.ones((2, 2), np.float32)


@pytest.mark.parametrize(
    ("found", "wanted", "problem"),
    [
        ([ONES], [ONES], ""),
        ([ONES * (1 + 1e-9)], [ONES], ""),
        ([ONES * 1.01], [ONES], "4 of 4 elements differ"),
        ([ONES * np.nan], [ONES], "4 of 4 elements differ"),
        ([ONES], [ONES[:1]], "type float32[2, 2], not float32[1, 2]"),
        ([ONES.astype(np.float64)], [ONES], "type float64[2, 2], not float32[2, 2]"),
        ([ONES > 0], [ONES < 0], "4 of 4 elements differ"),
        ([ONES], [ONES, ONES], "1 outputs, not 2"),
        ([ONES], [[ONES]], "a sequence of 1 expected"),
    ],
)
def test_the_comparison_sees_differences(
    conformance: ModuleType, found: list[Any], wanted: list[Any], problem: str
) -> None:
    assert conformance.difference(found, wanted, 1e-3, 1e-7).startswith(problem)
    assert bool(conformance.difference(found, wanted, 1e-3, 1e-7)) == bool(problem)
