"""Limits on untrusted models, in one place, and other options of the ONNX importer.

In: what a file asks for. Out: nothing, or one sentence.
Everything that a file can make large with few bytes is compared with these numbers before memory is taken for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final, cast

from relay_hw.errors import InputError
from relay_hw.span import Span
from relay_hw.support.names import one_of

# Axes of an array: numpy 1 knows no more.
MOST_AXES: Final = 32
# Constants folded from a model's weights (casts, transposes) may together be larger than them by this factor.
OF_WEIGHTS: Final = 4
# Sizes of a tensor may be long numbers, and many of them.
_LARGEST: Final = 1 << 64
# Neither protobuf nor onnx's function inliner supports deeper nesting, whatever the limit.
MOST_NESTING: Final = 100


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for reading a model; `--limit FIELD=NUMBER` changes a field."""

    # Size of the model's file; protobuf itself supports no more.
    file_bytes: int = (1 << 31) - 1
    # Of all tensors in files beside the model.
    external_bytes: int = 8 << 30
    # Of all graphs and functions together, in the file and with every call of a function written out; a node counts
    # once more for each input and output beyond 16, and eight times for each graph in it.
    nodes: int = 50_000
    # Graphs inside of graphs and functions called by functions, which are read by calls; at most MOST_NESTING.
    nesting: int = 48
    # Bodies of functions, written out at every call.
    inlined_bytes: int = 1 << 28
    # Convolutions, dense layers and products of matrices that programs are made for, some 50 ms each.
    layers: int = 5_000
    # Of one tensor, given or computed.
    tensor_elements: int = 1 << 28
    # Of all constants that are computed while the model is read, beside four times its own weights.
    folded_bytes: int = 1 << 28
    # Multiplications, comparisons, windows of one constant that is computed.
    folded_steps: int = 1 << 31
    # Of all names and texts together.
    string_bytes: int = 1 << 26
    # Memory of the process that reads an untrusted model, beyond what it uses at its start.
    memory_bytes: int = 4 << 30
    # Of that process, both of work and by the clock.
    seconds: int = 120

    def __post_init__(self) -> None:
        if self.nesting > MOST_NESTING:
            raise InputError(
                f"limit nesting must be at most {MOST_NESTING}, not {self.nesting:,}: protobuf reads nothing deeper"
            )

    def check(self, field: str, what: str, size: int, span: Span | None = None) -> None:
        """Raise InputError if `size`, which messages call `what`, is more than `field` allows."""
        most: int = getattr(self, field)
        if size > most:
            way = f"--limit {field}=NUMBER, or limits=Limits({field}=NUMBER), raises this"
            raise InputError(f"{what} must be at most {most:,}, not {size:,}: {way}", span)


DEFAULT: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxOptions:
    """Options of `from_onnx`, besides the shapes of inputs.

    `sample_shapes`: shapes of arrays with samples on their first axis, by input: open sizes are those.
    `values`: inputs that always have one value, and are none any more; a branch that it does not take need not fit.
    `limits`: how much the model may take.
    `external_data`: whether weights in files below the model's folder are read.
    """

    sample_shapes: Mapping[str, tuple[int, ...]] | None = None
    values: Mapping[str, float] | None = None
    limits: Limits = DEFAULT
    external_data: bool = False


USUAL: Final = OnnxOptions()


def changed(changes: Mapping[str, int]) -> Limits:
    """The default limits with some changed. Raises InputError for an unknown name or a negative number."""
    names = [field.name for field in fields(Limits)]
    for name, most in changes.items():
        if name not in names:
            raise InputError(one_of("a limit", names, name))
        if most < 0:
            raise InputError(f"limit {name} must be at least 0, not {most}")
    return Limits(**changes)


def product(sizes: Iterable[int]) -> int:
    """The product of sizes that are not negative, or 2^64 if it is more than that."""
    given = list(sizes)
    if 0 in given:
        return 0
    found = 1
    for size in given:
        found *= size
        if found >= _LARGEST:
            return _LARGEST
    return found


def is_shape(sizes: object) -> bool:
    """Whether a JSON value is the shape of an array: a list of at most 32 integers of at least 0."""
    if not isinstance(sizes, list):
        return False
    items = cast(list[object], sizes)
    return len(items) <= MOST_AXES and all(type(size) is int and size >= 0 for size in items)


def is_countable(shape: Iterable[int], item_bytes: int) -> bool:
    """Whether numpy supports arrays of these sizes; a 0 among them does not excuse others that are too large."""
    return math.prod(size for size in shape if size) * item_bytes < 1 << 63
