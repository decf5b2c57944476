"""A transformer block: all but softmax and norms runs on the device, all in integers, and close to the floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import open_device

TOKENS, WIDTH, HEADS = 32, 64, 4


def _dense(rng: np.random.Generator, x: Expr, inputs: int, units: int) -> Expr:
    weight = rng.normal(size=(units, inputs)).astype("float32") / np.sqrt(inputs)
    bias = op.const(rng.normal(size=units).astype("float32") / 10)
    return op.nn.bias_add(op.nn.dense(x, op.const(weight)), bias, axis=-1)


def _norm(rng: np.random.Generator, x: Expr) -> Expr:
    scale, shift = (op.const(rng.uniform(0.5, 1.5, WIDTH).astype("float32")) for _ in range(2))
    return op.nn.layer_norm(x, scale, shift)


def _heads(x: Expr) -> Expr:
    return op.transpose(op.reshape(x, (TOKENS, HEADS, WIDTH // HEADS)), (1, 0, 2))


def _block() -> IRModule:
    rng = np.random.default_rng(0)
    x = Var("x", TensorType((1, TOKENS, WIDTH), "float32"))
    rows = op.reshape(x, (TOKENS, WIDTH))
    normed = _norm(rng, rows)
    q, k, v = (_heads(_dense(rng, normed, WIDTH, WIDTH)) for _ in range(3))
    scores = op.multiply(op.nn.batch_matmul(q, k, transpose_b=True), op.const(np.float32(0.25)))
    mixed = op.nn.batch_matmul(op.nn.softmax(scores), v, transpose_b=False)
    joined = op.reshape(op.transpose(mixed, (1, 0, 2)), (TOKENS, WIDTH))
    rows = op.add(_dense(rng, joined, WIDTH, WIDTH), rows)
    hidden = op.nn.relu(_dense(rng, _norm(rng, rows), WIDTH, 2 * WIDTH))
    rows = op.add(_dense(rng, hidden, 2 * WIDTH, WIDTH), rows)
    return infer_type(IRModule.from_expr(Function([x], op.reshape(rows, (1, TOKENS, WIDTH)))))


def test_block(tmp_path: Path) -> None:
    mod = _block()
    data = {"x": np.random.default_rng(1).normal(size=(4, TOKENS, WIDTH)).astype("float32")}
    compiled = compile_model(mod, calibration=data)
    on_device = [row.operator for row in compiled.layers if row.where == "accel"]
    assert on_device.count("accel.batch_matmul") == 2 and on_device.count("accel.dense") == 6
    assert on_device.count("accel.add") == 0 and on_device.count("accel.softmax") == 1
    assert on_device.count("accel.layer_norm") == 2
    on_host = [row.operator for row in compiled.layers if row.where == "host"]
    assert {*on_host} <= {"qnn.quantize", "qnn.dequantize", "reshape"} and on_host.count("qnn.dequantize") == 1
    artifact = compiled.save(tmp_path / "build")
    have = Executor(artifact, open_device("functional", artifact.config)).run(data).outputs["output"]
    assert np.array_equal(have, Executor(artifact, None).run(data).outputs["output"])
    want = np.concatenate([evaluate(mod, {"x": data["x"][n : n + 1]}) for n in range(4)]).reshape(have.shape)
    noise = float(np.square(have - want).mean() / np.square(want).mean())
    assert noise < 0.001
