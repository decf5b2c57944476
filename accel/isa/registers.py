"""The registers of the AXI4-Lite block: one table.

Readers: Verilog header, ISA.md, drivers, simulators.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Register:
    """One 32-bit register of the AXI4-Lite block at byte `offset`. `access`: ro, rw or wo."""

    name: str
    offset: int
    access: str
    doc: str


REGISTERS: tuple[Register, ...] = (
    Register("MAGIC", 0x00, "ro", "0x57484C52"),
    Register("VERSION", 0x04, "ro", "version of the instruction set"),
    Register("CONFIG_HASH", 0x08, "ro", "hash of the configuration's sizes"),
    Register("CONTROL", 0x0C, "wo", "bit 0 launches the program, bit 1 resets the core (no scratchpad); see Faults"),
    Register("STATUS", 0x10, "ro", "bit 0 busy, bit 1 done, bit 2 fault, bits 15:8 fault code"),
    Register("FAULT_INDEX", 0x14, "ro", "index of the instruction that faulted"),
    Register("WINDOW_BASE", 0x18, "rw", "bus address of the window's first byte; 4 KiB aligned"),
    Register("WINDOW_BYTES", 0x1C, "rw", "size of the window; DMA outside it is a fault"),
    Register("PROGRAM", 0x20, "rw", "byte offset of the first instruction in the window; a multiple of 32"),
    Register("COUNT", 0x24, "rw", "number of instructions"),
    Register("WATCHDOG", 0x28, "rw", "fault when a launch takes more cycles than this; 0 turns it off"),
    Register("CYCLES", 0x40, "ro", "cycles from launch to done"),
    Register("LOAD_BUSY", 0x44, "ro", "cycles in which the load unit has an instruction in progress"),
    Register("LOAD_TOKEN", 0x48, "ro", "cycles in which the load unit's next instruction waits for tokens"),
    Register("LOAD_MEMORY", 0x4C, "ro", "cycles in which the load unit has data outstanding and receives none"),
    Register("COMPUTE_BUSY", 0x50, "ro", "cycles in which the compute unit issues a micro-op or drains"),
    Register("COMPUTE_TOKEN", 0x54, "ro", "cycles in which the compute unit's next instruction waits for tokens"),
    Register("OUTPUT_BUSY", 0x58, "ro", "cycles in which the output stage has an instruction in progress"),
    Register("OUTPUT_TOKEN", 0x5C, "ro", "cycles in which the output stage's next instruction waits for tokens"),
    Register("STORE_BUSY", 0x60, "ro", "cycles in which the store unit has an instruction in progress"),
    Register("STORE_TOKEN", 0x64, "ro", "cycles in which the store unit's next instruction waits for tokens"),
    Register("STORE_MEMORY", 0x68, "ro", "cycles in which the store unit waits for the bus or for responses"),
    Register("GEMM_UOPS", 0x6C, "ro", "micro-ops of GEMM issued; times the block sizes: multiply-accumulates"),
    Register("ALU_UOPS", 0x70, "ro", "micro-ops of ALU issued"),
    Register("OUTPUT_VECTORS", 0x74, "ro", "vectors that the output stage wrote"),
    Register("FETCH_BYTES", 0x78, "ro", "bytes of instructions read"),
    Register("READ_BYTES", 0x7C, "ro", "bytes read by LOAD"),
    Register("WRITE_BYTES", 0x80, "ro", "bytes written by STORE"),
    Register("ROW_BUSY", 0x84, "ro", "cycles in which the row unit has an instruction in progress"),
    Register("ROW_TOKEN", 0x88, "ro", "cycles in which the row unit's next instruction waits for tokens"),
    Register("INSTRUCTIONS", 0x8C, "ro", "instructions dispatched"),
)
REGISTER: dict[str, Register] = {register.name: register for register in REGISTERS}
