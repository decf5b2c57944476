"""The accelerator: instruction set (`isa`), Verilog (`rtl`), simulators (`sim`), FPGA tools and driver (`fpga`)."""
