"""The accelerator: its instruction set (`isa`), its Verilog (`rtl`) and its simulators (`sim`)."""
