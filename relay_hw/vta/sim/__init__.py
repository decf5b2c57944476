"""VTA's semantics, written from its rules: they know nothing of the compiler.

`choices.py` names what its implementations disagree about, `machine.py` runs programs, `state.py`, `memory.py` and
`arith.py` are the effect of one instruction, `checker.py` proves that tokens order what must be ordered.
"""
