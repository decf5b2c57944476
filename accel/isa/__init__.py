"""The instruction set: the contract between compiler, simulators and Verilog. It imports nothing else of the project.

`configs/` has the sizes of each accelerator, one JSON file a configuration.
"""
