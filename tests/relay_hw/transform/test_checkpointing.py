"""Gradients within a bound on memory: the slopes stay, the bytes are measured while the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.analysis.live_bytes import peak_bytes
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import Expr, Function, Let, Var
from relay_hw.ir.types import ANY
from relay_hw.ir.visit import post_order, substitute
from relay_hw.transform import EliminateCommonSubexpr, FoldConstant, InferType, Sequential, gradient

EXECUTOR = relay.create_executor("debug")


def vector(name: str, *shape: int) -> Var:
    return relay.var(name, shape=shape, dtype="float64")


def chain(count: int) -> Function:
    """Steps as of a recurrent network."""
    x, w = vector("x", 50), vector("w", 50)
    y: Expr = x
    for _ in range(count):
        y = op.tanh(y * w + op.sin(y))
    return Function([x, w], op.sum(y))


def convolutions() -> Function:
    x, weights = vector("x", 1, 4, 8, 8), [vector(f"w{k}", 4, 4, 3, 3) for k in range(6)]
    y: Expr = x
    for w in weights:
        y = op.nn.relu(op.nn.conv2d(y, w, padding=1)) + y
    return Function([x, *weights], op.mean(op.nn.max_pool2d(y, 2, 2)))


def tuples() -> Function:
    """Results and arguments that are tuples; an argument without a slope; a result of two tensors."""
    x, unused = vector("x", 6, 40), vector("u", 3)
    pair = relay.Var("p", relay.TupleType([relay.TensorType((6, 40), "float64"), relay.TensorType((), "int32")]))
    y: Expr = x
    for _ in range(5):
        parts = op.split(op.exp(op.sin(y)), 2, 1)
        y = op.concatenate([parts[1], parts[0] * op.sin(parts[1])], 1) + pair[0]
    return Function([x, pair, unused], relay.Tuple([op.sum(y * y), pair[1], y]))


PROGRAMS: dict[str, Callable[[], Function]] = {
    "chain": lambda: chain(12),
    "convolutions": convolutions,
    "tuples": tuples,
}


def given(ty: Any, rng: np.random.Generator) -> Any:
    if isinstance(ty, relay.TupleType):
        return tuple(given(part, rng) for part in ty.fields)
    return rng.normal(size=ty.static_shape) * 0.3 if ty.dtype == "float64" else np.zeros(ty.static_shape, ty.dtype)


def leaves(value: Any) -> list[np.ndarray]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


def run_and_measure(function: Function, values: list[Any]) -> tuple[Any, int]:
    """The value, binding by binding, and the most bytes of bound arrays that a later binding still reads."""
    env: dict[Var, Any] = dict(zip(function.params, values, strict=True))
    lets: list[tuple[Var, Expr]] = []
    body = function.body
    while isinstance(body, Let):
        lets.append((body.var, body.value))
        body = body.body
    reads = [{node for node in post_order(value) if isinstance(node, Var)} for _, value in lets]
    reads.append({node for node in post_order(body) if isinstance(node, Var)})
    most = 0
    for place, (var, value) in enumerate(lets):
        env[var] = computed(value, reads[place], env)
        most = max(most, held(env, function))
        later = set().union(*reads[place + 1 :])
        env = {one: kept for one, kept in env.items() if one in later or one in function.params}
    return computed(body, reads[-1], env), most


def computed(value: Expr, reads: set[Var], env: dict[Var, Any]) -> Any:
    own = {one: Var(one.name_hint, one.type) for one in reads}
    return EXECUTOR.evaluate(Function(list(own.values()), substitute(value, own)))(*(env[one] for one in own))


def held(env: dict[Var, Any], function: Function) -> int:
    """Bytes of arrays, each once: fields of tuples are the arrays themselves."""
    bound = [leaf for var, value in env.items() if var not in function.params for leaf in leaves(value)]
    arrays = {id(leaf): leaf.nbytes for leaf in bound}
    own = {id(leaf) for param in function.params for leaf in leaves(env[param])}
    return sum(size for key, size in arrays.items() if key not in own)


@pytest.mark.parametrize("name", PROGRAMS)
def test_slopes_stay_and_memory_is_bounded(name: str) -> None:
    function = PROGRAMS[name]()
    rng = np.random.default_rng(3)
    values = [given(param.type_annotation, rng) for param in function.params]
    wanted = EXECUTOR.evaluate(gradient(function, mode="first_order"))(*values)
    free = gradient(function, mode="first_order", memory=1 << 40)
    _, whole = run_and_measure(free, values)
    assert whole == peak_bytes(free)
    bounds = [int(whole * share) for share in (1.0, 0.8, 0.7)]
    counts = []
    for bound in bounds:
        new = gradient(function, mode="first_order", memory=bound)
        found, most = run_and_measure(new, values)
        # The interpreter takes no bytes for a copy.
        assert most <= peak_bytes(new) <= bound
        counts.append(len(list(post_order(new))))
        for one, other in zip(leaves(found), leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    # What saves memory computes more.
    assert counts[0] < counts[-1]


def test_a_long_chain_takes_its_root() -> None:
    """100 steps wait for the way back, or 2 * sqrt(100) of them and copies."""
    function = chain(100)
    whole = peak_bytes(gradient(function, mode="first_order", memory=1 << 40))
    new = gradient(function, mode="first_order", memory=whole // 3)
    assert peak_bytes(new) <= whole // 3
    steps = relay.astext(new).count("tanh(")
    assert 100 < steps < 200


def test_passes_do_not_find_equal_what_is_computed_again() -> None:
    function = chain(12)
    whole = peak_bytes(gradient(function, mode="first_order", memory=1 << 40))
    new = gradient(function, mode="first_order", memory=whole * 7 // 10)
    later = Sequential([FoldConstant(), EliminateCommonSubexpr()])(InferType()(relay.IRModule.from_expr(new)))["main"]
    assert relay.astext(later).count("tanh(") == relay.astext(new).count("tanh(") > 12


def test_refusals() -> None:
    function = chain(3)
    with pytest.raises(InputError, match=r"memory of this gradient must be at least [\d,]+ bytes, not 100"):
        gradient(function, mode="first_order", memory=100)
    with pytest.raises(InputError, match="memory of a gradient must be bounded in mode first_order, not higher_order"):
        gradient(function, memory=1000)
    x = relay.Var("x", relay.TensorType((ANY, 2), "float64"))
    with pytest.raises(UnsupportedError, match=r"a bound on memory must be of tensors of static shape, not Tensor"):
        gradient(Function([x], op.sum(op.exp(x))), mode="first_order", memory=1000)
