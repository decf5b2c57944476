"""Figures of the documents: each has a name, is what its results say, and the cheap ones are measured anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from relay_hw.accel.isa.config import load_config
from scripts import figures
from tests.relay_hw import steady_networks

ROOT = Path(__file__).parents[2]
RESULTS = figures.load_results()
LARGE = pytest.mark.long
# The page of performance is older than its results: `make bench` writes both.
MEASURED = RESULTS.get("performance", {"networks": {"networks": []}, "layers": {"layers": []}})
performance = pytest.mark.skipif(
    "performance" not in RESULTS, reason="docs/results/performance.json must be measured first: make bench"
)


@pytest.fixture(scope="module")
def scripts() -> dict[str, ModuleType]:
    """The scripts that measure, as modules."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        names = ("bench_page", "bench_layers", "measure_memory", "measure_prequantized", "measure_residency")
        return {name: __import__(name) for name in names}
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("page", figures.PAGES)
def test_every_figure_is_what_was_measured(page: str) -> None:
    text = (ROOT / page).read_text()
    assert figures.differences(text, RESULTS) == [], "run: python scripts/figures.py --write"
    assert figures.unnamed(text) == [], "give each a name, and its results"


def test_a_number_that_drifted_is_found_and_renewed() -> None:
    results = {"memory": {"run": {"cycles": 1234, "share": 12.345}}}
    text = "It takes <!--=memory.run.cycles-->1,233 cycles, <!--=memory.run.share-->\n12.3 % of them in vain.\n"
    assert figures.differences(text, results) == ["memory.run.cycles must be 1,234, not 1,233"]
    assert figures.renewed(text, results) == text.replace("1,233", "1,234")
    assert figures.unnamed(text) == []


def test_a_number_without_a_name_is_found() -> None:
    text = (
        "It takes 5,100 cycles.\n\n| 7,000 | `9 cycles` |\n\n```\n99 %\n```\n<!-- generated: x -->\n7 %\n<!-- end -->\n"
        "\n    8 %\n\n6 % of it.\n"
    )
    assert figures.unnamed(text) == [
        "5,100: It takes 5,100 cycles.", "7,000: | 7,000 | `9 cycles` |", "6: 6 % of it.",
    ]  # fmt: skip


def test_a_figure_that_nobody_measured_is_told_with_what_measures_it() -> None:
    text = "<!--=memory.nothing.cycles-->1 cycle"
    (found,) = figures.differences(text, {"memory": {}})
    assert found == (
        "figure memory.nothing.cycles must be in docs/results, not missing: "
        "measure it by python scripts/measure_memory.py"
    )


@performance
def test_the_page_of_performance_is_what_was_measured(scripts: dict[str, ModuleType]) -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    assert page == scripts["bench_page"].page(MEASURED), "run: make bench"


@performance
def test_what_is_kept_of_the_measurements_gives_the_same_page(scripts: dict[str, ModuleType]) -> None:
    found = MEASURED
    assert scripts["bench_page"].kept(found) == json.loads(json.dumps(found))


def test_the_table_of_what_stays_is_what_was_measured(scripts: dict[str, ModuleType]) -> None:
    table = scripts["measure_residency"].body(RESULTS["residency"])
    assert table in (ROOT / "docs" / "schedules.md").read_text(), "run: python scripts/measure_residency.py"


@pytest.mark.parametrize("number", [2, *(pytest.param(n, marks=LARGE) for n in steady_networks.NETWORKS if n != 2)])
def test_what_stays_is_measured_anew(number: int, scripts: dict[str, ModuleType]) -> None:
    assert RESULTS["residency"][str(number)] == scripts["measure_residency"].measured(number)


NETWORKS = ("resnet8", "ds_cnn", "wake_words")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(row["name"], marks=() if row["name"] in NETWORKS else LARGE)
        for row in MEASURED["networks"]["networks"]
    ],
)
def test_networks_take_the_cycles_of_the_page(name: str, scripts: dict[str, ModuleType]) -> None:
    (row,) = [row for row in MEASURED["networks"]["networks"] if row["name"] == name]
    bench = scripts["bench_layers"]
    found = bench.measure_network(name, bench.Setting(load_config("default"), "standard"), 1)
    assert {key: found[key] for key in row} == row, "run: make bench"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(row["name"], marks=() if row["name"] in ("C4", "C10") else LARGE)
        for row in MEASURED["layers"]["layers"]
    ],
)
def test_layers_take_the_cycles_of_the_page(name: str, scripts: dict[str, ModuleType]) -> None:
    (row,) = [row for row in MEASURED["layers"]["layers"] if row["name"] == name]
    (work,) = [work for work in scripts["bench_layers"].RESNET18 if work.name == name]
    found = scripts["bench_layers"].measure_workload(work, load_config("default"), "standard")
    assert {key: found[key] for key in row} == row, "run: make bench"


@pytest.mark.parametrize("pair", ["standard-on-standard", "ulx3s-on-ulx3s"])
def test_memories_cost_what_the_page_says(pair: str, scripts: dict[str, ModuleType]) -> None:
    made_for, on = pair.split("-on-")
    found = scripts["measure_memory"].measured(load_config("ecp5"), made_for, on)
    assert found == RESULTS["memory"]["ecp5"][pair], "run: python scripts/measure_memory.py"


@LARGE
def test_int8_models_are_as_good_as_the_page_says(scripts: dict[str, ModuleType]) -> None:
    script = scripts["measure_prequantized"]
    if not script.MODELS.is_dir():
        pytest.skip(f"{script.MODELS} is not there")
    found = {name: script.measured(file, script.MODELS) for name, file in script.FILES.items()}
    assert found == RESULTS["prequantized"], "run: python scripts/measure_prequantized.py"


@LARGE
def test_every_memory_and_size_costs_what_the_page_says(scripts: dict[str, ModuleType]) -> None:
    assert scripts["measure_memory"].measure(print) == RESULTS["memory"], "run: python scripts/measure_memory.py"
