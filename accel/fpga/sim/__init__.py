"""Boards in simulation: the complete System under Verilator, its serial line behind a socket."""
