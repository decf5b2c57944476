"""A pass that drops double negatives: by its name, and with no change of what is computed."""

import numpy as np

import relay_hw as relay
from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform import PASSES, InferType, get_pass

var = relay.var("x", shape=(4,), dtype="float32")
mod = InferType()(IRModule({"main": Function([var], op.abs(op.negative(op.negative(op.negative(op.sin(var))))))}))
step = get_pass("drop-double-negative")
step = step() if isinstance(step, type) else step
assert type(step) in PASSES
new = step(mod)
names = [node.op.name for node in post_order(new["main"]) if isinstance(node, Call)]
assert names == ["sin", "negative", "abs"], names
x = {"x": np.arange(4, dtype=np.float32)}
np.testing.assert_array_equal(evaluate(new, x), evaluate(mod, x))
print("as wanted")
