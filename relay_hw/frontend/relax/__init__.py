"""Converts Relax modules, of TVM's graph language, to Relay.

In: a Relax module. Out: a Relay module of the same functions.
"""

from __future__ import annotations

from relay_hw.frontend.relax.reader import from_relax

__all__ = ["from_relax"]
