"""Executors `vm` and `graph`, and compiled modules: the interpreter's values for random programs and named ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.errors import EvalError, InputError, UnsupportedError
from relay_hw.ir.expr import Function, Var
from relay_hw.ir.types import ANY, TensorType
from relay_hw.runtime import CompileOptions, Module, compile_model
from relay_hw.transform import InferType
from tests.needs import needs_tvm
from tests.relay_hw.programs import INPUTS, random_module
from tests.relay_hw.transform.reference import plain

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'


def outcome(function: Any) -> Any:
    try:
        return plain(function())
    except EvalError as error:
        return error.message


def interpreted(mod: relay.IRModule, *args: Any) -> Any:
    return outcome(lambda: relay.create_executor("debug", mod).evaluate()(*args))


@pytest.mark.parametrize("seed", range(25))
def test_the_vm_has_the_interpreters_value(seed: int) -> None:
    mod, values = InferType()(random_module(seed, depth=6)), list(INPUTS.values())
    vm = relay.create_executor("vm", mod)
    assert outcome(lambda: vm.evaluate()(*values)) == interpreted(mod, *values)


@pytest.mark.parametrize("seed", range(25))
def test_compiled_modules_have_the_interpreters_value(seed: int, tmp_path: Path) -> None:
    """Through fragments, partition, the stored build and the executor."""
    mod, values = InferType()(random_module(100 + seed, depth=5)), list(INPUTS.values())
    module = relay.build(mod, "numpy")
    expected = interpreted(mod, *values)
    if len(module.outputs) == 1 and isinstance(mod["main"].func_type.ret_type, relay.TupleType):
        (expected,) = expected  # the only output stands for itself
    assert outcome(lambda: module.run(**INPUTS)) == expected
    module.save(tmp_path / "build")
    assert outcome(lambda: Module.load(tmp_path / "build").run(**INPUTS)) == expected


def matrix_loop() -> relay.IRModule:
    """A data-dependent number of steps of a layer worth compiling."""
    weight = relay.const(np.random.default_rng(0).normal(size=(32, 32)).astype("float32") / 6)
    x, n = Var("x", TensorType((32, 32), "float32")), Var("n", relay.scalar_type("int32"))
    again = relay.Call(relay.GlobalVar("loop"), [relay.tanh(relay.nn.dense(x, weight)), relay.add(n, relay.const(1))])
    stop = relay.less(relay.sum(relay.abs(x)), relay.const(np.float32(100)))
    loop = Function(
        [x, n], relay.If(stop, relay.Tuple([x, n]), again), relay.TupleType([x.type_annotation, n.type_annotation])
    )
    y = Var("y", TensorType((32, 32), "float32"))
    return relay.IRModule(
        {"loop": loop, "main": Function([y], relay.Call(relay.GlobalVar("loop"), [y, relay.const(0)]))}
    )


@needs_tvm
def test_fragments_of_loops_are_compiled_by_tvm() -> None:
    mod = matrix_loop()
    x = np.random.default_rng(1).normal(size=(32, 32)).astype("float32")
    want, steps = relay.create_executor("debug", mod).evaluate()(x)
    assert steps > 3
    for run in (relay.create_executor("vm", mod, "llvm").evaluate(), lambda x: relay.build(mod, "llvm").run(y=x)):
        have, count = run(x)
        assert count == steps
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)
    module = relay.build(mod, "llvm")
    module.run(y=x)
    assert module.result is not None
    assert {row.where for row in module.result.segments} >= {"tvm", "machine"}
    assert any(row.calls == steps + 0 for row in module.result.segments if row.where == "tvm")


def test_graph_takes_graphs_alone() -> None:
    x = Var("x", TensorType((2,), "float32"))
    graph = relay.IRModule({"main": Function([x], relay.exp(x))})
    assert relay.create_executor("graph", graph).evaluate()(np.zeros(2, "float32")).tolist() == [1, 1]
    sentence = "executor graph must have a graph of operators, not a program with control flow"
    with pytest.raises(UnsupportedError, match=sentence):
        relay.create_executor("graph", matrix_loop())
    with pytest.raises(InputError, match="executor must be one of debug, vm, graph, not jit"):
        relay.create_executor("jit", graph)


def test_the_vm_evaluates_expressions_and_named_functions() -> None:
    mod = relay.fromtext(HEADER + "def @twice(%x: int32) -> int32 { %x * 2 } def @main() -> int32 { 1 }")
    vm = relay.create_executor("vm", mod)
    assert vm.evaluate("twice")(5) == 10 and vm.evaluate(relay.GlobalVar("twice"))(x=4) == 8
    x = relay.var("x", "int32")
    assert vm.evaluate(relay.add(x, relay.const(3)), {x: 4}) == 7
    assert vm.evaluate(Function([x], relay.Call(relay.GlobalVar("twice"), [x])))(3) == 6
    with pytest.raises(InputError, match="entry must be one of twice, main, not f"):
        vm.evaluate("f")()
    with pytest.raises(InputError, match="@twice must get 1 argument, not 2"):
        vm.evaluate("twice")(1, 2)


def test_modules_take_inputs_by_name_and_number(tmp_path: Path) -> None:
    x, n = Var("x", TensorType((1, 3), "float32")), Var("n", relay.scalar_type("int32"))
    w = Var("w", TensorType((1, 3), "float32"))
    body = relay.Tuple([relay.add(x, w), relay.If(relay.less(n, relay.const(2)), n, relay.const(9))])
    module = relay.build(
        relay.IRModule({"main": Function([x, n, w], body)}), "numpy", {"w": np.ones((1, 3), "float32")}
    )
    assert module.get_num_inputs() == 2 and module.get_input_index("n") == 1 and module.get_input_index("w") == -1
    with pytest.raises(InputError, match="outputs must be computed by run before they are read"):
        module.get_output(0)
    with pytest.raises(InputError, match="inputs x, n must be set before run"):
        module.run()
    module.set_input(0, [[1, 2, 3]], n=1)
    total, number = module.run()
    assert total.tolist() == [[2, 3, 4]] and number == 1 and number.shape == ()
    module.set_input("n", 5)
    module.run()
    assert module.get_output(1) == 9 and module.get_num_outputs() == 2
    again = Module.load(module.save(tmp_path / "one").path)
    assert again.run(x=np.zeros((1, 3)), n=0)[0].tolist() == [[1, 1, 1]]
    assert Module.load(again.save(tmp_path / "two").path).run(x=np.zeros((1, 3)), n=0)[1] == 0
    for bad, told in (
        (lambda: module.set_input("y", 1), "input must be one of x, n, not y"),
        (lambda: module.set_input("x", np.zeros((2, 2))), r"input x must be Tensor\[\(1, 3\), float32\], not"),
        (lambda: module.get_input(7), "input must be one of x, n, not 7"),
        (lambda: module.get_output(5), r"output must be in \[0, 2\), not 5"),
        (lambda: relay.build(relay.IRModule({"main": Function([x], x)}), "numpy", device="asic"), "device must be"),
    ):
        with pytest.raises(InputError, match=told):
            bad()


def test_sizes_that_are_not_known_and_values_that_are_no_tensors() -> None:
    mod = relay.fromtext(
        HEADER + "def @sum(%l: List[Tensor[(?, 2), float32]], %n: float32) -> float32 {"
        " match (%l) { Cons(%h, %t) => { @sum(%t, %n + sum(%h)) }, Nil => { %n } } }"
        "def @main(%x: Tensor[(?, 2), float32]) -> (float32, List[Tensor[(?, 2), float32]], Tensor[(?, 2), float32]) {"
        " let %l = Cons(exp(%x), Cons(%x, Nil)); (@sum(%l, 0f), %l, concatenate((%x, %x))) }"
    )
    module = relay.build(mod, "numpy")
    for size in (0, 1, 5):
        x = np.random.default_rng(size).normal(size=(size, 2)).astype("float32")
        assert plain(module.run(x=x)) == interpreted(mod, x)
    with pytest.raises(InputError, match=r"input x must be Tensor\[\(\?, 2\), float32\]"):
        module.run(x=np.zeros((2, 3)))


def test_float_keeps_the_module_on_the_host() -> None:
    x = Var("x", TensorType((1, 8), "float32"))
    dense = relay.nn.dense(x, relay.const(np.eye(8, dtype="float32")))
    model = compile_model(
        relay.IRModule({"main": Function([x], dense)}), CompileOptions(strategy="float", host_target="numpy")
    )
    assert not model.segments and model.strategy.name == "float" and {row.where for row in model.layers} == {"host"}
    assert ANY not in model.inputs[0].shape
