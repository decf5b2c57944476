"""Operators that give back their argument; `debug` prints each time it is computed."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Trait
from relay_hw.op import annotation

X = np.array([1.0, -2.0], "float32")
BUILDERS = {
    "compiler_begin": lambda x: annotation.compiler_begin(x, "dsp"),
    "compiler_end": lambda x: annotation.compiler_end(x, "dsp"),
    "on_device": lambda x: relay.on_device(x, "cpu(0)"),
    "device_copy": lambda x: relay.device_copy(x, "cpu(0)", "cuda(0)"),
    "debug": relay.debug,
}


@pytest.mark.parametrize("name", BUILDERS)
def test_gives_back_what_it_gets(name: str) -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], BUILDERS[name](x)))
    np.testing.assert_array_equal(evaluate(mod, [X]), X)
    assert name in mod.astext()


def test_tuples_pass_too() -> None:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.on_device(relay.Tuple([x, x]), "cpu(0)")))
    assert len(evaluate(mod, [X])) == 2


def test_debug_prints_once_for_a_shared_node(capsys: pytest.CaptureFixture[str]) -> None:
    x = relay.var("x", "int32")
    shown = relay.debug(x)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.add(shown, shown)))
    assert evaluate(mod, [3]) == 6
    assert capsys.readouterr().out == "debug: 3\n"
    assert [op.name for op in relay.op.OPS if op.has(Trait.EFFECT)] == ["debug"]
