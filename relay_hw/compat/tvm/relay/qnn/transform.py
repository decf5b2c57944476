"""TVM's `relay.qnn.transform`."""

from relay_hw.qnn.transform import CanonicalizeOps, Legalize

__all__ = ["CanonicalizeOps", "Legalize"]
