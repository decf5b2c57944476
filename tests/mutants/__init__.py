"""Mutants of the Verilog: operators choose changes, build makes one model of all, suite runs trials on each.

Trials are in `stimuli`, `launches`, `meetings`, `rows`, `refused`, `words`, `roundings` and `chains`; `alone` and
`equivalence` look at a mutant in its module alone; `miter` makes one circuit of two, `premises` says what may be taken
for granted.
"""
