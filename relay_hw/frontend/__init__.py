"""Frontends: programs of other systems become Relay modules."""

from __future__ import annotations

from relay_hw.frontend.onnx.importer import from_onnx

__all__ = ["from_onnx"]
