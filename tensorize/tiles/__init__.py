"""Chooses tiles of kernels: which are legal on an accelerator, the estimated time of each, and the cheapest."""
