"""Kernels under their tiles become steps of commands, whose addresses are still symbols."""
