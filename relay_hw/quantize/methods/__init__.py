"""Methods of quantization, one a file: each improves what rounding to the nearest would give.

In: a float network, its plan, calibration data. Out: better integers, biases, widths or float weights.
"""
