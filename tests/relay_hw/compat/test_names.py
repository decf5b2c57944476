"""Every name that the document lists is there, and works as scripts use it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import relay_hw
from relay_hw.compat import tvm
from relay_hw.compat.tvm import relay
from relay_hw.compat.tvm.contrib import graph_executor, utils
from relay_hw.errors import InputError, UnsupportedError

README = Path(relay_hw.__file__).parent / "compat" / "tvm" / "README.md"
NAMES = sorted(set(re.findall(r"`(tvm\.[\w.]+)`", README.read_text())))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("tvm.ir",)])
def test_listed_names_are_there(name: str) -> None:
    found: object = tvm
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert found is not None


def test_the_list_is_the_whole_of_relay() -> None:
    assert len(NAMES) > 100
    assert relay.nn.conv2d is relay_hw.nn.conv2d and relay.add is relay_hw.add
    assert set(relay_hw.transform.__all__) <= set(dir(relay.transform))
    assert relay.Any is relay_hw.ir.types.Any


def test_arrays() -> None:
    a = tvm.nd.array(np.arange(3, dtype="int8"), tvm.cpu(0))
    assert a.shape == (3,) and a.dtype == "int8" and str(a.device) == "cpu(0)" and len(a) == 3
    assert a.numpy().tolist() == [0, 1, 2] == a.asnumpy().tolist() == list(np.asarray(a))
    assert tvm.nd.array([1, 2]).dtype == "float32"
    empty = tvm.nd.empty((3,), "int8", tvm.cuda(1))
    assert a.copyto(empty) is empty and int(empty[2]) == 2 and empty.ctx.device_type == 2
    empty[0] = 9
    assert a.numpy()[0] == 0 and "cuda(1)" in repr(empty)
    assert a.copyto(tvm.cuda()).device == tvm.cuda() and empty.copyfrom(np.int8([5, 6, 7]))[1] == 6
    assert float(tvm.nd.array(np.float32(2.5))) == 2.5 and int(tvm.nd.array(np.int32(7))) == 7
    assert not tvm.nd.array(np.bool_(False))


def test_devices_and_targets() -> None:
    assert tvm.device("llvm", 1) == tvm.cpu(1) and tvm.device(2) == tvm.cuda() and tvm.device("opencl").device_type == 4
    assert tvm.cpu().exist and not tvm.gpu().exist
    with pytest.raises(InputError, match=r"device must be one of cpu, llvm, .*, not tpu"):
        tvm.device("tpu")
    with tvm.target.Target("llvm -mcpu=core-avx2") as target:
        assert target.kind == "llvm" and str(target) == "llvm -mcpu=core-avx2"
    assert tvm.target.Target({"kind": "cuda"}).kind == "cuda" and tvm.target.arm_cpu("rasp3b").kind == "llvm"
    with pytest.raises(
        InputError, match="target must be one of llvm, c, cuda, opencl, nvptx, numpy, accel, vta, not hexagon"
    ):
        tvm.target.Target("hexagon")


def test_targets_by_device(tmp_path: Path) -> None:
    x = relay.var("x", shape=(3,), dtype="int32")
    there = relay.annotation.on_device(
        relay.add(relay.annotation.on_device(x, tvm.cpu()), relay.const(1)), tvm.ext_dev()
    )
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.multiply(there, relay.const(2))))
    targets = {tvm.cpu(): "numpy", 12: tvm.target.Target("numpy")}
    lib = relay.build(mod, target=targets)
    assert lib["default"](tvm.cpu(), tvm.ext_dev()).run(x=np.int32([1, 2, 3])).tolist() == [4, 6, 8]
    lib.export_library(tmp_path / "lib.tar")
    again = tvm.runtime.load_module(tmp_path / "lib.tar")["default"](tvm.cpu())
    assert again.run(x=np.int32([1, 2, 3])).tolist() == [4, 6, 8] and again.result is not None
    assert sum(row.reason.startswith("it copies") for row in again.artifact.manifest.layers) == 2
    with pytest.raises(InputError, match=r"device must be one of cpu, cuda, not ext_dev\(0\)"):
        relay.build(mod, target={"cpu": "numpy", "cuda": "cuda"})["default"](tvm.cpu())
    with pytest.raises(UnsupportedError, match=r"not add on ext_dev\(0\): add computes in int32"):
        relay.build(mod, target={"cpu": "llvm", "ext_dev": "accel"})["default"](tvm.cpu())
    assert tvm.target.default_device(tvm.target.Target("accel:tiny")) == tvm.ext_dev()


def test_modules_change_in_place() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule()
    mod["main"] = relay.Function([x], relay.exp(x))
    mod.update_func(relay.GlobalVar("other"), relay.Function([], relay.const(1)))
    assert "main" in mod and relay.GlobalVar("other") in mod and "missing" not in mod
    assert [var.name_hint for var in mod.get_global_vars()] == ["main", "other"]
    mod.import_from_std("prelude.rly")
    assert "map" in mod and "List" in mod.types
    typed = relay.transform.InferType()(mod)
    typed["third"] = mod["main"]
    assert isinstance(typed, tvm.IRModule) and "third" in typed and "third" not in mod
    more = tvm.IRModule()
    more.update(mod)
    more.update({"fourth": mod["main"]})
    assert set(more.functions) == {*mod.functions, "fourth"} and set(more.types) == set(mod.types)
    big = tvm.IRModule.from_expr(relay.add(x, relay.const(np.ones(2, "float32"))))
    assert "#[metadata]" in big.astext() and "#[metadata]" not in big.astext(show_meta_data=False)
    assert tvm.ir.structural_equal(tvm.parser.parse(big.astext()), relay.transform.InferType()(big))
    with pytest.raises(ValueError, match="the programs must be equal"):
        tvm.ir.assert_structural_equal(big, mod)


def test_executors() -> None:
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.Tuple([relay.add(x, w), relay.exp(x)])))
    for kind in ("debug", "graph", "vm", "aot"):
        run = relay.create_executor(kind, mod=mod, device=tvm.cpu(), params={"w": tvm.nd.array([1, 2])}).evaluate()
        total, _ = run(tvm.nd.array([1, 1]))
        assert total.numpy().tolist() == [2, 3]
    assert relay.create_executor().evaluate(relay.add(x, x), {x: tvm.nd.array([1, 2])}).asnumpy().tolist() == [2, 4]
    with pytest.raises(InputError, match="executor must be debug, graph, vm or aot, not jit"):
        relay.create_executor("jit", mod)


def test_visitors() -> None:
    class Calls(relay.expr_functor.ExprVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def visit_call(self, call: relay.Call) -> None:
            for arg in call.args:
                self.visit(arg)
            self.names.append(call.op.name)

    class ExpToLog(relay.expr_functor.ExprMutator):
        def visit_call(self, call: relay.Call) -> relay.Call:
            new = super().visit_call(call) if hasattr(super(), "visit_call") else call
            return relay.log(new.args[0]) if new.op.name == "exp" else new

    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    body = relay.add(shared, relay.negative(shared))
    calls = Calls()
    calls.visit(body)
    assert calls.names == ["exp", "negative", "add"]
    again = Calls()
    again.visit(ExpToLog().visit(relay.Function([x], body)))
    assert again.names == ["log", "negative", "add"]
    from tests.relay_hw.programs import random_module

    for seed in range(30):
        main = random_module(seed)["main"]
        assert relay.expr_functor.ExprMutator().visit(main) is not None
        relay.expr_functor.ExprVisitor().visit(main)


def test_graph_modules_and_saved_libraries() -> None:
    x, w = relay.var("x", shape=(1, 3)), relay.var("w", shape=(2, 3))
    out = relay.Tuple([relay.nn.dense(x, w), relay.exp(x)])
    params = {"w": tvm.nd.array(np.float32([[1, 2, 3], [4, 5, 6]]))}
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, w], out)), target="numpy", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    with pytest.raises(InputError, match="outputs must be computed by run before they are read"):
        module.get_output(0)
    with pytest.raises(InputError, match="inputs x must be set before run"):
        module.run()
    module.set_input("x", np.float32([[1, 1, 1]]), w=params["w"])
    module.run()
    assert module.get_num_outputs() == 2 and module.get_num_inputs() == 1 and module.get_input_index("x") == 0
    assert module.get_output(0).numpy().tolist() == [[6, 15]] and module.get_input(0).shape == (1, 3)
    module.set_input(0, tvm.nd.array(np.float32([[0, 0, 1]])))
    module.run()
    assert module.get_output(0, tvm.nd.empty((1, 2))).numpy().tolist() == [[3, 6]]
    assert module.benchmark(tvm.cpu(), repeat=2, number=2).mean > 0 and "ms" in str(
        module.benchmark(repeat=1, number=1)
    )
    for bad, told in (
        (lambda: module.set_input("y", 1), "input must be one of x, not y"),
        (lambda: module.set_input("x", np.zeros((2, 2))), r"input x must be Tensor.*, not Tensor\[\(2, 2\), float32\]"),
        (lambda: module.get_output(5), r"output must be in \[0, 2\), not 5"),
        (lambda: lib["other"], "entry of a library must be default, not other"),
    ):
        with pytest.raises(InputError, match=told):
            bad()
    graph, code, weights = lib
    assert isinstance(graph, str) and weights["w"].shape == (2, 3)
    graph_executor.create(graph, code, tvm.cpu()).load_params(relay.save_param_dict(weights))
    with utils.tempdir() as folder:
        path = folder.relpath("model.tar")
        lib.export_library(path)
        first = Path(path).read_bytes()
        lib.export_library(path)
        assert Path(path).read_bytes() == first and folder.listdir() == ["model.tar"]
        loaded = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))
        loaded.run(x=np.float32([[1, 0, 0]]))
        assert loaded.get_output(0).numpy().tolist() == [[1, 4]]
        Path(path).write_bytes(b"nothing")
        with pytest.raises(InputError, match="library must be a file that export_library wrote, not"):
            tvm.runtime.load_module(path)


def test_models() -> None:
    mod, params = relay.testing.mlp.get_workload(1)
    lib = relay.build(mod, "numpy", params=params)
    module = graph_executor.GraphModule(lib["default"]())
    module.run(data=np.ones((1, 1, 28, 28), "float32"))
    assert module.get_output(0).numpy().sum() == pytest.approx(1)
    for layers, size, count in ((18, 224, 99), (50, 224, 252), (20, 32, 106)):
        net, weights = relay.testing.resnet.get_workload(num_layers=layers, image_shape=(3, size, size), num_classes=10)
        assert net["main"].func_type.ret_type == relay.TensorType((1, 10)) and len(weights) >= count - 5
    nhwc, _ = relay.testing.resnet.get_workload(num_layers=18, image_shape=(224, 224, 3), layout="NHWC")
    assert 'kernel_layout="HWIO"' in nhwc.astext(show_meta_data=False)
    with pytest.raises(InputError, match=r"layers of a residual network must be one of 18, 34, 50, .*, not 19"):
        relay.testing.resnet.get_net(1, 10, 19)
    with pytest.raises(InputError, match=r"layers of a residual network for small images must be 6n \+ 2, not 19"):
        relay.testing.resnet.get_net(1, 10, 19, (3, 32, 32))


def test_pass_helpers() -> None:
    x = relay.var("x", shape=(2,))
    assert relay.testing.run_infer_type(relay.exp(x)).checked_type == relay.TensorType((2,))
    folded = relay.testing.run_opt_pass(relay.exp(relay.const(0.0)), relay.transform.FoldConstant())
    assert isinstance(folded, relay.Constant)
    printed = tvm.transform.PrintIR()(tvm.IRModule.from_expr(relay.exp(x)))
    assert isinstance(printed, tvm.IRModule)
    low = relay.qnn.transform.CanonicalizeOps()
    one, zero = relay.const(0.5), relay.const(0)
    q = relay.var("q", shape=(2,), dtype="int8")
    assert "qnn" not in low(tvm.IRModule.from_expr(relay.qnn.op.dequantize(q, one, zero))).astext()
