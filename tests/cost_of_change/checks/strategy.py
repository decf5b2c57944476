"""A strategy by its name: a layer has weights of that many bits and one scale."""

import numpy as np

import relay_hw as relay
from relay_hw import op
from relay_hw.ir.expr import Constant, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.quantize.recipes import strategy_names
from relay_hw.runtime import CompileOptions, compile_model

assert "int7-tensor" in strategy_names()
rng = np.random.default_rng(0)
x = relay.var("x", shape=(1, 12), dtype="float32")
weight = rng.normal(size=(8, 12)).astype("float32")
mod = IRModule({"main": Function([x], op.nn.dense(x, op.const(weight)))})
options = CompileOptions(strategy="int7-tensor", host_target="numpy")
model = compile_model(mod, options, calibration={"x": rng.normal(size=(16, 1, 12)).astype("float32")})
nodes = post_order(model.stages["quantized"]["main"])
weights = [
    node.data for node in nodes if isinstance(node, Constant) and node.data.dtype == np.int8 and node.data.ndim == 2
]
assert [int(np.abs(one).max()) for one in weights] == [63], weights
print("as wanted")
