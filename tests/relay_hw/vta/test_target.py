"""VTA through every door of a target: whole networks, the command line, reasons for what stays on the host."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.cli.main import main
from relay_hw.errors import ArtifactError, InputError
from relay_hw.ir.expr import Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.runtime import CompileOptions, Executor, compile_model
from relay_hw.runtime.opened import open_session
from relay_hw.target import partition_pipeline, target_names
from relay_hw.text import print_module
from relay_hw.transform import InferType
from relay_hw.vta import make
from tests.relay_hw.vta.networks import lenet, weight

HOME = Path(relay.__file__).parent / "vta"
IMAGES = {"x": np.random.default_rng(3).normal(size=(8, 1, 1, 28, 28)).astype("float32")}


@pytest.mark.parametrize("config", ["pynq", "de10nano", "pynq_4x8"])
@pytest.mark.parametrize("strategy", ["int8-pow2", "tvm"])
def test_lenet(config: str, strategy: str, tmp_path: Path) -> None:
    options = CompileOptions(target=make(config), host_target="numpy", strategy=strategy)
    model = compile_model(lenet(), options, calibration=IMAGES)
    artifact = model.save(tmp_path / "build")
    want = Executor(artifact, None).run(IMAGES)
    got = Executor(artifact, open_session(artifact)).run(IMAGES)
    np.testing.assert_array_equal(got.outputs["output"], want.outputs["output"])
    on_device = [row.operator for row in model.layers if row.where == "vta"]
    layers = ["vta.max_pool2d", "vta.conv2d", "vta.max_pool2d"]
    assert on_device == layers + ["vta.dense"] * 3 * (strategy == "int8-pow2")
    assert all(row.ranges and row.roofline_cycles for row in model.layers if row.macs and row.where == "vta")


def test_a_build_goes_through_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, data, build = tmp_path / "net.relay", tmp_path / "data.npz", tmp_path / "build"
    model.write_text(print_module(lenet()))
    np.savez(data, **IMAGES)
    options = ["--target", "vta", "--config", "de10nano", "--quantize", "int8-pow2", "--calibration", str(data)]
    assert main(["compile", str(model), *options, "-o", str(build)]) == 0
    assert "vta.dense" in capsys.readouterr().out
    assert main(["run", str(build), "--input", str(data), "--json"]) == 0
    assert '"device": "simulator"' in capsys.readouterr().out
    assert main(["verify", str(build)]) == 0
    assert "vta" in target_names()


def test_programs_of_other_builds_are_refused(tmp_path: Path) -> None:
    options = CompileOptions(target=make(), host_target="numpy", strategy="int8-pow2")
    artifact = compile_model(lenet(), options, calibration=IMAGES).save(tmp_path / "build")
    row, other = artifact.manifest.regions[:2]
    with pytest.raises(ArtifactError, match="region vta_0 must be for 1x16_i8w8a32_15_15_18_17 of de10nano"):
        make("de10nano").check(row, artifact.images[row.name])
    with pytest.raises(ArtifactError, match="region vta_0 must have the ports of its program"):
        make().check(replace(row, inputs=other.inputs), artifact.images[row.name])
    with pytest.raises(InputError, match="device must be simulator for target vta, not rtl"):
        make().open("rtl", (), {})


def conv(data: tuple[int, ...] = (1, 16, 8, 8), kernel: tuple[int, ...] = (16, 16, 3, 3), **attrs: object) -> Expr:
    x = relay.var("x", shape=data, dtype="int8")
    return op.nn.conv2d(x, weight(np.random.default_rng(0), *kernel), out_dtype="int32", **attrs)


def requantized(sums: Expr, channels: int = 16, multiplier: int = 1, shift: int = 8, **attrs: object) -> Expr:
    return op.fixed.requantize(sums, op.const(np.zeros(channels, "int32")), [multiplier], [shift], **attrs)


def pool(**attrs: object) -> Expr:
    return op.nn.max_pool2d(relay.var("x", shape=(1, 16, 8, 8), dtype="int8"), **attrs)


def add(left: int, right: int, shift: int = 1) -> Expr:
    x = relay.var("x", shape=(1, 16, 8, 8), dtype="int8")
    return op.fixed.add(x, op.nn.max_pool2d(x, (1, 1)), left, right, shift)


def padded(value: int) -> Expr:
    x = relay.var("x", shape=(1, 16, 8, 8), dtype="int8")
    pad = op.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), op.const(np.int8(value)))
    return op.nn.conv2d(pad, weight(np.random.default_rng(0), 16, 16, 3, 3), out_dtype="int32")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (requantized(conv(), multiplier=3), "multipliers must be powers of two, not 3"),
        (requantized(conv(), rounding="half_even"), "halves can be rounded up or all down, not by half_even"),
        (requantized(conv(), shift=32), "shifts must be at most 31, not 32"),
        (requantized(conv(), multiplier=1 << 14, shift=0), "sums with bias and rounding must fit into 32 bits"),
        (requantized(conv(kernel=(16, 1, 3, 3), groups=16)), "groups of nn.conv2d must be 1 for VTA"),
        (requantized(conv((1, 3, 8, 8), (16, 3, 3, 3))), "3 channels of data would use 3 of 16 lanes"),
        (requantized(conv(padding=(16, 16))), "VTA pads at most 15 rows, not 16"),
        (requantized(conv(padding=(3, 3))), "a window must hold rows of the data for VTA, not of the padding alone"),
        (
            requantized(conv((1, 16, 8, 600), padding=(0, 0), kernel=(16, 16, 3, 600))),
            "one result needs more than half",
        ),
        (requantized(padded(1)), "VTA pads rows and columns with zeros, not with 1"),
        (pool(pool_size=(2, 2), strides=(2, 2), padding=(1, 1)), "one place of the window must lie in the data"),
        (add(3, 1), "multipliers must be powers of two, not 3"),
        (add(128, 1), "scales of fixed.add must differ by at most 64 for VTA, not by 128"),
    ],
)
def test_reasons_of_layers(body: Expr, reason: str) -> None:
    params = [node for node in relay.analysis.free_vars(body) if isinstance(node, Var)]
    mod = InferType()(IRModule({"main": Function(params, body)}))
    found = partition_pipeline(make())(mod).attrs["partition"]
    assert any(reason in record.reason for record in found), [record.reason for record in found]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (op.nn.relu(relay.var("x", shape=(4,), dtype="float32")), "nn.relu is in float32, and VTA has no floats"),
        (op.nn.relu(relay.var("x", shape=(4,), dtype="int8")), "VTA has no nn.relu: it computes convolutions, dense"),
        (conv(), "nn.conv2d must have constant weights, and its sums one fixed.requantize, to run on VTA"),
    ],
)
def test_reasons_of_operators(body: Expr, reason: str) -> None:
    params = [node for node in relay.analysis.free_vars(body) if isinstance(node, Var)]
    mod = InferType()(IRModule({"main": Function(params, body)}))
    assert partition_pipeline(make())(mod).attrs["partition"][-1].reason.startswith(reason)


def test_it_is_written_through_the_door_that_strangers_use() -> None:
    """Of other rooms it sees what docs/targets.md names, and it is short."""
    files = {path: path.read_text() for path in HOME.rglob("*.py")}
    found: set[str] = set()
    for text in files.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("relay_hw."):
                found.add(str(node.module))
    rooms = {name for name in found if not name.startswith("relay_hw.vta")}
    assert {name for name in rooms if name.startswith("relay_hw.target")} == {"relay_hw.target"}
    assert not {name for name in rooms if name.startswith(("relay_hw.accel", "relay_hw.tensorize", "relay_hw.runtime"))}
    lines = {path: len(text.splitlines()) for path, text in files.items()}
    assert sum(count for path, count in lines.items() if path.parent.name != "sim") <= 2500
