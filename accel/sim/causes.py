"""Causes of lost cycles, as simulator, profiles, reports and documents name them.

In: nothing. Out: `Cause`, each with a name and its meaning in one line.
"""

from __future__ import annotations

from enum import Enum


class Cause(str, Enum):
    """Why a cycle of the array was spent. The simulator tells all but two: who knows the model's products splits LANES
    off the cycles in which the array works, and who knows all launches of an inference calls those of loads RELOAD."""

    meaning: str

    PRODUCTS = "products", "the array makes products of the model"
    LANES = "lanes", "multipliers of the array without a product of the model: padding, narrow channels, depthwise taps"
    ALU = "alu", "pools, adds and other work on the accumulator"
    FILL = "fill", "before the first slot of COMPUTE"
    BUS = "bus", "a load was waited for, and the bus brought its data"
    LATENCY = "latency", "a load was waited for, and the bus brought nothing"
    UNFOLD = "unfold", "GATHER unfolded windows"
    RELOAD = "reload", "a launch of its own loaded resident constants again, which another program had overwritten"
    OUTPUT = "output", "the output stage was waited for, or wrote inp in the place of a load"
    ROW = "row", "the row unit was waited for"
    STORE = "store", "a store was waited for, which held a buffer"
    PIPELINE = "pipeline", "an effect in COMPUTE's own pipeline was waited for"
    QUEUE = "queue", "the dispatcher was held by a full queue"
    FETCH = "fetch", "the instruction was not fetched yet"
    DRAIN = "drain", "behind the last slot of COMPUTE"

    def __new__(cls, value: str, meaning: str) -> Cause:
        """A member that is its own name as text."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    def __str__(self) -> str:
        return self.value

    # Equal to its name as text, so it must be found by that too.
    __hash__ = str.__hash__

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)


# Cycles in which no product of the model was made.
LOST = tuple(cause for cause in Cause if cause is not Cause.PRODUCTS)
# COMPUTE waits for a load: the bus brings its data, or does not (asked too late, or short bursts), or the row buffer of
# GATHER unfolds windows.
LOADS = (Cause.BUS, Cause.LATENCY, Cause.UNFOLD)
