"""Weights in files beside an ONNX model: off unless asked for, and only regular files below the model's folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from relay_hw.cli.main import main
from relay_hw.errors import InputError
from relay_hw.frontend import from_onnx
from relay_hw.limits import Limits, OnnxOptions

WEIGHT = np.arange(32, dtype=np.float32).reshape(4, 8)


def save(path: Path, external: dict[str, str], dims: tuple[int, ...] = (4, 8), kind: int = TensorProto.FLOAT) -> Path:
    """A model whose weight lies where `external` says."""
    weight = TensorProto(name="w", data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in external.items():
        weight.external_data.add(key=key, value=value)
    return save_with(path, weight)


def save_with(path: Path, weight: TensorProto) -> Path:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "outside",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8))],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a model, with a good file; around it lies one that no model may read."""
    (tmp_path / "secret.bin").write_bytes(WEIGHT.tobytes())
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "w.bin").write_bytes(WEIGHT.tobytes())
    inner = tmp_path / "model"
    (inner / "x").mkdir(parents=True)
    (inner / "w.bin").write_bytes(b"." * 16 + WEIGHT.tobytes())
    (inner / "x" / "w.bin").write_bytes(WEIGHT.tobytes())
    return inner


@pytest.mark.parametrize(
    "external",
    [
        {"location": "w.bin", "offset": "16", "length": "128"},
        {"location": "w.bin", "offset": "16"},
        {"location": "./x/./w.bin", "checksum": "none"},
    ],
)
def test_a_good_file_is_read_as_onnx_reads_it(folder: Path, external: dict[str, str]) -> None:
    path = save(folder / "net.onnx", external)
    _, params = from_onnx(path, options=OnnxOptions(external_data=True))
    want = onnx.load(path, load_external_data=False).graph.initializer[0]
    external_data_helper.load_external_data_for_tensor(want, str(folder))
    np.testing.assert_array_equal(params["w"], numpy_helper.to_array(want))
    np.testing.assert_array_equal(params["w"], WEIGHT)


def test_files_are_read_only_if_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(folder / "net.onnx", {"location": "x/w.bin"})
    sentence = r"weight w of .*net\.onnx must lie in the model, not in a file beside it: --external-data, or external_d"
    with pytest.raises(InputError, match=sentence):
        from_onnx(path)
    with pytest.raises(InputError, match=r"weight w of outside must lie in the model, .*: give the path of the model"):
        from_onnx(onnx.load(path, load_external_data=False), options=OnnxOptions(external_data=True))
    assert main(["check", str(path)]) == 2
    assert "--external-data" in capsys.readouterr().err
    assert main(["check", "--external-data", str(path)]) == 0


def test_a_tensor_in_an_attribute_is_no_way_around(folder: Path) -> None:
    value = TensorProto(name="w", data_type=1, dims=(4, 8), data_location=TensorProto.EXTERNAL)
    value.external_data.add(key="location", value="../secret.bin")
    inner = helper.make_graph([helper.make_node("Constant", [], ["c"], value=value)], "then", [],
                              [helper.make_tensor_value_info("c", 1, (4, 8))])  # fmt: skip
    node = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
    graph = helper.make_graph([node], "deep", [helper.make_tensor_value_info("x", 9, ())],
                              [helper.make_tensor_value_info("y", 1, (4, 8))])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="must lie in the model"):
        from_onnx(folder / "net.onnx")
    with pytest.raises(InputError, match=r"must lie in a file below the model's folder, not in '\.\./secret\.bin'"):
        from_onnx(folder / "net.onnx", options=OnnxOptions(external_data=True))


def _linked(folder: Path) -> None:
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    (folder / "here.bin").symlink_to(folder / "w.bin")
    (folder / "out").symlink_to(folder.parent / "outside")
    os.link(folder.parent / "secret.bin", folder / "hard.bin")
    os.mkfifo(folder / "pipe.bin")


BELOW = "must lie in a file below the model's folder"
ATTACKS: list[tuple[dict[str, str], str]] = [
    ({"location": "../secret.bin"}, BELOW),
    ({"location": "x/../../secret.bin"}, BELOW),
    ({"location": "x/../w.bin"}, BELOW),
    ({"location": ".."}, BELOW),
    ({"location": "/etc/passwd"}, BELOW),
    ({"location": "//etc/passwd"}, BELOW),
    ({"location": "C:\\secret.bin"}, BELOW),
    ({"location": "C:secret.bin"}, BELOW),
    ({"location": "..\\secret.bin"}, BELOW),
    ({"location": "w.bin\0.txt"}, BELOW),
    ({"location": ""}, BELOW),
    ({"location": "."}, BELOW),
    ({"location": "x//w.bin"}, BELOW),
    ({"location": "x/"}, BELOW),
    ({}, BELOW),
    ({"location": "link.bin"}, "a link or no folder lies on the way"),
    ({"location": "here.bin"}, "a link or no folder lies on the way"),
    ({"location": "out/w.bin"}, "a link or no folder lies on the way"),
    ({"location": "w.bin/w.bin"}, "a link or no folder lies on the way"),
    ({"location": "hard.bin"}, "must lie in a file with one name, not in 'hard.bin', which has 2"),
    ({"location": "pipe.bin"}, "must lie in a regular file, not in 'pipe.bin'"),
    ({"location": "x"}, "must lie in a regular file, not in 'x'"),
    ({"location": "none.bin"}, "must lie in a readable file, not in 'none.bin': No such file"),
    ({"location": "n" * 300}, "must lie in a readable file, .*: File name too long"),
    ({"location": "w.bin", "length": str(1 << 50)}, "must have a length of 128 bytes, not 1125899906842624"),
    ({"location": "w.bin", "length": "64"}, "must have a length of 128 bytes, not 64"),
    ({"location": "w.bin", "length": "-1"}, "must have an integer of at least 0 and below 10.18 as length, not -1"),
    ({"location": "w.bin", "offset": "-1"}, "must have an integer of at least 0 and below 10.18 as offset, not -1"),
    ({"location": "w.bin", "offset": str(1 << 62)}, "must have an integer of at least 0 and below 10.18 as offset"),
    ({"location": "w.bin", "offset": str(1 << 50)}, "must end within 'w.bin', at byte 144, not at byte 1,12"),
    ({"location": "w.bin", "offset": "17"}, "must end within 'w.bin', at byte 144, not at byte 145"),
    ({"location": "w.bin", "offset": "9" * 5000}, "must have an integer of at least 0"),
    ({"location": "w.bin", "offset": "1_0"}, "must have an integer of at least 0"),
]


@pytest.mark.parametrize(("external", "sentence"), ATTACKS, ids=[repr(row)[:40] for row, _ in ATTACKS])
def test_no_other_file_is_read(folder: Path, external: dict[str, str], sentence: str) -> None:
    _linked(folder)
    path = save(folder / "net.onnx", external)
    with pytest.raises(InputError, match=sentence):
        from_onnx(path, options=OnnxOptions(external_data=True))


@pytest.mark.parametrize(
    ("dims", "kind", "sentence"),
    [
        ((1 << 40,), TensorProto.FLOAT, "must end within 'w.bin'"),
        ((1 << 40, 1 << 40), TensorProto.FLOAT, "must end within 'w.bin'"),
        ((-4, -8), TensorProto.FLOAT, "must have sizes of at least 0, not -4x-8"),
        ((4,), TensorProto.STRING, "must have numbers as elements, not ONNX type 8"),
        ((4,), 99, "must have numbers as elements, not ONNX type 99"),
    ],
)
def test_sizes_that_no_file_has(folder: Path, dims: tuple[int, ...], kind: int, sentence: str) -> None:
    path = save(folder / "net.onnx", {"location": "w.bin"}, dims, kind)
    limits = Limits(external_bytes=1 << 80, tensor_elements=1 << 80)
    with pytest.raises(InputError, match=sentence):
        from_onnx(path, options=OnnxOptions(external_data=True, limits=limits))


def test_the_bytes_of_all_files_together(folder: Path) -> None:
    path = save(folder / "net.onnx", {"location": "x/w.bin"})
    sentence = r"the bytes of .*net\.onnx in other files must be at most 100, not 128: --limit external_bytes=NUMBER"
    with pytest.raises(InputError, match=sentence):
        from_onnx(path, options=OnnxOptions(external_data=True, limits=Limits(external_bytes=100)))


def test_a_key_given_twice(folder: Path) -> None:
    weight = TensorProto(name="w", data_type=1, dims=(4, 8), data_location=TensorProto.EXTERNAL)
    for location in ("x/w.bin", "../secret.bin"):
        weight.external_data.add(key="location", value=location)
    with pytest.raises(InputError, match="must give location once"):
        from_onnx(save_with(folder / "net.onnx", weight), options=OnnxOptions(external_data=True))


def test_small_elements(folder: Path, make: Callable[..., Any]) -> None:
    """Two of them share a byte, an odd one has a byte of its own."""
    (folder / "small.bin").write_bytes(bytes([0x21, 0x43, 0x05]))
    weight = TensorProto(name="w", data_type=TensorProto.UINT4, dims=(5,), data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="small.bin")
    model = make([helper.make_node("Cast", ["w"], ["y"], to=1)], {"x": np.zeros(1, np.float32)}, {}, ["y"], 21)
    model.graph.initializer.append(weight)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    module, _ = from_onnx(folder / "net.onnx", options=OnnxOptions(external_data=True))
    assert "1" in str(module["main"])
