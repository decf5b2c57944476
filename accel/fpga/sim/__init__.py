"""Boards in simulation: the complete SoC under Verilator, its serial line behind a socket.

`ecp5/` and `gowin/` have models of the cells that netlists are made of; `switching/` counts what switches on one.
"""
