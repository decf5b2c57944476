"""ConstantArguments: loops learn the weights that they are given; nothing else changes."""

from __future__ import annotations

import numpy as np

import relay_hw as relay
from relay_hw.ir.expr import Call, Constant, GlobalVar
from relay_hw.ir.visit import post_order
from relay_hw.transform import ConstantArguments, InferType, InlineLet
from tests.relay_hw.transform.reference import plain

HEADER = '#[version = "0.0.5"]\n'
LOOP = (
    "def @loop(%n: int32, %x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32], %b: float32)"
    " -> Tensor[(1, 2), float32] { if (%n == 0) { %x } else { @loop(%n - 1, nn.dense(%x, %w, units=2) + %b, %w, %b) } }"
)


def specialized(text: str) -> tuple[relay.IRModule, relay.IRModule]:
    mod = InlineLet()(InferType()(relay.fromtext(HEADER + text)))
    return mod, ConstantArguments()(mod)


def values(mod: relay.IRModule) -> list[object]:
    rng = np.random.default_rng(0)
    run = relay.create_executor("debug", mod).evaluate()
    args = [rng.normal(size=p.tensor_type.static_shape).astype("float32") for p in mod["main"].params]
    return plain(run(*args))


def test_loops_learn_their_weights_one_copy_for_each() -> None:
    main = (
        "def @main(%x: Tensor[(1, 2), float32], %v: Tensor[(2, 2), float32]) -> Tensor[(1, 2), float32] {"
        ' let %w = ones(shape=[2, 2], dtype="float32");'
        " @loop(3, %x, %v, 1f) + @loop(2, %x, %v, 2f) + @loop(1, %x, %v, 1f) }"
    )
    mod, new = specialized(LOOP + main)
    assert values(new) == values(mod)
    loops = {name: f for name, f in new.functions.items() if name.startswith("loop_")}
    # Equal constants of two calls are two constants: each call that has its own gets its own copy.
    assert {len(f.params) for f in loops.values()} == {3} and len(loops) in (2, 3)
    for name, function in loops.items():
        own = [n for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, GlobalVar)]
        assert [call.op.name_hint for call in own] == [name] and len(own[0].args) == 3
        assert any(isinstance(n, Constant) and n.data.dtype == np.float32 for n in post_order(function.body))


def test_what_changes_from_call_to_call_stays() -> None:
    main = "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) { @loop(3, %x, %w, 0f) }"
    changing = LOOP.replace("%w, %b) } }", "%w, %b * 2f) } }")
    mod, new = specialized(changing + main)
    assert new is mod and values(new) == values(mod)


def test_constants_travel_through_functions() -> None:
    text = (
        LOOP + "def @twice(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32], %k: float32) {"
        " @loop(2, @loop(1, %x, %w, %k), %w, %k) }"
        "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) { @twice(%x, %w, 3f) }"
    )
    mod, new = specialized(text)
    assert values(new) == values(mod)
    assert {len(f.params) for name, f in new.functions.items() if name.startswith("loop_")} == {3}


def test_functions_as_values_stay() -> None:
    text = (
        "def @pick(%f: fn (int32, int32) -> int32, %x: int32) { %f(%x, 3) }"
        "def @sub(%x: int32, %k: int32) -> int32 { if (%x < 0) { @pick(@sub, %k) } else { %x - %k } }"
        "def @main(%x: Tensor[(1, 2), float32]) { (@sub(4, 1), @pick(@sub, 9), %x) }"
    )
    mod, new = specialized(text)
    assert new is mod or values(new) == values(mod)
