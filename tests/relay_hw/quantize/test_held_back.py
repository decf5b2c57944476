"""Layers that lose their signal go back to float, by name and with the reason; sound networks stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import QuantizeError
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Call, Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize import LayerChoice, Strategy, find_strategy, held_back, realize_module
from relay_hw.quantize.held_back import EVERY, Checked, realize_checked
from relay_hw.quantize.main import Realized
from relay_hw.span import Span
from relay_hw.transform.graph import op_name
from tests.relay_hw import recurrent

SIZE = 16
Body = Callable[[Expr], Expr]


def named(expr: Expr, name: str) -> Call:
    assert isinstance(expr, Call)
    return Call(expr.op, expr.args, expr.attrs, span=Span(name))


class Net:
    """Dense layers with random weights, each under a name."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def dense(self, x: Expr, name: str, weight: np.ndarray | None = None) -> Call:
        found = self.rng.normal(size=(SIZE, SIZE)) / np.sqrt(SIZE) if weight is None else weight
        return named(op.nn.dense(x, op.const(found.astype(np.float32))), name)


def module(make: Callable[[Net, Expr], Expr]) -> IRModule:
    x = Var("x", TensorType((1, SIZE), "float32"))
    return infer_type(IRModule({"main": Function([x], make(Net(), x))}))


def samples(count: int = 2 * EVERY, seed: int = 1) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).normal(size=(count, SIZE)).astype(np.float32)}


def outputs(mod: IRModule, data: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    run = Interpreter(mod)
    return [np.concatenate([np.ravel(part) for part in
            (value if isinstance(value, tuple) else (value,))])
            for value in (run.call_global("main", [row[None]]) for row in data["x"])]  # fmt: skip


def names(checked: Checked) -> list[str]:
    return [one.layer for one in checked.kept]


def two_layers(net: Net, x: Expr) -> Expr:
    return net.dense(op.nn.relu(net.dense(x, "one")), "two")


def small_positive(net: Net, x: Expr) -> Expr:
    return op.clip(net.dense(op.nn.relu(net.dense(x, "one")), "two"), a_min=1e-6, a_max=10)


def test_a_sound_network_stays_as_it_is_and_held_back_samples_choose_nothing() -> None:
    data, mod = samples(), module(two_layers)
    checked = realize_checked(mod, "int8", data)
    assert (checked.kept, checked.warnings) == ((), ())
    shown = {"x": np.delete(data["x"], [EVERY - 1, 2 * EVERY - 1], axis=0)}
    scales = [probe.params for probe in realize_module(mod, "int8", shown).probes]
    assert [probe.params for probe in checked.realized.probes] == scales
    far = {"x": np.concatenate([data["x"][: EVERY - 1], 1.5 * data["x"][EVERY - 1 : EVERY], data["x"][EVERY:]])}
    assert [probe.params for probe in realize_checked(mod, "int8", far).realized.probes] == scales


def test_samples_that_were_held_out_before_are_used_as_they_are() -> None:
    data, mod = samples(), module(two_layers)
    scales = [probe.params for probe in realize_module(mod, "int8", data).probes]
    checked = realize_checked(mod, "int8", data, held_out=samples(20, 9))
    assert [probe.params for probe in checked.realized.probes] == scales
    bad = realize_checked(module(lambda net, x: op.log(small_positive(net, x))), "int8", data, held_out=samples(20, 9))
    assert names(bad) == ["two"] and bad.kept[0].reason.endswith("on 8 held-out sample(s)")


def test_few_samples_all_calibrate() -> None:
    data, mod = samples(EVERY - 1), module(two_layers)
    scales = [probe.params for probe in realize_module(mod, "int8", data).probes]
    assert [probe.params for probe in realize_checked(mod, "int8", data).realized.probes] == scales
    kept = realize_checked(module(lambda net, x: op.log(small_positive(net, x))), "int8", data).kept
    assert kept[0].reason.endswith("values are NaN or infinite on 4 calibration sample(s)")


@pytest.mark.parametrize(
    ("make", "operator"),
    [
        (lambda x: named(op.log(x), "bad"), "log bad"),
        (lambda x: named(op.divide(op.const(np.float32(1)), x), "bad"), "divide bad"),
        (lambda x: named(op.log(op.multiply(x, op.const(np.float32(2)))), "bad"), "log bad"),
    ],
)
def test_what_makes_nan_of_a_layers_integers_gets_floats(make: Body, operator: str) -> None:
    mod = module(lambda net, x: Tuple([net.dense(x, "other"), make(small_positive(net, x))]))
    data = samples()
    plain = outputs(realize_module(mod, "int8", data).mod, data)
    assert not all(np.isfinite(row).all() for row in plain)
    checked = realize_checked(mod, "int8", data)
    assert names(checked) == ["two"] and checked.warnings == ()
    assert checked.kept[0].reason.startswith(f"{operator}: ")
    assert checked.kept[0].reason.endswith("of 32 values are NaN or infinite on 2 held-back sample(s)")
    assert all(np.isfinite(row).all() for row in outputs(checked.realized.mod, data))
    assert [probe.name for probe in checked.realized.probes] == ["other", "one"]


def test_nan_that_a_later_layer_would_quantize_is_found() -> None:
    mod = module(lambda net, x: net.dense(op.log(small_positive(net, x)), "three"))
    assert names(realize_checked(mod, "int8", samples())) == ["two"]


def test_a_layer_whose_signal_is_below_its_noise_gets_floats() -> None:
    """One value of its input is a million times as large as the others, and the layer does not look at it."""
    gain = np.full(SIZE, 1e-3, np.float32)
    gain[0] = 1e3
    weight = np.random.default_rng(2).normal(size=(SIZE, SIZE))
    weight[:, 0] = 0

    def make(net: Net, x: Expr) -> Expr:
        return net.dense(net.dense(op.multiply(x, op.const(gain)), "deaf", weight), "last")

    checked = realize_checked(module(make), "int8", samples())
    assert names(checked) == ["deaf"]
    assert checked.kept[0].reason.startswith("signal-to-noise ") and "held-back" in checked.kept[0].reason
    assert [probe.name for probe in checked.realized.probes] == ["last"]


def test_a_constant_output_has_no_signal_to_lose() -> None:
    mod = module(lambda net, x: op.nn.relu(net.dense(op.nn.relu(net.dense(x, "one")), "two", -np.ones((SIZE, SIZE)))))
    assert realize_checked(mod, "int8", samples()).kept == ()


def test_a_sum_can_stay_float() -> None:
    def make(net: Net, x: Expr) -> Expr:
        return op.nn.relu(named(op.add(net.dense(x, "one"), net.dense(x, "two")), "sum"))

    body = module(make)
    names_of = {probe.name for probe in realize_module(body, "int8", samples()).probes}
    (total,) = names_of - {"one", "two"}
    strategy = replace(find_strategy("int8"), layers=(LayerChoice(total, quantized=False),))
    new = realize_module(body, strategy, samples())
    assert [probe.name for probe in new.probes] == ["one", "two"]
    assert "add" in {op_name(node) for node in post_order(new.mod["main"].body)}


def test_nan_that_no_layer_can_mend_is_refused() -> None:
    """A max pooling of its own quantizes what it reads, and is no layer that could stay float."""
    x = Var("x", TensorType((1, 4, 4, 4), "float32"))
    mod = infer_type(IRModule({"main": Function([x], named(op.log(op.nn.max_pool2d(x, (2, 2), (2, 2))), "bad"))}))
    values = np.random.default_rng(0).uniform(1e-6, 1, (4, 4, 4, 4)).astype(np.float32)
    values[:, 1:] *= 1e-4
    sentence = r"log bad must stay finite as it is in float, but \d+ of 64 values are NaN or infinite on 4 calib"
    with pytest.raises(QuantizeError, match=sentence):
        realize_checked(mod, "int8", {"x": values})


def test_what_no_layer_can_mend_is_said() -> None:
    x = Var("x", TensorType((1, 4, 4, 4), "float32"))
    gain = op.const(np.array([1e-6, 1, 1, 1], np.float32).reshape(1, 4, 1, 1).repeat(2, 2).repeat(2, 3))
    body = named(op.multiply(op.nn.max_pool2d(x, (2, 2), (2, 2)), gain), "bad")
    values = np.random.default_rng(0).normal(size=(4, 4, 4, 4)).astype(np.float32)
    values[:, 0] *= 1e6
    checked = realize_checked(infer_type(IRModule({"main": Function([x], body)})), "int8", {"x": values})
    (line,) = checked.warnings
    assert line.startswith("multiply bad: signal-to-noise ") and checked.kept == ()


def test_layers_stop_going_back_to_float_where_none_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last tensor stays lost whatever its layers are, so the layers further up are left alone."""

    def make(net: Net, x: Expr) -> Expr:
        for number in range(held_back.ROUNDS):
            x = op.nn.relu(net.dense(x, f"layer{number}"))
        return named(op.exp(x), "end")

    measured, realizes, rounds = held_back._measured, held_back.realize_module, list[Strategy]()  # pyright: ignore[reportPrivateUsage]

    def lost(realized: Realized, held: Mapping[str, np.ndarray]) -> Iterator[Any]:
        for one in measured(realized, held):
            if one.pair.name == "exp end":
                one.noise = 2 * one.squares
            yield one

    def counted(mod: IRModule, strategy: Strategy, *rest: Any, **named: Any) -> Realized:
        rounds.append(strategy)
        return realizes(mod, strategy, *rest, **named)

    monkeypatch.setattr(held_back, "_measured", lost)
    monkeypatch.setattr(held_back, "realize_module", counted)
    checked = realize_checked(module(make), "int8", samples())
    assert len(rounds) == 1 + held_back.STALLED < held_back.ROUNDS
    assert checked.kept == () and checked.warnings[0].endswith("however many layers stay float")


def test_formats_without_integers_and_strategies_without_data_pass() -> None:
    mod = module(lambda net, x: op.log(small_positive(net, x)))
    assert realize_checked(mod, "mxint8").kept == ()
    assert realize_checked(mod, "tvm").kept == ()
    assert isinstance(realize_checked(mod, Strategy("s"), samples()).kept, tuple)


def test_fragments_of_a_program_with_control_flow_are_checked() -> None:
    mod, weights = recurrent.lstm(16, 8, 3)
    from relay_hw.runtime.compile import bind_params

    program = infer_type(bind_params(mod, weights))
    data = {"x": recurrent.sequences(2 * EVERY, 3, 16).reshape(-1, 1, 16)}
    checked = realize_checked(program, "int8", data)
    assert (checked.kept, checked.warnings) == ((), ())
    assert checked.realized.fragments
