"""Lowers kernels under their tiles to steps of commands, whose addresses are still symbols."""
