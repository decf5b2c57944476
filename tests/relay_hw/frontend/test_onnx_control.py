"""If, Loop, Scan, sequences and optionals against onnxruntime, and the form that they take in Relay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import relay_hw as relay
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.expr import If, Match
from relay_hw.ir.visit import post_order
from relay_hw.prelude import list_items

F, I64, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.array([1.5, -0.5, 0.25], np.float32)


def node(operator: str, inputs: str, outputs: str, **attrs: Any) -> NodeProto:
    """Names apart by spaces; `_` leaves one out."""
    names = [["" if name == "_" else name for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(operator, *names, name=f"{operator}_{outputs.split()[0]}", **attrs)


def graph(
    nodes: Sequence[NodeProto], inputs: Sequence[tuple[str, int, Any]], outputs: Sequence[tuple[str, int, Any]],
    weights: Mapping[str, np.ndarray] | None = None,
) -> Any:  # fmt: skip
    values = [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()]
    return helper.make_graph(
        list(nodes), "inner", [helper.make_tensor_value_info(*item) for item in inputs],
        [helper.make_tensor_value_info(*item) for item in outputs], values,
    )  # fmt: skip


HEAD = (("i", I64, ()), ("go", B, ()))


def executed(model: Any, inputs: Mapping[str, np.ndarray]) -> None:
    """The executor of builds gives what the interpreter gives."""
    module, params = from_onnx(model)
    want = evaluate(module, {**inputs, **params})
    got = relay.create_executor("vm", mod=module).evaluate()(**inputs, **params)
    for mine, theirs in zip(*(v if isinstance(v, (tuple, list)) else [v] for v in (got, want)), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-5, atol=1e-6)


def test_while_with_a_count_that_data_decides(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    body = graph(
        [
            node("Mul", "v two", "doubled"),
            node("Add", "doubled w", "next"),  # `two` and `w` are outside
            node("ReduceSum", "next", "total", keepdims=0),
            node("Less", "total limit", "more"),
            node("Identity", "next", "row"),
        ],
        [*HEAD, ("v", F, (3,))],
        [("more", B, ()), ("next", F, (3,)), ("row", F, (3,))],
    )
    nodes = [node("Abs", "x", "a"), node("Loop", "_ yes a", "y rows", body=body)]
    weights = {"two": np.float32(2), "w": X, "yes": np.array(True)}
    for limit in (1.0, 50.0, 4000.0):
        inputs = {"x": X, "limit": np.array(limit, np.float32)}
        compare(make(nodes, inputs, weights, ["y", "rows"], 13), inputs)
        executed(make(nodes, inputs, weights, ["y", "rows"], 13), inputs)
    module, _ = from_onnx(make(nodes, {"x": X, "limit": np.array(1.0, np.float32)}, weights, ["y", "rows"], 13))
    assert set(module.functions) == {"main", "loop"} and isinstance(module["loop"].body, If)


def test_loop_of_a_known_count_has_known_shapes(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    body = graph(
        [
            node("Cast", "i", "f", to=F), node("Add", "v f", "next"), node("Identity", "go", "same"),
            node("Mul", "next next", "row"),
        ],
        [*HEAD, ("v", F, (3,))], [("same", B, ()), ("next", F, (3,)), ("row", F, (3,))],
    )  # fmt: skip
    nodes = [node("Loop", "count _ x", "y rows", body=body)]
    for count in (0, 1, 4):
        model = make(nodes, {"x": X}, {"count": np.array(count, np.int64)}, ["y", "rows"], 13)
        module, _ = from_onnx(model)
        assert str(module["main"].func_type.ret_type) == f"(Tensor[(3), float32], Tensor[({count}, 3), float32])"
        compare(model, {"x": X})
    inputs = {"x": X, "count": np.array(5, np.int64)}
    compare(make(nodes, inputs, {}, ["y", "rows"], 13), inputs)


def test_what_a_loop_carries_may_grow(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    body = graph(
        [node("Concat", "v x", "next", axis=0), node("Identity", "go", "same"), node("Neg", "next", "row")],
        [*HEAD, ("v", F, ("n",))],
        [("same", B, ()), ("next", F, ("m",))],
    )
    inputs = {"x": X, "count": np.array(3, np.int64)}
    compare(make([node("Loop", "count _ x", "y", body=body)], inputs, {}, ["y"], 13), inputs)


def test_rows_of_unknown_size(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    body = graph(
        [node("Identity", "go", "same"), node("Slice", "x zero one", "v"), node("Slice", "x zero size", "row")],
        HEAD, [("same", B, ()), ("row", F, ("n",))], {"zero": np.array([0]), "one": np.array([1])},
    )  # fmt: skip
    inputs = {"x": X, "size": np.array([2], np.int64), "count": np.array(3, np.int64)}
    compare(make([node("Loop", "count _", "rows", body=body)], inputs, {}, ["rows"], 13), inputs)


def test_loops_inside_loops_and_branches_inside_branches(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    small = graph([node("Sub", "u w", "s")], [], [("s", F, (3,))])
    large = graph(
        [
            node("Greater", "total ten", "huge"),
            node(
                "If", "huge", "l",
                then_branch=graph([node("Mul", "u half", "q")], [], [("q", F, (3,))]),
                else_branch=graph([node("Add", "u w", "q")], [], [("q", F, (3,))]),
            ),
        ],
        [], [("l", F, (3,))],
    )  # fmt: skip
    inner = graph(
        [
            node("ReduceSum", "u", "total", keepdims=0), node("Greater", "total one", "big"),
            node("If", "big", "n", then_branch=large, else_branch=small), node("Identity", "go", "same"),
        ],
        [("j", I64, ()), ("go", B, ()), ("u", F, (3,))], [("same", B, ()), ("n", F, (3,))],
    )  # fmt: skip
    outer = graph(
        [
            node("Add", "i two", "count"), node("Loop", "count _ v", "next", body=inner),
            node("ReduceMax", "next", "top", keepdims=0), node("Less", "top limit", "more"),
        ],
        [*HEAD, ("v", F, (3,))], [("more", B, ()), ("next", F, (3,)), ("top", F, ())],
    )  # fmt: skip
    weights = {
        "two": np.array(2), "w": np.array([0.4, -0.9, 0.7], np.float32), "half": np.float32(0.5),
        "ten": np.float32(1.5), "one": np.float32(0.1), "most": np.array(6),
    }  # fmt: skip
    inputs = {"x": X, "yes": np.array(True), "limit": np.array(2, np.float32)}
    nodes = [node("Loop", "most yes x", "y tops", body=outer)]
    compare(make(nodes, inputs, weights, ["y", "tops"], 13), inputs)
    executed(make(nodes, inputs, weights, ["y", "tops"], 13), inputs)


def test_if_of_values_and_of_constants(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    then = graph([node("Relu", "a", "p"), node("Exp", "a", "q")], [], [("p", F, None), ("q", F, None)])
    other = graph([node("Concat", "a a", "p", axis=0), node("Neg", "a", "q")], [], [("p", F, None), ("q", F, None)])
    nodes = [node("Abs", "x", "a"), node("If", "cond", "y z", then_branch=then, else_branch=other)]
    for cond in (np.array(True), np.array([False])):
        inputs = {"x": X, "cond": cond}
        compare(make(nodes, inputs, {}, ["y", "z"], 13), inputs)
        compare(make(nodes, {"x": X}, {"cond": cond}, ["y", "z"], 13), {"x": X})


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"scan_input_directions": [1, 0]},
        {"scan_input_axes": [1, 0], "scan_output_axes": [1], "scan_output_directions": [1]},
    ],
)
def test_scan(make: Callable[..., Any], compare: Callable[..., Any], attrs: dict[str, Any]) -> None:
    body = graph(
        [node("Add", "s u", "t"), node("Mul", "t w", "next"), node("Sub", "next k", "row"), node("Add", "k one", "kn")],
        [("s", F, (4,)), ("k", F, ()), ("u", F, (4,)), ("v", F, (4,))],
        [("next", F, (4,)), ("kn", F, ()), ("row", F, (4,))],
    )
    rng = np.random.default_rng(0)
    first = rng.normal(size=(4, 5) if "scan_input_axes" in attrs else (5, 4)).astype(np.float32)
    inputs = {"s0": rng.normal(size=4).astype(np.float32), "k0": np.float32(1), "a": first,
              "b": rng.normal(size=(5, 4)).astype(np.float32), "w": rng.normal(size=4).astype(np.float32)}  # fmt: skip
    inputs = {key: np.asarray(value) for key, value in inputs.items()}
    nodes = [node("Scan", "s0 k0 a b", "s k rows", body=body, num_scan_inputs=2, **attrs)]
    compare(make(nodes, inputs, {"one": np.float32(1)}, ["s", "k", "rows"], 13), inputs)
    executed(make(nodes, inputs, {"one": np.float32(1)}, ["s", "k", "rows"], 13), inputs)


def test_scan_of_a_batch(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    body = graph([node("Add", "s u", "t"), node("Identity", "t", "row")], [("s", F, (2,)), ("u", F, (2,))],
                 [("t", F, (2,)), ("row", F, (2,))])  # fmt: skip
    rng = np.random.default_rng(1)
    inputs = {"s0": rng.normal(size=(3, 2)).astype(np.float32), "a": rng.normal(size=(3, 5, 2)).astype(np.float32)}
    model = make([node("Scan", "_ s0 a", "s rows", body=body, num_scan_inputs=1)], inputs, {}, ["s", "rows"], 8)
    compare(model, inputs)


def test_a_loop_that_fills_a_sequence(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    sequence = helper.make_tensor_sequence_value_info
    body = helper.make_graph(
        [
            node("Identity", "go", "same"), node("Add", "i one", "n"), node("Unsqueeze", "n axis", "end"),
            node("Slice", "x zero end", "part"), node("SequenceInsert", "seq part", "more"),
        ],
        "inner",
        [*(helper.make_tensor_value_info(*item) for item in HEAD), sequence("seq", F, None)],
        [helper.make_tensor_value_info("same", B, ()), sequence("more", F, None)],
        [numpy_helper.from_array(np.array(v), n) for n, v in (("one", 1), ("axis", [0]), ("zero", [0]))],
    )  # fmt: skip
    nodes = [
        node("SequenceEmpty", "", "empty"),
        node("Loop", "count _ empty", "parts", body=body),
        node("ConcatFromSequence", "parts", "y", axis=0),
        node("SequenceLength", "parts", "n"),
        node("SequenceAt", "parts last", "z"),
    ]
    nodes[0].ClearField("input")
    inputs = {"x": X, "count": np.array(3, np.int64)}
    model = make(nodes, inputs, {"last": np.array(-1)}, ["y", "n", "z"], 13)
    compare(model, inputs)
    executed(model, inputs)
    module, _ = from_onnx(model)
    assert "List" in module.types and "foldr" not in module.functions


def test_sequences(make: Callable[..., Any], compare: Callable[..., Any]) -> None:
    nodes = [
        node("SequenceConstruct", "a b c", "s"),
        node("SequenceInsert", "s d place", "t"),
        node("SequenceErase", "t first", "u"),
        node("SequenceAt", "u where", "at"),
        node("SequenceLength", "u", "n"),
        node("ConcatFromSequence", "u", "joined", axis=-1),
        node("SequenceErase", "s", "v"),
        node("ConcatFromSequence", "v", "stacked", axis=1, new_axis=1),
    ]
    a, b, c, d = (np.full((2, 3), k, np.float32) for k in range(4))
    for place, where in ((0, 1), (2, -1), (-1, 0)):
        inputs = {"a": a, "b": b, "c": c, "d": d, "place": np.array(place), "where": np.array(where)}
        compare(make(nodes, inputs, {"first": np.array(0)}, ["at", "n", "joined", "stacked"], 13), inputs)


@pytest.mark.parametrize("split", [None, np.array(2), np.array([1, 3, 1])])
@pytest.mark.parametrize("fed", [False, True])
def test_split_to_sequence(
    make: Callable[..., Any], compare: Callable[..., Any], split: np.ndarray | None, fed: bool
) -> None:
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    names = "x" if split is None else "x split"
    nodes = [
        node("SplitToSequence", names, "s", axis=1, **({} if split is None else {"keepdims": 1})),
        node("SequenceLength", "s", "n"),
        node("SequenceAt", "s one", "y"),
        node("ConcatFromSequence", "s", "z", axis=1),
    ]
    given = {} if split is None else {"split": split}
    inputs = {"x": x} | (given if fed else {})
    compare(make(nodes, inputs, {"one": np.array(1)} | ({} if fed else given), ["n", "y", "z"], 13), inputs)


def test_optionals(make: Callable[..., Any]) -> None:
    """onnxruntime has no optional of this kind on the CPU."""
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(F, (3,)))
    nodes = [
        node("Optional", "x", "some"), node("Optional", "_", "none", type=kind.optional_type.elem_type),
        node("OptionalHasElement", "some", "has"), node("OptionalHasElement", "none", "lacks"),
        node("OptionalGetElement", "some", "y"),
    ]  # fmt: skip
    nodes[1].ClearField("input")
    module, params = from_onnx(make(nodes, {"x": X}, {}, ["has", "lacks", "y"], 18))
    has, lacks, y = evaluate(module, {"x": X, **params})
    assert bool(has) and not bool(lacks) and np.array_equal(y, X)
    assert any(isinstance(part, Match) for part in post_order(module["main"].body))


def test_sequences_are_lists(make: Callable[..., Any]) -> None:
    model = make([node("SequenceConstruct", "x x", "y")], {"x": X}, {}, ["y"], 13)
    module, params = from_onnx(model)
    assert [item.tolist() for item in list_items(evaluate(module, {"x": X, **params}))] == [X.tolist()] * 2


def test_refusals_name_nodes_of_inner_graphs(make: Callable[..., Any]) -> None:
    body = graph([node("Identity", "go", "same"), node("StringSplit", "v", "n m")], [*HEAD, ("v", F, (3,))],
                 [("same", B, ()), ("n", F, (3,))])  # fmt: skip
    nodes = [node("Loop", "count _ x", "y", body=body), node("Strange", "y", "z")]
    with pytest.raises(UnsupportedError) as caught:
        from_onnx(make(nodes, {"x": X}, {"count": np.array(2)}, ["z"], 13))
    assert "not 2 nodes: StringSplit (node StringSplit_n, opset 13)" in caught.value.message
    body = graph([node("Identity", "go", "same"), node("Cast", "v", "n", to=I64)], [*HEAD, ("v", F, (3,))],
                 [("same", B, ()), ("n", I64, (3,))])  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"Loop .*: what it carries must keep its type: types must be equal"):
        from_onnx(make([node("Loop", "count _ x", "y", body=body)], {"x": X}, {"count": np.array(2)}, ["y"], 13))
    body = graph([node("Identity", "lost", "n")], [], [("n", F, (3,))])
    with pytest.raises(InputError, match="node Identity_n of small must read a defined tensor, not lost"):
        from_onnx(
            make([node("If", "c", "y", then_branch=body, else_branch=body)], {"c": np.array(True)}, {}, ["y"], 13)
        )
