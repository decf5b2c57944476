"""Shapes of a recipe's values. In: a recipe. Out: a shape for each name, or the first layer that cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tests.networks.recipe import Kind, Layer, Recipe, Shape


class Impossible(Exception):
    """A layer that has no result, such as a window larger than its map."""


def shapes(recipe: Recipe) -> dict[str, Shape]:
    """The shape of each value by name. Raises Impossible."""
    found = {"x": recipe.shape}
    for layer in recipe.layers:
        try:
            found[layer.name] = shape_of(layer, [found[name] for name in layer.inputs])
        except (ValueError, KeyError, IndexError) as error:
            raise Impossible(f"{layer}: {error}") from None
    _need(all(name in found for name in recipe.results), "results must be values")
    return found


def shape_of(layer: Layer, inputs: Sequence[Shape]) -> Shape:
    """The shape of a layer's result. Raises Impossible, or ValueError for a shape of another rank."""
    found = _shape(layer, inputs)
    _need(min(found) >= 1, f"{layer} of {inputs} leaves nothing")
    return found


def extent(kernel: Shape, dilation: Shape) -> Shape:
    """Pixels from the first to the last of a window."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise Impossible(what)


def _shape(layer: Layer, inputs: Sequence[Shape]) -> Shape:
    x = inputs[0]
    match layer.kind:
        case Kind.CONV:
            _need(x[1] % layer.one("groups") == layer.one("channels") % layer.one("groups") == 0, "whole groups")
            return (x[0], layer.one("channels"), *_windows(layer, x))
        case Kind.TRANSPOSED:
            return (x[0], layer.one("channels"), *_spread(layer, x))
        case Kind.DENSE:
            _need(len(x) in (2, 3), "rows")
            return (*x[:-1], layer.one("units"))
        case Kind.PRODUCT:
            (batch, rows, inner), (other, columns, depth) = inputs
            _need((batch, inner) == (other, depth), "equal inner sizes")
            return (batch, rows, columns)
        case Kind.MAX_POOL | Kind.MEAN_POOL:
            # Elsewhere a pool whose whole window may lie in the padding is refused.
            far = [max(layer["pads"][at], layer["pads"][at + 2]) for at in (0, 1)]
            _need(all(pad < size for pad, size in zip(far, layer["kernel"], strict=True)), "pads in the window")
            return (*x[:2], *_windows(layer, x))
        case Kind.WHOLE_MEAN:
            batch, channels, _, _ = x
            return (batch, channels, 1, 1)
        case Kind.ADD:
            _need(inputs[0] == inputs[1], "equal shapes")
            return x
        case Kind.MULTIPLY:
            _need(inputs[1] in (x, (*x[:2], *[1] * (len(x) - 2))), "equal shapes, or a number a channel")
            return x
        case Kind.RELU | Kind.CLIP | Kind.SIGMOID | Kind.TANH | Kind.HARD_SWISH | Kind.LAYER_NORM | Kind.RMS_NORM:
            return x
        case Kind.SOFTMAX:
            _need(not layer.one("causal") or (len(x) > 2 and x[-2] <= x[-1]), "matrices as wide as high, or wider")
            return x
        case Kind.FLATTEN:
            return (x[0], prod(x[1:]))
        case _:
            return _moved(layer, inputs)


def _moved(layer: Layer, inputs: Sequence[Shape]) -> Shape:
    """The shape of what only moves elements."""
    x = inputs[0]
    match layer.kind:
        case Kind.PAD | Kind.MIRROR:
            batch, channels, height, width = x
            top, left, bottom, right = layer["pads"]
            inside = max(top, bottom) < height and max(left, right) < width
            _need(layer.kind is Kind.PAD or inside, "pixels to mirror")
            return (batch, channels, height + top + bottom, width + left + right)
        case Kind.JOIN:
            axis = layer.one("axis")
            _need(all(_but(one, axis) == _but(x, axis) for one in inputs), "equal shapes but on the axis")
            return _with(x, axis, sum(one[axis] for one in inputs))
        case Kind.SLICE:
            axis, begin, end, step = layer["range"]
            return _with(x, axis, len(range(x[axis])[slice(begin, None if end < 0 else end, step)]))
        case Kind.UPSAMPLE:
            batch, channels, height, width = x
            return (batch, channels, height * layer["times"][0], width * layer["times"][1])
        case Kind.SPREAD:
            batch, channels, height, width = x
            size = layer.one("block")
            _need(channels % (size * size) == 0, "whole blocks")
            return (batch, channels // size**2, height * size, width * size)
        case Kind.TILE:
            axis, times = layer["repeat"]
            return _with(x, axis, x[axis] * times)
        case Kind.TRANSPOSE:
            _need(sorted(layer["axes"]) == [*range(len(x))], "every axis once")
            return tuple(x[axis] for axis in layer["axes"])
        case Kind.RESHAPE:
            _need(prod(x) == prod(layer["shape"]), "as many elements")
            return layer["shape"]
        case Kind.UNSQUEEZE:
            at = layer.one("axis")
            return (*x[:at], 1, *x[at:])
        case Kind.SQUEEZE:
            at = layer.one("axis")
            _need(x[at] == 1 and len(x) > 1, "an axis of one")
            return _but(x, at)
        case _:
            raise Impossible(f"{layer.kind} moves no elements")


def _windows(layer: Layer, x: Shape) -> Shape:
    _, _, *size = x
    pads, window = layer["pads"], extent(layer["kernel"], layer["dilation"])
    room = [size[at] + pads[at] + pads[at + 2] - window[at] for at in (0, 1)]
    _need(min(room) >= 0, "a window in the map")
    return tuple(left // stride + 1 for left, stride in zip(room, layer["strides"], strict=True))


def _spread(layer: Layer, x: Shape) -> Shape:
    _, _, *size = x
    pads, window = layer["pads"], extent(layer["kernel"], layer["dilation"])
    _need(all(more < stride for more, stride in zip(layer["more"], layer["strides"], strict=True)), "less than a step")
    return tuple(
        (size[at] - 1) * layer["strides"][at] - pads[at] - pads[at + 2] + window[at] + layer["more"][at]
        for at in (0, 1)
    )


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _but(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])
