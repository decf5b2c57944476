"""Names of the simulators, as users choose them."""

from __future__ import annotations

from typing import Final

FUNCTIONAL: Final = "functional"
CYCLE: Final = "cycle"
RTL: Final = "rtl"
