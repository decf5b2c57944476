"""Simulates boards: the complete SoC under Verilator, its serial link behind a socket.

`ecp5/` and `gowin/` have models of the cells that netlists are made of; `switching/` counts what switches on one.
"""
