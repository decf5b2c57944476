"""cocotb benches of the RTL: one module here for each Verilog module, run by `runner.run_bench`."""
