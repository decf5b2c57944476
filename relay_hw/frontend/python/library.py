"""The layer library: `relay.conv2d`, `relay.linear`, ... with their hidden parameters.

In: typed expressions. Out: Relay expressions. A sample may come alone or in a batch: with one more axis in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Expr
from relay_hw.ir.types import TensorType
from relay_hw.op import expand_dims, mean, multiply, negative, nn, reshape, squeeze
from relay_hw.op import sum as total

# (name, type) -> the hidden parameter of that name of the call that is being translated
Hidden = Callable[[str, TensorType], Expr]


@dataclass(frozen=True, slots=True)
class Layer:
    """A function of the library. Its first argument is `Hidden` if each call has its own parameters."""

    name: str
    build: Callable[..., Expr]
    has_hidden: bool = False


def _window(name: str, what: str, sizes: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) from one number, from two, or from four with ones for batch and channels."""
    given = (sizes, sizes) if isinstance(sizes, int) else tuple(sizes)
    if len(given) == 4 and given[0] == given[3] == 1:
        given = given[1:3]
    if len(given) != 2 or not all(isinstance(size, int) and size > 0 for size in given):
        raise UnsupportedError(f"{what} of {name} must be one, two or [1, two, 1] positive sizes, not {sizes}")
    return given[0], given[1]


def _image(name: str, x: Expr) -> tuple[Expr, TensorType, bool]:
    """`x` with a batch axis, its type, and whether that axis is new."""
    ty = x.tensor_type
    if ty.rank not in (3, 4):
        raise UnsupportedError(f"data of {name} must be [channels, height, width], or a batch of it, not {ty}")
    return (expand_dims(x, 0), ty, True) if ty.rank == 3 else (x, ty, False)


def _conv2d(
    hidden: Hidden,
    x: Expr,
    num_filter: int,
    ksize: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    no_bias: bool = False,
) -> Expr:
    data, ty, is_single = _image("conv2d", x)
    height, width = _window("conv2d", "ksize", ksize)
    channels = ty.static_shape[-3]
    weight = hidden("weight", TensorType((num_filter, channels, height, width), ty.dtype))
    found: Expr = nn.conv2d(
        data,
        weight,
        strides=_window("conv2d", "strides", strides),
        padding=padding,
        channels=num_filter,
        kernel_size=(height, width),
    )
    if not no_bias:
        found = nn.bias_add(found, hidden("bias", TensorType((num_filter,), ty.dtype)))
    return squeeze(found, 0) if is_single else found


def _max_pool(
    x: Expr, ksize: int | Sequence[int], strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0
) -> Expr:
    data, _, is_single = _image("max_pool", x)
    window, steps = _window("max_pool", "ksize", ksize), _window("max_pool", "strides", strides)
    found: Expr = nn.max_pool2d(data, window, steps, padding=padding)
    return squeeze(found, 0) if is_single else found


def _avg_pool(
    x: Expr, ksize: int | Sequence[int], strides: int | Sequence[int] = 1, padding: int | Sequence[int] = 0
) -> Expr:
    data, _, is_single = _image("avg_pool", x)
    window, steps = _window("avg_pool", "ksize", ksize), _window("avg_pool", "strides", strides)
    found: Expr = nn.avg_pool2d(data, window, steps, padding=padding)
    return squeeze(found, 0) if is_single else found


def _flatten_layer(x: Expr) -> Expr:
    return nn.batch_flatten(x) if x.tensor_type.rank == 4 else reshape(x, (-1,))


def _linear(hidden: Hidden, x: Expr, num_hidden: int, no_bias: bool = False) -> Expr:
    ty = x.tensor_type
    if ty.rank not in (1, 2):
        raise UnsupportedError(f"data of linear must be one axis of features, or a batch of it, not {ty}")
    weight = hidden("weight", TensorType((num_hidden, ty.static_shape[-1]), ty.dtype))
    found: Expr = nn.dense(x, weight, units=num_hidden)
    return found if no_bias else nn.bias_add(found, hidden("bias", TensorType((num_hidden,), ty.dtype)), axis=-1)


def _softmax_cross_entropy(x: Expr, y: Expr) -> Expr:
    loss = negative(total(multiply(nn.log_softmax(x), y), -1))
    return mean(loss) if x.tensor_type.rank > 1 else loss


LAYERS: Final[Mapping[str, Layer]] = MappingProxyType(
    {
        layer.name: layer
        for layer in (
            Layer("conv2d", _conv2d, True),
            Layer("linear", _linear, True),
            Layer("max_pool", _max_pool),
            Layer("avg_pool", _avg_pool),
            Layer("flatten_layer", _flatten_layer),
            Layer("softmax_cross_entropy", _softmax_cross_entropy),
            Layer("relu", nn.relu),
            Layer("softmax", nn.softmax),
            Layer("log_softmax", nn.log_softmax),
        )
    }
)
