"""Matches composites to kernels: what each computes, read from its operators, or why it cannot run."""
