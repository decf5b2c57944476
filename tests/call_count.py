"""How much work something is, the same on every machine, busy or not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def count_calls(task: Callable[[], object]) -> int:
    """How often `task` calls a function, be it of Python or built in, and returns from it."""
    found = 0

    def count(_frame: FrameType, _event: str, _arg: object) -> None:
        nonlocal found
        found += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        task()
    finally:
        sys.setprofile(before)
    return found
