"""The packaged demo: handwritten digits from ONNX to Verilog, bit for bit.

Its network is the file MODEL; `read_digits` gives calibration and test data.
"""

from relay_hw.demo.digits import MODEL, Digits, read_digits

__all__ = ["MODEL", "Digits", "read_digits"]
