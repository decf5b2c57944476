"""The packaged demo: handwritten digits from ONNX to Verilog, bit for bit."""
