"""compare on a small network: numbers against other ways to get them, resumption, every form of the result."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.backend.tvm import is_installed
from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.compare import main as steps
from relay_hw.compare.evaluate import Evaluator
from relay_hw.compare.findings import CSV_COLUMNS, choose_best
from relay_hw.compare.hardware_cost import Cost
from relay_hw.compare.network import prepare
from relay_hw.compare.rows import Row
from relay_hw.compare.store import Store
from relay_hw.errors import InputError, QuantizeError
from relay_hw.interp import Interpreter
from relay_hw.ir.module import IRModule
from relay_hw.quantize import LayerChoice, Strategy, quantize
from relay_hw.runtime.compile import bind_params, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.machine import machine_name
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import profile, time_regions
from relay_hw.support.progress import Steps
from relay_hw.sweep.workers import has_dask
from relay_hw.text import parse
from tests.relay_hw.small_models import CLASSES, images, save_batch, save_mixed, save_plain

NAMES = ("int8-minmax", "int8-pow2", "w4a8")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> IRModule:
    model = load_model(save_plain(tmp_path_factory.mktemp("compare") / "plain.onnx"))
    return bind_params(model.mod, model.params)


def data(count: int = 21, seed: int = 3) -> dict[str, Any]:
    return {"image": images(count, seed), "labels": np.arange(count) % CLASSES}


def calibration() -> dict[str, Any]:
    return {"image": images(8, 99)}


def seen() -> dict[str, Any]:
    """What strategies see of `calibration()`: all but every fourth sample."""
    return {"image": np.delete(images(8, 99), [3, 7], axis=0)}


@pytest.fixture(scope="module")
def found(plain: IRModule) -> Comparison:
    return compare(
        plain, data(), CompareOptions(strategies=NAMES, configs=["tiny"], name="plain"), calibration=calibration()
    )


def test_outputs_are_those_of_the_quantized_network(plain: IRModule, found: Comparison) -> None:
    """Softmax does not change which output is largest."""
    quantized = quantize(plain, "int8-minmax", seen())
    run, floats = Interpreter(quantized), Interpreter(plain)
    mine = [int(run.call_global("main", {"image": x[None]}).argmax()) for x in data()["image"]]
    wanted = [int(floats.call_global("main", {"image": x[None]}).argmax()) for x in data()["image"]]
    row = found["int8-minmax"]
    assert row.test.top1 == np.mean(np.array(mine) == data()["labels"])
    assert row.test.agreement == np.mean(np.array(mine) == np.array(wanted))
    assert found.float_row.test.top1 == np.mean(np.array(wanted) == data()["labels"])
    assert found.is_logits and found.output == "scores"


def test_cycles_are_those_of_the_profile(plain: IRModule, found: Comparison, tmp_path: Path) -> None:
    compiled = compile_model(plain, CompileOptions(config="tiny", strategy="int8-minmax"), calibration=seen())
    artifact = compiled.save(tmp_path / "build")
    report = profile(artifact, CycleDevice(artifact.config, data=False), "cycle")
    cost = found["int8-minmax"].cost
    assert cost is not None
    assert cost.cycles == report.cycles
    assert cost.dram_bytes == report.traffic.total
    assert cost.host_seconds > 0 and cost.machine == machine_name()
    assert cost.macs == cost.accel_macs == report.macs and cost.accel_share == 1.0
    assert 0 < cost.energy.total < 100


def test_a_board_is_compared_at_its_clock(plain: IRModule, tmp_path: Path) -> None:
    found = compare(
        plain,
        data(),
        CompareOptions(strategies=("int8-minmax", "w4a8"), board="ulx3s-85f", name="plain"),
        calibration=calibration(),
    )
    costs = {cost.config: cost for row in found.rows for cost in row.costs}
    assert {name: (c.board, c.clock_hz) for name, c in costs.items()} == {
        "ecp5": ("ulx3s-85f", 80_000_000),
        "ecp5w4": ("ulx3s-85f", 60_000_000),
    }
    compiled = compile_model(plain, CompileOptions(strategy="int8-minmax", board="ulx3s-85f"), calibration=seen())
    artifact = compiled.save(tmp_path / "build")
    cost = found["int8-minmax"].cost
    assert cost is not None and cost.config == "ecp5" and cost.memory == "ulx3s"
    assert cost.cycles == sum(run.timing.cycles for run in time_regions(artifact, "ulx3s"))
    assert cost.samples_per_second == pytest.approx(80e6 / cost.cycles)
    seconds = [row.cycles / (row.clock_hz or 1) for row in found["w4a8"].costs]
    assert len(seconds) == 2 and seconds == sorted(seconds)
    text = found.to_text()
    assert f"{cost.samples_per_second:,.1f}" in text and "ecp5 at 80 MHz, ulx3s memory" in text
    assert f"{cost.samples_per_second:,.1f}" in found.to_html()
    # Joules on that board, with its memory's cycles, in every form.
    joules = cost.energy.total
    assert all(each.energy.total > each.energy.on_chip > 0 for row in found.rows for each in row.costs)
    assert f"{joules:.1f}" in text and "uJ" in text.splitlines()[2]
    assert f"{joules:,.1f}" in found.to_html() and "µJ, estimated" in found.to_html()
    line = next(csv.DictReader(io.StringIO(found.to_csv())))
    assert (line["board"], float(line["energy_uj"])) == ("ulx3s-85f", pytest.approx(joules, rel=1e-3))
    row = found.to_json()["strategies"][0]
    assert row["board"] == "ulx3s-85f" and row["energy_uj"] == pytest.approx(joules, abs=1e-4)
    assert sum(row["energy_parts_uj"].values()) == pytest.approx(joules, abs=1e-3)


def test_a_board_without_that_clock_is_refused(plain: IRModule) -> None:
    with pytest.raises(InputError, match="configuration must be ecp5 or ecp5w4 on board ulx3s-85f, not tiny"):
        compare(
            plain,
            data(),
            CompareOptions(strategies=NAMES, configs=["tiny"], board="ulx3s-85f"),
            calibration=calibration(),
        )


def test_weights_are_counted_as_they_are_stored(found: Comparison) -> None:
    count = 8 * 3 * 9 + 6 * 8 * 9 + 5 * 24
    assert found.float_row.weight_bytes == 4 * count
    assert found["int8-minmax"].weight_bytes == count
    assert found["w4a8"].weight_bytes == count, "entries of tiny are too small for LOAD to widen"


def test_weights_take_what_their_accelerator_stores(plain: IRModule) -> None:
    """Layer conv_b has 6 x 8 x 9 weights and, in groups of 16 channels, a factor for each of 6 x 9 rows of 8."""
    count, narrow, rows = 8 * 3 * 9 + 6 * 8 * 9 + 5 * 24, 6 * 8 * 9, 6 * 9
    names = ["w4a8", "w4g16a8-gptq", "w2a8-gptq", "w2g16a8-gptq"]
    for config, saved in {
        "default": [narrow // 2, narrow // 2 - rows // 2, narrow // 2, narrow // 2],
        "w4": [narrow // 2, 0, 3 * narrow // 4, 3 * narrow // 4 - rows // 2],
    }.items():
        found = compare(plain, data(), CompareOptions(strategies=names, configs=[config]), calibration=calibration())
        assert [count - row.weight_bytes for row in found.rows] == saved
        gains = {"default": [True, True, False, False], "w4": [True, False, True, True]}
        assert [row.gains for row in found.rows] == gains[config]
        held = [row.cost is not None and f"no gain on {config}" in row.cost.no_gain for row in found.rows]
        assert held == [not gain for gain in gains[config]]
        for row in found.rows:
            assert row.cost is not None
            assert (f"no gain on {config}" in found.to_text()) and (row.gains or row.cost.no_gain in found.to_html())
        assert found[found.best or ""].gains


def test_what_has_no_gain_is_never_the_best(found: Comparison) -> None:
    first, second, third = found.rows
    assert (first.gains, second.gains, third.gains) == (True, True, False), "tiny stores 4-bit weights in 8 bits"
    quiet = replace(third, held_out=replace(third.held_out, sqnr_db=99.0), test=replace(third.test, sqnr_db=99.0))
    assert choose_best([first, second, quiet]) in (first.name, second.name)
    assert choose_best([gaining(quiet), first, second]) == quiet.name
    alone = replace(found, rows=(quiet,), best=choose_best([quiet]))
    assert alone.best is None and "stores in wider integers" in alone.to_json()["best_by"]
    assert "no best strategy: every strategy has widths" in alone.to_text()
    assert "No strategy is called best: every strategy has widths" in alone.to_html()


def test_layers_are_measured(found: Comparison) -> None:
    assert {"conv_a", "conv_b", "fc"} <= set(found.layer_names)
    row = found["int8-minmax"]
    assert all(layer.sqnr_db is None or layer.sqnr_db > 15 for layer in row.layers)
    noisy = [layer.sqnr_db for layer in row.layers if layer.sqnr_db is not None]
    assert row.worst_layers[0].sqnr_db == min(noisy)
    for layer in found.layer("conv_b").values():
        assert layer.clip is not None and layer.clip[0] < layer.clip[1] and sum(layer.histogram.counts) > 0
    with pytest.raises(InputError, match=r"layer must be one of conv_a, .*, not conv_x"):
        found.layer("conv_x")


def test_the_best_is_chosen_on_calibration_data(plain: IRModule, found: Comparison) -> None:
    unbeaten = found.to_json()["front"]
    noise = {row.name: row.held_out.sqnr_db for row in found.rows if row.held_out and row.name in unbeaten}
    assert found.best == max(noise, key=lambda name: noise[name] or np.inf)
    assert (found.calibration_images, found.held_out_images) == (6, 2)


def test_a_strategy_that_another_one_beats_is_not_the_best(found: Comparison) -> None:
    first, second, third = found.rows
    quiet = replace(first, held_out=replace(first.held_out, sqnr_db=99.0))
    assert choose_best([quiet, second, third]) == quiet.name
    worse = replace(quiet, test=replace(first.test, agreement=0.1, agreement_interval=(0.05, 0.2)))
    assert choose_best([worse, second, third]) in (second.name, third.name)


def test_what_stays_on_the_host_is_best_only_among_its_like(found: Comparison) -> None:
    first, second, third = map(gaining, found.rows)
    at_host = replace(first, held_out=replace(first.held_out, sqnr_db=None), costs=_at_host(first))
    simulated = replace(second, held_out=replace(second.held_out, sqnr_db=99.0), costs=())
    assert choose_best([at_host, simulated, third]) == third.name
    assert choose_best([at_host, simulated]) == at_host.name
    assert choose_best([replace(at_host, held_out=None)]) is None


def gaining(row: Row) -> Row:
    return replace(row, costs=tuple(replace(cost, no_gain="") for cost in row.costs))


def _at_host(row: Row) -> tuple[Cost, ...]:
    return tuple(replace(cost, accel_macs=0) for cost in row.costs)


def test_strategies_do_not_see_what_is_held_out(plain: IRModule, found: Comparison) -> None:
    """Outliers in held-out samples change what is measured there, and nothing else."""
    loud = {"image": calibration()["image"].copy()}
    loud["image"][3::4] *= 10
    other = compare(
        plain, data(), CompareOptions(strategies=NAMES[:1], configs=["tiny"], name="plain"), calibration=loud
    )
    assert other.rows[0].test == found.rows[0].test
    assert other.rows[0].held_out != found.rows[0].held_out


def test_without_calibration_nothing_is_called_best(plain: IRModule) -> None:
    found = compare(plain, data(), CompareOptions(strategies=["tvm"], configs=["tiny"]))
    assert found.best is None and found.rows[0].held_out is None
    assert "too few calibration samples" in found.to_text() and found.to_json()["best"] is None
    found.to_html()


def test_simulated_formats_have_no_cost(plain: IRModule) -> None:
    found = compare(plain, data(), CompareOptions(strategies=["fp8-e4m3"], configs=["tiny"]), calibration=calibration())
    row = found.rows[0]
    assert row.cost is None and "no hardware" in row.reason and row.engine == "numpy"
    assert row.weight_bytes * 4 == found.float_row.weight_bytes
    assert found.to_json()["strategies"][0]["cycles"] is None
    found.to_html()


@pytest.mark.skipif(not is_installed(), reason="TVM is not installed: compiled integers cannot be compared")
@pytest.mark.parametrize("save", [save_plain, save_mixed], ids=["plain", "mixed"])
def test_every_engine_gives_the_interpreters_bytes(save: Callable[[Path], Path], tmp_path: Path) -> None:
    model = load_model(save(tmp_path / "model.onnx"))
    network = prepare(bind_params(model.mod, model.params))
    quantized = quantize(network.mod, "int8-minmax", calibration())
    samples = steps.read_samples(network.mod["main"].params, data(), "test data")
    plain_run = Interpreter(quantized)
    wanted = np.concatenate([plain_run.call_global("main", x) for x in samples.take(0, samples.launches)])
    for engine in ("numpy", "tvm"):
        result = Evaluator(quantized, 0, engine).run(samples)
        assert (result.engine, result.note) == (engine, "")
        np.testing.assert_array_equal(result.outputs, wanted)


def test_compiled_integers_that_differ_are_not_used(plain: IRModule, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay_hw.compare import evaluate

    network = prepare(plain)
    quantized = quantize(network.mod, "int8-minmax", calibration())
    right = Evaluator(quantized, 0, "numpy")
    monkeypatch.setattr(evaluate, "is_installed", lambda: True)
    monkeypatch.setattr(evaluate, "compiled", lambda _mod: lambda x: right._by_values(x) + np.float32(1))
    samples = steps.read_samples(network.mod["main"].params, data(), "test data")
    result = Evaluator(quantized, 0, "tvm").run(samples)
    assert result.engine == "numpy" and "differed from the interpreter" in result.note
    np.testing.assert_array_equal(result.outputs, right.run(samples).outputs)


def test_finished_strategies_are_not_repeated(plain: IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {"configs": ["tiny"], "work": tmp_path / "work"}
    done: list[str] = []
    real = steps.strategy_row

    def counted(setting: Any, strategy: Strategy, *rest: Any) -> Any:
        done.append(strategy.name)
        if strategy.name == "int8-pow2" and len(done) == 2:
            raise KeyboardInterrupt
        return real(setting, strategy, *rest)

    monkeypatch.setattr(steps, "strategy_row", counted)
    with pytest.raises(KeyboardInterrupt):
        compare(plain, data(), CompareOptions(strategies=NAMES[:2], **arguments), calibration=calibration())
    first = compare(plain, data(), CompareOptions(strategies=NAMES, **arguments), calibration=calibration())
    assert done == ["int8-minmax", "int8-pow2", "int8-pow2", "w4a8"]
    again = compare(plain, data(), CompareOptions(strategies=NAMES[::-1], **arguments), calibration=calibration())
    assert len(done) == 4 and [row.name for row in again.rows] == list(reversed(NAMES))
    assert {row.name: row for row in again.rows} == {row.name: row for row in first.rows}
    compare(plain, data(20), CompareOptions(strategies=NAMES[:1], **arguments), calibration=calibration())
    assert done[4:] == ["int8-minmax"], "other data are another comparison"
    with sqlite3.connect(tmp_path / "work" / steps.JOURNAL) as database:
        database.execute("UPDATE results SET content = replace(content, '\"w4a8\"', '\"w4a9\"')")
    compare(plain, data(), CompareOptions(strategies=NAMES, **arguments), calibration=calibration())
    assert done[5:] == ["w4a8"], "a damaged row is made again"


@pytest.mark.skipif(not has_dask(), reason="the extra explore is not installed")
def test_two_processes_give_what_one_gives(plain: IRModule, found: Comparison, tmp_path: Path) -> None:
    told: list[str] = []
    other = compare(
        plain,
        data(),
        CompareOptions(strategies=NAMES, configs=["tiny"], processes=2, work=tmp_path, name="plain"),
        calibration=calibration(),
        progress=Steps(lambda step: told.append(step.text)),
    )
    assert "starting 2 processes" in told
    assert any(re.match(r"comparing, strategies: [0-2] of 3, [\w-]+: ", text) for text in told)
    mine, theirs = found.to_json(), other.to_json()
    for row in [*mine["strategies"], *theirs["strategies"]]:
        row["seconds"] = row["compile_seconds"] = row["host_seconds"] = None
        for cost in row["costs"]:
            cost["compile_seconds"] = cost["host_seconds"] = None
    assert mine == theirs
    assert {*other.pages} == {row.key for row in other.points} and not found.pages


def test_one_process_where_dask_is_missing(plain: IRModule, found: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay_hw.sweep.workers.find_spec", lambda _name: None)
    options = CompareOptions(strategies=NAMES[:1], configs=["tiny"], processes=2, name="plain")
    other = compare(plain, data(), options, calibration=calibration())
    assert other.rows[0].test == found.rows[0].test
    with pytest.raises(InputError, match="dask and distributed must be installed"):
        CompareOptions(strategies=NAMES, scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize("flat", [False, True])
def test_a_model_of_batch_two_is_compared_sample_by_sample(tmp_path: Path, plain: IRModule, flat: bool) -> None:
    model = load_model(save_batch(tmp_path / "batch.onnx", save_plain(tmp_path / "plain.onnx"), 2))
    test, calib = data(8), calibration()
    one = compare(plain, test, CompareOptions(strategies=NAMES[:1], configs=["tiny"]), calibration=calib)
    if not flat:
        test = {name: array.reshape(-1, 2, *array.shape[1:]) for name, array in test.items()}
        calib = {name: array.reshape(-1, 2, *array.shape[1:]) for name, array in calib.items()}
    two = compare(
        model.mod, test, CompareOptions(strategies=NAMES[:1], configs=["tiny"]), calibration=calib, params=model.params
    )
    assert two.notes == ("The model takes 2 samples at once; figures are for one of them.",)
    (mine,), (theirs,) = two.rows, one.rows
    assert mine.cost is not None and theirs.cost is not None
    assert mine.cost.cycles == theirs.cost.cycles
    assert (mine.test, mine.held_out) == (theirs.test, theirs.held_out)


SCRIPT = """
import sys
import numpy as np
from relay_hw.compare import CompareOptions, compare
from relay_hw.runtime.models import load_model
from relay_hw.support.progress import Steps
from tests.relay_hw.compare.test_compare import NAMES, calibration, data
if __name__ == "__main__":
    model = load_model(sys.argv[1])
    options = CompareOptions(strategies=NAMES, configs=["tiny"], processes=2, work=sys.argv[2])
    rest = dict(calibration=calibration(), params=model.params)
    compare(model.mod, data(), options, progress=Steps(lambda step: print(step.text, flush=True)), **rest)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_comparison_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed once a strategy is finished: workers end, and the next run makes only the others."""
    save_plain(tmp_path / "model.onnx")
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "model.onnx"), str(tmp_path / "work")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    for line in process.stdout:
        if re.match(r"comparing, strategies: [1-9] of 3", line):
            break
    process.kill()
    process.wait()
    finished = finished_in(tmp_path / "work")
    assert finished and finished <= set(NAMES)
    for _ in range(100):
        if not _session_runs(process.pid):
            break
        time.sleep(0.2)
    assert not _session_runs(process.pid), "workers outlive their parent"
    done: list[str] = []
    real = steps.strategy_row
    monkeypatch.setattr(steps, "strategy_row", lambda s, x, *rest: done.append(x.name) or real(s, x, *rest))
    model = load_model(tmp_path / "model.onnx")
    compare(
        model.mod,
        data(),
        CompareOptions(strategies=NAMES, configs=["tiny"], work=tmp_path / "work"),
        calibration=calibration(),
        params=model.params,
    )
    assert set(done) == set(NAMES) - finished == finished_in(tmp_path / "work") - finished


def finished_in(work: Path) -> set[str]:
    """Names of the strategies whose rows are in the journal of a folder."""
    with sqlite3.connect(work / steps.JOURNAL) as database:
        return {json.loads(content)["name"] for (content,) in database.execute("SELECT content FROM results")}


def _session_runs(session: int) -> bool:
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def test_json_has_the_promised_shape(found: Comparison) -> None:
    row = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert row["float"]["top1"] == found.float_row.test.top1 and row["best"] == found.best
    promised = ("name", "config", "top1", "agreement", "logit_sqnr_db", "cycles", "dram_bytes", "weight_bytes")
    for strategy in row["strategies"]:
        assert all(strategy[key] is not None for key in (*promised, "energy_uj"))
        assert {
            "lut",
            "multipliers",
            "accel_mac_share",
            "compile_seconds",
            "host_seconds",
            "machine",
            "worst_layers",
        } <= strategy.keys()


def test_csv_reads_back(found: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert tuple(rows[0]) == CSV_COLUMNS and [row["name"] for row in rows] == list(NAMES)
    assert [int(row["cycles"]) for row in rows] == [row.cost.cycles for row in found.rows if row.cost]


class _Page(HTMLParser):
    """Open elements and what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetches: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.fetches += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href", "srcset")]
        self.fetches += [tag] if tag == "link" else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetches += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else(found: Comparison) -> None:
    text = found.to_html()
    reader = _Page()
    reader.feed(text)
    assert not reader.open and not reader.fetches and "url(" not in text and "@import" not in text
    for name in (*NAMES, "conv_a", "conv_b", "Horowitz", "McNemar", "least output noise"):
        assert name in text
    assert text == found.to_html()
    one = found.to_html(["conv_b"])
    assert one.count('class="hist"') == 1 < text.count('class="hist"')
    with pytest.raises(InputError, match=r"layer must be one of .*, not nothing"):
        found.to_html(["nothing"])


def test_notebooks_show_the_page(found: Comparison) -> None:
    shown = found._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "<script" not in shown
    assert str(found) == found.to_text()


def test_the_names_that_users_know() -> None:
    from relay_hw.compat.tvm import relay

    assert relay.quantize.Strategy is Strategy
    with pytest.raises(AttributeError, match=r"module relay_hw.quantize has no attribute contrast"):
        relay.quantize.contrast  # noqa: B018


def test_the_table_shows_every_strategy(found: Comparison) -> None:
    lines = found.to_text().splitlines()
    head = next(line for line in lines if line.startswith("strategy"))
    assert "top-1" in head and "cycles" in head and "MSE" not in head
    assert any(line.startswith(f"{found.best} *") for line in lines)
    assert any(line.startswith("int8-pow2: most noise in ") for line in lines)


def test_files_are_written(found: Comparison, tmp_path: Path) -> None:
    found.save(tmp_path / "report")
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"report.html", "report.csv", "report.json"}
    assert Store(tmp_path / "report").folder.stat().st_mode & 0o200


def test_rows_link_the_reports_of_their_builds(plain: IRModule, tmp_path: Path) -> None:
    options = CompareOptions(strategies=["int8", "mxfp4"], configs=["tiny"], work=tmp_path / "a b" / "work", name="net")
    for _ in range(2):  # measured, then found again
        found = compare(plain, data(), options, calibration=calibration())
        found.save(tmp_path / "a b")
        text = (tmp_path / "a b" / "report.html").read_text()
        (address,) = re.findall(r'<a href="([^"]*)" aria-label="report of int8 on tiny">report</a>', text)
        page = (tmp_path / "a b" / unquote(address)).read_text()
        cost = found["int8"].cost
        assert cost is not None and "<title>net on tiny · relay-hw</title>" in page and "strategy int8" in page
        assert f"<b>{cost.cycles:,}</b><span>cycles an inference</span>" in page
    # Nothing is linked from elsewhere, nor what is there no more.
    found.save(tmp_path / "other")
    assert "<a href" not in (tmp_path / "other" / "report.html").read_text() and "<a href" not in found.to_html()
    (path,) = found.pages.values()
    path.unlink()
    assert not compare(plain, data(), options, calibration=calibration()).pages


def test_regressors_and_unlabelled_data(plain: IRModule) -> None:
    values = data()
    targets = np.random.default_rng(0).normal(size=(21, CLASSES))
    found = compare(
        plain,
        {"image": values["image"], "targets": targets},
        CompareOptions(strategies=["int8-minmax"], configs=["tiny"]),
        calibration=calibration(),
    )
    row = found.rows[0]
    assert row.test.mse is not None and row.test.top1 is None and row.test.agreement is None
    assert "MSE" in found.to_text() and "SQNR of the outputs" in found.to_html()
    bare = {"image": values["image"]}
    found = compare(
        plain,
        bare,
        CompareOptions(strategies=["int8-minmax"], configs=["tiny"], unlabelled=True),
        calibration=calibration(),
    )
    assert found.rows[0].test.agreement is not None and found.rows[0].test.top1 is None
    found.to_html()


def test_every_configuration_is_a_point(plain: IRModule) -> None:
    """Strategies on configurations asked for by name: each pair is a row, a point, a line and a cost, as if alone."""
    configs = ["tiny", "wide", "w4"]
    options = CompareOptions(strategies=["int8-minmax", "w4a8"], configs=configs)
    found = compare(plain, data(), options, calibration=calibration())
    pairs = {(row.name, config) for row in found.rows for config in configs}
    assert {point.key for point in found.points} == pairs and len(found.points) == 6
    for row in found.rows:
        assert row.cost is not None and row.cost.cycles == min(cost.cycles for cost in row.costs)
        for cost in row.costs:
            options = CompareOptions(strategies=[row.name], configs=[cost.config])
            (alone,) = compare(plain, data(), options, calibration=calibration()).rows
            assert alone.cost is not None
            same = dict.fromkeys(("compile_seconds", "host_seconds"), 0.0)
            assert replace(cost, **same) == replace(alone.cost, **same)
            assert alone.test == row.test
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert {(line["name"], line["config"]) for line in lines} == pairs
    strategies = found.to_json()["strategies"]
    assert {(row["name"], cost["config"]) for row in strategies for cost in row["costs"]} == pairs
    amounts = {(row["name"], c["config"]): (row["agreement"], c["cycles"]) for row in strategies for c in row["costs"]}

    def is_beaten(own: tuple[float, int]) -> bool:
        return any(cycles < own[1] and share >= own[0] for share, cycles in amounts.values())

    unbeaten = {key for key, own in amounts.items() if not is_beaten(own)}
    assert {(row["name"], c["config"]) for row in strategies for c in row["costs"] if c["front"]} == unbeaten
    assert {(line["name"], line["config"]) for line in lines if line["front"] == "True"} == unbeaten
    text, html = found.to_text(60), found.to_html()
    table = text.partition("\n\n")[2].partition("\n\n")[0].replace(" *", "").splitlines()
    assert {tuple(line.split()[:2]) for line in table} >= pairs
    assert text.count(" * ") == 1 and html.count('class="best') == 1
    for name, config in pairs:
        assert html.count(f"<title>{name} on {config}: ") == 3
    assert "w4a8 on tiny: no gain on tiny: 4-bit weights as 8-bit ones" in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"data": {"image": images(3, 1)}}, "test data must hold labels or targets"),
        ({"data": {"image": images(3, 1), "labels": np.array([0, 1, 9])}}, "labels must be from 0 to 4, not 9"),
        ({"data": {"image": images(3, 1)[:, :2], "labels": np.zeros(3, int)}}, r"must have the shape \(N, 3, 8, 8\)"),
        ({"data": {"image": images(3, 1), "targets": np.zeros((3, 2))}}, "targets must have 5 numbers a sample, not 2"),
        ({"calibration": None}, "strategy int8-minmax needs calibration data"),
        ({"calibration": {"picture": images(3, 1)}}, "calibration data must hold input image, not only picture"),
        ({"strategies": []}, "strategies must have at least one entry, not none"),
        ({"strategies": ["int8-pow2", "int8-pow2"]}, "different names, not int8-pow2 twice"),
        ({"strategies": ["int9"]}, "strategy must be one of .*, not int9"),
        ({"configs": ["huge"]}, "configuration must be one of .*, not huge"),
        ({"configs": []}, "configurations must have at least one entry, not none"),
        ({"configs": ["tiny", "tiny"]}, "configurations must have different names, not tiny twice"),
        ({"engine": "gpu"}, "engine must be one of auto, tvm, numpy, not gpu"),
        ({"processes": 0}, "processes must be at least 1, not 0"),
        ({"scheduler": "http://x"}, "scheduler must be tls://HOST:PORT or tcp://HOST:PORT, not http://x"),
        ({"output": "boxes"}, "output must be one of scores, not boxes"),
    ],
)
def test_bad_input_is_one_sentence(plain: IRModule, change: dict[str, Any], sentence: str) -> None:
    values: dict[str, Any] = {"data": data(3), "strategies": ["int8-minmax"], "calibration": calibration()} | change
    rest = {key: values.pop(key) for key in tuple(values) if key not in ("data", "strategies", "calibration")}
    with pytest.raises(Exception, match=sentence) as caught:
        compare(
            plain,
            values["data"],
            CompareOptions(strategies=values["strategies"], **{"configs": ["tiny"]} | rest),
            calibration=values["calibration"],
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_layer_that_does_not_exist(plain: IRModule, processes: int) -> None:
    own = Strategy("own", layers=(LayerChoice("conv_x", weight_bits=4),))
    with pytest.raises(QuantizeError, match=r"strategy own: .*conv_x"):
        compare(
            plain,
            data(3),
            CompareOptions(strategies=[own, "int8-pow2"], configs=["tiny"], processes=processes),
            calibration=calibration(),
        )


def test_the_executor_agrees(plain: IRModule, tmp_path: Path) -> None:
    """The functional simulator, through a build on disk, gives the outputs that the comparison measures."""
    network = prepare(plain)
    samples = steps.read_samples(network.mod["main"].params, data(5), "test data")
    for name in NAMES:
        quantized = quantize(network.mod, name, calibration())
        wanted = Evaluator(quantized, 0, "numpy").run(samples).outputs
        artifact = compile_model(network.mod, CompileOptions(config="tiny", strategy=name), quantized=quantized).save(
            tmp_path / name
        )
        from relay_hw.target.accel.devices import open_device

        result = Executor(artifact, open_device("functional", artifact.config)).run({"image": data(5)["image"]})
        np.testing.assert_array_equal(next(iter(result.outputs.values())), wanted)


LOOP = """#[version = "0.0.5"]
def @again(%n: int32, %x: Tensor[(1, 16), float32], %w: Tensor[(16, 16), float32]) -> Tensor[(1, 16), float32] {
  if (equal(%n, 0)) { %x } else { @again(subtract(%n, 1), nn.relu(nn.dense(%x, %w, units=16)), %w) }
}
def @main(%x: Tensor[(1, 16), float32], %w: Tensor[(16, 16), float32]) -> Tensor[(1, 16), float32] {
  @again(TIMES, %x, %w)
}
"""


def looped(times: int) -> Comparison:
    rng = np.random.default_rng(0)
    mod = parse(LOOP.replace("TIMES", str(times)))
    weight = np.abs(rng.normal(size=(16, 16)) / 4).astype(np.float32)
    values = {"x": rng.normal(size=(6, 16)).astype(np.float32), "labels": np.arange(6)}
    seen = {"x": rng.normal(size=(8, 16)).astype(np.float32)}
    return compare(
        mod,
        values,
        CompareOptions(strategies=["int8-minmax"], configs=["tiny"]),
        calibration=seen,
        params={"w": weight},
    )


def test_loops_cost_what_they_launch() -> None:
    """The weights stay on the device, so every turn but none costs the same."""
    cycles = {times: looped(times).rows[0].cost for times in (3, 5)}
    short, long = cycles[3], cycles[5]
    assert short is not None and long is not None
    assert short.cycles % 3 == 0 and long.cycles == short.cycles // 3 * 5
    assert (short.accel_macs, long.accel_macs) == (3 * 256, 5 * 256) and short.accel_share == 1.0
    assert long.energy.total == pytest.approx(short.energy.total / 3 * 5)


def test_area_comes_from_kept_results(plain: IRModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from relay_hw.accel.fpga.synth import CELLS, COUNTED, cache_folder, content_key
    from relay_hw.accel.sim.result_cache import seal

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments: dict[str, Any] = {"configs": ["tiny"], "area": True, "work": tmp_path / "work"}
    missing = compare(plain, data(3), CompareOptions(strategies=NAMES[:1], **arguments), calibration=calibration())
    assert not missing.rows[0].area and "No synthesis result yet for tiny" in missing.notes[0]
    assert missing.notes[0] in missing.to_text() and "scripts/area.py tiny" in missing.to_html()
    stage = cache_folder() / f"{content_key(load_config('tiny'))}-0"
    stage.mkdir(parents=True)
    counts = {"luts": 9876, "multipliers": 54, "block_rams": 3, "flip_flops": 2, "luts_as_memory": 1, "seconds": 0}
    (stage / CELLS).write_text(json.dumps(counts))
    seal(stage, COUNTED, [CELLS])
    found = compare(plain, data(3), CompareOptions(strategies=NAMES[:1], **arguments), calibration=calibration())
    assert found.notes == () and found.to_json()["strategies"][0]["lut"] == 9876
    for text in (found.to_text(), found.to_html(), found.to_csv()):
        assert "54" in text and ("9,876" in text or "9876" in text)
