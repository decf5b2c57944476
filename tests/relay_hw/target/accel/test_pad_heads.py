"""Heads of no whole blocks: more channels of zeros, the same result; none where something else reads them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.config import load_config
from relay_hw.analysis.products import call_macs, function_macs, total_macs
from relay_hw.interp import evaluate
from relay_hw.ir.expr import MACS, Call, Expr, Function, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.op.rows import exponentials
from relay_hw.target.accel.composites import MergeDeviceComposites
from relay_hw.target.accel.pad_heads import pad_heads
from relay_hw.transform.graph import is_op, shape_of
from relay_hw.transform.infer_type import InferType
from tests.relay_hw.target.accel.test_composites import composites
from tests.relay_hw.transform.checks import module, var


class Attention:
    """An attention of `heads` x `each` channels of one or several sequences, with random numbers."""

    def __init__(self, seed: int, tokens: int, heads: int, each: int, batch: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.tokens, self.heads, self.each, self.batch = tokens, heads, each, batch
        self.x = var("x", *([batch] if batch > 1 else []), tokens, 24, dtype="int8")

    def ints(self, *shape: int, dtype: str = "int8", most: int = 100) -> Expr:
        """A random constant."""
        return op.const(self.rng.integers(-most, most, shape).astype(dtype))

    def layer(self, x: Expr, inputs: int, units: int, zero_point: int = 0) -> Expr:
        """A dense layer of rows."""
        acc = op.nn.dense(x, self.ints(units, inputs), out_dtype="int32")
        bias = self.ints(units, dtype="int32", most=3000)
        axis = 2 if self.batch > 1 else 1
        multiplier = self.rng.integers(1, 900, units).tolist()
        return op.fixed.requantize(acc, bias, multiplier, [17] * units, zero_point=zero_point, axis=axis)

    def head(self, x: Expr) -> Expr:
        """[heads, tokens, channels of a head]."""
        if self.batch == 1:
            return op.transpose(op.reshape(x, (self.tokens, self.heads, self.each)), (1, 0, 2))
        parts = op.transpose(op.reshape(x, (self.batch, self.tokens, self.heads, self.each)), (0, 2, 1, 3))
        return op.reshape(parts, (self.batch * self.heads, self.tokens, self.each))

    def joined(self, y: Expr) -> Expr:
        """Heads side by side."""
        width = self.heads * self.each
        if self.batch == 1:
            return op.reshape(op.transpose(y, (1, 0, 2)), (self.tokens, width))
        parts = op.reshape(y, (self.batch, self.heads, self.tokens, self.each))
        return op.reshape(op.transpose(parts, (0, 2, 1, 3)), (self.batch, self.tokens, width))

    def parts(self, whole: bool) -> tuple[Expr, Expr, Expr]:
        """Queries, keys and values of layers of their own, or of one."""
        width = self.heads * self.each
        if not whole:
            q, k, v = (self.layer(self.x, 24, width) for _ in range(3))
            return q, k, v
        y, axis = self.layer(self.x, 24, 3 * width), 2 if self.batch > 1 else 1
        q, k, v = (op.strided_slice(y, (at * width,), ((at + 1) * width,), (1,), axes=(axis,)) for at in range(3))
        return q, k, v

    def body(self, whole: bool, value: Callable[[Expr], Expr] = lambda y: y) -> Expr:
        """The attention and the layer behind it."""
        q, k, v = map(self.head, self.parts(whole))
        product = op.nn.batch_matmul(q, k, out_dtype="int32", transpose_b=True)
        scores = op.fixed.requantize(product, self.ints(self.tokens, dtype="int32"), 300, 17, 4, axis=2)
        weights = op.fixed.softmax(scores, op.const(exponentials(0.05)), zero_point=0)
        product = op.nn.batch_matmul(weights, op.transpose(value(v), (0, 2, 1)), out_dtype="int32", transpose_b=True)
        mixed = op.fixed.requantize(product, self.ints(self.each, dtype="int32"), 300, 17, 5, axis=2)
        return self.layer(self.joined(mixed), self.heads * self.each, 20, -3)


def _main(net: Attention, body: Expr) -> Function:
    return InferType()(module(body, net.x))["main"]


def _same(net: Attention, before: Function, after: Function) -> None:
    data = net.rng.integers(-128, 128, net.x.type_annotation.shape).astype(np.int8)
    old, new = (evaluate(module(function.body, *function.params), [data]) for function in (before, after))
    for one, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in (old, new)), strict=True):
        np.testing.assert_array_equal(one, other)


def _widths(function: Function) -> set[int]:
    """Channels of the operands of products of activations."""
    products = [node for node in post_order(function.body) if isinstance(node, Call) and is_op(node, "nn.batch_matmul")]
    return {(shape_of(node.args[0]) or (0,))[-1] for node in products}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_attention(data: st.DataObject) -> None:
    tokens, heads, each = (data.draw(st.integers(1, most)) for most in (9, 4, 40))
    batch, align, seed = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([4, 16, 32])), data.draw(st.integers())
    net = Attention(abs(seed), tokens, heads, each, batch)
    before = _main(net, net.body(data.draw(st.booleans())))
    padded = pad_heads(before, align)
    _same(net, before, padded.function)
    if each % align == 0 or heads == 1:
        assert padded.function is before and not padded.macs
        return
    assert {width % align for width in _widths(padded.function) - {tokens}} <= {0}
    # What became wider counts as it was.
    counted = {
        node: padded.macs.get(node) or call_macs(node)
        for node in post_order(padded.function.body)
        if isinstance(node, Call)
    }
    assert sum(counted.values()) == total_macs(post_order(before.body))
    assert total_macs(post_order(padded.function.body)) > sum(counted.values())


def test_composites_say_their_products() -> None:
    net = Attention(1, 6, 4, 36)
    mod = InferType()(module(net.body(True), net.x))
    found = composites(MergeDeviceComposites(config=load_config("default"))(mod)["main"])
    said = [function.attrs.get(MACS) for function in found if function.attrs["Composite"] != "accel.move"]
    assert said == [6 * 24 * 432, 4 * 6 * 6 * 36, None, 4 * 6 * 6 * 36, 6 * 144 * 20]
    assert sum(map(function_macs, found)) == total_macs(post_order(mod["main"].body))


def _normed(net: Attention) -> Expr:
    gain, bias = net.ints(net.each, dtype="int16"), net.ints(net.each, dtype="int32")
    return net.body(False, lambda v: op.fixed.layer_norm(v, gain, bias, 10))


READ_BY_OTHERS: dict[str, Callable[[Attention], Expr]] = {
    "a norm of heads": _normed,
    "the result": lambda net: Tuple([net.body(False), net.head(net.layer(net.x, 24, net.heads * net.each))]),
    "a part of a head": lambda net: op.strided_slice(net.head(net.layer(net.x, 24, 72)), (2,), (7,), axes=(2,)),
    "halves of heads": lambda net: net.layer(op.reshape(net.layer(net.x, 24, 72), (4, 108)), 108, 5),
}


@pytest.mark.parametrize("name", READ_BY_OTHERS)
def test_what_others_read_stays(name: str) -> None:
    net = Attention(2, 6, 2, 36)
    before = _main(net, READ_BY_OTHERS[name](net))
    padded = pad_heads(before, 16)
    _same(net, before, padded.function)
    kept = {(shape_of(node) or (0,))[-1] for node in post_order(before.body) if is_op(node, "nn.dense")}
    have = {(shape_of(node) or (0,))[-1] for node in post_order(padded.function.body) if is_op(node, "nn.dense")}
    assert kept & have, "at least the layer that something else reads makes as many channels as before"


def test_elements_between() -> None:
    """Tables, sums and products with constants of heads: what they make of zeros is known, and is no zero."""
    net = Attention(3, 5, 2, 20)
    table = op.const(net.rng.permutation(np.arange(-128, 128)).astype(np.int8))
    place = net.ints(2, 5, 20)

    def value(v: Expr) -> Expr:
        v = op.fixed.table(v, table)
        v = op.fixed.add(v, place, y_multiplier=3, r_multiplier=5, shift=3, y_zero_point=2)
        return op.fixed.mul(v, place, multiplier=3, shift=7, y_zero_point=1, r_zero_point=4)

    before = _main(net, net.body(True, value))
    padded = pad_heads(before, 16)
    _same(net, before, padded.function)
    assert _widths(padded.function) == {5, 32}


def test_sums_over_what_is_no_zero_stay() -> None:
    """Queries and keys whose zero is another number: channels that are added would add to scores."""
    net = Attention(4, 5, 2, 20)
    q, k = (net.head(net.layer(net.x, 24, 40, zero_point=3)) for _ in range(2))
    product = op.nn.batch_matmul(q, k, out_dtype="int32", transpose_b=True)
    before = _main(net, op.fixed.requantize(product, net.ints(5, dtype="int32"), 300, 17, axis=2))
    assert pad_heads(before, 16).function is before
