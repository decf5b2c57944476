"""QDQ networks as ONNX models: made node by node, and random ones of every layer that has an integer form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper


class Net:
    """A QDQ network made node by node; every tensor has its own scale and zero point."""

    def __init__(self, shape: Sequence[int], dtype: str) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.shape, self.dtype, self.count = tuple(shape), dtype, 0

    def add(self, operator: str, inputs: Sequence[str], **attrs: Any) -> str:
        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"{operator}_{name}", **attrs))
        return name

    def weight(self, value: Any, dtype: str = "float32") -> str:
        self.count += 1
        self.weights[f"w{self.count}"] = np.asarray(value, dtype)
        return f"w{self.count}"

    def on_grid(self, x: str, scale: float, zero: int) -> str:
        """Quantize and dequantize."""
        grid = [self.weight(scale), self.weight(zero, self.dtype)]
        return self.add("DequantizeLinear", [self.add("QuantizeLinear", [x, *grid]), *grid])

    def constant(self, value: np.ndarray, scale: Any, zero: Any, axis: int = 0) -> str:
        grid = [self.weight(scale), self.weight(zero, str(value.dtype))]
        return self.add("DequantizeLinear", [self.weight(value, str(value.dtype)), *grid], axis=axis)

    def conv(
        self,
        rng: np.random.Generator,
        x: str,
        channels: tuple[int, int],
        size: int = 3,
        scale: float = 0.05,
        **attrs: Any,
    ) -> str:
        """int8 weights by channel, an int32 bias in units of `scale` (the input's) times the weight's."""
        given, out = channels
        weight = rng.integers(-127, 128, (out, given // attrs.get("group", 1), size, size)).astype(np.int8)
        scales = rng.uniform(0.002, 0.01, out).astype(np.float32)
        bias = rng.integers(-2000, 2000, out).astype(np.int32)
        w = self.constant(weight, scales, np.zeros(out))
        b = self.constant(bias, scales * np.float32(scale), np.zeros(out))
        return self.add("Conv", [x, w, b], **attrs)

    def model(self, output: str, shape: Sequence[Any] | None = None) -> Any:
        values = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            values,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class RandomNet:
    """A few random layers, each on a grid of its own; branches meet in sums and concatenations of older tensors."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        shape = (int(rng.integers(1, 9)), int(rng.integers(6, 12)), int(rng.integers(6, 12)))
        self.net = Net((1, *shape), str(rng.choice(["int8", "uint8"])))
        self.shape, self.step = shape, 0.0
        self.tensor = self._grid("x")
        self.made = [(self.tensor, shape)]
        layers = (self._conv, self._depthwise, self._max, self._average, self._sum, self._concat, self._pad, self._up)
        for number in rng.integers(len(layers), size=int(rng.integers(2, 6))):
            result = layers[number]()
            if result is not None:
                self.tensor = self._grid(self._activation(result))
            self.made.append((self.tensor, self.shape))

    def model(self) -> Any:
        """The model; its output is called as its last tensor."""
        return self.net.model(self.tensor)

    def _grid(self, x: str) -> str:
        low, high = -3 * self.rng.random(), 3.0
        self.step = float(np.float32((high - low) / 255 * self.rng.uniform(0.8, 1.2)))
        zero = int(np.clip(round(-128 - low / self.step), -128, 127)) + (128 if self.net.dtype == "uint8" else 0)
        return self.net.on_grid(x, self.step, zero)

    def _activation(self, x: str) -> str:
        match int(self.rng.integers(5)):
            case 0:
                return self.net.add("Relu", [x])
            case 1:
                return self.net.add("Clip", [x, self.net.weight(0.0), self.net.weight(2.0)])
            case 2:
                return self.net.add("Identity", [x])
            case _:
                return x

    def _conv(self) -> str:
        rng, (channels, height, width) = self.rng, self.shape
        size, stride, pads = int(rng.integers(1, 4)), int(rng.integers(1, 3)), [int(p) for p in rng.integers(0, 2, 4)]
        size, out = min(size, height, width), int(rng.integers(1, 12))
        scales = (rng.uniform(0.5, 1, out) / 127 / np.sqrt(channels * size * size)).astype(np.float32)
        weight = rng.integers(-127, 128, (out, channels, size, size)).astype(np.int8)
        zeros = np.zeros(out)
        if rng.random() < 0.3:
            weight, zeros = (weight.astype(np.int16) + 128).astype(np.uint8), rng.integers(60, 200, out)
        inputs = [self.tensor, self.net.constant(weight, scales, zeros)]
        if rng.random() < 0.6:
            inputs.append(self.net.weight(rng.normal(0, 0.3, out)))
        self.shape = (
            out, (height + pads[0] + pads[2] - size) // stride + 1, (width + pads[1] + pads[3] - size) // stride + 1
        )  # fmt: skip
        return self.net.add("Conv", inputs, strides=[stride, stride], pads=pads)

    def _depthwise(self) -> str:
        channels = self.shape[0]
        both = (channels, channels)
        return self.net.conv(self.rng, self.tensor, both, 3, scale=self.step, group=channels, pads=[1, 1, 1, 1])

    def _max(self) -> None:
        channels, height, width = self.shape
        if min(height, width) > 2:
            self.tensor = self.net.add("MaxPool", [self.tensor], kernel_shape=[2, 2], strides=[1, 1])
            self.shape = (channels, height - 1, width - 1)

    def _average(self) -> str | None:
        channels, height, width = self.shape
        if min(height, width) < 3:
            self.shape = (channels, 1, 1)
            return self.net.add("GlobalAveragePool", [self.tensor])
        self.shape = (channels, (height - 2) // 2 + 1, width)
        attrs: dict[str, Any] = {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 0, 1]}
        return self.net.add("AveragePool", [self.tensor], count_include_pad=1, **attrs)

    def _sum(self) -> str:
        same = [name for name, shape in self.made if shape == self.shape]
        return (
            self.net.add("Add", [self.tensor, same[int(self.rng.integers(len(same)))]]) if same else self._depthwise()
        )

    def _concat(self) -> str:
        same = [(name, shape) for name, shape in self.made if shape[1:] == self.shape[1:]] or [
            (self.tensor, self.shape)
        ]
        name, shape = same[int(self.rng.integers(len(same)))]
        self.shape = (self.shape[0] + shape[0], *self.shape[1:])
        return self.net.add("Concat", [self.tensor, name], axis=1)

    def _pad(self) -> None:
        channels, height, width = self.shape
        self.tensor = self.net.add("Pad", [self.tensor, self.net.weight([0, 0, 1, 0, 0, 0, 0, 2], "int64")])
        self.shape = (channels, height + 1, width + 2)

    def _up(self) -> str:
        channels, height, width = self.shape
        out = int(self.rng.integers(1, 6))
        weight = self.rng.integers(-127, 128, (channels, out, 2, 2)).astype(np.int8)
        kernel = self.net.constant(weight, np.full(out, 0.01, np.float32), np.zeros(out), axis=1)
        self.shape = (out, 2 * height, 2 * width)
        return self.net.add("ConvTranspose", [self.tensor, kernel], strides=[2, 2])
