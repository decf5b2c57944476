"""Layouts as a checked part of tensor types: a layout pass that goes wrong does not type, and the edge is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.analysis import infer_type, structural_equal
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op, Var
from relay_hw.ir.visit import Rewriter, copy_with, post_order
from relay_hw.text import load_json, parse, save_json


def module(text: str) -> relay.IRModule:
    mod = parse(text)
    assert structural_equal(parse(mod.astext()), mod)
    assert structural_equal(load_json(save_json(mod)), mod)
    return mod


def small(body: str, params: str, result: str = "") -> relay.IRModule:
    arrow = f" -> {result}" if result else ""
    return module(f'#[version = "0.0.5"]\ndef @main({params}){arrow} {{ {body} }}')


class ToNhwc(Rewriter):
    """A layout pass: convolutions and pools work in NHWC between two transforms. `edit` may spoil one of them."""

    def __init__(self, edit: Callable[[int, Expr, str, str], Expr]) -> None:
        super().__init__()
        self._edit = edit
        self.count = 0

    def _transform(self, data: Expr, source: str, target: str) -> Expr:
        self.count += 1
        return self._edit(self.count - 1, data, source, target)

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not isinstance(new.op, Op) or new.op.name not in ("nn.conv2d", "nn.max_pool2d"):
            return new
        data = self._transform(new.args[0], "NCHW", "NHWC")
        name = "data_layout" if new.op.name == "nn.conv2d" else "layout"
        call = copy_with(new, args=(data, *new.args[1:]), attrs=replace(new.attrs, **{name: "NHWC"}))
        return self._transform(call, "NHWC", "NCHW")


def right(_number: int, data: Expr, source: str, target: str) -> Expr:
    return relay.layout_transform(data, source, target)


def spoiled(number: int, how: str) -> Callable[[int, Expr, str, str], Expr]:
    """A transform that is left out, goes the wrong way, or is there twice."""

    def edit(place: int, data: Expr, source: str, target: str) -> Expr:
        if place != number:
            return right(place, data, source, target)
        if how == "dropped":
            return data
        if how == "swapped":
            return relay.layout_transform(data, target, source)
        return relay.layout_transform(relay.layout_transform(data, source, target), source, target)

    return edit


# All axes have one size, so that no shape gives a wrong layout away.
NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(8, 8, 8, 8), float32LX], %w: Tensor[(8, 8, 1, 1), float32], %v: Tensor[(8, 8, 1, 1), float32])
    -> Tensor[(8, 8, 8, 8), float32LX] {
  %0 = nn.conv2d(%x, %w, channels=8, kernel_size=[1, 1]);
  %1 = nn.max_pool2d(nn.relu(%0), pool_size=[1, 1]);
  %2 = nn.conv2d(%1, %v, channels=8, kernel_size=[1, 1]);
  add(%2, %x)
}
"""
LAID_OUT = NET.replace("LX", ", NCHW")
PLAIN = NET.replace("LX", "")
TRANSFORMS = 6


def converted(text: str, edit: Callable[[int, Expr, str, str], Expr]) -> relay.IRModule:
    mod = parse(text)
    rewriter = ToNhwc(edit)
    main = rewriter.rewrite(mod["main"])
    assert isinstance(main, relay.Function)
    assert rewriter.count == TRANSFORMS
    return relay.IRModule({"main": main})


def test_the_right_pass_types_and_keeps_the_value() -> None:
    before, after = parse(LAID_OUT), infer_type(converted(LAID_OUT, right))
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(param.tensor_type.static_shape).astype("float32") for param in before["main"].params]
    values = [relay.create_executor(mod=mod).evaluate()(*args) for mod in (before, after)]
    assert np.allclose(values[0], values[1], atol=1e-4)


@pytest.mark.parametrize("how", ["dropped", "swapped", "doubled"])
@pytest.mark.parametrize("number", range(TRANSFORMS))
def test_a_wrong_transform_is_rejected_and_the_edge_named(number: int, how: str) -> None:
    # Without layouts nothing is noticed: all sizes are equal.
    infer_type(converted(PLAIN, spoiled(number, how)))
    with pytest.raises(TypeCheckError) as caught:
        infer_type(converted(LAID_OUT, spoiled(number, how)))
    message = caught.value.message
    assert "must have layout" in message and " of " in message and "gives it" in message


def test_the_message_names_both_ends_of_the_edge() -> None:
    with pytest.raises(TypeCheckError) as caught:
        infer_type(converted(LAID_OUT, spoiled(0, "dropped")))
    assert caught.value.message == "argument 1 of nn.conv2d must have layout NHWC, not NCHW as %x gives it"
    with pytest.raises(TypeCheckError) as caught:
        infer_type(converted(LAID_OUT, spoiled(2, "doubled")))
    wanted = "argument 1 of layout_transform must have layout NCHW, not NHWC as layout_transform gives it"
    assert caught.value.message == wanted


def test_layouts_flow_through_a_network() -> None:
    mod = module(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(1, 8, 4, 4), float32, NCHW], %b: Tensor[(8), float32, C]) {\n"
        "  %0 = nn.relu(nn.bias_add(%x, %b)) + %x;\n"
        "  %1 = nn.max_pool2d(nn.pad(%0, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[2, 2]);\n"
        "  (%1, concatenate((%1, %1), axis=1), mean(%1, axis=[2, 3]), mean(%1, axis=[2, 3], keepdims=True),\n"
        '   transpose(%1, axes=[0, 2, 3, 1]), layout_transform(%1, src_layout="NCHW", dst_layout="NCHW4c"),\n'
        "   split(%1, indices_or_sections=2, axis=1), reshape(%1, newshape=[-1]))\n"
        "}"
    )
    ty = mod["main"].func_type.ret_type
    assert isinstance(ty, relay.TupleType)
    first, joined, mean, kept, moved, packed, halves, flat = ty.fields
    layouts = [
        part.layout for part in (first, joined, mean, kept, moved, packed, flat) if isinstance(part, relay.TensorType)
    ]
    assert layouts == ["NCHW", "NCHW", "NC", "NCHW", "NHWC", "NCHW4c", ""]
    assert isinstance(halves, relay.TupleType)
    assert all(isinstance(part, relay.TensorType) and part.layout == "NCHW" for part in halves.fields)


X, Y = "%x: Tensor[(8, 8, 8, 8), float32, NCHW]", "%y: Tensor[(8, 8, 8, 8), float32, NHWC]"


def edge(argument: int, op: str, wanted: str, given: str, source: str) -> str:
    return f"argument {argument} of {op} must have layout {wanted}, not {given} as {source} gives it"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("add(%x, %y)", edge(2, "add", "NCHW", "NHWC", "%y")),
        ("concatenate((%x, %y), axis=1)", edge(1, "concatenate", "NCHW", "NHWC", "%y")),
        ("if (True) { %x } else { %y }", "branches of if must have one type"),
        ("nn.conv2d(%y, %w, kernel_size=[1, 1])", edge(1, "nn.conv2d", "NCHW", "NHWC", "%y")),
        ('nn.conv2d(%x, %w, kernel_layout="HWIO")', edge(2, "nn.conv2d", "HWIO", "OIHW", "%w")),
        ("nn.avg_pool2d(nn.relu(%y), pool_size=[2, 2])", edge(1, "nn.avg_pool2d", "NCHW", "NHWC", "nn.relu")),
        ("nn.bias_add(%y, %b)", "axis of nn.bias_add must be 3, which is C of NHWC, not 1"),
        ("add(%x, %b)", edge(2, "add", "NCHW", "C", "%b")),
        ("ref_write(ref(%x), %y)", "argument 2 of ref_write must be"),
    ],
)
def test_refusals(body: str, reason: str) -> None:
    params = f"{X}, {Y}, %w: Tensor[(8, 8, 1, 1), float32, OIHW], %b: Tensor[(8), float32, C]"
    with pytest.raises(TypeCheckError) as caught:
        small(body, params)
    assert reason in caught.value.message
    assert caught.value.span is not None


def test_results_and_parameters_of_functions_say_their_layout() -> None:
    with pytest.raises(TypeCheckError, match=r"result of @main must be Tensor\[.*, NHWC\], not Tensor\[.*, NCHW\]"):
        small("nn.relu(%x)", X, "Tensor[(8, 8, 8, 8), float32, NHWC]")
    text = '#[version = "0.0.5"]\ndef @f({}) {{ %x }}\ndef @main({}) {{ @f(%y) }}'
    with pytest.raises(TypeCheckError, match="argument 1 of @f must be"):
        module(text.format(X, Y))


def test_a_broadcast_of_the_last_axes_fits() -> None:
    mod = small("add(%y, %b)", f"{Y}, %b: Tensor[(8), float32, C]")
    assert str(mod["main"].func_type.ret_type).endswith(", NHWC]")


def test_types_without_layout_fit_every_layout() -> None:
    mod = small("add(%x, %z)", f"{X}, %z: Tensor[(8, 8, 8, 8), float32]")
    assert str(mod["main"].func_type.ret_type).endswith(", NCHW]")
    plain = parse(PLAIN)
    assert all(", N" not in str(node.checked_type) for node in post_order(plain["main"]) if isinstance(node, Var))
