"""A network as data that prints as text and is read back from it: configuration, strategy, layers by name.

A recipe holds everything that a failure needs: weights and samples follow from `seed` and the layers' names, so that
the others keep theirs where a layer is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from relay_hw.accel.isa.config import AccelConfig, load_config

Shape = tuple[int, ...]


class Kind(Enum):
    """What a layer does; `shapes.py` says to what shape, `as_onnx.py` by which nodes."""

    CONV = "conv"
    TRANSPOSED = "transposed"
    DENSE = "dense"
    PRODUCT = "product"
    MAX_POOL = "max_pool"
    MEAN_POOL = "mean_pool"
    WHOLE_MEAN = "whole_mean"
    ADD = "add"
    MULTIPLY = "multiply"
    RELU = "relu"
    CLIP = "clip"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    HARD_SWISH = "hard_swish"
    SOFTMAX = "softmax"
    LAYER_NORM = "layer_norm"
    RMS_NORM = "rms_norm"
    PAD = "pad"
    MIRROR = "mirror"
    JOIN = "join"
    SLICE = "slice"
    UPSAMPLE = "upsample"
    SPREAD = "spread"
    TILE = "tile"
    TRANSPOSE = "transpose"
    RESHAPE = "reshape"
    FLATTEN = "flatten"
    UNSQUEEZE = "unsqueeze"
    SQUEEZE = "squeeze"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: `sizes` are its numbers by name, each a tuple."""

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    sizes: tuple[tuple[str, Shape], ...] = ()

    def __getitem__(self, name: str) -> Shape:
        return dict(self.sizes)[name]

    def one(self, name: str) -> int:
        """A size of one number."""
        (value,) = self[name]
        return value

    def changed(self, name: str, value: Shape) -> Layer:
        """The layer with another size of this name."""
        return replace(self, sizes=tuple((key, value if key == name else old) for key, old in self.sizes))

    def __str__(self) -> str:
        sizes = [f"{name}={','.join(map(str, value))}" for name, value in self.sizes]
        return " ".join([self.name, "=", self.kind.value, *self.inputs, *sizes])


@dataclass(frozen=True, slots=True)
class Recipe:
    """A network of one input `x`, and what it is compiled for.

    `changes`: sizes in which the configuration differs from the one named `base`. `respelled`: written with operators
    of Relay that no ONNX node becomes.
    """

    seed: int
    base: str
    changes: tuple[tuple[str, int], ...]
    strategy: str
    resident: str
    respelled: bool
    shape: Shape
    layers: tuple[Layer, ...]
    results: tuple[str, ...]

    @property
    def config(self) -> AccelConfig:
        """The configuration that it is compiled for."""
        base = load_config(self.base)
        return replace(base, name=f"{base.name}-drawn", **dict(self.changes)) if self.changes else base

    def __str__(self) -> str:
        rows: Mapping[str, list[str]] = {
            "seed": [str(self.seed)],
            "config": [self.base, *(f"{name}={value}" for name, value in self.changes)],
            "strategy": [self.strategy, self.resident],
            "spelling": ["relay" if self.respelled else "onnx"],
            "input": [str(size) for size in self.shape],
        }
        lines = [" ".join([key, *values]) for key, values in rows.items()]
        return "\n".join([*lines, *map(str, self.layers), " ".join(["results", *self.results])]) + "\n"


def read(text: str) -> Recipe:
    """The recipe that prints as `text`; lines that begin with # are comments."""
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    rows = {words[0]: words[1:] for words in lines if words[1] != "="}
    base, *changes = rows["config"]
    strategy, resident = rows["strategy"]
    return Recipe(
        int(rows["seed"][0]),
        base,
        tuple((name, int(value)) for name, value in (change.split("=") for change in changes)),
        strategy,
        resident,
        rows["spelling"] == ["relay"],
        tuple(map(int, rows["input"])),
        tuple(_layer(words) for words in lines if words[1] == "="),
        tuple(rows["results"]),
    )


def _layer(words: list[str]) -> Layer:
    name, _, kind, *rest = words
    sizes = [word.split("=") for word in rest if "=" in word]
    return Layer(
        name,
        Kind(kind),
        tuple(word for word in rest if "=" not in word),
        tuple((key, tuple(map(int, value.split(",")))) for key, value in sizes),
    )
