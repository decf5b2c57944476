"""PyTorch models as Relay, by both ways: what they compute is what torch computes."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.cli.main import main
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend import from_pytorch
from relay_hw.interp.evaluate import Interpreter
from relay_hw.runtime.models import load_model
from relay_hw.text import parse
from tests.needs import needs_tvm

pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    needs_tvm,
    pytest.mark.filterwarnings("ignore"),
]


def models() -> dict[str, tuple[Any, Any]]:
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6())
            self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8)
            self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            y = nn.functional.hardswish(self.depth(y)) + y
            return torch.softmax(self.fc(self.pool(y).flatten(1)), dim=-1)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(50, 16)
            self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.layer(self.words(x))

    class Mixed(nn.Module):
        def forward(self, x: Any) -> Any:
            low, high = x.chunk(2, dim=1)
            y = torch.where(low > high, low, high * 2) + x[:, ::2].clamp(-1, 1)
            return nn.functional.interpolate(y[:, None, None], scale_factor=2), y.mean(0), torch.cat([low, y], 1)

    torch.manual_seed(0)
    return {
        "residual": (Residual().eval(), (torch.randn(1, 3, 12, 12),)),
        "encoder": (Encoder().eval(), (torch.randint(0, 50, (1, 7)),)),
        "mixed": (Mixed().eval(), (torch.randn(3, 8),)),
    }


def check(mod: Any, model: Any, inputs: Any) -> None:
    names = [param.name_hint for param in mod["main"].params]
    got = Interpreter(mod).call_global("main", dict(zip(names, [x.numpy() for x in inputs], strict=True)))
    want = model(*inputs)
    want = want if isinstance(want, tuple) else (want,)
    got = got if isinstance(got, tuple) else (got,)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("via", ["relax", "onnx"])
@pytest.mark.parametrize("name", ["residual", "encoder", "mixed"])
def test_computes_what_torch_computes(name: str, via: str) -> None:
    model, inputs = models()[name]
    mod, params = from_pytorch(model, inputs, via)
    assert params == {}
    check(mod, model, inputs)


def test_exported_programs_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    model, inputs = models()["residual"]
    for parameter in model.parameters():
        parameter.requires_grad = False
    program = torch.export.export(model, inputs)
    check(from_pytorch(program)[0], model, inputs)
    torch.export.save(program, tmp_path / "net.pt2")
    check(load_model(tmp_path / "net.pt2").mod, model, inputs)
    assert main(["convert", str(tmp_path / "net.pt2"), str(tmp_path / "net.relay")]) == 0
    check(parse((tmp_path / "net.relay").read_text()), model, inputs)
    (tmp_path / "bad.pt2").write_bytes(b"nothing")
    assert main(["convert", str(tmp_path / "bad.pt2"), str(tmp_path / "bad.relay")]) == 2
    assert "bad.pt2 must be a file that torch.export.save wrote" in capsys.readouterr().err


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    model, inputs = models()["residual"]
    with pytest.raises(InputError, match="via must be one of relax, onnx, not tf"):
        from_pytorch(model, inputs, "tf")
    with pytest.raises(InputError, match="example_inputs must be given for a module, and only for one"):
        from_pytorch(model)

    class Odd(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.special.bessel_j0(x)

    with pytest.raises(UnsupportedError, match=r"a PyTorch program must be one that TVM can import: .*bessel"):
        from_pytorch(Odd(), (torch.randn(3),))
    with pytest.raises(UnsupportedError, match=r"a PyTorch model must be one that torch.onnx can export: .*bessel"):
        from_pytorch(Odd(), (torch.randn(3),), "onnx")
    monkeypatch.setattr("relay_hw.frontend.torch.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="torch must be installed to import a PyTorch model: pip install torch"):
        from_pytorch(model, inputs)
    assert "torch" in sys.modules
