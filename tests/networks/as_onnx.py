"""A recipe as a model. In: a recipe. Out: an ONNX model in float32, the Relay module that it becomes, samples."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.frontend import from_onnx
from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter
from relay_hw.transform.graph import is_op
from tests.networks.recipe import Kind, Layer, Recipe, Shape
from tests.networks.shapes import shapes

_ONNX = {
    Kind.MAX_POOL: "MaxPool",
    Kind.MEAN_POOL: "AveragePool",
    Kind.WHOLE_MEAN: "GlobalAveragePool",
    Kind.ADD: "Add",
    Kind.MULTIPLY: "Mul",
    Kind.RELU: "Relu",
    Kind.SIGMOID: "Sigmoid",
    Kind.TANH: "Tanh",
    Kind.HARD_SWISH: "HardSwish",
    Kind.FLATTEN: "Flatten",
}


def module_of(recipe: Recipe) -> tuple[IRModule, Mapping[str, NDArray[Any]]]:
    """The float module, as it is imported or respelled, and its weights."""
    mod, params = from_onnx(onnx_of(recipe))
    if not recipe.respelled:
        return mod, params
    main = _Respelled().rewrite(mod["main"])
    assert isinstance(main, Function)
    return infer_type(mod.with_functions({mod.get_global_var("main"): main})), params


def samples_of(recipe: Recipe, count: int) -> dict[str, NDArray[np.float32]]:
    """Samples for the network's input on a first axis."""
    rng = np.random.default_rng([recipe.seed, count])
    return {"x": rng.normal(size=(count, *recipe.shape[1:])).astype("float32")}


def onnx_of(recipe: Recipe) -> ModelProto:
    """The float model."""
    known = shapes(recipe)
    made = _Nodes(recipe.seed, known)
    for layer in recipe.layers:
        made.layer(layer)
    graph = helper.make_graph(
        made.nodes,
        "drawn",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, recipe.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, known[name]) for name in recipe.results],
        made.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class _Nodes:
    """Nodes and weights of a model under construction."""

    def __init__(self, seed: int, known: Mapping[str, Shape]) -> None:
        self.seed, self.known = seed, known
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def layer(self, layer: Layer) -> None:
        """Add what computes the layer."""
        match layer.kind:
            case Kind.CONV | Kind.TRANSPOSED | Kind.DENSE | Kind.PRODUCT:
                self._products(layer)
            case Kind.MAX_POOL:
                self._node(layer, _ONNX[layer.kind], **_window(layer), dilations=layer["dilation"])
            case Kind.MEAN_POOL:
                self._node(layer, _ONNX[layer.kind], **_window(layer), count_include_pad=layer.one("padded"))
            case Kind.CLIP:
                self._node(layer, "Clip", *(np.float32(tenth / 10) for tenth in layer["tenths"]))
            case Kind.SOFTMAX | Kind.LAYER_NORM | Kind.RMS_NORM:
                self._rows(layer)
            case kind if kind in _ONNX:
                self._node(layer, _ONNX[kind])
            case _:
                self._moves(layer)

    def _products(self, layer: Layer) -> None:
        inner = self.known[layer.inputs[0]]
        match layer.kind:
            case Kind.CONV:
                groups, channels = layer.one("groups"), layer.one("channels")
                weight = self._drawn(layer, "w", (channels, inner[1] // groups, *layer["kernel"]))
                more = {"dilations": layer["dilation"], "group": groups}
                self._node(layer, "Conv", weight, self._drawn(layer, "b", (channels,)), **_window(layer), **more)
            case Kind.TRANSPOSED:
                weight = self._drawn(layer, "w", (inner[1], layer.one("channels"), *layer["kernel"]))
                more = {"dilations": layer["dilation"], "output_padding": layer["more"]}
                self._node(layer, "ConvTranspose", weight, **_window(layer), **more)
            case Kind.DENSE:
                weight = self._drawn(layer, "w", (layer.one("units"), inner[-1])).T.copy()
                if len(inner) == 2:
                    self._node(layer, "Gemm", weight, self._drawn(layer, "b", (layer.one("units"),)))
                else:
                    self._node(layer, "MatMul", weight)
            case _:
                left, right = layer.inputs
                turned = f"{layer.name}_turned"
                self.nodes.append(helper.make_node("Transpose", [right], [turned], turned, perm=[0, 2, 1]))
                self.nodes.append(helper.make_node("MatMul", [left, turned], [layer.name], layer.name))

    def _rows(self, layer: Layer) -> None:
        """Functions of the last axis: a softmax of scaled and perhaps masked scores, norms with a factor a column."""
        shape, name = self.known[layer.inputs[0]], layer.name
        columns = shape[-1]
        match layer.kind:
            case Kind.SOFTMAX:
                scores = self._step(name, "scaled", "Mul", layer.inputs[0], np.float32(layer.one("tenths") / 10))
                if layer.one("causal"):
                    seen = np.tri(shape[-2], columns, columns - shape[-2], dtype=bool)
                    scores = self._step(name, "masked", "Add", scores, np.where(seen, 0, -1e9).astype(np.float32))
                self.nodes.append(helper.make_node("Softmax", [scores], [name], name, axis=-1))
            case Kind.LAYER_NORM:
                gain, bias = 1 + self._drawn(layer, "g", (columns,)), self._drawn(layer, "b", (columns,))
                self._node(layer, "LayerNormalization", gain, bias, axis=-1, epsilon=1e-5)
            case Kind.RMS_NORM:
                squares = f"{name}_squares"
                self.nodes.append(helper.make_node("Mul", [layer.inputs[0]] * 2, [squares], squares))
                mean = f"{name}_mean"
                self.nodes.append(helper.make_node("ReduceMean", [squares], [mean], mean, axes=[-1], keepdims=1))
                inside = self._step(name, "inside", "Add", mean, np.float32(1e-5))
                root, whole = f"{name}_root", f"{name}_whole"
                self.nodes.append(helper.make_node("Sqrt", [inside], [root], root))
                self.nodes.append(helper.make_node("Div", [layer.inputs[0], root], [whole], whole))
                gain = 1 + self._drawn(layer, "g", (columns,))
                self.weights.append(numpy_helper.from_array(gain, f"{name}_0"))
                self.nodes.append(helper.make_node("Mul", [whole, f"{name}_0"], [name], name))
            case _:
                raise ValueError(f"{layer.kind} is no function of rows")

    def _step(self, name: str, what: str, operator: str, data: str, value: NDArray[Any] | np.float32) -> str:
        """A node of `data` and a constant; the name of its result."""
        made = f"{name}_{what}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), f"{made}_0"))
        self.nodes.append(helper.make_node(operator, [data, f"{made}_0"], [made], made))
        return made

    def _moves(self, layer: Layer) -> None:
        rank = len(self.known[layer.inputs[0]])
        match layer.kind:
            case Kind.PAD | Kind.MIRROR:
                top, left, bottom, right = layer["pads"]
                how = {"mode": "reflect"} if layer.kind is Kind.MIRROR else {}
                self._node(layer, "Pad", np.array([0, 0, top, left, 0, 0, bottom, right]), **how)
            case Kind.JOIN:
                self._node(layer, "Concat", axis=layer.one("axis"))
            case Kind.SLICE:
                axis, begin, end, step = layer["range"]
                end = -(1 << 31) if end < 0 else end
                self._node(layer, "Slice", *(np.array([number]) for number in (begin, end, axis, step)))
            case Kind.UPSAMPLE:
                times = np.array([1, 1, *layer["times"]], np.float32)
                how = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
                self._node(layer, "Resize", np.zeros(0, np.float32), times, **how)
            case Kind.SPREAD:
                self._node(layer, "DepthToSpace", blocksize=layer.one("block"))
            case Kind.TILE:
                axis, times = layer["repeat"]
                self._node(layer, "Tile", np.array([times if at == axis else 1 for at in range(rank)]))
            case Kind.TRANSPOSE:
                self._node(layer, "Transpose", perm=layer["axes"])
            case Kind.RESHAPE:
                self._node(layer, "Reshape", np.array(layer["shape"]))
            case Kind.UNSQUEEZE | Kind.SQUEEZE:
                self._node(layer, layer.kind.value.capitalize(), np.array(layer["axis"]))
            case _:
                raise ValueError(f"{layer.kind} has no node")

    def _node(self, layer: Layer, operator: str, *constants: NDArray[Any] | np.float32, **attrs: Any) -> None:
        names = [f"{layer.name}_{place}" for place in range(len(constants))]
        self.weights += [
            numpy_helper.from_array(np.asarray(value), name) for name, value in zip(names, constants, strict=True)
        ]
        self.nodes.append(helper.make_node(operator, [*layer.inputs, *names], [layer.name], layer.name, **attrs))

    def _drawn(self, layer: Layer, what: str, shape: Shape) -> NDArray[np.float32]:
        """Numbers that follow from the seed, the layer's name and the shape alone."""
        rng = np.random.default_rng([self.seed, crc32(f"{layer.name} {what}".encode())])
        return (rng.uniform(-1, 1, shape) / sqrt(prod(shape[1:]))).astype(np.float32)


def _window(layer: Layer) -> dict[str, Shape]:
    return {"kernel_shape": layer["kernel"], "strides": layer["strides"], "pads": layer["pads"]}


class _Respelled(Rewriter):
    """Writes moves of elements with operators that no ONNX node becomes."""

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        x = new.args[0]
        if is_op(new, "nn.pad") and new.attrs.pad_mode == "reflect":
            return op.nn.mirror_pad(x, new.attrs.pad_width, "REFLECT")
        if is_op(new, "nn.upsampling"):
            times = new.attrs.scale_h, new.attrs.scale_w
            return op.repeat(op.repeat(x, int(times[0]), 2), int(times[1]), 3)
        if is_op(new, "strided_slice") and new.attrs.strides == (-1,):
            return op.reverse(x, new.attrs.axes[0])
        if is_op(new, "transpose") and tuple(new.attrs.axes or ()) == (0, 2, 3, 1):
            return op.layout_transform(x, "NCHW", "NHWC")
        if is_op(new, "transpose") and tuple(new.attrs.axes or ()) == (0, 3, 1, 2):
            return op.layout_transform(x, "NHWC", "NCHW")
        return new
