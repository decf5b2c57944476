"""Comparisons that are interrupted, killed or spread over processes: each strategy is measured once, alike."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.compare import main as steps
from relay_hw.errors import InputError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.runtime.models import load_model
from relay_hw.support.progress import Steps
from relay_hw.sweep.workers import has_dask
from tests.relay_hw.compare.given import NAMES, calibration, data
from tests.relay_hw.small_models import save_plain

ROOT = Path(__file__).parents[3]


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


SCRIPT = """
import sys
import numpy as np
from relay_hw.compare import CompareOptions, compare
from relay_hw.runtime.models import load_model
from relay_hw.support.progress import Steps
from tests.relay_hw.compare.given import NAMES, calibration, data
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
