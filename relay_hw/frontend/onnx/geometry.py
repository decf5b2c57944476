"""Window geometry that convolutions and poolings share: strides, dilations, pads, auto_pad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay_hw.errors import UnsupportedError
from relay_hw.frontend.onnx.node import Known, Node
from relay_hw.ir.types import Dim
from relay_hw.op.base import show_shape


@dataclass(frozen=True, slots=True)
class Geometry:
    """Window parameters, one number per axis; `pads`: all beginnings, then all ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]

    @property
    def before(self) -> tuple[int, ...]:
        return self.pads[: len(self.kernel)]

    @property
    def after(self) -> tuple[int, ...]:
        return self.pads[len(self.kernel) :]


def geometry(node: Node, sizes: Sequence[Dim], kernel: Sequence[int]) -> Geometry:
    """The node's windows over data of spatial `sizes`. Raises UnsupportedError if pads depend on open ones."""
    rank = len(sizes)
    strides = tuple(node.attr("strides", [1] * rank))
    dilations = tuple(node.attr("dilations", [1] * rank))
    pads = tuple(node.attr("pads", [0] * 2 * rank))
    auto = node.attr("auto_pad", "NOTSET")
    if auto == "VALID":
        pads = (0,) * 2 * rank
    elif auto.startswith("SAME"):
        totals = [
            max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
            for size, k, stride, dilation in zip(known(sizes, auto), kernel, strides, dilations, strict=True)
        ]
        pads = share(totals, upper=auto == "SAME_UPPER")
    return Geometry(tuple(kernel), strides, dilations, pads)


def known(sizes: Sequence[Dim], what: str) -> tuple[int, ...]:
    """`sizes` as numbers, which `what` needs. Raises UnsupportedError if one is dynamic."""
    found = tuple(size for size in sizes if isinstance(size, int))
    if len(found) != len(sizes):
        raise UnsupportedError(f"the sizes that {what} needs must be known, not {show_shape(sizes)}")
    return found


def share(totals: Sequence[int], upper: bool) -> tuple[int, ...]:
    """Split total paddings into beginnings and ends; an odd one goes to the end if `upper`, else to the beginning."""
    small, large = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    return small + large if upper else large + small


def check_pads(node: Node, names: Known) -> str | None:
    """The reason why the node's padding cannot be imported, or None."""
    if any(pad < 0 for pad in node.attr("pads", [])):
        return f"pads must not be negative, unlike {node.attr('pads')}"
    auto = node.attr("auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        return f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {auto}"
    return None
