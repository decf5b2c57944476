"""A target from outside: dense layers run on its simulator and give the reference's bytes."""

import tempfile
from pathlib import Path

import numpy as np
from outside_npu import make

import relay_hw as relay
from relay_hw import op
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.runtime import CompileOptions, Executor, compile_model
from relay_hw.runtime.opened import open_session
from relay_hw.target import register

register("toy", make)
rng = np.random.default_rng(3)
x = relay.var("x", shape=(1, 12), dtype="float32")
mod = IRModule({"main": Function([x], op.nn.dense(x, op.const(rng.normal(size=(5, 12)).astype("float32"))))})
data = {"x": rng.normal(size=(16, 1, 12)).astype("float32")}
model = compile_model(mod, CompileOptions(target="toy", host_target="numpy"), calibration=data)
assert [row.operator for row in model.layers if row.where == "toy"] == ["toy.dense"]
with tempfile.TemporaryDirectory() as folder:
    artifact = model.save(Path(folder) / "build")
    want = Executor(artifact, None).run(data).outputs["output"]
    np.testing.assert_array_equal(Executor(artifact, open_session(artifact)).run(data).outputs["output"], want)
print("as wanted")
