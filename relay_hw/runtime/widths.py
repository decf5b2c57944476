"""Finds bit widths of a strategy that an accelerator stores in wider integers, without gain.

In: a strategy, a configuration. Out: a sentence for users.
"""

from __future__ import annotations

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.quantize.strategy import MAX_BITS, Strategy


def no_gain(strategy: Strategy, config: AccelConfig) -> str:
    """Which of the strategy's widths the accelerator stores in wider integers, in a sentence; empty for none."""
    widths = {strategy.weight_bits} | {one.weight_bits for one in strategy.layers if one.weight_bits is not None}
    if strategy.budget is not None:
        widths |= set(strategy.mixed_bits)
    notes: list[str] = []
    for bits in sorted(widths - {MAX_BITS}):
        held, kind = _held(bits, strategy, config)
        if held != bits:
            notes.append(f"{bits}-bit weights{kind} as {held}-bit ones")
    if strategy.activation_bits < MAX_BITS:
        notes.append(f"{strategy.activation_bits}-bit activations as {MAX_BITS}-bit ones")
    return f"no gain on {config.name}: {', '.join(notes)}" if notes else ""


def _held(bits: int, strategy: Strategy, config: AccelConfig) -> tuple[int, str]:
    """Bits of memory for each weight of `bits` bits, and what the weights are called."""
    array, half = config.wgt_bits, config.wgt_bits // 2
    packs = config.wgt_bytes >= 2 * config.granule_bytes
    largest = strategy.largest(bits)
    if largest == (1 << (bits - 1)) - 1:
        kind = ""
    else:
        kind = f" in groups of {strategy.weight_group}"
        fits = strategy.weight_group % config.inp_lanes == 0 and largest < 1 << (array - 1)
        if packs and fits and bits <= half:
            return half, kind
    widths = [half] if packs else []
    widths += [array] if array < MAX_BITS else []
    return next((width for width in widths if largest < 1 << (width - 1)), MAX_BITS), kind
