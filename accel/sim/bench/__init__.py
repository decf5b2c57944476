"""Test benches of the Verilog in cocotb: one module here for each Verilog module, run by `runner.run_bench`."""
