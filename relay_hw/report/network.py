"""The network graph of a report: a node for each operator, with its result and its place in the sources.

In: values from compiling. Out: frozen records, which a build keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INPUT: Final = "input"
OUTPUT: Final = "output"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the imported module, counted from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of the partitioned model, or an input or output of it.

    `where`: the name of a target, `host`, INPUT or OUTPUT; `inputs`: numbers of nodes before it; `layer`: number of its
    row among the build's layers, -1 of none. `shape` and `dtype` are those of its result. `names`: of what it was made
    of, as the model's file has them; `relay`: the same as lines of text. `scale`, `zero_point`: of an integer result;
    `noise_db`: how far that is from the float tensor, on samples that were held back from calibration.
    """

    name: str
    operator: str
    where: str
    inputs: tuple[int, ...]
    layer: int
    shape: str
    dtype: str
    names: tuple[str, ...] = ()
    relay: tuple[Line, ...] = ()
    scale: float | None = None
    zero_point: int | None = None
    noise_db: float | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes, each behind those that it reads."""

    nodes: tuple[Node, ...]

    def problem(self, layers: int) -> str:
        """The first inconsistency with `layers` rows of layers; empty if there is none."""
        for number, node in enumerate(self.nodes):
            if any(not 0 <= other < number for other in node.inputs):
                return f"node {number} must read nodes before it, not {list(node.inputs)}"
            if not -1 <= node.layer < layers:
                return f"node {number} must have one of {layers} layers, not {node.layer}"
        return ""
