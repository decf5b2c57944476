"""nn.silu, which TVM lacks: against numpy, its slope against finite differences, from ONNX, compiled by TVM."""

import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import relay_hw as relay
from relay_hw import op
from relay_hw.backend.nodes import FlatCall, FlatFunction, FlatInput
from relay_hw.backend.tvm import build_library, is_installed, load_library
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op.tvm_operators import is_known
from relay_hw.text import print_module
from relay_hw.transform import InferType, gradient

x = np.linspace(-6, 6, 25)
want = x / (1 + np.exp(-x))
assert not is_known("nn.silu")

var = relay.var("x", shape=x.shape, dtype="float64")
function = Function([var], op.nn.silu(var))
mod = InferType()(IRModule({"main": function}))
np.testing.assert_allclose(evaluate(mod, {"x": x}), want)
np.testing.assert_allclose(evaluate(relay.fromtext(print_module(mod)), {"x": x}), want)

slopes = IRModule({"main": gradient(mod["main"], mod)})
step = 1e-6
near = [(x + by) / (1 + np.exp(-x - by)) for by in (step, -step)]
found = evaluate(InferType()(slopes), {"x": x})
np.testing.assert_allclose(found[1][0], (near[0] - near[1]) / (2 * step), rtol=1e-6, atol=1e-8)

info = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, x.shape) for name in "xy"]
node = helper.make_node("Swish", ["x"], ["y"], alpha=0.5)
graph = helper.make_graph([node], "g", info[:1], info[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
imported, params = from_onnx(model)
np.testing.assert_allclose(evaluate(imported, {**params, "x": x}), x / (1 + np.exp(-0.5 * x)))

if is_installed():
    ty = TensorType(x.shape, "float32")
    call = FlatCall(op.get("nn.silu"), (0,), None, ty)
    host = FlatFunction("host_0", (FlatInput("x", ty), call), 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host.so"
        built = build_library([host], path)
        assert built.functions == ("host_0",) and not built.left_to_numpy, "TVM must compile it"
        got = load_library(path, built).call("host_0", [x.astype("float32")])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
print("as wanted")
