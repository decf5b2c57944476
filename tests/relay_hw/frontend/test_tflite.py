"""TFLite models as Relay: a small one made here, read back, equals numpy."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.cli.main import main
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend import from_tflite
from relay_hw.interp.evaluate import Interpreter
from tests.needs import needs_tvm

pytestmark = [
    pytest.mark.skipif(find_spec("tflite") is None, reason="package tflite is not installed"),
    needs_tvm,
]
RNG = np.random.default_rng(0)
KERNEL = RNG.normal(size=(4, 3, 3, 2)).astype(np.float32)
BIAS = RNG.normal(size=4).astype(np.float32)


class Writer:
    """Tensors and operators of one graph, as the flat buffers of the format."""

    def __init__(self) -> None:
        import flatbuffers

        self.b = flatbuffers.Builder(1024)
        self.buffers: list[int] = [self.table("Buffer")]
        self.tensors: list[int] = []
        self.operators: list[int] = []
        self.codes: list[int] = []

    def table(self, kind: str, **fields: Any) -> int:
        import tflite

        getattr(tflite, f"{kind}Start")(self.b)
        for name, value in fields.items():
            getattr(tflite, f"{kind}Add{name}")(self.b, value)
        return getattr(tflite, f"{kind}End")(self.b)

    def numbers(self, values: Any) -> int:
        return self.b.CreateNumpyVector(np.asarray(values, np.int32))

    def offsets(self, items: list[int]) -> int:
        self.b.StartVector(4, len(items), 4)
        for item in reversed(items):
            self.b.PrependUOffsetTRelative(item)
        return self.b.EndVector()

    def tensor(self, name: str, shape: tuple[int, ...], data: np.ndarray | None = None) -> int:
        buffer = 0
        if data is not None:
            content = self.b.CreateNumpyVector(np.frombuffer(data.tobytes(), np.uint8))
            buffer = len(self.buffers)
            self.buffers.append(self.table("Buffer", Data=content))
        sizes, text = self.numbers(shape), self.b.CreateString(name)
        self.tensors.append(self.table("Tensor", Shape=sizes, Type=0, Buffer=buffer, Name=text))
        return len(self.tensors) - 1

    def operator(self, code: int, kind: int, options: int, inputs: list[int], outputs: list[int]) -> None:
        self.codes.append(self.table("OperatorCode", DeprecatedBuiltinCode=code, BuiltinCode=code, Version=1))
        given, made = self.numbers(inputs), self.numbers(outputs)
        index = len(self.codes) - 1
        fields = {"OpcodeIndex": index, "Inputs": given, "Outputs": made}
        self.operators.append(self.table("Operator", **fields, BuiltinOptionsType=kind, BuiltinOptions=options))

    def model(self, inputs: list[int], outputs: list[int]) -> bytes:
        tensors, operators = self.offsets(self.tensors), self.offsets(self.operators)
        given, made = self.numbers(inputs), self.numbers(outputs)
        graph = self.table("SubGraph", Tensors=tensors, Inputs=given, Outputs=made, Operators=operators)
        graphs, codes, buffers = self.offsets([graph]), self.offsets(self.codes), self.offsets(self.buffers)
        root = self.table("Model", Version=3, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers)
        self.b.Finish(root, b"TFL3")
        return bytes(self.b.Output())


def small() -> bytes:
    """A convolution of stride 2 with a ReLU, and a softmax over its channels."""
    from tflite import ActivationFunctionType, BuiltinOperator, BuiltinOptions, Padding

    w = Writer()
    x, y, z = (w.tensor(*row) for row in (("x", (1, 8, 8, 2)), ("y", (1, 4, 4, 4)), ("z", (1, 4, 4, 4))))
    kernel, bias = w.tensor("kernel", KERNEL.shape, KERNEL), w.tensor("bias", BIAS.shape, BIAS)
    activation = ActivationFunctionType.RELU
    options = w.table(
        "Conv2DOptions", Padding=Padding.SAME, StrideH=2, StrideW=2, DilationHFactor=1, DilationWFactor=1,
        FusedActivationFunction=activation,
    )  # fmt: skip
    operator, kind = BuiltinOperator, BuiltinOptions
    w.operator(operator.CONV_2D, kind.Conv2DOptions, options, [x, kernel, bias], [y])
    options = w.table("SoftmaxOptions", Beta=1.0)
    w.operator(operator.SOFTMAX, kind.SoftmaxOptions, options, [y], [z])
    return w.model([x], [z])


def meaning(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
    y = np.maximum(np.einsum("nyxchw,ohwc->nyxo", windows, KERNEL) + BIAS, 0)
    powers = np.exp(y - y.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_a_model_and_its_file(tmp_path: Path) -> None:
    mod, params = from_tflite(small())
    assert params == {}
    x = np.random.default_rng(1).normal(size=(1, 8, 8, 2)).astype(np.float32)
    np.testing.assert_allclose(Interpreter(mod).call_global("main", {"x": x}), meaning(x), rtol=1e-5)
    (tmp_path / "net.tflite").write_bytes(small())
    assert main(["convert", str(tmp_path / "net.tflite"), str(tmp_path / "net.json")]) == 0
    np.savez(tmp_path / "x.npz", x=x)
    out = str(tmp_path / "out.npz")
    assert main(["eval", str(tmp_path / "net.json"), "--input", str(tmp_path / "x.npz"), "--output", out]) == 0
    np.testing.assert_allclose(np.load(out)["output"], meaning(x), rtol=1e-5)


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InputError, match="a TFLite model must have the mark TFL3 behind its first four bytes, not b'else'"
    ):
        from_tflite(b"someelse")
    with pytest.raises(InputError, match=r"none\.tflite must be a readable TFLite model: No such file"):
        from_tflite(tmp_path / "none.tflite")
    monkeypatch.setattr("relay_hw.backend.tvm.importers.find_spec", lambda name: None)
    with pytest.raises(
        UnsupportedError, match="package tflite must be installed to import a TFLite model: pip install"
    ):
        from_tflite(small())
