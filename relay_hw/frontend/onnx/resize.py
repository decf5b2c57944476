"""ONNX operators that change the number of rows and columns: Resize and Upsample, to the nearest element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, all_of, known_inputs
from relay_hw.ir.expr import Expr
from relay_hw.op import const, nn

Index = NDArray[np.int64]

_COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_half_pixel_for_nn")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _check_nearest(node: Node, known: Known) -> str | None:
    given = (
        ("mode", node.attr("mode", "nearest"), ("nearest",)),
        ("coordinate_transformation_mode", _coordinates(node), _COORDINATES),
        ("nearest_mode", _rounding(node), _ROUNDINGS),
    )
    for name, value, legal in given:
        text = value.decode() if isinstance(value, bytes) else str(value)
        if text not in legal:
            return f"{name} must be {' or '.join(legal)}, not {text}"
    return "axes must be left out" if node.attr("axes") is not None else None


def _coordinates(node: Node) -> str:
    default = "half_pixel" if node.operator == "Resize" and node.opset >= 11 else "asymmetric"
    return _text(node.attr("coordinate_transformation_mode", default))


def _rounding(node: Node) -> str:
    default = "round_prefer_floor" if node.operator == "Resize" and node.opset >= 11 else "floor"
    return _text(node.attr("nearest_mode", default))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _resize(node: Node, args: Arguments) -> Expr:
    shape = args.shape(args[0])
    late = node.operator == "Resize" and node.opset >= 11
    sizes = args.ints(3) if late and len(args) > 3 else None
    if sizes is not None:
        scales = [new / old for new, old in zip(sizes, shape, strict=True)]
    else:
        found = node.attr("scales") if node.attr("scales") is not None else args.array(2 if late else 1)
        if found is None or np.size(found) != len(shape):
            raise InputError(f"{node.operator} must have a scale for each of {len(shape)} axes", node.span)
        scales = [float(scale) for scale in np.ravel(found)]
    nearest = [_nearest(node, size, scale) for size, scale in zip(shape, scales, strict=True)]
    factors = [_factor(index, size) for index, size in zip(nearest, shape, strict=True)]
    if len(shape) == 4 and factors[:2] == [1, 1] and None not in factors:
        return nn.upsampling(args[0], factors[2] or 1, factors[3] or 1)
    return _taken(args[0], nearest, factors)


def _nearest(node: Node, size: int, scale: float) -> Index:
    """The element that each element of the result is, along one axis."""
    count = int(np.floor(size * scale))
    place = np.arange(count, dtype=np.float64)
    match _coordinates(node):
        case "half_pixel":
            place = (place + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            place = (place + 0.5) / scale - 0.5 if count > 1 else place * 0
        case "align_corners":
            place = place * (size - 1) / (count - 1) if count > 1 else place * 0
        case "tf_half_pixel_for_nn":
            place = (place + 0.5) / scale
        case _:
            place = place / scale
    match _rounding(node):
        case "round_prefer_floor":
            place = np.ceil(place - 0.5)
        case "round_prefer_ceil":
            place = np.floor(place + 0.5)
        case "floor":
            place = np.floor(place)
        case _:
            place = np.ceil(place)
    return np.clip(place, 0, size - 1).astype(np.int64)


def _factor(nearest: Index, size: int) -> int | None:
    """How often every element is repeated; None where not all are repeated alike."""
    count = len(nearest) // size
    return count if np.array_equal(nearest, np.arange(size, dtype=np.int64).repeat(count)) else None


def _taken(data: Expr, nearest: Sequence[Index], factors: Sequence[int | None]) -> Expr:
    for axis, (index, factor) in enumerate(zip(nearest, factors, strict=True)):
        if factor != 1:
            data = op.take(data, const(index), axis=axis)
    return data


CONVERTERS = (
    Converter("Resize", _resize, all_of(_check_nearest, known_inputs(1, 2, 3))),
    Converter("Upsample", _resize, all_of(_check_nearest, known_inputs(1))),
)
