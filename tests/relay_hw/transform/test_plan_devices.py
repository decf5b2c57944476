"""PlanDevices: a device for everything, copies exactly where it changes, contradictions refused."""

from __future__ import annotations

import random

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import UnsupportedError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, If, Let, Op, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, post_order
from relay_hw.transform import InferType, PlanDevices
from tests.relay_hw.programs import random_module
from tests.relay_hw.transform.checks import module, operators, var
from tests.relay_hw.transform.reference import assert_keeps_semantics

X, Y = var("x", 2), var("y", 2)
CPU, GPU = "cpu(0)", "cuda(0)"


def copies(mod: IRModule) -> list[tuple[str, str]]:
    found = [n for n in post_order(mod["main"]) if isinstance(n, Call) and n.op is op.get("device_copy")]
    return [(n.attrs.src_virtual_device, n.attrs.dst_virtual_device) for n in found]


def plan(body: Expr, *params: relay.Var) -> IRModule:
    return PlanDevices()(module(body, *params))


def test_a_copy_where_the_device_changes() -> None:
    new = plan(op.negative(op.on_device(op.exp(X), GPU)), X)
    assert operators(new) == ["exp", "device_copy", "negative"] and copies(new) == [(GPU, CPU)]
    assert new["main"].attrs["param_virtual_devices"] == (GPU,) and new["main"].attrs["result_virtual_device"] == CPU
    assert evaluate(new, [np.float32([0, 0])]).tolist() == [-1, -1]


def test_annotations_that_change_nothing_disappear() -> None:
    new = plan(op.negative(op.on_device(op.exp(X), CPU)), X)
    assert operators(new) == ["exp", "negative"]
    same = plan(op.on_device(op.negative(op.on_device(op.exp(X), GPU, constrain_result=True)), GPU), X)
    assert operators(same)[:2] == ["exp", "negative"] and copies(same) == [(GPU, CPU)]
    mod = InferType()(module(op.exp(X), X))
    assert PlanDevices()(mod) is mod


def test_arguments_of_one_operator_come_to_one_device() -> None:
    both = op.add(op.on_device(op.exp(X), GPU), op.on_device(op.exp(Y), "cuda(1)"))
    assert sorted(copies(plan(both, X, Y))) == [("cuda(0)", CPU), ("cuda(1)", CPU)]
    on_gpu = op.on_device(both, GPU, constrain_result=True)
    assert copies(plan(on_gpu, X, Y)) == [("cuda(1)", GPU)]
    assert PlanDevices("cuda(2)")(module(both, X, Y))["main"].attrs["result_virtual_device"] == "cuda(2)"


def test_bindings_branches_and_calls_carry_devices() -> None:
    v, c = relay.var("v"), relay.var("c", "bool")
    body = Let(v, op.on_device(op.exp(X), GPU), op.negative(v))
    assert copies(plan(body, X)) == [(GPU, CPU)]
    branch = If(c, op.on_device(op.exp(X), GPU), op.exp(Y))
    assert copies(plan(branch, c, X, Y)) == [(GPU, CPU)]
    z = var("z", 2)
    mod = IRModule(
        {
            "f": Function([z], op.on_device(op.exp(z), GPU, constrain_result=True)),
            "main": Function([X], op.on_device(Call(relay.GlobalVar("f"), [X]), GPU)),
        }
    )
    planned = PlanDevices()(mod)
    assert planned["f"].attrs["param_virtual_devices"] == (GPU,)
    assert planned["main"].attrs["param_virtual_devices"] == (GPU,)


def test_contradictions_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"must be on one device, not on cuda\(0\) and cpu\(0\)"):
        plan(Tuple([op.on_device(op.exp(X), GPU, True), op.on_device(op.exp(Y), CPU, True)]), X, Y)
    with pytest.raises(UnsupportedError, match=r"what add reads and makes must be on one device"):
        plan(op.add(op.on_device(op.exp(X), GPU, True), op.on_device(op.exp(Y), CPU, True)), X, Y)


class _Scatter(Rewriter):
    def __init__(self, choose: random.Random) -> None:
        super().__init__()
        self._choose = choose

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if isinstance(new.op, Op) and self._choose.random() < 0.4:
            return op.on_device(new, self._choose.choice(("cuda(1)", GPU)), self._choose.random() < 0.05)
        return new


def test_programs_with_scattered_annotations(capsys: pytest.CaptureFixture[str]) -> None:
    choose = random.Random(3)
    planned = made = 0
    for seed in range(150):
        mod = random_module(seed)
        main = _Scatter(choose).rewrite(mod["main"])
        assert isinstance(main, Function)
        try:
            new = assert_keeps_semantics([PlanDevices()], mod.with_functions({"main": main}), f"random_module({seed})")
        except UnsupportedError:
            continue
        planned += 1
        made += len(copies(new))
        assert "on_device" not in operators(new)
    assert planned > 60 and made > 30


def test_a_value_goes_to_each_device_once() -> None:
    made = op.on_device(op.exp(X), GPU)
    there = [op.on_device(one(made), "cuda(1)") for one in (op.negative, op.sqrt)]
    found = copies(plan(Tuple([there[0], op.add(made, made), there[1]]), X))
    assert sorted(found) == [(GPU, CPU), (GPU, "cuda(1)"), ("cuda(1)", CPU), ("cuda(1)", CPU)]


def test_constants_are_where_they_are_read() -> None:
    one = relay.const(np.ones(2, np.float32))
    body = op.add(op.on_device(op.add(X, one), GPU), op.on_device(one, "cuda(1)"))
    assert copies(plan(body, X)) == [(GPU, CPU)]


def test_devices_without_a_number_are_the_first() -> None:
    body = op.negative(op.on_device(op.exp(op.on_device(X, "cpu")), "cuda"))
    assert copies(plan(body, X)) == [(CPU, GPU), (GPU, CPU)]
    assert PlanDevices("cuda")(module(op.on_device(op.exp(X), GPU), X))["main"].attrs["result_virtual_device"] == GPU


def test_a_plan_is_kept() -> None:
    new = plan(op.on_device(op.exp(X), GPU, constrain_result=True), X)
    again = PlanDevices("cuda(1)")(new)
    assert again["main"].attrs == new["main"].attrs and operators(again) == operators(new)
    with pytest.raises(UnsupportedError, match=r"cpu\(0\) and cuda\(0\): on_device for what comes from elsewhere"):
        PlanDevices()(new.with_functions({"main": _with_result(new["main"], CPU)}))


def _with_result(function: Function, device: str) -> Function:
    return Function(
        function.params, function.body, function.ret_type, attrs={**function.attrs, "result_virtual_device": device}
    )
