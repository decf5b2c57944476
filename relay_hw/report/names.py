"""Shortens names of layers for tables and plots; callers must quote them.

In: names as models have them. Out: short ones, all different.
"""

from __future__ import annotations

from collections.abc import Sequence


def short_names(names: Sequence[str], most: int = 40) -> dict[str, str]:
    """Short unique names: of fused names the first, long paths without their front."""
    found: dict[str, str] = {}
    for name in names:
        first = name.split(";")[0]
        if len(first) > most and "/" in first:
            parts = first.split("/")
            ends = ("…/" + "/".join(parts[k:]) for k in range(1, len(parts)))
            first = next((end for end in ends if len(end) <= most), parts[-1])
        short = first if len(first) <= most else f"{first[: most // 2 - 1]}…{first[-most // 2 :]}"
        same = sum(1 for other in found.values() if other == short or other.startswith(f"{short} #"))
        found[name] = f"{short} #{same + 1}" if same else short
    return found
