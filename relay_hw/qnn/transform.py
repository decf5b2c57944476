"""The passes of the QNN dialect under Relay's names."""

from relay_hw.transform import Legalize
from relay_hw.transform import QnnCanonicalizeOps as CanonicalizeOps

__all__ = ["CanonicalizeOps", "Legalize"]
