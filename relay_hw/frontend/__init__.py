"""Frontends: importers from other systems to Relay modules."""

from __future__ import annotations

from relay_hw.frontend.onnx.importer import from_onnx
from relay_hw.frontend.relax import from_relax
from relay_hw.frontend.tflite import from_tflite
from relay_hw.frontend.torch import from_pytorch

__all__ = ["from_onnx", "from_pytorch", "from_relax", "from_tflite"]
