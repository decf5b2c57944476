"""TVM's `relay.qnn.transform`."""

from relay_hw.transform import Legalize, QnnCanonicalizeOps

CanonicalizeOps = QnnCanonicalizeOps

__all__ = ["CanonicalizeOps", "Legalize"]
