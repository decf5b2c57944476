"""Products of two activations and transposed matrices: the program's bytes equal the interpreter's."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.accel.isa.program import TensorLayout
from relay_hw.ir.expr import Expr
from relay_hw.tensorize import why_not
from relay_hw.tensorize.target import Target
from tests.targets import target_for

# Configurations whose weight rows are a granule long.
CONFIGS = ("default", "wide", "ecp5x2")


def _turn(x: Expr) -> Expr:
    return op.transpose(x, (0, 2, 1))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(
    "heads, left, right, inner",
    [
        (1, 1, 1, 32), (2, 5, 7, 64), (3, 40, 33, 32), (1, 300, 200, 64),
        (1, 1, 1, 3), (2, 5, 7, 24), (3, 40, 33, 33), (1, 30, 64, 197), (1, 300, 200, 65),
    ],
)  # fmt: skip
def test_product(kit: SimpleNamespace, name: str, heads: int, left: int, right: int, inner: int) -> None:
    config = target_for(name)
    build = kit.Regions(left, config)
    y = build.product(build.tensor(heads, left, inner), build.tensor(heads, right, inner))
    kit.compare(build.function(y), config)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("heads, rows, columns", [(1, 16, 16), (2, 5, 70), (3, 100, 33), (1, 1, 300)])
def test_transpose(kit: SimpleNamespace, name: str, heads: int, rows: int, columns: int) -> None:
    config = target_for(name)
    build = kit.Regions(rows, config)
    y = build.move(_turn, build.tensor(heads, rows, columns))
    kit.compare(build.function(y), config)


@pytest.mark.parametrize("rows, inputs, units", [(1, 40, 9), (12, 20, 33), (130, 64, 64)])
def test_rows(kit: SimpleNamespace, config: Target, rows: int, inputs: int, units: int) -> None:
    build = kit.Regions(units, config)
    x = build.tensor(rows, inputs)
    kit.compare(build.function(build.rows(x, units)), config)


@pytest.mark.parametrize("pair", ["add", "mul"])
@pytest.mark.parametrize("swapped", [False, True])
def test_rows_beside_a_second_operand(kit: SimpleNamespace, config: Target, pair: str, swapped: bool) -> None:
    build = kit.Regions(3, config)
    x, r = build.tensor(37, 20), build.tensor(37, 40)
    y = build.rows(x, 40, r, pair, swapped)
    kit.compare(build.function(build.rows(y, 9)), config)


@pytest.mark.parametrize("config", ["default", "tiny", "w4"])
@pytest.mark.parametrize("flatten", [True, False])
def test_rows_as_one_vector(kit: SimpleNamespace, config: str, flatten: bool) -> None:
    """A dense layer over all of them: one result, weights in the order of the rows."""
    build = kit.Regions(5, target_for(config))
    kit.compare(build.function(build.dense(build.tensor(1, 6, 20), 9, flatten)), target_for(config))


def _attention(kit: SimpleNamespace, config: Target, tokens: int, heads: int, width: int) -> Expr:
    build = kit.Regions(tokens + heads, config)
    x = build.tensor(tokens, heads * width)

    def head(y: Expr) -> Expr:
        return op.transpose(op.reshape(y, (tokens, heads, width)), (1, 0, 2))

    q, k = (build.move(head, build.rows(x, heads * width)) for _ in range(2))
    v = build.move(lambda y: _turn(head(y)), build.rows(x, heads * width))
    y = build.product(build.product(q, k), v)
    y = build.move(lambda y: op.reshape(op.transpose(y, (1, 0, 2)), (tokens, heads * width)), y)
    return build.function(build.add(build.rows(y, heads * width), x))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("tokens", [50, 64])
def test_attention_without_softmax(kit: SimpleNamespace, name: str, tokens: int) -> None:
    """The second product has an inner size of `tokens`; what the device leaves behind 50 of them is anything."""
    config = target_for(name)
    kit.compare(_attention(kit, config, tokens, 2, 32), config)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("inner", [0, 5])
def test_heads_where_they_lie(kit: SimpleNamespace, name: str, inner: int) -> None:
    """Products read heads of one layer's result and store side by side what they make; only values are copied."""
    config = target_for(name)
    build = kit.Regions(inner, config)
    tokens, heads, width = 21, 3, 2 * config.channel_align
    x = build.rows(build.tensor(tokens, 20), 3 * heads * width)

    def part(number: int) -> Callable[[Expr], Expr]:
        def moved(y: Expr) -> Expr:
            cut = op.strided_slice(y, (number * heads * width,), ((number + 1) * heads * width,), axes=(1,))
            parts = op.transpose(op.reshape(cut, (tokens, heads, width)), (1, 0, 2))
            return op.strided_slice(parts, (0,), (width - inner,), axes=(2,)) if number < 2 else _turn(parts)

        return moved

    q, k, v = (build.move(part(number), x) for number in range(3))
    y = build.product(build.product(q, k), v)
    y = build.move(lambda y: op.reshape(op.transpose(y, (1, 0, 2)), (tokens, heads * width)), y)
    segment = kit.compare(build.function(build.rows(y, 9)), config)
    moves = [layer.tile for layer in segment.layers if layer.composite.attrs["Composite"] == "accel.move"]
    assert moves[:2] == ["in place"] * 2 and moves[3] == "in place" and moves[2] != "in place"


def test_heads_beside_the_whole_result_are_copied(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(1, config)
    x = build.rows(build.tensor(8, 20), 64)
    q = build.move(lambda y: op.transpose(op.reshape(y, (8, 2, 32)), (1, 0, 2)), x)
    y = build.product(q, q)
    joined = build.move(
        lambda y: op.reshape(op.transpose(y, (1, 0, 2)), (8, 32)), build.product(q, build.tensor(2, 16, 32))
    )
    segment = kit.compare(build.function(y, q, x, build.add(joined, joined)), config)
    assert segment.layers[1].tile != "in place"


@pytest.mark.parametrize("axis", [0, 1])
def test_results_that_are_copied_twice(kit: SimpleNamespace, axis: int) -> None:
    """The product stores them once; the copies make the rest."""
    config = target_for("default")
    build = kit.Regions(3, config)
    y = build.product(build.tensor(2, 20, 32), build.tensor(2, 16, 32))
    kit.compare(build.function(build.move(lambda y: op.repeat(y, 2, axis=axis), y)), config)


@pytest.mark.parametrize("name", CONFIGS)
def test_transposes_of_several_sequences(kit: SimpleNamespace, name: str) -> None:
    """Heads of several sequences lie in steps of two lengths."""
    config = target_for(name)
    build = kit.Regions(3, config)
    width = config.channel_align

    def turned(y: Expr) -> Expr:
        parts = op.transpose(op.reshape(y, (2, 10, 3, width)), (0, 2, 3, 1))
        return op.reshape(parts, (6, width, 10))

    kit.compare(build.function(build.move(turned, build.tensor(2, 10, 3 * width))), config)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_product(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(CONFIGS)))
    heads, left, right = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 70), st.integers(1, 70)))
    inner, seed = data.draw(st.integers(1, 5 * config.channel_align)), data.draw(st.integers(0, 1 << 20))
    build = kit.Regions(seed, config)
    y = build.product(build.tensor(heads, left, inner), build.tensor(heads, right, inner))
    kit.compare(build.function(y, build.move(_turn, y)), config, seed, order=seed)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("heads, left, right, blocks, rest", [(2, 1, 48, 15, 16), (3, 5, 7, 1, 3), (1, 40, 70, 4, 65)])
def test_channels_of_two_operands(
    kit: SimpleNamespace, name: str, heads: int, left: int, right: int, blocks: int, rest: int
) -> None:
    """A cache that lies as tiles, and what a layer adds to it; then the other way round."""
    config = target_for(name)
    channels = blocks * config.channel_align
    build = kit.Regions(left, config)
    x, y = build.tensor(heads, left, channels + rest), build.move(_turn, build.tensor(heads, rest, right))
    z = build.product(x, build.tensor(heads, right, channels), y)
    computed = build.move(_turn, build.tensor(heads, channels, right))
    segment = kit.compare(build.function(z, build.product(x, computed, build.tensor(heads, right, rest))), config)
    layouts = [TensorLayout.NHWC, TensorLayout.NHWC, TensorLayout.TILES, TensorLayout.NHWC, TensorLayout.NHWC]
    assert [port.layout for port in segment.inputs] == layouts


@pytest.mark.parametrize("name", CONFIGS)
def test_only_second_operands_lie_as_tiles(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    build = kit.Regions(0, config)
    x, y = build.tensor(2, 20, 2 * config.channel_align), build.tensor(2, 40, 2 * config.channel_align)
    segment = kit.compare(build.function(build.product(x, y), build.product(x, x)), config)
    assert [port.layout for port in segment.inputs] == [TensorLayout.NHWC, TensorLayout.TILES]


def test_why_not(kit: SimpleNamespace) -> None:
    build = kit.Regions(0, target_for("default"))
    y = build.product(build.tensor(1, 4, 32), build.tensor(1, 4, 32))
    assert why_not(y.op, target_for("default")) is None
    for name, reason in (
        ("tiny", "a row of weights must be 16 bytes, not 4 as in tiny"),
        ("ecp5", "a row of weights must be 16 bytes, not 8 as in ecp5"),
        ("w4", "weights must have 8 bits, not 4 as in w4"),
        ("ecp5w4", "weights must have 8 bits, not 4 as in ecp5w4"),
    ):
        assert why_not(y.op, target_for(name)) == f"products of activations: {reason}"
    x = build.tensor(1, 4, 37)
    y = build.product(x, build.tensor(1, 4, 20), build.tensor(1, 4, 17))
    assert why_not(y.op, target_for("default")) == "operands of products must be joined behind blocks of 16, not 20"
    y = build.product(build.tensor(1, 4, 32), build.tensor(2, 4, 32))
    assert why_not(y.op, target_for("default")) == "operands must have one number of matrices, not 1 and 2"
