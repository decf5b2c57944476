"""Bring your own code generator, by TVM's names: its registries, and what they make of a target of `relay_hw.target`.

`registry` takes what scripts register, `known` has it, `regions` reads partitioned modules, `target` runs code
generators as a target.
"""
