"""Builders of the `vision.*` operators under Relay's names."""

from __future__ import annotations

from relay_hw.op.boxes import all_class_non_max_suppression, get_valid_counts, non_max_suppression
from relay_hw.op.region_align import roi_align, roi_pool

__all__ = ["all_class_non_max_suppression", "get_valid_counts", "non_max_suppression", "roi_align", "roi_pool"]
