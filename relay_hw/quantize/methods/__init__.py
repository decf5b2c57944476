"""Quantization methods, one per file: each improves on rounding to nearest.

In: a float network, its plan, calibration data. Out: better integers, biases, widths or float weights.
"""
