"""Relax functions as Relay: control flow, functions as values, tuples, open shapes, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from relay_hw.errors import UnsupportedError
from relay_hw.frontend import from_relax
from relay_hw.interp.evaluate import Interpreter
from relay_hw.ir.expr import If
from relay_hw.ir.types import ANY
from relay_hw.ir.visit import post_order
from relay_hw.text import parse, print_module
from tests.needs import needs_tvm

pytestmark = needs_tvm


def relax() -> Any:
    return import_module("tvm.relax")


def tensor(*shape: int, dtype: str = "float32") -> Any:
    return relax().TensorType(shape, dtype)


def variable(name: str, *shape: int, dtype: str = "float32") -> Any:
    return relax().Var(name, tensor(*shape, dtype=dtype))


def sequence(*values: tuple[Any, Any], result: Any) -> Any:
    r = relax()
    return r.SeqExpr([r.BindingBlock([r.VarBinding(var, value) for var, value in values])], result)


def normalized(builder: Any, expr: Any) -> Any:
    return builder.normalize(expr)


def test_branches_and_recursion() -> None:
    """A factorial: a function that calls itself in one branch."""
    r, o = relax(), relax().op
    builder = r.BlockBuilder()
    n, acc = variable("n", dtype="int32"), variable("acc", dtype="int32")
    result = tensor(dtype="int32")
    declared = r.Function([n, acc], r.SeqExpr([], acc), ret_ty=result, is_pure=False)
    name = builder.add_func(declared, "fact")
    one = r.const(1, "int32")
    n, acc = variable("n", dtype="int32"), variable("acc", dtype="int32")
    small, less, more = (variable(s, dtype="int32") for s in ("small", "less", "more"))
    test = r.Var("test", tensor(dtype="bool"))
    answer = variable("answer", dtype="int32")
    again = variable("again", dtype="int32")
    other = sequence(
        (less, normalized(builder, o.subtract(n, one))),
        (more, normalized(builder, o.multiply(acc, n))),
        (again, r.Call(name, [less, more])),
        result=again,
    )
    body = sequence(
        (small, normalized(builder, o.add(one, r.const(0, "int32")))),
        (test, normalized(builder, o.less_equal(n, small))),
        (answer, r.If(test, r.SeqExpr([], acc), other)),
        result=answer,
    )
    builder.update_func(name, r.Function([n, acc], body, ret_ty=result, is_pure=False))
    mod = from_relax(builder.get())
    value = Interpreter(mod).call_global("fact", {"n": np.array(6, np.int32), "acc": np.array(1, np.int32)})
    assert int(value) == 720
    assert any(isinstance(expr, If) for expr in post_order(mod["fact"].body))
    again_text = parse(print_module(mod))
    assert (
        int(Interpreter(again_text).call_global("fact", {"n": np.array(5, np.int32), "acc": np.array(1, np.int32)}))
        == 120
    )


def test_functions_as_values() -> None:
    """A local function that uses a variable from around it."""
    r, o = relax(), relax().op
    builder = r.BlockBuilder()
    x, y = variable("x", 3), variable("y", 3)
    total, f, out = variable("total", 3), None, variable("out", 3)
    inner = r.Function([y], sequence((total, normalized(builder, o.add(x, y))), result=total), ret_ty=tensor(3))
    inner = normalized(builder, inner)
    f = r.Var("f", inner.ty)
    body = sequence((f, inner), (out, r.Call(f, [x])), result=out)
    module = import_module("tvm").IRModule({"main": r.Function([x], body, ret_ty=tensor(3))})
    mod = from_relax(module)
    value = Interpreter(mod).call_global("main", {"x": np.array([1, 2, 3], np.float32)})
    np.testing.assert_array_equal(value, [2, 4, 6])


def test_tuples_and_open_shapes() -> None:
    r, o = relax(), relax().op
    size = import_module("tvm.tirx").Var("n", "int64")
    pair = r.Var("pair", r.TupleType([r.TensorType((size, 4), "float32"), tensor(4)]))
    builder = r.BlockBuilder()
    with builder.function("main", [pair]):
        total = builder.emit(o.add(r.TupleGetItem(pair, 0), r.TupleGetItem(pair, 1)))
        builder.emit_func_output(r.Tuple([total, r.Tuple([total])]))
    mod = from_relax(builder.get())
    (param,) = mod["main"].params
    assert param.type.fields[0].shape[0] is ANY
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    first, (second,) = Interpreter(mod).call_global("main", {"pair": (x, x[1])})
    np.testing.assert_array_equal(first, x + x[1])
    np.testing.assert_array_equal(first, second)


def test_everything_refused_is_named_at_once() -> None:
    r, o = relax(), relax().op
    x = variable("x", 2, 3)
    builder = r.BlockBuilder()
    with builder.function("main", [x]):
        a = builder.emit(o.atan2(x, x))
        b = builder.emit(r.call_dps_packed("my.function", (a,), out_ty=tensor(2, 3)))
        c = builder.emit(o.nn.pad(b, [0, 0, 1, 1], pad_mode="circular"))
        d = builder.emit(o.atan2(c, c))
        builder.emit_func_output(d)
    with pytest.raises(UnsupportedError) as caught:
        from_relax(builder.get())
    sentence = str(caught.value)
    assert sentence.startswith("calls of Relax must have a form in Relay: ")
    assert sentence.count("atan2") == 1
    assert "call_dps_packed (my.function)" in sentence
    assert "nn.pad: its mode must be constant, edge or reflect, not circular" in sentence


def test_a_module_without_relax_functions() -> None:
    with pytest.raises(
        UnsupportedError, match="a Relax module must hold a Relax function, not only functions of other"
    ):
        from_relax(import_module("tvm").IRModule({}))


def test_the_reader_imports_neither_tvm_nor_torch() -> None:
    code = "import sys, relay_hw.frontend; print([m for m in ('tvm', 'torch', 'tflite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
