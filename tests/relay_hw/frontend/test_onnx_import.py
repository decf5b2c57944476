"""ONNX files as users have them: whole networks, shapes, names, places; and everything that can be wrong with one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from relay_hw.errors import InputError, TypeCheckError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, Expr, Function, Op, Tuple, TupleGetItem
from relay_hw.ir.types import TensorType
from relay_hw.limits import OnnxOptions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)
W = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)


def node(operator: str, inputs: list[str], outputs: list[str], name: str = "", **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, outputs, name=name, **attrs)


def calls(expr: Expr) -> list[Call]:
    """Every call below `expr`, once."""
    seen: dict[int, Expr] = {}

    def visit(one: Expr) -> None:
        if id(one) in seen:
            return
        seen[id(one)] = one
        match one:
            case Function(body=body):
                visit(body)
            case Call(args=args):
                list(map(visit, args))
            case Tuple(fields=fields):
                list(map(visit, fields))
            case TupleGetItem(tuple_value=value):
                visit(value)

    visit(expr)
    return [one for one in seen.values() if isinstance(one, Call)]


def small(make: Callable[..., onnx.ModelProto], **options: Any) -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "conv.weight", "conv/bias"], ["a"], "first conv", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["a", "g", "b", "m", "v"], ["n"], "norm"),
        node("Relu", ["n"], ["r"]),
        node("GlobalAveragePool", ["r"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Softmax", ["f"], ["y"], axis=1),
    ]
    weights = {
        "conv.weight": W,
        "conv/bias": RNG.normal(size=4).astype(np.float32),
        **{name: RNG.uniform(0.5, 1, 4).astype(np.float32) for name in "gbmv"},
    }
    return make(nodes, {"x": X}, weights, **options)


def test_a_network_agrees_with_onnxruntime(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    compare(small(make), {"x": X})


def test_parameters_names_types_and_places(make: Callable[..., Any]) -> None:
    module, params = from_onnx(small(make))
    main = module["main"]
    names = [var.name_hint for var in main.params]
    assert names == ["x", "conv_weight", "conv_bias", "g", "b", "m", "v"]
    assert list(params) == names[1:] and (params["conv_weight"] == W).all()
    assert [var.type_annotation for var in main.params][:2] == [TensorType(X.shape), TensorType(W.shape)]
    assert module.attrs["input_names"] == ("x",) and module.attrs["output_names"] == ("y",)
    assert main.body.type == TensorType((1, 4))
    found = {call.op.name: call for call in calls(main) if isinstance(call.op, Op)}
    assert list(found) and all(call.checked_type is not None for call in found.values())
    assert str(found["nn.conv2d"].span) == str(found["nn.bias_add"].span) == "first conv"
    assert str(found["nn.batch_norm"].span) == "norm"
    assert str(found["nn.relu"].span) == "Relu_r"
    assert str(main.params[1].span) == "conv.weight"


def test_frozen_parameters_are_constants(make: Callable[..., Any]) -> None:
    module, params = from_onnx(small(make), freeze_params=True)
    assert not params and [var.name_hint for var in module["main"].params] == ["x"]
    arrays = [arg.data for call in calls(module["main"]) for arg in call.args if isinstance(arg, Constant)]
    assert any(array is not None and np.array_equal(array, W) for array in arrays)


def test_names_that_clash_after_cleaning_stay_apart(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    one, two, three = (np.full((1,), value, np.float32) for value in (1, 10, 100))
    nodes = [node("Add", ["x", "a.b"], ["s"]), node("Mul", ["s", "a/b"], ["t"]), node("Sub", ["t", "0c"], ["y"])]
    x = np.ones(2, np.float32)
    model = make(nodes, {"x": x}, {"a.b": one, "a/b": two, "0c": three})
    assert list(from_onnx(model)[1]) == ["a_b", "a_b_1", "v0c"]
    assert compare(model, {"x": x})[0].tolist() == [-80, -80]


def test_several_outputs_come_in_order(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    nodes = [node("Split", ["x"], ["p", "q"], axis=2), node("Relu", ["q"], ["r"])]
    compare(make(nodes, {"x": X}, outputs=["r", "p", "x2"][:2]), {"x": X})


def test_a_weight_that_is_an_output(make: Callable[..., Any]) -> None:
    module, params = from_onnx(make([node("Relu", ["x"], ["y"])], {"x": X}, {"w": W}, ["y", "w"]))
    value = evaluate(module, {"x": X, **params})
    assert np.array_equal(value[1], W)


def test_shape_arithmetic_is_folded(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    """What PyTorch writes for x.view(x.size(0), -1): shapes, gathers and joins that import resolves."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Unsqueeze", ["n", "front"], ["u"]),
        node("Concat", ["u", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["y"]),
    ]
    weights = {"zero": np.array(0, np.int64), "front": np.array([0], np.int64), "rest": np.array([-1], np.int64)}
    model = make(nodes, {"x": X}, weights)
    module, params = from_onnx(model)
    assert not params
    assert [call.op.name for call in calls(module["main"]) if isinstance(call.op, Op)] == ["reshape"]
    compare(model, {"x": X})


def test_constants_from_nodes_serve_as_weights(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    value = helper.make_tensor("v", TensorProto.FLOAT, W.shape, W.ravel().tolist())
    compare(make([node("Constant", [], ["w"], value=value), node("Conv", ["x", "w"], ["y"])], {"x": X}), {"x": X})


def test_quantized_weights_are_not_folded(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    nodes = [
        node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["dw"], axis=0),
        node("Conv", ["d", "dw"], ["y"]),
    ]
    weights = {
        "sx": np.array(0.05, np.float32),
        "zx": np.array(3, np.int8),
        "w": RNG.integers(-128, 128, W.shape).astype(np.int8),
        "sw": RNG.uniform(0.01, 0.1, 4).astype(np.float32),
        "zw": np.zeros(4, np.int8),
    }
    model = make(nodes, {"x": X}, weights)
    compare(model, {"x": X})
    module, params = from_onnx(model)
    assert list(params) == ["w"]
    names = [call.op.name for call in calls(module["main"]) if isinstance(call.op, Op)]
    assert names.count("qnn.dequantize") == 2


def test_a_parameter_may_also_be_folded(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("Neg", ["w"], ["minus"]),
        node("Conv", ["x", "minus"], ["d"]),
        node("Add", ["c", "d"], ["y"]),
    ]
    model = make(nodes, {"x": X}, {"w": W})
    assert np.abs(compare(model, {"x": X})[0]).max() < 1e-4
    assert list(from_onnx(model)[1]) == ["w"]


def test_local_functions_are_inlined(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    twice = helper.make_function("own", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], opset[:1])
    model = make([helper.make_node("Twice", ["x"], ["y"], domain="own")], {"x": X})
    model.functions.append(twice)
    model.opset_import.append(opset[1])
    compare(model, {"x": X})


def test_an_open_batch_is_one_and_other_dimensions_must_be_given(make: Callable[..., Any]) -> None:
    nodes = [node("Relu", ["x"], ["y"])]
    module, _ = from_onnx(make(nodes, {"x": (("N", 3, 4), "float32")}))
    assert module["main"].params[0].type_annotation == TensorType((1, 3, 4))
    model = make(nodes, {"x": (("N", 3, "height"), "float32")})
    with pytest.raises(InputError) as caught:
        from_onnx(model)
    assert caught.value.message == (
        "dimension 2 of input x must be a number, not height: give shape={'x': (...)}, or --shape x=1x3xheight"
    )
    module, _ = from_onnx(model, shape={"x": (2, 3, 5)})
    assert module["main"].body.type == TensorType((2, 3, 5))


@pytest.mark.parametrize(
    ("array", "want"),
    [
        ((10, 3, 5), (1, 3, 5)),  # samples without the batch axis
        ((10, 1, 3, 5), (1, 3, 5)),
        ((10, 4, 3, 5), (4, 3, 5)),  # samples that are batches
    ],
)
def test_open_sizes_are_those_of_samples(
    make: Callable[..., Any], array: tuple[int, ...], want: tuple[int, ...]
) -> None:
    model = make([node("Relu", ["x"], ["y"])], {"x": (("N", 3, "height"), "float32")})
    options = OnnxOptions(sample_shapes={"x": array, "z": (9,)})
    assert from_onnx(model, options=options)[0]["main"].body.type == TensorType(want)
    assert from_onnx(model, shape={"x": (2, 3, 6)}, options=OnnxOptions(sample_shapes={"x": array}))[0][
        "main"
    ].body.type == TensorType((2, 3, 6))


@pytest.mark.parametrize("array", [(10, 4, 5), (10, 5), (), (10, 1, 1, 3, 5)])
def test_samples_that_do_not_fit_say_nothing(make: Callable[..., Any], array: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="dimension 2 of input x must be a number, not height"):
        from_onnx(
            make([node("Relu", ["x"], ["y"])], {"x": (("N", 3, "height"), "float32")}),
            options=OnnxOptions(sample_shapes={"x": array}),
        )


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ({"x": (1, 4, 8, 8)}, "the shape of input x must fit 1x3x8x8, not be 1x4x8x8"),
        ({"x": (3, 8, 8)}, "the shape of input x must fit 1x3x8x8, not be 3x8x8"),
        ({"z": (1,)}, "shape must name inputs of small (x), not z"),
    ],
)
def test_wrong_shapes(make: Callable[..., Any], shape: dict[str, tuple[int, ...]], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        from_onnx(small(make), shape=shape)
    assert caught.value.message == sentence


def test_everything_unsupported_is_listed_at_once(make: Callable[..., Any]) -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("RandomNormalLike", ["r"], ["l"], "noise"),
        helper.make_node("Attention", ["l"], ["t"], name="own", domain="com.microsoft"),
        node("Pad", ["t", "pads"], ["u"], "padded", mode="wave"),
        node("Cast", ["u"], ["v"], "words", to=TensorProto.STRING),
        node("AveragePool", ["v"], ["p"], "pooled", kernel_shape=[2, 2], auto_pad="SOME"),
        node("Conv", ["p", "w"], ["y"], "cropped", pads=[-1, 0, 0, 0]),
    ]
    weights = {"w": W, "pads": np.zeros(8, np.int64)}
    model = make(nodes, {"x": X}, weights, ["y"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedError) as caught:
        from_onnx(model)
    assert caught.value.message == (
        "every node of small must be one that can be imported, not 6 nodes: "
        "RandomNormalLike (node noise, opset 17): results must not be random: give the numbers as an input; "
        "Attention (node own, opset 1): no converter knows this operator of domain com.microsoft; "
        "ai.onnx has Attention; "
        "Pad (node padded, opset 17): mode must be constant, reflect, edge or wrap, not wave; "
        "Cast (node words, opset 17): to must be a numpy element type, not ONNX type 8; "
        "AveragePool (node pooled, opset 17): auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not SOME; "
        "Conv (node cropped, opset 17): pads must not be negative, unlike [-1, 0, 0, 0]"
    )


def test_reasons_found_during_the_import_are_listed_too(make: Callable[..., Any]) -> None:
    """Sizes that only run time knows; what depends on a refused node is not listed."""
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("EyeLike", ["places"], ["e"], "eye"),
        node("Relu", ["e"], ["r"], "after"),
        node("Reshape", ["x", "sizes"], ["t"], "shaped"),
        node("EyeLike", ["t"], ["f"], "other"),
        node("Concat", ["r", "f"], ["y"], axis=0),
    ]
    with pytest.raises(UnsupportedError) as caught:
        from_onnx(make(nodes, {"x": X, "sizes": ((2,), "int64")}))
    assert caught.value.message == (
        "every node of small must be one that can be imported, not 2 nodes: "
        "EyeLike (node eye, opset 17): the shape of its data must be known, not (4, ?); "
        "EyeLike (node other, opset 17): the shape of its data must be known, not (?, ?)"
    )


REASONS = [
    (node("BatchNormalization", list("xwwww"), ["y"], spatial=0), 8, "spatial must be 1"),
    (node("Dropout", ["x", "", "k"], ["y"]), 17, r"input 2 \(training_mode\) must be left out or a constant"),
    (node("Conv", ["x", "w"], ["y"], auto_pad="SAME"), 17, "auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER"),
    (node("Cast", ["x"], ["y"], to=TensorProto.COMPLEX64), 17, "to must be a numpy element type, not ONNX type 14"),
    (node("Constant", [], ["y"], value_string="a"), 17, "its value must be numbers, not value_string"),
    (node("QuantizeLinear", ["x", "w"], ["y"], output_dtype=1), 21, "output_dtype must be one of uint8, int8"),
    (node("If", ["k"], ["y"]), 17, "attribute then_branch must be given"),
]


@pytest.mark.parametrize(("one", "opset", "reason"), REASONS, ids=lambda value: getattr(value, "op_type", None))
def test_reasons(make: Callable[..., Any], one: onnx.NodeProto, opset: int, reason: str) -> None:
    outputs = ["y"]
    model = make([one], {"x": X, "k": ((), "bool")}, {"w": np.ones(3, np.float32)}, outputs, opset)
    with pytest.raises(UnsupportedError, match=f"not 1 node: {one.op_type} .*: {reason}"):
        from_onnx(model)


def test_files(make: Callable[..., Any], tmp_path: Path) -> None:
    good = tmp_path / "good.onnx"
    good.write_bytes(small(make).SerializeToString())
    assert from_onnx(good)[0].attrs["output_names"] == ("y",)
    assert from_onnx(str(good))[1].keys() == from_onnx(good)[1].keys()
    with pytest.raises(InputError, match=r"model must be an ONNX file, not .*none\.onnx, which is missing$"):
        from_onnx(tmp_path / "none.onnx")
    with pytest.raises(InputError, match=r"which is a folder$"):
        from_onnx(tmp_path)
    with pytest.raises(InputError, match=r"model must be a path or an onnx\.ModelProto, not int"):
        from_onnx(3)  # type: ignore[arg-type]
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(InputError, match=r"model must hold a graph, not .*empty\.onnx, which holds none"):
        from_onnx(tmp_path / "empty.onnx")
    (tmp_path / "text.onnx").write_text("this is no model\n")
    with pytest.raises(InputError, match=r"model must be an ONNX file, not .*text\.onnx, which cannot be read: "):
        from_onnx(tmp_path / "text.onnx")


def test_a_file_cut_anywhere_is_refused_in_one_line(make: Callable[..., Any], tmp_path: Path) -> None:
    data = small(make).SerializeToString()
    path = tmp_path / "cut.onnx"
    refused = 0
    for length in range(0, len(data) - 1, 7):
        path.write_bytes(data[:length])
        try:
            from_onnx(path)
        except (InputError, UnsupportedError) as error:
            refused += 1
            assert "\n" not in str(error)
    # A cut between two fields can leave a whole model that only lacks trailing metadata.
    assert refused >= len(range(0, len(data) - 1, 7)) - 2


def test_damaged_graphs(make: Callable[..., Any]) -> None:
    relu = node("Relu", ["x"], ["y"], "act")
    with pytest.raises(InputError, match="node act of small must read a defined tensor, not nothing"):
        from_onnx(make([node("Relu", ["nothing"], ["y"], "act")], {"x": X}))
    with pytest.raises(InputError, match="output z of small must be defined by a node"):
        from_onnx(make([relu], {"x": X}, outputs=["z"]))
    model = make([node("Add", ["x", "w"], ["y"])], {"x": X}, {"w": W})
    model.graph.initializer[0].raw_data = b"1234"
    with pytest.raises(InputError, match="weight w of small must be a whole tensor, not one that fails: "):
        from_onnx(model)
    with pytest.raises(InputError, match="the opset of small must be at least 7, not 6"):
        from_onnx(make([node("Add", ["x", "x"], ["y"])], {"x": X}, opset=6))
    assert from_onnx(make([relu], {"x": X}, opset=6))  # which opset 7 left as it was
    model = make([relu], {"x": X})
    model.graph.input[0].type.Clear()
    with pytest.raises(InputError, match="input x must be a tensor, not a nothing"):
        from_onnx(model)
    model = make([relu], {"x": X})
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(InputError, match="the shape of input x must be known: give shape="):
        from_onnx(model)
    assert from_onnx(model, shape={"x": (1, 2)})[0]["main"].body.type == TensorType((1, 2))
    model = make([relu], {"x": X})
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.COMPLEX128
    with pytest.raises(InputError, match="the element type of input x must be a numpy one, not ONNX type 15"):
        from_onnx(model)
    model = make([relu], {"x": X})
    model.graph.input[0].type.tensor_type.elem_type = 0
    assert from_onnx(model, dtype="float16")[0]["main"].body.type == TensorType(X.shape, "float16")


def test_graphs_whose_types_clash_name_the_node(make: Callable[..., Any]) -> None:
    model = make([node("Conv", ["x", "w"], ["y"], "bad")], {"x": X}, {"w": W[:, :2]})
    with pytest.raises(TypeCheckError) as caught:
        from_onnx(model)
    assert str(caught.value) == (
        "bad: the weight of nn.conv2d must be Tensor[(4, 3, 3, 3), float32], not Tensor[(4, 2, 3, 3), float32]"
    )
    for one, sentence in (
        (node("Gemm", ["x", "w"], ["y"], "bad"), "bad: input 0 of Gemm must have 2 axes, not 4"),
        (node("Add", ["x"], ["y"], "bad"), "bad: Add must have input 1, not leave it out"),
        (node("MaxPool", ["x"], ["y"], "bad", kernel_shape=[2]), "bad: kernel_shape of MaxPool must have one number"),
        (node("Split", ["x"], ["y"], "bad", split=[1], axis=1), r"bad: split must give 1 parts of 3 in all, not \[1\]"),
        (node("MatMul", ["x", "c"], ["y"], "bad"), "bad: the inputs of MatMul must have at least 1 axis"),
        (node("MatMul", ["x", "w5"], ["y"], "bad"), r"bad: the batch axes of MatMul must broadcast, not be \(1, 3\)"),
        (node("Conv", ["x", "w5"], ["y"], "bad"), "bad: data and weight of Conv must both have 3, 4 or 5 axes"),
    ):
        weights = {"w": W, "c": np.float32(1).reshape(()), "w5": np.ones((2, 2, 2, 8, 8), np.float32)}
        with pytest.raises(InputError, match=sentence):
            from_onnx(make([one], {"x": X}, weights, opset=12))


def test_onnx_is_loaded_only_when_it_is_used() -> None:
    code = "import sys, relay_hw.frontend; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
