"""Simulators of the accelerator behind one `Device` protocol: functional, cycle, RTL; and the cocotb benches."""
