"""Residual networks with normalisation before activation, 18 to 200 layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import relay_hw as relay
from relay_hw.compat.tvm.module import IRModule
from relay_hw.compat.tvm.nd import NDArray
from relay_hw.compat.tvm.relay.testing.init import create_workload
from relay_hw.compat.tvm.relay.testing.layers import batch_norm_infer, conv2d, dense_add_bias
from relay_hw.errors import InputError
from relay_hw.ir.expr import Expr, Function

_EPSILON = 2e-5
# Units of each stage for images larger than 32 pixels.
_UNITS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
}


@dataclass(frozen=True, slots=True)
class _Style:
    data_layout: str
    kernel_layout: str
    bottleneck: bool

    @property
    def axis(self) -> int:
        return self.data_layout.index("C")

    def conv(self, data: Expr, name: str, channels: int, size: int, stride: int = 1) -> Expr:
        pad = size // 2
        return conv2d(
            data,
            channels=channels,
            kernel_size=(size, size),
            strides=(stride, stride),
            padding=(pad, pad),
            data_layout=self.data_layout,
            kernel_layout=self.kernel_layout,
            name=name,
        )

    def norm(self, data: Expr, name: str, **options: Any) -> Expr:
        return batch_norm_infer(data, epsilon=_EPSILON, axis=self.axis, name=name, **options)


def _unit(style: _Style, data: Expr, channels: int, stride: int, same: bool, name: str) -> Expr:
    """One residual unit; `same`: its input has the shape of its output."""
    first = relay.nn.relu(style.norm(data, f"{name}_bn1"))
    if style.bottleneck:
        x = style.conv(first, f"{name}_conv1", channels // 4, 1, stride)
        x = style.conv(relay.nn.relu(style.norm(x, f"{name}_bn2")), f"{name}_conv2", channels // 4, 3)
        x = style.conv(relay.nn.relu(style.norm(x, f"{name}_bn3")), f"{name}_conv3", channels, 1)
    else:
        x = style.conv(first, f"{name}_conv1", channels, 3, stride)
        x = style.conv(relay.nn.relu(style.norm(x, f"{name}_bn2")), f"{name}_conv2", channels, 3)
    shortcut = data if same else style.conv(first, f"{name}_sc", channels, 1, stride)
    return relay.add(x, shortcut)


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sequence[int],
    bottle_neck: bool = True,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """The network: `units[i]` residual units of `filter_list[i + 1]` channels in stage i."""
    style = _Style(layout, "OIHW" if layout == "NCHW" else "HWIO", bottle_neck)
    data = relay.var("data", shape=data_shape, dtype=dtype)
    x = style.norm(data, "bn_data", scale=False)
    if data_shape[layout.index("H")] <= 32:
        x = style.conv(x, "conv0", filter_list[0], 3)
    else:
        x = relay.nn.relu(style.norm(style.conv(x, "conv0", filter_list[0], 7, 2), "bn0"))
        x = relay.nn.max_pool2d(x, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout=layout)
    for stage in range(num_stages):
        for index in range(units[stage]):
            stride = 2 if stage > 0 and index == 0 else 1
            name = f"stage{stage + 1}_unit{index + 1}"
            x = _unit(style, x, filter_list[stage + 1], stride, index > 0, name)
    x = relay.nn.relu(style.norm(x, "bn1"))
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x, layout=layout))
    out = relay.nn.softmax(dense_add_bias(x, units=num_classes, name="fc1"))
    return Function(relay.analysis.free_vars(out), out)


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Sequence[int] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **options: Any,
) -> Function:
    """The network of `num_layers` layers. Raises InputError for a number without such a network."""
    shape = (batch_size, *image_shape)
    if shape[layout.index("H")] <= 32:
        depth, is_deep = num_layers - 2, num_layers >= 164
        per_unit = 9 if is_deep else 6
        if depth < per_unit or depth % per_unit:
            raise InputError(f"layers of a residual network for small images must be {per_unit}n + 2, not {num_layers}")
        filters = (16, 64, 128, 256) if is_deep else (16, 16, 32, 64)
        return resnet((depth // per_unit,) * 3, 3, filters, num_classes, shape, is_deep, layout, dtype)
    if num_layers not in _UNITS:
        known = ", ".join(map(str, _UNITS))
        raise InputError(f"layers of a residual network must be one of {known}, not {num_layers}")
    is_deep = num_layers >= 50
    filters = (64, 256, 512, 1024, 2048) if is_deep else (64, 64, 128, 256, 512)
    return resnet(_UNITS[num_layers], 4, filters, num_classes, shape, is_deep, layout, dtype)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Sequence[int] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **options: Any,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with random weights."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **options))
