"""The contract between compiler, simulators and Verilog. This package imports nothing else of the project."""
