"""Programs on several devices: bytes of the interpreter, copies as planned, and errors that name the device."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import EvalError, InputError, RelayHwError, UnsupportedError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, If, Let, Op, RefCreate, RefRead, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, post_order
from relay_hw.runtime import CompileOptions, Module
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.text import parse
from relay_hw.transform import InferType
from relay_hw.transform.graph import dtype_of, is_op
from tests.needs import needs_tvm
from tests.relay_hw.backend.gpus import HOSTS, host_target, needs_opencl
from tests.relay_hw.programs import INPUTS, random_module
from tests.relay_hw.random_control import inputs, random_program
from tests.relay_hw.small_models import images
from tests.relay_hw.transform.reference import plain as plain_value

Machines = Mapping[str, Any]
Build = tuple[CompiledModel, Artifact]
VECTOR = relay.TensorType((5,), "int32")
# Two processors' worth of machines that need nothing but numpy.
NUMPY: Machines = {"cpu": "numpy", "cuda": "numpy"}


class Placing(Rewriter):
    """Puts what each call of an operator computes on the device that `where` gives, if it gives one."""

    def __init__(self, where: Callable[[Call], str | None]) -> None:
        super().__init__()
        self._where = where

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        device = self._where(old) if isinstance(old.op, Op) else None
        return new if device is None else op.on_device(new, device)


def placed(mod: IRModule, where: Callable[[Call], str | None]) -> IRModule:
    rewriter, functions = Placing(where), {}
    for name, function in mod.functions.items():
        functions[name] = rewriter.rewrite(function)
    return mod.with_functions(functions)


def copies(module: Module) -> int:
    """Copies that the last run made."""
    assert module.result is not None
    functions = {row.function for row in module.artifact.manifest.layers if row.operator == "device_copy"}
    return sum(row.calls for row in module.result.segments if row.name in functions)


def planned_copies(model: CompiledModel) -> int:
    """Copies in the text of `main` after PlanDevices, none of them in a loop or branch."""
    return sum(is_op(node, "device_copy") for node in post_order(model.stages["simplified"]["main"]))


def where_of(module: Module) -> dict[str, str]:
    """By operator, where the last run computed it."""
    assert module.result is not None
    places = {row.name: row.where for row in module.result.segments}
    return {row.operator: places[row.function] for row in module.artifact.manifest.layers}


def by_layer(call: Call) -> str | None:
    """Layers in integers on the accelerator: what ends one is placed, and its product goes along."""
    if call.op.name.startswith("fixed."):
        return "ext_dev"
    return None if is_op(call, "nn.dense") and dtype_of(call) == "int32" else "cpu"


def three() -> IRModule:
    """A program for three devices, that reads values of one on another."""
    x = Var("x", VECTOR)
    here = op.on_device(x, "cpu")
    total = op.on_device(op.add(here, op.const(np.int32(3))), "cpu(0)")
    product = op.on_device(op.multiply(total, here), "opencl")
    rest = op.on_device(op.subtract(product, total), "cpu(1)")
    return IRModule.from_expr(Function([x], op.maximum(rest, product)))


@needs_tvm
@needs_opencl
def test_three_hosts(tmp_path: Path) -> None:
    built = relay.build(three(), {"cpu": "llvm", "opencl": "opencl", "cpu(1)": "numpy"})
    x = np.array([1, -7, 2**30, 5, -(2**31)], np.int32)
    want = evaluate(three(), [x])
    assert built.run(x=x).tobytes() == want.tobytes()
    assert where_of(built) == {
        "add": "tvm", "multiply": "tvm", "subtract": "numpy", "maximum": "tvm", "device_copy": "numpy",
    }  # fmt: skip
    assert [row.target for row in built.artifact.manifest.libraries] == ["llvm", "opencl"]
    # x and the sum go to the GPU, the sum and the product to the other processor, both products come back.
    assert copies(built) == 6
    built.save(tmp_path / "build")
    assert Module.load(tmp_path / "build").run(x=x).tobytes() == want.tobytes()


@pytest.mark.parametrize("host", ["numpy", pytest.param("llvm", marks=needs_tvm)])
def test_a_processor_and_the_accelerator(host: str, plain: Build) -> None:
    quantized = plain[0].stages["quantized"]

    def where(call: Call) -> str:
        return "ext_dev" if call.op.name.startswith(("nn.conv", "nn.dense", "nn.max", "nn.pad", "fixed.")) else "cpu"

    mod = placed(quantized, lambda call: "ext_dev" if call.op.name == "nn.batch_flatten" else where(call))
    built = relay.build(mod, {"cpu": host, "ext_dev": "accel:tiny"})
    image = images(1, 7)
    assert built.run(image=image).tobytes() == evaluate(quantized, [image]).tobytes()
    assert copies(built) == 2
    found = where_of(built)
    assert {name for name, where in found.items() if where == "accel"} >= {"accel.conv2d", "accel.dense"}
    assert found["nn.softmax"] != "accel" and found["qnn.quantize"] != "accel"
    # The same program by name of the devices alone: `ext_dev` is the target, `cpu` the host.
    usual = relay.build(mod, "accel:tiny", options=CompileOptions(host_target=host))
    assert usual.run(image=image).tobytes() == evaluate(quantized, [image]).tobytes()


def test_layers_in_loops_and_branches_on_the_accelerator() -> None:
    launched = moved = 0
    for seed in range(5):
        model = relay.runtime.compile_model(
            InferType()(random_program(seed)), CompileOptions(host_target="numpy"), calibration=inputs(6, seed)
        )
        mod, data = model.stages["quantized"], inputs(3, seed + 1000)
        built = relay.build(placed(mod, by_layer), {"cpu": "numpy", "ext_dev": "accel"})
        exact = relay.create_executor("debug", mod).evaluate()
        for k in range(3):
            args = (data["x"][k : k + 1], data["k"][k])
            assert plain_value(built.run(x=args[0], k=args[1])) == plain_value(exact(*args))
            assert built.result is not None
            launched += len(built.result.launches)
            moved += copies(built)
    assert launched > 5 and moved > launched


def test_floats_on_the_accelerator_become_integers(plain: Build) -> None:
    floats = plain[0].stages["imported"]
    mod = placed(floats, lambda call: "cpu" if call.op.name == "nn.softmax" else "ext_dev")
    machines: Machines = {"cpu": "numpy", "ext_dev": "accel:tiny"}
    built = relay.build(mod, machines, calibration={"image": images(8, 99)})
    image = images(1, 7)
    found = built.run(image=image)
    assert isinstance(built._model, CompiledModel)
    assert found.tobytes() == evaluate(built._model.stages["quantized"], [image]).tobytes() and copies(built) == 1
    # The whole network is on one side of the softmax, as without devices: the same integers.
    assert found.tobytes() == evaluate(plain[0].stages["quantized"], [image]).tobytes()
    with pytest.raises(UnsupportedError, match=r"nn.conv2d on ext_dev\(0\): nn.conv2d was left in float32"):
        relay.build(mod, machines)
    float_options = CompileOptions(strategy="float")
    with pytest.raises(UnsupportedError, match=r"nn.dense on ext_dev\(0\): nn.dense was left in float32"):
        relay.build(mod, machines, calibration={"image": images(8, 99)}, options=float_options)


def test_a_layer_in_a_loop_is_calibrated_by_what_the_loop_gives_it() -> None:
    n, x, loop = Var("n", relay.scalar_type("int32")), relay.var("x", shape=(1, 16)), relay.GlobalVar("loop")
    weight = op.const((np.random.default_rng(1).normal(size=(16, 16)) / 4).astype(np.float32))
    layer = op.on_device(op.nn.dense(op.on_device(x, "cpu"), weight, units=16), "ext_dev")
    again = Call(loop, [op.subtract(n, op.const(np.int32(1))), op.multiply(layer, op.const(np.float32(2)))])
    ty = relay.TensorType((1, 16), "float32")
    step = Function([n, x], If(op.equal(n, op.const(np.int32(0))), x, again), ty)
    m, y = Var("m", relay.scalar_type("int32")), relay.var("y", shape=(1, 16))
    mod = IRModule({"loop": step, "main": Function([m, y], Call(loop, [m, y]))})
    values = np.random.default_rng(2).normal(size=(6, 1, 16)).astype(np.float32)
    samples = {"m": np.arange(6, dtype=np.int32), "y": values}
    built = relay.build(mod, {"cpu": "numpy", "ext_dev": "accel:tiny"}, calibration=samples)
    assert isinstance(built._model, CompiledModel)
    exact = relay.create_executor("debug", built._model.stages["quantized"]).evaluate()
    for count, value in zip(samples["m"], samples["y"], strict=True):
        assert plain_value(built.run(m=count, y=value)) == plain_value(exact(count, value))
        assert built.result is not None and len(built.result.launches) == count and copies(built) == 2 * count
    near = evaluate(InferType()(mod), [np.int32(1), samples["y"][0]])
    np.testing.assert_allclose(built.run(m=np.int32(1), y=samples["y"][0]), near, atol=0.1 * np.abs(near).max())


def test_a_network_that_brings_its_integers() -> None:
    numbers = np.random.default_rng(3)
    x = Var("x", relay.TensorType((1, 16), "int8"))
    weight, one, zero = op.const(numbers.integers(-9, 9, (8, 16), np.int8)), np.float32(0.1), np.int32(0)
    scale = [op.const(value) for value in (zero, zero, one, one)]
    total = relay.qnn.op.dense(op.on_device(x, "cpu"), weight, *scale, units=8)
    ends = [op.const(value) for value in (np.float32(0.01), zero, np.float32(0.3), zero)]
    layer = relay.qnn.op.requantize(total, *ends)
    mod = InferType()(IRModule.from_expr(Function([x], op.on_device(layer, "ext_dev"))))
    built = relay.build(mod, {"cpu": "numpy", "ext_dev": "accel:tiny"})
    given = numbers.integers(-128, 128, (1, 16), np.int8)
    assert built.run(x=given).tobytes() == evaluate(mod, [given]).tobytes()
    assert "accel" in where_of(built).values() and copies(built) == 2


TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(3), int32]) -> Tensor[(3), int32] {
  %0 = on_device(%x, virtual_device="cpu(0)");
  %1 = add(%0, 1);
  %2 = on_device(%1, virtual_device="cuda(0)");
  multiply(%2, 5)
}
"""


def test_a_program_from_text() -> None:
    mod = parse(TEXT)
    built = relay.build(mod, NUMPY)
    assert built.run(x=np.int32([1, 2, 3])).tolist() == [10, 15, 20]
    assert copies(built) == planned_copies(built._model) == 2
    reasons = [row.reason for row in built.artifact.manifest.layers]
    assert "it is placed on cuda(0)" in reasons and "it copies from cuda(0) to cpu(0)" in reasons


LOOP = """#[version = "0.0.5"]
def @loop(%n: int32, %x: Tensor[(2), int32]) -> Tensor[(2), int32] {
  if (%n == 0) { %x } else {
    %0 = on_device(%x, virtual_device="cpu");
    %1 = on_device(add(%0, 1), virtual_device="cuda");
    @loop(%n - 1, %1)
  }
}
def @main(%n: int32, %x: Tensor[(2), int32]) -> Tensor[(2), int32] { @loop(%n, %x) }
"""


def test_copies_of_a_loop_are_made_as_often_as_it_runs() -> None:
    built = relay.build(parse(LOOP), NUMPY)
    for count in (0, 1, 6):
        assert built.run(n=np.int32(count), x=np.int32([1, 2])).tolist() == [1 + count, 2 + count]
        assert copies(built) == 2 * count


def random_graph(choose: random.Random) -> tuple[IRModule, int]:
    """A graph of operators on integers, each on a device, and the copies that it needs."""
    x, y = Var("x", VECTOR), Var("y", VECTOR)
    device = {op.on_device(var, "cpu"): "cpu(0)" for var in (x, y)}
    reads: dict[Expr, tuple[Expr, ...]] = {}
    made = (op.add, op.subtract, op.multiply, op.maximum, op.minimum, op.bitwise_xor, op.right_shift)
    for _ in range(choose.randint(2, 9)):
        left, right = choose.choices(list(device), k=2)
        body = choose.choice(made[:6])(left, right) if choose.random() < 0.8 else op.negative(left)
        where = choose.choice(("cpu(0)", "cpu(1)", "ext_dev(0)"))
        new = op.on_device(body, where)
        device[new], reads[new] = where, (left, right)[: len(body.args)]
    results = choose.choices(list(reads), k=2)
    return IRModule.from_expr(Function([x, y], Tuple(results))), _crossings(results, device, reads)


def _crossings(results: list[Expr], device: Mapping[Expr, str], reads: Mapping[Expr, tuple[Expr, ...]]) -> int:
    """Pairs of a value that is needed and another device that reads it; the results are read on cpu(0)."""
    crossed = {(node, "cpu(0)") for node in results if device[node] != "cpu(0)"}
    waiting, seen = list(results), set[Expr]()
    while waiting:
        node = waiting.pop()
        if node in seen or node not in reads:
            continue
        seen.add(node)
        crossed |= {(part, device[node]) for part in reads[node] if device[part] != device[node]}
        waiting += reads[node]
    return len(crossed)


def _runs_as_planned(seeds: range, machines: Machines) -> int:
    """Compares random placements with the interpreter, byte for byte; returns the copies of all."""
    total = 0
    for seed in seeds:
        choose = random.Random(seed)
        mod, expected = random_graph(choose)
        numbers = np.random.default_rng(seed)
        args = {name: numbers.integers(-(2**31), 2**31, 5).astype(np.int32) for name in "xy"}
        built = relay.build(mod, machines)
        assert plain_value(built.run(**args)) == plain_value(evaluate(mod, list(args.values()))), f"seed {seed}"
        assert copies(built) == expected, f"seed {seed}"
        total += expected
    return total


def test_random_placements() -> None:
    assert _runs_as_planned(range(60), {"cpu": "numpy", "ext_dev": "numpy"}) > 60


@needs_tvm
def test_random_placements_on_two_compilers() -> None:
    assert _runs_as_planned(range(100, 112), {"cpu": "llvm", "cpu(1)": "numpy", "ext_dev": "llvm"}) > 10


@needs_tvm
@pytest.mark.parametrize("kind", HOSTS)
def test_random_placements_with_a_gpu(kind: str) -> None:
    assert _runs_as_planned(range(200, 206), {"cpu": "numpy", "ext_dev": host_target(kind)}) > 5


def test_random_programs_with_all_of_the_language(capsys: pytest.CaptureFixture[str]) -> None:
    choose, ran, moved = random.Random(4), 0, 0
    for seed in range(120):
        mod = random_module(seed)
        mod = placed(mod, lambda call: choose.choice(("cuda", "cpu(1)")) if choose.random() < 0.4 else None)
        try:
            built = relay.build(mod, NUMPY)
        except UnsupportedError as error:
            assert "must be on one device" in str(error) or "device_copy must move" in str(error), seed
            continue
        given = {row.name: INPUTS[row.name] for row in built.inputs}
        try:
            want = plain_value(evaluate(mod, list(given.values())))
        except EvalError:
            continue
        found = built.run(**given)
        assert plain_value((found,) if len(want) == 1 else found) == want, seed
        ran, moved = ran + 1, moved + copies(built)
    assert ran > 40 and moved > 10


def test_without_annotations_the_processor_computes() -> None:
    x = Var("x", VECTOR)
    built = relay.build(IRModule.from_expr(Function([x], op.negative(x))), {"ext_dev": "accel:tiny", "cpu": "numpy"})
    assert built.run(x=np.int32([1, 2, 3, 4, 5])).tolist() == [-1, -2, -3, -4, -5]
    assert where_of(built) == {"negative": "numpy"}


def on(device: str, make: Callable[[Expr], Expr] = op.exp) -> IRModule:
    x = relay.var("x", shape=(4,))
    return IRModule.from_expr(Function([x], op.on_device(make(op.on_device(x, "cpu")), device)))


@pytest.mark.parametrize(
    ("device", "machines", "sentence"),
    [
        ("cuda", {"cpu": "numpy"}, "device must be one of cpu, not cuda(0)"),
        (
            "cuda(1)",
            {"cpu": "numpy", "cuda": "cuda"},
            "device must be cuda(0), not cuda(1): a build has one of this kind",
        ),
        ("ext_dev(2)", {"cpu": "numpy", "ext_dev": "accel"}, "device must be ext_dev(0), not ext_dev(2)"),
        ("ext_dev", {"cpu": "numpy", "ext_dev": "accel"}, "not exp on ext_dev(0): "),
        ("ext_dev", {"ext_dev": "accel"}, "device must be one of ext_dev, not cpu(0)"),
        ("cpu", {}, "devices must have at least one machine, not none"),
        ("cpu", {"cpu": "accel", "ext_dev": "vta"}, "devices must have one target besides hosts, not accel and vta"),
        ("cpu", {"cpu": "arm"}, "host must be one of llvm, cuda, opencl, numpy, not arm"),
    ],
)
def test_devices_that_are_missing(device: str, machines: Machines, sentence: str) -> None:
    with pytest.raises(RelayHwError) as caught:
        relay.build(on(device), machines)
    assert sentence in str(caught.value)


def test_annotations_hold_for_builds_with_one_target() -> None:
    with pytest.raises(InputError, match=r"device must be one of cpu, not cuda\(0\)"):
        relay.build(on("cuda"), "numpy")
    assert relay.build(on("cpu(1)"), "numpy").run(x=np.zeros(4, np.float32)).tolist() == [1, 1, 1, 1]


@needs_tvm
def test_operators_without_a_kernel_are_named() -> None:
    with pytest.raises(UnsupportedError, match=r"not argsort on opencl\(0\): TVM has no kernel"):
        relay.build(on("opencl", op.argsort), {"cpu": "numpy", "opencl": "opencl"})


def test_references_stay_on_their_device() -> None:
    x = relay.var("x", "int32")
    cell = Var("cell")
    body = Let(cell, op.on_device(RefCreate(x), "cpu(1)"), RefRead(op.on_device(cell, "cpu(1)")))
    with pytest.raises(UnsupportedError, match=r"device_copy must move tensors, not ref\(int32\)"):
        relay.build(IRModule.from_expr(Function([x], body)), {"cpu": "numpy"})
