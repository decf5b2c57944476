"""What a program was proved to compute, layer by layer. The proof is in `validate/`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SUM_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class LayerProof:
    """A layer: how many values it has, and the bits, with sign, that every partial sum of it fits in any order."""

    name: str
    values: int
    sum_bits: int

    @property
    def may_overflow(self) -> bool:
        """Whether weights and the ranges of activations do not exclude that a sum leaves 32 bits."""
        return self.sum_bits > SUM_BITS


@dataclass(frozen=True, slots=True)
class Certificate:
    """Every byte of a program's outputs is the Relay function's expression of its inputs, by `instructions` encoded
    ones; sums of layers that do not overflow are those of unbounded integers."""

    name: str
    instructions: int
    output_bytes: int
    layers: tuple[LayerProof, ...]

    @property
    def overflows(self) -> tuple[str, ...]:
        """Layers whose sums are not proved to fit."""
        return tuple(layer.name for layer in self.layers if layer.may_overflow)
