"""Relay functions become kernels: what each composite computes, read from its operators, or why it cannot run."""
