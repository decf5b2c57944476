"""From the accelerator's Verilog to FPGA bitstreams with open tools, and the driver of a board that runs one."""
