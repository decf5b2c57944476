"""VTA, the Versatile Tensor Accelerator, as a target: nothing of the accelerator in this repository is in it.

It was written from published facts about VTA's instructions. Nobody here has loaded its programs on a board.
`isa.py` has the instructions, `geometry.py` the sizes in `configs/`, `sim/` a simulator and a checker of tokens
that know nothing of the compiler.
"""

from relay_hw.vta.target import VtaTarget, make

__all__ = ["VtaTarget", "make"]
