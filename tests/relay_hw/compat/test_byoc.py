"""Bring your own code generator, by TVM's names: a target of this package, and one that is a code generator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw
from examples.toy_npu import make
from examples.toy_npu.program import DenseLayer, from_bytes, to_bytes
from examples.toy_npu.simulator import run_layer
from examples.toy_npu.target import DENSE, ToyTarget
from relay_hw.cli.main import main
from relay_hw.compat import tvm
from relay_hw.compat.tvm import relay
from relay_hw.compat.tvm.byoc import registry
from relay_hw.compat.tvm.contrib import graph_executor
from relay_hw.compat.tvm.relay.dataflow_pattern import is_constant, is_op, wildcard
from relay_hw.compat.tvm.relay.op.contrib import get_pattern_table, register_pattern_table
from relay_hw.errors import ArtifactError, InputError, UnsupportedError
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.opened import open_session
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.progress import SILENT
from relay_hw.target import Request, target_names, unregister

Captured = pytest.CaptureFixture[str]
FLOAT = CompileOptions(strategy="float", host_target="numpy")
CALIBRATION = {"x": np.random.default_rng(5).normal(size=(16, 1, 12)).astype("float32")}


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    yield
    for name in ("toy", "ccompiler", "other"):
        registry.forget(name)
        unregister(name)


def network() -> tvm.IRModule:
    """Two dense layers around a ReLU, with a softmax."""
    rng = np.random.default_rng(3)
    value = lambda *shape: relay.const(rng.normal(size=shape).astype("float32"))  # noqa: E731
    x = relay.var("x", shape=(1, 12))
    first = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, value(20, 12)), value(20)))
    return tvm.IRModule.from_expr(relay.nn.softmax(relay.nn.dense(first, value(5, 20))))


def patterns() -> list[Any]:
    dense = is_op("nn.dense")(wildcard(), is_constant())
    return [("toy.dense", is_op("fixed.requantize")(dense, is_constant()))]


def partitioned(mod: tvm.IRModule, name: str) -> tvm.IRModule:
    passes = [
        relay.transform.InferType(),
        relay.transform.MergeComposite(get_pattern_table(name) or []),
        relay.transform.AnnotateTarget([name]),
        relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(mod)


def run(mod: tvm.IRModule, target: str = "numpy", **inputs: Any) -> tuple[Any, Any]:
    """What the graph executor gives, and the factory."""
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for name, value in inputs.items():
        module.set_input(name, value)
    module.run()
    return module.get_output(0).numpy(), lib


def test_a_target_of_this_package_by_tvms_names() -> None:
    relay_hw.target.register("toy", make)
    register_pattern_table("toy", patterns)
    quantized = relay.quantize.quantize(network(), "int8", CALIBRATION)
    mod = partitioned(quantized, "toy")
    assert [f.attrs["Compiler"] for n, f in mod.functions.items() if n != "main"] == ["toy"]
    x = CALIBRATION["x"][3]
    got, lib = run(mod, x=x)
    np.testing.assert_array_equal(got, relay.create_executor("debug", quantized).evaluate()(x).numpy())
    segments = {row.where: row.cycles for row in lib["default"]().result.segments}
    assert segments["toy"] is not None and segments["toy"] > 0 and "tvm" not in segments


@dataclass(frozen=True)
class ToyModule:
    """Layers of the toy NPU as a runtime module."""

    layers: list[DenseLayer]
    type_key: str = "toy"

    def save_to_bytes(self) -> bytes:
        return to_bytes(self.layers)

    def get_function(self, name: str) -> Callable[[Any], Any]:
        def call(x: Any) -> Any:
            values = [x.numpy()]
            for layer in self.layers:
                values.append(np.stack([run_layer(layer, row) for row in values[layer.source]]))
            return tvm.nd.array(values[-1])

        return call


def register_toy() -> list[str]:
    """The toy NPU's compiler as a code generator; the names of the functions that it was given."""
    seen: list[str] = []
    register_pattern_table("toy", patterns)

    @tvm.register_func("relay.ext.toy")
    def generate(function: Any) -> ToyModule:
        name = function.attrs["global_symbol"]
        seen.append(name)
        assert function.attrs["Compiler"] == "toy"
        region = ToyTarget().compile({name: function}, Request((name,), SILENT))[name]
        return ToyModule(list(region.layers))

    tvm.register_func("runtime.module.loadbinary_toy", lambda data: ToyModule(from_bytes(data)))
    return seen


@pytest.mark.parametrize("host", ["numpy", "llvm"])
def test_a_code_generator_by_tvms_names(host: str, tmp_path: Path) -> None:
    seen = register_toy()
    assert target_names() == ("accel", "toy", "vta")
    quantized = relay.quantize.quantize(network(), "int8", CALIBRATION)
    x = CALIBRATION["x"][3]
    want = relay.create_executor("debug", quantized).evaluate()(x).numpy()
    got, lib = run(partitioned(quantized, "toy"), host, x=x)
    np.testing.assert_array_equal(got, want)
    assert seen == ["toy_0"]
    lib.export_library(tmp_path / "lib.tar")
    again = graph_executor.GraphModule(tvm.runtime.load_module(tmp_path / "lib.tar")["default"](tvm.cpu()))
    again.run(x=x)
    np.testing.assert_array_equal(again.get_output(0).numpy(), want)


def test_a_code_generator_is_a_target_like_others(tmp_path: Path, capsys: Captured) -> None:
    register_toy()
    module = relay_hw.build(network(), "toy", calibration=CALIBRATION, options=CompileOptions(host_target="numpy"))
    want = relay_hw.create_executor("debug", compile_model(network(), calibration=CALIBRATION).stages["quantized"])
    np.testing.assert_array_equal(module.run(x=CALIBRATION["x"][0]), want.evaluate()(CALIBRATION["x"][0]))
    rows = {row.operator: (row.where, row.reason) for row in module.artifact.manifest.layers}
    assert rows["toy.dense"] == ("toy", "")
    assert rows["nn.softmax"] == ("host", "no pattern and no attribute target.toy takes nn.softmax")
    (tmp_path / "net.relay").write_text(network().astext())
    np.savez(tmp_path / "data.npz", **CALIBRATION)
    build = str(tmp_path / "build")
    data = str(tmp_path / "data.npz")
    compile_ = ["compile", str(tmp_path / "net.relay"), "--target", "toy", "--calibration", data, "-o", build]
    assert main(compile_) == 0 and main(["verify", build]) == 0
    capsys.readouterr()
    assert main(["run", build, "--input", data, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "runtime"


@dataclass(frozen=True)
class Interpreted:
    """A function as its text, run by the interpreter: what a code generator without a compiler gives."""

    text: str
    type_key: str = "ccompiler"

    def save_to_bytes(self) -> bytes:
        return self.text.encode()

    def get_function(self, name: str) -> Callable[..., Any]:
        return relay.create_executor("debug", relay.parse(self.text)).evaluate(name)


def register_ccompiler() -> list[Any]:
    """Additions, products of small tensors, and joins; the functions that it was given."""
    seen: list[Any] = []
    for name in ("add", "concatenate", "split"):
        tvm.ir.register_op_attr(name, "target.ccompiler", True)

    @tvm.ir.register_op_attr("multiply", "target.ccompiler")
    def small(call: Any) -> bool:
        return call.args[0].checked_type.shape[-1] <= 8

    @tvm._ffi.register_func("relay.ext.ccompiler")
    def generate(function: Any) -> Interpreted:
        seen.append(function)
        name = function.attrs["global_symbol"]
        plain = relay.Function(function.params, function.body, function.ret_type)
        return Interpreted(tvm.IRModule({name: plain}).astext())

    tvm.register_func("runtime.module.loadbinary_ccompiler", lambda data: Interpreted(data.decode()))
    return seen


def test_operators_by_attributes() -> None:
    seen = register_ccompiler()
    x, y = relay.var("x", shape=(2, 8)), relay.var("y", shape=(2, 8))
    product = relay.multiply(relay.add(x, y), x)
    joined = relay.concatenate([product, relay.exp(product)], axis=1)
    parts = relay.split(joined, 2, axis=1)
    large = relay.multiply(joined, joined)
    body = relay.concatenate([relay.add(parts[0], parts[1]), large], axis=1)
    mod = partitioned(tvm.IRModule.from_expr(relay.Function([x, y], body)), "ccompiler")
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=(2, 8)).astype("float32") for name in ("x", "y")}
    got, _ = run(mod, **values)
    want = relay.create_executor("debug", mod).evaluate()(values["x"], values["y"]).numpy()
    np.testing.assert_array_equal(got, want)
    # What no pattern asked for stands by itself, as in TVM.
    operators = [[n.op.name for n in relay_hw.ir.visit.post_order(f.body) if isinstance(n, relay.Call)] for f in seen]
    assert sorted(name for some in operators for name in some) == sorted(
        ["add", "multiply", "concatenate", "split", "add", "concatenate"]
    )
    assert len(seen) > 1


def test_the_same_operators_without_annotations() -> None:
    seen = register_ccompiler()
    x = relay.var("x", shape=(2, 8))
    mod = tvm.IRModule.from_expr(relay.exp(relay.multiply(relay.add(x, x), x)))
    module = relay_hw.build(mod, "ccompiler", options=FLOAT)
    value = np.random.default_rng(1).normal(size=(2, 8)).astype("float32")
    np.testing.assert_array_equal(module.run(x=value), np.exp((value + value) * value))
    assert len(seen) == 1


def test_what_is_registered() -> None:
    assert get_pattern_table("other") is None and tvm.get_global_func("relay.ext.other", True) is None
    with pytest.raises(InputError, match=r"global function must be a registered one, not relay\.ext\.other"):
        tvm.get_global_func("relay.ext.other")

    @register_pattern_table("other")
    def table() -> list[Any]:
        return [("other.dense", DENSE)]

    assert get_pattern_table("other") == (("other.dense", DENSE),) and len(table()) == 1

    @tvm.register_func
    def other_function() -> int:
        return 1

    assert tvm.get_global_func("other_function") is other_function
    with pytest.raises(InputError, match="the name of a global function must be new, not other_function"):
        tvm.register_func("other_function", print)
    tvm.register_func("other_function", print, override=True)
    assert "other_function" in registry.list_global_func_names()
    registry.remove_global_func("other_function")
    tvm.register_func("relay.ext.other.constant_updater", print)
    assert target_names() == ("accel", "vta")
    registry.remove_global_func("relay.ext.other.constant_updater")
    with pytest.raises(
        InputError, match=r"attribute of an operator must be target\.NAME, of a compiler, not TOpPattern"
    ):
        tvm.ir.register_op_attr("add", "TOpPattern", 1)
    with pytest.raises(UnsupportedError, match=r"an operator must be one of .*, not no_such_op"):
        tvm.ir.register_op_attr("no_such_op", "target.other", True)


def test_a_name_is_one_target() -> None:
    relay_hw.target.register("toy", make)
    with pytest.raises(InputError, match="the name of a target must be new, not toy"):
        register_toy()
    with pytest.raises(InputError, match="the name of a target must be new, not llvm"):
        tvm.register_func("relay.ext.llvm", print)
    assert tvm.get_global_func("relay.ext.llvm", True) is None


def test_modules_that_cannot_be_built() -> None:
    register_ccompiler()
    x = relay.var("x", shape=(2, 8))
    mod = partitioned(tvm.IRModule.from_expr(relay.exp(relay.add(x, x))), "ccompiler")
    (name,) = (name for name in mod.functions if name != "main")
    for compiler, sentence in (
        ("accel", "functions must be for another compiler than accel"),
        ("other", "target must be one of accel, ccompiler, vta, not other"),
    ):
        function = mod[name]
        changed = relay.Function(
            function.params, function.body, function.ret_type, attrs={**function.attrs, "Compiler": compiler}
        )
        with pytest.raises(InputError, match=sentence):
            run(tvm.IRModule({**mod.functions, name: changed}), x=np.zeros((2, 8), "float32"))
        both = {**mod.functions, "second": changed}
        with pytest.raises(InputError, match=r"functions of a module must be for one compiler, not for [a-z]+, [a-z]+"):
            tvm_compile(tvm.IRModule(both))
    registry.remove_global_func("runtime.module.loadbinary_ccompiler")
    sentence = r"modules of relay\.ext\.ccompiler must have a loader: register runtime\.module\.loadbinary_ccompiler"
    with pytest.raises(InputError, match=sentence):
        run(mod, x=np.zeros((2, 8), "float32"))


def tvm_compile(mod: tvm.IRModule) -> None:
    from relay_hw.compat.tvm.byoc.regions import compile_partitioned

    compile_partitioned(mod)


def test_programs_that_nobody_reads(tmp_path: Path) -> None:
    register_ccompiler()
    x = relay.var("x", shape=(2, 8))
    mod = tvm.IRModule.from_expr(relay.exp(relay.add(x, x)))
    artifact = compile_model(mod, replace(FLOAT, target="ccompiler")).save(tmp_path / "build")
    (name,) = artifact.images
    for image in (b"", b"unknown\nbytes", artifact.images[name].replace(b"\n", b"", 1)):
        with pytest.raises(ArtifactError, match="must be a module of a kind that a registered loader reads"):
            open_session(replace(artifact, images={name: image}))
    with pytest.raises(InputError, match="device must be runtime for target ccompiler, not fpga"):
        artifact.target.open("fpga", artifact.manifest.regions, artifact.images)
    with pytest.raises(InputError, match="target ccompiler must have no configuration, not wide"):
        compile_model(mod, replace(FLOAT, target="ccompiler", config="wide"))
