"""A toy NPU as a target of its own: an engine that multiplies eight pairs of int8 a cycle, for dense layers.

It shows all that a machine has to bring: what it takes (`composites` names the operators, `why_not` the limits), how a
layer becomes a program, and who runs that (`simulator.py`). `relay.target.register("toy", toy_npu.make)` makes it
known; an installed package names `make` in an entry point of the group `relay_hw.targets` instead.
"""

from examples.toy_npu.target import ToyTarget, make

__all__ = ["ToyTarget", "make"]
