"""Operators that only move elements: copies of channel blocks, or a layer's results in another tensor at once."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from relay_hw import op
from relay_hw.ir.expr import Expr, Function, Tuple
from relay_hw.tensorize import why_not
from relay_hw.tensorize.match.composite import match
from relay_hw.tensorize.target import Target
from tests.targets import target_for


def _upsample(x: Expr, down: int = 2, right: int = 2) -> Expr:
    return op.repeat(op.repeat(x, down, axis=2), right, axis=3)


CASES: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Expr]]] = {
    "join channels": (((32, 5, 4), (64, 5, 4), (7, 5, 4)), lambda *x: op.concatenate(Tuple(x), axis=1)),
    "join rows": (((20, 3, 5), (20, 2, 5)), lambda *x: op.concatenate(Tuple(x), axis=2)),
    "join columns": (((20, 3, 5), (20, 3, 2)), lambda *x: op.concatenate(Tuple(x), axis=3)),
    "twice the same": (((32, 4, 4),), lambda x: op.concatenate(Tuple([x, x]), axis=1)),
    "slice of channels": (((96, 4, 4),), lambda x: op.strided_slice(x, (0, 32), (1, 64), axes=(0, 1))),
    "every second pixel": (((20, 7, 6),), lambda x: op.strided_slice(x, (1, 0), (7, 6), (2, 3), axes=(2, 3))),
    "upsampling by two": (((20, 5, 4),), _upsample),
    "upsampling by three over one": (((16, 3, 4),), lambda x: _upsample(x, 3, 1)),
    "upsampling and join": (((32, 3, 3), (5, 6, 6)), lambda x, y: op.concatenate(Tuple([_upsample(x), y]), axis=1)),
    "nothing": (((20, 3, 3),), lambda x: op.reshape(op.reshape(x, (20, 9)), (1, 20, 3, 3))),
}


def _shuffle(x: Expr, groups: int) -> Expr:
    """ShuffleNet's: channels of all groups in turn."""
    return op.reshape(op.transpose(op.reshape(x, (groups, 10, 5, 4)), (1, 0, 2, 3)), (1, 10 * groups, 5, 4))


SELECTIONS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Expr]]] = {
    "odd channels": (((20, 5, 4), (9, 5, 4), (33, 5, 4)), lambda *x: op.concatenate(Tuple(x), axis=1)),
    "slice": (((50, 5, 4),), lambda x: op.strided_slice(x, (0, 5), (1, 48), (1, 2), axes=(0, 1))),
    "shuffled": (((30, 5, 4),), lambda x: _shuffle(x, 3)),
    "twice": (((7, 3, 3),), lambda x: op.concatenate(Tuple([x, x, x]), axis=1)),
    "one pixel": (((70,), (5,)), lambda x, y: op.concatenate(Tuple([x, y]), axis=1)),
    "many pixels": (((20, 40, 37), (12, 40, 37)), lambda *x: op.concatenate(Tuple(x), axis=1)),
    "reversed": (((40, 4, 4),), lambda x: op.reverse(x, axis=1)),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_selections(kit: SimpleNamespace, config: Target, name: str) -> None:
    shapes, body = SELECTIONS[name]
    build = kit.Regions(9, config)
    y = build.move(body, *(build.input(*shape) for shape in shapes))
    kit.compare(build.function(y), config)


@pytest.mark.parametrize("name", CASES)
def test_moves(kit: SimpleNamespace, config: Target, name: str) -> None:
    shapes, body = CASES[name]
    build = kit.Regions(1, config)
    inputs = [build.input(*shape) for shape in shapes]
    kit.compare(build.function(build.move(body, *inputs)), config)


def test_heads(kit: SimpleNamespace, config: Target) -> None:
    """[tokens, channels] to [heads, tokens, channels of a head] and back."""
    build = kit.Regions(2, config)
    width = 2 * config.channel_align
    x = build.input(3 * width, 1, 12)
    tokens = build.move(lambda x: op.reshape(op.transpose(x, (0, 2, 3, 1)), (12, 3 * width)), x)
    heads = build.move(lambda x: op.transpose(op.reshape(x, (12, 3, width)), (1, 0, 2)), tokens)
    back = build.move(lambda x: op.reshape(op.transpose(x, (1, 0, 2)), (12, 3 * width)), heads)
    kit.compare(build.function(heads, back), config)


def _composite(kit: SimpleNamespace, body: Callable[..., Expr], *shapes: tuple[int, ...]) -> Function:
    build = kit.Regions(3, target_for("default"))
    return build.move(body, *(build.input(*shape) for shape in shapes)).op


REFUSED = {
    "part of a block": (((20, 4, 4), (20, 2, 4)), lambda *x: op.concatenate(Tuple(x), axis=2), ""),
    "parts of other pixels": (
        ((20, 4, 4), (20, 4, 8)),
        lambda x, y: op.concatenate(Tuple([x, op.strided_slice(y, (4,), (8,), axes=(3,))]), axis=1),
        "channels must move in",
    ),
    "channels become rows": (((16, 4, 16),), lambda x: op.transpose(x, (0, 2, 1, 3)), "channels must move in"),
    "mixed pixels": (
        ((16, 12, 12),),
        lambda x: op.reshape(op.transpose(op.reshape(x, (16, 144)), (0, 1)), (1, 16, 12, 12)),
        "",
    ),
    "backwards": (((16, 3, 130),), lambda x: op.reverse(x, axis=3), "elements must move in at most 64 copies"),
    "constant": (
        ((16, 2, 2),),
        lambda x: op.concatenate(Tuple([x, op.const(np.ones((1, 16, 2, 2), "int8"))]), axis=1),
        "a constant must be no part",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_not(kit: SimpleNamespace, name: str) -> None:
    shapes, body, sentence = REFUSED[name]
    reason = why_not(_composite(kit, body, *shapes), target_for("default"))
    assert (reason or "").startswith(sentence) and bool(reason) == bool(sentence)


def test_few_copies(kit: SimpleNamespace) -> None:
    shapes, body = CASES["upsampling and join"]
    kernel = match(_composite(kit, body, *shapes), target_for("default")).kernel
    assert len(kernel.moves) == 5


def test_join_in_place(kit: SimpleNamespace, config: Target) -> None:
    """Convolutions, a pool and a transposed convolution store into their parts; what others read is copied."""
    width = config.channel_align
    build = kit.Regions(4, config)
    x = build.input(20, 8, 8)
    parts = [
        build.conv(x, 2 * width, padding=(1, 1, 1, 1)),
        build.conv(x, width, (1, 1)),
        build.max_pool(build.conv(x, width), (3, 3), padding=(2, 2, 2, 2)),
        build.conv_transpose(build.max_pool(x, (2, 2), (2, 2)), width),
        build.conv(build.conv(x, width, (1, 1)), width, padding=(1, 1, 1, 1), groups=width),
        build.conv(x, 5, (1, 1)),
    ]
    joined = build.move(lambda *x: op.concatenate(Tuple(x), axis=1), *parts)
    y = build.conv(joined, 9, (1, 1))
    segment = kit.compare(build.function(y, parts[1]), config)
    row = next(layer for layer in segment.layers if "in place" in layer.tile or "copies" in layer.tile)
    assert row.tile.startswith("1 copies")


def test_a_sum_is_joined_in_place(kit: SimpleNamespace, config: Target) -> None:
    """What a layer adds lies in a tensor of its own, its results in a part of a larger one."""
    width = config.channel_align
    build = kit.Regions(11, config)
    x = build.input(20, 8, 8)
    first = build.conv(x, 2 * width, padding=(1, 1, 1, 1))
    summed = build.conv(first, 2 * width, padding=(1, 1, 1, 1), residual=first)
    joined = build.move(lambda *x: op.concatenate(Tuple(x), axis=1), build.conv(x, width, (1, 1)), summed)
    segment = kit.compare(build.function(build.conv(joined, 9, (1, 1))), config)
    assert "in place" in [layer.tile for layer in segment.layers]


def test_join_without_a_copy(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(5, config)
    x = build.input(16, 6, 6)
    parts = [build.conv(x, 16, (1, 1)), build.conv(x, 32, (1, 1))]
    joined = build.move(lambda *x: op.concatenate(Tuple(x), axis=1), *parts)
    segment = kit.compare(build.function(build.max_pool(joined, (2, 2), (2, 2))), config)
    assert [layer.tile for layer in segment.layers][2] == "in place"
    stored = sum(layer.bytes_written for layer in segment.layers)
    assert stored <= 6 * 6 * 48 + 3 * 3 * 48
    assert segment.layers[2].ranges == ()


def test_join_of_a_join(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(6, config)
    width = config.channel_align
    x = build.input(7, 5, 5)

    def join(*parts: Expr) -> Expr:
        return build.move(lambda *x: op.concatenate(Tuple(x), axis=1), *parts)

    first = join(build.conv(x, width, (1, 1)), build.conv(x, width, (1, 1)))
    second = join(first, build.conv(first, width, padding=(1, 1, 1, 1)))
    kit.compare(build.function(build.conv(second, 4, (1, 1))), config)


@pytest.mark.parametrize("bounds, shape", [((-5, 90), (20, 6, 5)), ((0, 200), (7,)), ((-128, 3), (40, 1, 1))])
def test_clip(kit: SimpleNamespace, config: Target, bounds: tuple[int, int], shape: tuple[int, ...]) -> None:
    build = kit.Regions(7, config)
    x = build.input(*shape)
    kit.compare(build.function(build.clip(x, *bounds)), config)


PARTS: dict[str, Callable[..., Expr]] = {
    "channels": lambda x, c: op.strided_slice(x, (0, c), (1, 2 * c), axes=(0, 1)),
    "every second pixel": lambda x, c: op.strided_slice(x, (1, 0), (9, 8), (2, 2), axes=(2, 3)),
    "all": lambda x, c: op.strided_slice(x, (0, c, 2, 1), (1, 3 * c, 8, 9), (1, 1, 2, 1)),
    "a row": lambda x, c: op.strided_slice(x, (4,), (5,), axes=(2,)),
}


@pytest.mark.parametrize("name, size", [*zip(PARTS, ("default", "tiny", "ecp5", "wide"), strict=True)])
def test_read_in_place(kit: SimpleNamespace, name: str, size: str) -> None:
    """Convolutions of every kind, pools and dense layers read a part of an activation where it lies."""
    config = target_for(size)
    width = config.channel_align
    build = kit.Regions(8, config)
    x = build.conv(build.input(5, 9, 9), 3 * width, (1, 1))
    part = build.move(lambda x: PARTS[name](x, width), x)
    channels = build.shape(part)[1]
    results = [
        build.conv(part, 7, (1, 3), padding=(0, 1, 0, 1)),
        build.conv(part, channels, (1, 1), groups=channels),
        build.conv(part, 2 * channels, (1, 3), groups=2, padding=(0, 1, 0, 1)),
        build.conv(part, 20, (1, 1), (2, 2)),
        build.max_pool(part, build.shape(part)[2:]),
        build.sum_pool(part, (1, 2), (1, 2)),
        build.conv_transpose(part, 6),
        build.dense(part, 9),
    ]
    segment = kit.compare(build.function(*results), config)
    assert [layer.tile for layer in segment.layers][1] == "in place"
    other = kit.Regions(8, config)
    x = other.conv(other.input(5, 9, 9), 3 * width, (1, 1))
    part = other.move(lambda x: PARTS[name](x, width), x)
    y = other.conv(part, other.shape(part)[1], (1, 1), residual=part)
    assert "in place" not in [layer.tile for layer in kit.compare(other.function(y), config).layers]
