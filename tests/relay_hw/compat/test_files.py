"""TVM's files: `.params`, and programs as save_json writes them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import relay_hw
from relay_hw.analysis import infer_type, structural_equal
from relay_hw.compat import tvm
from relay_hw.compat.tvm import relay
from relay_hw.errors import InputError, ParseError, UnsupportedError
from relay_hw.ir.visit import post_order
from relay_hw.text.metadata import encode_array
from tests.relay_hw.programs import random_module
from tests.relay_hw.random_cnn import random_cnn

DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")
ARRAYS = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_side=4)))


@given(st.dictionaries(st.text(max_size=8), ARRAYS, max_size=4))
def test_params_come_back(params: dict[str, np.ndarray]) -> None:
    data = relay.save_param_dict(params)
    found = relay.load_param_dict(data)
    assert list(found) == list(params)
    for name, value in params.items():
        assert found[name].dtype == str(value.dtype) and found[name].numpy().tobytes() == value.tobytes()
        assert found[name].shape == value.shape
    assert relay.save_param_dict(found) == data


def test_the_bytes_are_tvms() -> None:
    head = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, 1) + struct.pack("<Q", 1) + b"w" + struct.pack("<Q", 1)
    array = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, 1, 2, 32, 1) + struct.pack("<qqff", 2, 8, 1.0, -2.0)
    assert relay.save_param_dict({"w": np.float32([1, -2])}) == head + array
    assert relay.load_param_dict(head + array)["w"].numpy().tolist() == [1, -2]


def test_tvm_reads_and_writes_the_same() -> None:
    if importlib.util.find_spec("tvm") is None:
        pytest.skip("apache-tvm is not installed: its .params are compared where it is")
    import tvm as real

    params = {"a": np.float32([[1, 2], [3, 4]]), "b": np.int8([1, -1]), "c": np.int64(7)}
    tensors = {name: real.runtime.tensor(np.asarray(value)) for name, value in params.items()}
    written = bytes(real.runtime.save_param_dict(tensors))
    assert {name: value.numpy().tolist() for name, value in relay.load_param_dict(written).items()} == {
        name: value.tolist() for name, value in params.items()
    }
    back = real.runtime.load_param_dict(relay.save_param_dict(params))
    assert {str(name): value.numpy().tolist() for name, value in back.items()} == {
        name: value.tolist() for name, value in params.items()
    }


def test_damaged_params_are_refused(tmp_path: Any) -> None:
    data = relay.save_param_dict({"weight": np.ones((2, 3), "float32")})
    for place in range(len(data)):
        with pytest.raises(InputError):
            relay.load_param_dict(data[:place])
    for place in range(0, len(data) - 24):
        changed = data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :]
        with contextlib.suppress(InputError):
            relay.load_param_dict(changed)
    with pytest.raises(
        InputError, match="parameter file must begin with the mark of a list of arrays, not 0x3837363534333231"
    ):
        relay.load_param_dict(b"12345678" + data[8:])
    with pytest.raises(InputError, match="parameter o must hold numbers or booleans, not object"):
        relay.save_param_dict({"o": np.array([None])})
    path = tmp_path / "net.params"
    tvm.runtime.save_param_dict_to_file({"w": np.ones(2)}, path)
    assert tvm.runtime.load_param_dict_from_file(path)["w"].shape == (2,)


# Programs

SAVED = {
    "root": 1,
    "nodes": [
        {"type_key": ""},
        {"type_key": "IRModule", "attrs": {"attrs": "0", "functions": "2", "global_infos": "20", "global_type_var_map_":
            "20", "global_var_map_": "20", "source_map": "21", "type_definitions": "20"}},
        {"type_key": "Map", "data": [3, 4]},
        {"type_key": "GlobalVar", "attrs": {"_checked_type_": "0", "name_hint": "main", "span": "0"}},
        {"type_key": "relay.Function", "attrs": {"_checked_type_": "0", "attrs": "22", "body": "11", "params": "5",
            "ret_type": "0", "span": "0", "type_params": "24", "virtual_device_": "0"}},
        {"type_key": "Array", "data": [6]},
        {"type_key": "relay.Var", "attrs": {"_checked_type_": "0", "span": "0", "type_annotation": "8", "vid": "7"}},
        {"type_key": "relay.Id", "attrs": {"name_hint": "x"}},
        {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "9", "span": "0"}},
        {"type_key": "Array", "data": [10, 10]},
        {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": "2"}},
        {"type_key": "relay.Call", "attrs": {"_checked_type_": "0", "args": "13", "attrs": "16", "op": "12",
            "span": "0", "type_args": "15"}},
        {"type_key": "Op", "repr_str": "sum"},
        {"type_key": "Array", "data": [14]},
        {"type_key": "relay.Call", "attrs": {"_checked_type_": "0", "args": "18", "attrs": "0", "op": "17", "span": "0",
            "type_args": "15"}},
        {"type_key": "Array"},
        {"type_key": "relay.attrs.ReduceAttrs", "attrs": {"axis": "19", "exclude": "0", "keepdims": "1"}},
        {"type_key": "Op", "repr_str": "add"},
        {"type_key": "Array", "data": [6, 23]},
        {"type_key": "Array", "data": [10]},
        {"type_key": "Map"},
        {"type_key": "SourceMap", "attrs": {"source_map": "20"}},
        {"type_key": "DictAttrs", "attrs": {"__dict__": "20"}},
        {"type_key": "relay.Constant", "attrs": {"_checked_type_": "0", "data": "0", "span": "0"}},
        {"type_key": "Array"},
    ],
    "b64ndarrays": [encode_array(np.float32([[2.0]]))],
    "attrs": {"tvm_version": "0.18.0"},
}  # fmt: skip


def test_a_program_that_tvm_saved() -> None:
    saved = json.loads(json.dumps(SAVED))
    saved["nodes"][10]["attrs"]["value"] = "1"
    mod = tvm.ir.load_json(json.dumps(saved))
    assert "sum(%0, axis=[1], keepdims=True)" in mod.astext()
    assert relay.create_executor(mod=mod).evaluate()([[3.0]]).numpy().tolist() == [[5.0]]


def same(mod: Any) -> None:
    typed = infer_type(mod)
    text = tvm.ir.save_json(typed)
    again = tvm.ir.load_json(text)
    assert structural_equal(infer_type(again), typed)
    assert tvm.ir.save_json(again).count("type_key") <= text.count("type_key")


@pytest.mark.parametrize("start", range(0, 150, 50))
def test_programs_come_back(start: int) -> None:
    for seed in range(start, start + 50):
        same(random_module(seed))


@pytest.mark.parametrize("seed", range(6))
def test_networks_come_back(seed: int) -> None:
    same(random_cnn(seed))


def test_every_operator_that_has_attributes_comes_back() -> None:
    from relay_hw import op

    x = relay.var("x", shape=(2, 4, 6, 6))
    calls = [
        op.take(x, relay.const(np.int32([1])), axis=1),
        op.stack([x, x], axis=2),
        op.repeat(x, 2, axis=1),
        op.reverse(x, axis=3),
        op.split(x, [1, 2], axis=2),
        op.split(x, 2, axis=2),
        op.strided_slice(x, [0, 1], [2, 3]),
        op.nn.pad(x, ((0, 0), (0, 0), (1, 2), (3, 4)), 1.5),
        op.nn.leaky_relu(x, 0.125),
        op.clip(x, -1.5, 2.0),
        op.cast(x, "int8"),
        op.squeeze(op.expand_dims(x, 0)),
        op.transpose(x),
        op.nn.softmax(x, axis=1),
        op.layout_transform(x, "NCHW", "NHWC"),
        op.nn.dropout(x, 0.25),
        op.nn.avg_pool2d(x, (2, 2), count_include_pad=True),
        op.mean(x, axis=None, keepdims=True),
    ]
    for call in calls:
        mod = relay_hw.IRModule.from_expr(relay.Function([x], call))
        back = infer_type(tvm.ir.load_json(tvm.ir.save_json(mod)))
        assert structural_equal(back, infer_type(mod)), infer_type(mod).astext()


def test_types_and_maps_come_back_and_modules_may_be_changed() -> None:
    ty = relay.FuncType((relay.TensorType((2, relay.Any()), "int8"),), relay.scalar_type("bool"))
    assert str(tvm.ir.load_json(tvm.ir.save_json(ty))) == str(ty) == "fn (Tensor[(2, ?), int8]) -> bool"
    saved: dict[str, Any] = {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["a"], "data": [2]}]}
    saved["nodes"].append({"type_key": "runtime.String", "repr_str": "text"})
    assert tvm.ir.load_json(json.dumps(saved)) == {"a": "text"}
    x = relay.var("x", shape=(1,))
    mod = tvm.ir.load_json(tvm.ir.save_json(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))))
    mod["other"] = relay.Function([x], relay.log(x))
    assert list(mod.functions) == ["main", "other"]


def test_long_programs_and_shared_nodes() -> None:
    x = relay.var("x", shape=(1,))
    body = x
    for _ in range(5_000):
        body = relay.add(body, body)
    back = tvm.ir.load_json(tvm.ir.save_json(relay.Function([x], body)))
    assert sum(1 for _ in post_order(back)) == 5_003


def test_our_own_json_loads_too_and_other_files_are_refused() -> None:
    x = relay.var("x", shape=(1,))
    mod = relay_hw.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    assert "main" in tvm.ir.load_json(relay_hw.save_json(infer_type(mod)))
    with pytest.raises(ParseError, match="<json>:1:2: file must be JSON"):
        tvm.ir.load_json("{")
    with pytest.raises(ParseError, match="root must count within the 0 nodes, not 5"):
        tvm.ir.load_json('{"root": 5, "nodes": []}')
    with pytest.raises(ParseError, match=r"nodes\[1\] must not contain itself"):
        tvm.ir.load_json('{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Array", "data": [1]}]}')
    unknown = json.loads(json.dumps(SAVED))
    unknown["nodes"][17]["repr_str"] = "vision.yolo"
    with pytest.raises(UnsupportedError, match=r"vision\.yolo"):
        tvm.ir.load_json(json.dumps(unknown))
