"""explore on a small network: exact cycles, skipped points, processes, what is found again, forms of the result."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relay_hw.compare.network_work import network_work
from relay_hw.errors import InputError
from relay_hw.explore import Exploration, ExploreOptions, Space, explore
from relay_hw.explore.bench import Bench
from relay_hw.explore.bounds import least
from relay_hw.explore.front import Objective, beats
from relay_hw.explore.main import JOURNAL
from relay_hw.explore.prepare import given
from relay_hw.explore.results import State, measured_content, read_measured
from relay_hw.explore.search import Search
from relay_hw.explore.space import spanned
from relay_hw.quantize import find_strategy
from relay_hw.quantize.main import realize_module
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.models import Model, load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.progress import Steps
from relay_hw.sweep.journal import Journal
from relay_hw.sweep.workers import has_dask
from tests.relay_hw.small_models import CLASSES, images, save_mixed, save_plain

CALIBRATION = {"image": images(6, seed=6)}
GRID = spanned(
    {
        "block_in": (4, 8, 16),
        "block_out": (4, 8),
        "inp_depth": (256, 1024),
        "out_lanes": (1, 4, 16),
        "axi_data_bits": (64, 128),
    }
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load_model(save_plain(tmp_path_factory.mktemp("explore") / "plain.onnx"))


def explored(model: Model, space: Space, work: Path | None = None, **more: Any) -> Exploration:
    rest = {key: more.pop(key) for key in ("data", "progress") if key in more}
    usual = {"space": space, "config": "tiny", "name": "plain", "search": Search.GRID, "work": work}
    options = ExploreOptions(**{**usual, **more})
    return explore(model.mod, options, calibration=CALIBRATION, params=model.params, **rest)


@pytest.fixture(scope="module")
def grid(plain: Model, tmp_path_factory: pytest.TempPathFactory) -> tuple[Exploration, Path]:
    """Every point of the grid measured, and the folder of the measurements."""
    work = tmp_path_factory.mktemp("all")
    return explored(plain, GRID, work, skips=False), work


def test_points_are_measured_refused_and_told_why(grid: tuple[Exploration, Path]) -> None:
    found, _ = grid
    assert len(found.rows) == GRID.size == 72 and found.is_over and not found.of(State.SKIPPED)
    refused = found.of(State.REFUSED)
    assert {row.reason.partition(": ")[2] for row in refused} == {
        "out_lanes must be at most block_out 4, not 16",
        "out_lanes must be at most block_out 8, not 16",
    }
    assert len(refused) == 24 and len(found.of(State.DONE)) == 48
    assert set(found.reasons) | set(found.front) == set(range(72))


def test_cycles_are_those_of_a_build(plain: Model, grid: tuple[Exploration, Path]) -> None:
    found, _ = grid
    for number in found.front[:3]:
        design = found.design(number)
        compiled = compile_model(
            plain.mod,
            CompileOptions(config=design.config, host_target="numpy", memory=design.memory),
            params=plain.params,
            calibration=CALIBRATION,
        )
        measured = found[number].measured
        assert measured is not None
        assert measured.cycles == sum(segment.cycles for segment in compiled.segments.values())
        assert measured.macs == measured.accel_macs == sum(row.macs for row in compiled.layers)


def test_every_loser_is_beaten_by_the_one_that_is_named(grid: tuple[Exploration, Path]) -> None:
    found, _ = grid
    for row in found.of(State.DONE):
        rivals = [n for n, own in found.amounts.items() if beats(own, found.amounts[row.number])]
        assert bool(rivals) == (row.number not in found.front)
        if rivals:
            named, _, rest = found.reasons[row.number].removeprefix("#").partition(" beats it: ")
            assert int(named) in rivals and int(named) in found.front and "%" in rest


@pytest.mark.parametrize("objectives", [None, (Objective.CYCLES, Objective.LUTS)])
def test_skipping_leaves_the_front_as_it_is(
    plain: Model, grid: tuple[Exploration, Path], objectives: tuple[Objective, ...] | None
) -> None:
    _, work = grid
    whole = explored(plain, GRID, work, objectives=objectives, skips=False)
    some = explored(plain, GRID, work, objectives=objectives)
    assert some.front == whole.front
    for row in some.of(State.SKIPPED):
        assert row.reason.startswith("not measured: its array alone takes ")


def test_bounds_are_below_what_is_measured(grid: tuple[Exploration, Path], plain: Model) -> None:
    found, _ = grid
    network = given(plain.mod, plain.params, None, CALIBRATION, None, None).network
    work = network_work(realize_module(network.mod, find_strategy("int8"), CALIBRATION).mod)
    for row in found.of(State.DONE):
        assert row.measured is not None
        bound = least(found.config(row.number), work)
        assert 0 < bound.cycles < row.measured.cycles and bound.macs == row.measured.macs
        assert 0 < bound.energy.total < row.measured.energy.total


def test_a_smart_search_misses_less_of_the_front_than_chance(plain: Model, grid: tuple[Exploration, Path]) -> None:
    found, work = grid
    points, seeds, missed = 44, (1, 2, 3), 0
    for seed in seeds:
        some = explored(plain, GRID, work, search=Search.SMART, points=points, seed=seed)
        assert sum(row.state is not State.REFUSED for row in some.rows) == points
        missed += len(set(found.front) - set(some.front))
    legal = len(found.of(State.DONE))
    assert missed < len(seeds) * len(found.front) * (legal - points) / legal


def test_what_was_measured_is_found_again(
    plain: Model, grid: tuple[Exploration, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, work = grid
    assert Journal(work / JOURNAL).count() == 48
    monkeypatch.setattr(Bench, "measure", lambda *_: pytest.fail("measured again"))
    again = explored(plain, GRID, work, skips=False)
    assert again.files() == found.files()
    other = explored(plain, GRID, work, objectives=(Objective.LUTS,), skips=False)
    assert len(other.front) >= 1


def test_processes_find_the_same_rows_bit_for_bit(plain: Model, grid: tuple[Exploration, Path], tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra explore is not installed")
    found, _ = grid
    told: list[str] = []
    both = explored(
        plain,
        GRID,
        tmp_path,
        skips=False,
        processes=2,
        progress=Steps(lambda step: told.append(step.text)),
    )
    assert both.files() == found.files()
    assert "starting 2 processes" in told and any("on the front" in text for text in told)


def test_one_process_where_dask_is_missing(plain: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_hw.sweep.workers.find_spec", lambda _name: None)
    assert not has_dask()
    found = explored(plain, spanned({"block_in": (4, 8)}), tmp_path, processes=2)
    assert len(found.rows) == 2
    with pytest.raises(InputError, match="dask and distributed must be installed"):
        explored(plain, spanned({"block_in": (4,)}), scheduler="tcp://127.0.0.1:1")


def test_layers_on_the_host_are_no_gain(tmp_path: Path) -> None:
    model = load_model(save_mixed(tmp_path / "mixed.onnx"))
    space = spanned({"inp_depth": (64, 1024), "wgt_depth": (16, 1024)})
    options = ExploreOptions(space=space, config="tiny")
    found = explore(model.mod, options, calibration=CALIBRATION, params=model.params)
    done = found.of(State.DONE)
    shares = {row.measured.host_macs for row in done if row.measured}
    least = [row.number for row in done if row.measured and row.measured.host_macs == min(shares)]
    assert set(found.front) <= set(least)
    for row in done:
        if row.number not in least:
            assert "of the products are left to the host, outside of the cycles: conv" in found.reasons[row.number]


def test_accuracy_and_strategies_are_part_of_it(plain: Model, tmp_path: Path) -> None:
    data = {"image": images(12, seed=5), "labels": [n % CLASSES for n in range(12)]}
    space = spanned({"strategy": ("int8", "int8-pow2"), "multiplier_bits": (16, 31), "block_in": (4, 8)})
    found = explored(plain, space, tmp_path, data=data)
    assert found.objectives[-1] is Objective.ACCURACY
    by_form: dict[tuple[object, object], set[float | None]] = {}
    for row in found.rows:
        by_form.setdefault((row.point["strategy"], row.point["multiplier_bits"]), set()).add(row.accuracy)
    assert len(by_form) == 4 and all(len(values) == 1 and None not in values for values in by_form.values())


def test_a_clock_is_what_somebody_asked_for(plain: Model) -> None:
    space = spanned({"clock": (40, 80)})
    found = explored(plain, space, board="ulx3s-85f", skips=False)
    assert found.objectives[0] is Objective.MS and found.part.name == "lfe5u-85f"
    for row, megahertz in zip(found.rows, (40, 80), strict=True):
        assert row.measured is not None
        assert row.milliseconds == pytest.approx(row.measured.cycles / megahertz / 1000)
    with pytest.raises(InputError, match="objective ms must come with a clock, which is not predicted"):
        explored(plain, GRID, objectives=(Objective.MS,))


def test_every_form_of_the_result(grid: tuple[Exploration, Path]) -> None:
    found, _ = grid
    files = found.files()
    data = json.loads(files["explore.json"])
    assert data["front"] == list(found.front) and len(data["points"]) == 72
    rows = list(csv.DictReader(io.StringIO(files["explore.csv"].decode())))
    assert [int(row["point"]) for row in rows] == list(range(72))
    assert all((row["front"] == "True") == (int(row["point"]) in found.front) for row in rows)
    assert all(bool(row["reason"]) == (row["front"] == "False") for row in rows)
    text = found.to_text(100)
    assert text.startswith("plain: 72 points, 48 measured, 24 refused; ") and max(map(len, text.splitlines())) <= 100
    page = files["explore.html"].decode()
    assert page.count("<script") == 1 and page.count("<svg") == 2
    assert page.count('<td class="name">') == 72 and "iframe" in found._repr_html_()


def test_measurements_come_back_as_they_were(grid: tuple[Exploration, Path]) -> None:
    found, _ = grid
    measured = found.rows[0].measured
    assert measured is not None
    assert read_measured(json.loads(json.dumps(measured_content(measured)))) == measured


def refused(change: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        change()
    assert sentence in str(refusal.value)


def test_refusals(plain: Model, grid: tuple[Exploration, Path]) -> None:
    found, _ = grid
    one = spanned({"block_in": (4,)})
    refused(lambda: found[99], "point must be a measured one, such as ")
    lanes = next(row.number for row in found.of(State.REFUSED))
    refused(lambda: found.config(lanes), f"point {lanes} must be a legal configuration: configuration")
    refused(lambda: explored(plain, one, objectives=()), "objectives must have at least one entry, not none")
    refused(
        lambda: explored(plain, one, objectives=(Objective.ACCURACY,)), "objective accuracy must come with test data"
    )
    refused(lambda: explored(plain, one, board="arty"), "board must be one of ulx3s-85f")
    refused(lambda: explored(plain, one, part="lfe5u-12f"), "part must be one of lfe5u-25f")
    refused(lambda: explored(plain, one, board="ulx3s-85f", memory="narrow"), "memory must be that of board ulx3s-85f")
    refused(lambda: explored(plain, one, clock_mhz=5000), "clock must be from 1 to 1000 MHz, not 5000")
    refused(lambda: explored(plain, one, processes=0), "processes and points must be at least 1, not 0")
    refused(lambda: explored(plain, one, scheduler="http://x"), "scheduler must be tls://HOST:PORT or tcp")
    refused(
        lambda: explore(plain.mod, ExploreOptions(space=one), params=plain.params),
        "strategy int8 needs calibration data",
    )


def test_a_running_search_can_be_looked_at(plain: Model) -> None:
    seen: list[Exploration] = []
    space = spanned({"block_in": (4, 8), "inp_depth": tuple(256 << k for k in range(5)), "queue_depth": (2, 4, 8, 16)})
    options = ExploreOptions(space=space, config="tiny")
    explore(plain.mod, options, calibration=CALIBRATION, params=plain.params, watch=seen.append)
    assert [len(found.rows) for found in seen] == [32, 40]
    assert [found.is_over for found in seen] == [False, True]
    assert "The search is still running" in seen[0].to_html() and "The search is still running" not in seen[1].to_html()
