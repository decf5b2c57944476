"""How operator attributes are stored in TVM's JSON: as nodes or inline. Shared by reader and writer."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

# Numbers that TVM keeps as nodes although every one of them is there.
_OBJECTS: Final = frozenset(
    (
        ("take", "batch_dims"),
        ("gather_nd", "batch_dims"),
        ("repeat", "repeats"),
        ("stack", "axis"),
        ("scatter_elements", "axis"),
        ("reverse_sequence", "seq_axis"),
        ("reverse_sequence", "batch_axis"),
        ("cumsum", "exclusive"),
        ("cumprod", "exclusive"),
        ("dft", "inverse"),
    )
)
# Operators whose strings are inline; those of all others are nodes.
_PLAIN_STRINGS: Final = frozenset(
    (
        "layout_transform",
        "nn.mirror_pad",
        "nn.depth_to_space",
        "nn.space_to_depth",
        "qnn.requantize",
        "annotation.compiler_begin",
        "annotation.compiler_end",
        "topk",
        "dyn.topk",
    )
)
_RECORDS: Final = MappingProxyType(
    {
        "cumsum": "ScanopAttrs",
        "cumprod": "ScanopAttrs",
        "ndarray_size": "NdarraySizeAttrs",
        "vision.roi_align": "ROIAlignAttrs",
        "vision.roi_pool": "ROIPoolAttrs",
        "vision.get_valid_counts": "GetValidCountsAttrs",
        "vision.non_max_suppression": "NonMaximumSuppressionAttrs",
        "vision.all_class_non_max_suppression": "AllClassNonMaximumSuppressionAttrs",
    }
)


def record_key(op: str, ours: str) -> str:
    """The type key of the attributes of `op`, whose record is called `ours` here."""
    return f"relay.attrs.{_RECORDS.get(op, ours)}"


def is_node(op: str, name: str, options: Sequence[Any]) -> bool:
    """Whether the attribute `name`, which may have the types `options`, is a node: lists and numbers that may be None.

    Strings are another matter: see `is_text_node`.
    """
    is_list = any(getattr(option, "__origin__", option) is tuple for option in options)
    return is_list or (int in options and type(None) in options) or (op, name) in _OBJECTS


def is_text_node(op: str, name: str) -> bool:
    """Whether TVM 0.18 keeps the string `name` as a node. Older versions keep none, and element types never are."""
    return not name.endswith("dtype") and op not in _PLAIN_STRINGS
