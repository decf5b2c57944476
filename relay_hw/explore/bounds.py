"""Lower bounds of a point's cost without compiling: points that cannot be on the front are not measured.

In: a design, the network's work. Out: bounds that hold for every program (`tests/relay_hw/target/accel/test_bounds.py`
has them against the Verilog).
"""

from __future__ import annotations

from collections import Counter

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.compare.energy import Energy, estimate
from relay_hw.compare.network_work import NIBBLE, Work
from relay_hw.explore.results import Measured


def least(config: AccelConfig, work: Work) -> Measured:
    """A measurement that no program beats where all products run on the accelerator: products of a cycle, no padding.

    Rounded down once, since several layers may become one.
    """
    narrow = work.macs_of(NIBBLE)
    twice = config.wgt_bits == NIBBLE
    products = narrow + (work.macs - narrow) * (2 if twice else 1)
    cycles = products // config.macs_per_cycle
    return Measured(
        cycles=cycles,
        launches=0,
        macs=work.macs,
        accel_macs=work.macs,
        energy=_least_energy(config, work, cycles),
    )


def _least_energy(config: AccelConfig, work: Work, cycles: int) -> Energy:
    """Of products and of what each of their cycles reads and clocks; nothing is moved, nothing requantized."""
    counters = Counter({"GEMM_UOPS": cycles, "COMPUTE_BUSY": cycles})
    widths = {layer.bits for layer in work.layers}
    return estimate(config, counters, {bits: work.macs_of(bits) for bits in widths}, {})
