"""The demonstration that travels with the package: handwritten digits from ONNX to Verilog, bit for bit."""
