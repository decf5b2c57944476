"""What `import relay_hw as relay` offers."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.errors import InputError


def test_every_public_name_exists() -> None:
    for name in relay.__all__:
        assert getattr(relay, name) is not None, name
    assert set(relay.__all__) <= set(dir(relay))


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="relay_hw has no attribute 'convolution'"):
        _ = relay.convolution


def test_import_is_light() -> None:
    heavy = ["tvm", "onnx", "torch", "relay_hw.op", "relay_hw.text"]
    code = f"import sys, relay_hw; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("made", "ty"),
    [
        (relay.var("x", relay.TensorType((1,))), relay.TensorType((1,))),
        (relay.var("x", "int8"), relay.scalar_type("int8")),
        (relay.var("x", shape=(2, 3), dtype="int8"), relay.TensorType((2, 3), "int8")),
        (relay.var("x"), None),
    ],
)
def test_var(made: relay.Var, ty: relay.Type | None) -> None:
    assert made.type_annotation == ty and made.name_hint == "x"


def test_var_with_type_and_shape() -> None:
    with pytest.raises(ValueError, match="variable x must have a type or a shape, not both"):
        relay.var("x", "int8", shape=(1,))


def test_a_script_as_relay_users_write_it() -> None:
    x = relay.var("x", shape=(1, 4))
    w = relay.var("w", shape=(3, 4))
    y = relay.nn.relu(relay.nn.dense(x, w, units=3) * relay.const(2.0) - 1.0)
    func = relay.Function([x, w], relay.Tuple([y, -y / 2.0, 1.0 + y, 3.0 * y]))
    mod = relay.IRModule.from_expr(func)
    data = np.arange(4, dtype="float32").reshape(1, 4)
    weights = np.ones((3, 4), "float32")
    found = relay.create_executor("debug", mod=mod).evaluate()(data, weights)
    expected = np.maximum(data @ weights.T * 2 - 1, 0)
    for value, wanted in zip(found, (expected, -expected / 2, 1 + expected, 3 * expected), strict=True):
        np.testing.assert_array_equal(value, wanted)
    again = relay.fromtext(mod.astext())
    assert relay.analysis.structural_equal(again, relay.transform.InferType()(mod))
    assert str(mod) == mod.astext()


def test_call_and_index_build_nodes() -> None:
    f, x = relay.var("f"), relay.var("x")
    call = f(x)
    assert isinstance(call, relay.Call) and call.op is f and tuple(call.args) == (x,)
    item = x[1]
    assert isinstance(item, relay.TupleGetItem) and item.index == 1
    with pytest.raises(TypeError):
        list(x)


def test_modules_are_keyed_by_name_or_variable() -> None:
    func = relay.Function([], relay.const(1))
    name = relay.GlobalVar("f")
    mod = relay.IRModule({name: func})
    assert mod[name] is func and mod["f"] is func and list(mod.functions) == ["f"]
    assert mod.get_global_var("f").name_hint == "f"
    assert repr(mod) == "<IRModule @f>"


def test_bind_params_by_name() -> None:
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    func = relay.Function([x, w], relay.add(x, w))
    bound = relay.build_module.bind_params_by_name(func, {"w": np.ones(2, "float32"), "other": np.ones(1)})
    assert bound.params == (x,)
    assert relay.interp.evaluate(relay.IRModule.from_expr(bound), [[1, 2]]).tolist() == [2, 3]
    assert relay.build_module.bind_params_by_name(func, {}) is func
    with pytest.raises(InputError, match=r"parameter w must be Tensor\[\(2\), float32\], not Tensor\[\(3\), float32\]"):
        relay.build_module.bind_params_by_name(func, {"w": np.ones(3, "float32")})


def test_expressions_and_functions_are_shown_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    x = relay.var("x", shape=(1, 4))
    call = relay.nn.relu(relay.add(x, relay.const(1.0)))
    print(call)
    text = "free_var %x: Tensor[(1, 4), float32];\n%0 = add(%x, 1f);\nnn.relu(%0)\n"
    assert capsys.readouterr().out == f"{text}\n" and call.astext() == text == relay.astext(call)
    function = relay.Function([x], call)
    assert relay.analysis.structural_equal(relay.text.parse_expr(function.astext()), function)
    typed = relay.transform.InferType()(relay.IRModule.from_expr(function))
    assert "/* ty=Tensor[(1, 4), float32] */" in typed["main"].astext(show_types=True)
    assert str(relay.GlobalVar("f")) == "@f\n" and repr(call) == "<Call>"


def test_shown_text_leaves_large_constants_out() -> None:
    x = relay.var("x", shape=(1, 4))
    function = relay.Function([x], relay.nn.dense(x, relay.const(np.ones((3, 4), "float32")), units=3))
    mod = relay.IRModule.from_expr(function)
    remark = "/* The metadata section is left out: astext() writes it. */\n"
    for shown in (function, mod):
        assert str(shown).endswith(remark) and "#[metadata]" in shown.astext() and remark not in shown.astext()
    again = relay.fromtext(mod.astext())
    assert relay.analysis.structural_equal(again, relay.transform.InferType()(mod))


def test_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert relay.__version__ == importlib.metadata.version("relay-hw")

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert relay.__version__ == "(not installed)"
