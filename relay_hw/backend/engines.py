"""Names of what evaluates integer models on the host, as users choose them."""

from __future__ import annotations

from typing import Final

ENGINES: Final = ("auto", "tvm", "numpy")
