"""What a program was proved to compute, layer by layer. The proof is in `validate/`."""

from __future__ import annotations

from collections.abc import Sequence
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


def summary(proofs: Sequence[Certificate]) -> str:
    """What is proved, in one sentence."""
    if not proofs:
        return "no program was proved to compute what the network says"
    layers = [layer for proof in proofs for layer in proof.layers]
    count = sum(proof.output_bytes for proof in proofs)
    most = max((layer.sum_bits for layer in layers), default=0)
    wide = ", ".join(name for proof in proofs for name in proof.overflows)
    sums = f"sums of {wide} may leave {SUM_BITS} bits" if wide else f"every sum fits {most} of {SUM_BITS} bits"
    what = f"{len(layers)} layer(s) of {len(proofs)} region(s), {count:,} output bytes"
    return f"proved when compiled: {what}; {sums}"
