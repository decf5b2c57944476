"""Tiles of kernels: which are legal on an accelerator, how long each takes by its closed form, and the cheapest."""
