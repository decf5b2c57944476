"""Numbers of compare on a small network against other ways to get them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.backend.tvm import is_installed
from relay_hw.compare import CompareOptions, Comparison, compare
from relay_hw.compare import main as steps
from relay_hw.compare.evaluate import Evaluator
from relay_hw.compare.findings import choose_best
from relay_hw.compare.hardware_cost import Cost
from relay_hw.compare.network import prepare
from relay_hw.compare.rows import Row
from relay_hw.errors import InputError, QuantizeError
from relay_hw.interp import Interpreter
from relay_hw.ir.module import IRModule
from relay_hw.quantize import LayerChoice, Strategy, quantize
from relay_hw.runtime.compile import bind_params, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.machine import machine_name
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import profile
from tests.relay_hw.compare.given import NAMES, calibration, data, seen
from tests.relay_hw.small_models import CLASSES, images, save_batch, save_mixed, save_plain


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
