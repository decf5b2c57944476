"""Matching: every kind of pattern, commutativity, sharing, recursion, dominators."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.dataflow_pattern import (
    FunctionPattern,
    dominates,
    from_expr,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    wildcard,
)
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Expr, Function, If, Let, Tuple, TupleGetItem

X, Y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
ONE = op.const(np.float32(1))
WEIGHT = relay.var("w", shape=(4, 4, 3, 3))
IMAGE = relay.var("image", shape=(1, 4, 8, 8))


def conv(x: Expr) -> Expr:
    return op.nn.conv2d(x, WEIGHT, padding=1)


def test_leaves() -> None:
    assert is_var().match(X) and is_var("x").match(X) and not is_var("y").match(X) and not is_var().match(ONE)
    assert is_constant().match(ONE) and not is_constant().match(X)
    assert is_expr(X).match(X) and not is_expr(X).match(Y)
    assert is_expr(op.const(np.float32(1))).match(ONE) and not is_expr(op.const(np.float32(2))).match(ONE)
    assert is_op("add").match(op.get("add")) and not is_op("add").match(op.get("subtract"))
    assert wildcard().match(X) and match(wildcard(), Tuple([]))
    assert is_expr(relay.GlobalVar("f")).match(relay.GlobalVar("f"))


def test_calls() -> None:
    call = op.subtract(X, ONE)
    assert is_op("subtract")(is_var("x"), is_constant()).match(call)
    assert not is_op("subtract")(is_constant(), is_var("x")).match(call)
    assert not is_op("subtract")(wildcard()).match(call)
    assert is_op("subtract")(None).match(call)
    assert wildcard()(wildcard(), wildcard()).match(call)


def test_add_and_multiply_commute() -> None:
    for name in ("add", "multiply"):
        call = getattr(op, name)(X, ONE)
        assert is_op(name)(is_constant(), is_var()).match(call)
        assert is_op(name)(is_var(), is_constant()).match(call)
    assert (is_constant() + is_var()).match(op.add(X, ONE)) and (is_var() - is_constant()).match(op.subtract(X, ONE))


def test_division_and_multiplication_reassociate() -> None:
    a, b, c = relay.var("a", shape=(2,)), relay.var("b", shape=(2,)), relay.var("c", shape=(2,))
    product_first = op.divide(op.multiply(a, b), c)
    quotient_first = op.multiply(op.divide(a, c), b)
    for pattern in ((is_var("a") * is_var("b")) / is_var("c"), is_var("b") * (is_var("a") / is_var("c"))):
        assert pattern.match(product_first) and pattern.match(quotient_first)
    assert not ((is_var("a") * is_var("c")) / is_var("b")).match(product_first)


def test_one_pattern_is_one_node() -> None:
    same = wildcard()
    assert (same - same).match(op.subtract(X, X)) and not (same - same).match(op.subtract(X, Y))
    assert (wildcard() - wildcard()).match(op.subtract(X, Y))


def test_backtracking_goes_back_into_commuted_arguments() -> None:
    """The first way to match the sum fails only later, at the second use of `a`."""
    a, b = wildcard(), wildcard()
    assert ((a + b) - a).match(op.subtract(op.add(X, Y), Y))
    assert (is_op("add")(a, b) - (a | b)).match(op.subtract(op.add(X, Y), Y))


def test_tuples_conditionals_bindings_functions() -> None:
    pair = Tuple([X, ONE])
    assert is_tuple([is_var(), is_constant()]).match(pair) and is_tuple().match(pair)
    assert not is_tuple([is_var()]).match(pair)
    item = TupleGetItem(pair, 1)
    assert is_tuple_get_item(wildcard(), 1).match(item) and is_tuple_get_item(is_tuple()).match(item)
    assert not is_tuple_get_item(wildcard(), 0).match(item)
    cond = relay.var("c", "bool")
    assert is_if(is_var("c"), is_var("x"), is_var("y")).match(If(cond, X, Y))
    assert not is_if(is_var("c"), is_var("y"), wildcard()).match(If(cond, X, Y))
    name = relay.var("n")
    bound = is_var()
    assert is_let(bound, is_constant(), bound + wildcard()).match(Let(name, ONE, op.add(name, X)))
    function = Function([X], op.exp(X))
    assert FunctionPattern([wildcard()], is_op("exp")(wildcard())).match(function)
    assert FunctionPattern(None, wildcard()).match(function)
    assert not FunctionPattern([], wildcard()).match(function)


def test_types_and_attributes() -> None:
    typed = relay.transform.InferType()(relay.IRModule.from_expr(Function([IMAGE, WEIGHT], conv(IMAGE))))["main"].body
    assert has_dtype("float32").match(typed) and not has_dtype("int8").match(typed)
    assert has_shape((1, 4, 8, 8)).match(typed) and not has_shape((1, 4, 8)).match(typed)
    assert has_type(relay.TensorType((1, 4, 8, 8))).match(typed)
    assert is_op("nn.conv2d")(wildcard(), wildcard()).has_attr({"padding": [1, 1, 1, 1]}).match(typed)
    assert not has_attr({"padding": (0, 0, 0, 0)}).match(typed) and not has_attr({"nothing": 1}).match(typed)
    assert wildcard().has_attr({"TOpPattern": 4})(wildcard(), wildcard()).match(typed)
    assert has_attr({"TOpPattern": 4}).match(typed) and not has_attr({"TOpPattern": 0}).match(typed)
    assert has_attr({"Composite": "a"}).match(Function([], X, attrs={"Composite": "a"}))
    assert wildcard().has_dtype("float32").has_shape((2,)).has_type(relay.TensorType((2,))).match(X)


def test_alternatives_and_options() -> None:
    pattern = is_op("exp")(wildcard()) | is_op("log")(wildcard())
    assert pattern.match(op.exp(X)) and pattern.match(op.log(X)) and not pattern.match(op.sqrt(X))
    maybe = is_op("nn.conv2d")(wildcard(), wildcard()).optional(lambda x: is_op("nn.relu")(x))
    assert maybe.match(conv(IMAGE)) and maybe.match(op.nn.relu(conv(IMAGE))) and not maybe.match(op.exp(conv(IMAGE)))


def test_a_pattern_may_contain_itself() -> None:
    again = wildcard()
    chain = is_op("exp")(again | is_var())
    again.redirect_to(chain)
    assert chain.match(op.exp(X)) and chain.match(op.exp(op.exp(op.exp(X))))
    assert not chain.match(op.exp(op.exp(op.log(X))))


def test_dominators() -> None:
    unary = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    binary = wildcard().has_attr({"TOpPattern": 1})(wildcard(), wildcard())
    pattern = dominates(is_op("nn.conv2d")(wildcard(), wildcard()), unary | binary, binary)
    y = conv(IMAGE)
    diamond = op.add(op.nn.relu(y), op.exp(op.negative(y)))
    assert pattern.match(diamond)
    assert binary.dominates(is_op("nn.conv2d")(None), unary).match(diamond)
    assert not pattern.match(op.nn.relu(diamond))
    assert not pattern.match(op.add(op.nn.softmax(y), op.exp(y)))
    leak = Tuple([diamond, y])
    from relay_hw.dataflow_pattern.matcher import Matcher

    assert Matcher(diamond).find(pattern, diamond) is not None
    assert Matcher(leak).find(pattern, diamond) is None


def test_patterns_from_expressions() -> None:
    pattern = from_expr(Function([X, Y], op.add(op.exp(X), op.multiply(Y, ONE))))
    assert pattern.match(op.add(op.exp(op.log(X)), op.multiply(X, op.const(np.float32(5)))))
    assert not pattern.match(op.add(op.exp(X), op.multiply(X, Y)))
    assert from_expr(TupleGetItem(Tuple([X]), 0)).match(TupleGetItem(Tuple([Y]), 0))
    with pytest.raises(UnsupportedError, match="a pattern must be made of calls, tuples and conditionals, not of Let"):
        from_expr(Let(X, ONE, X))
