"""Errors of the instruction-set room. It imports no room above it, so it has a family of its own."""

from __future__ import annotations

from enum import IntEnum

from relay_hw.support import quote


class AccelError(Exception):
    """Base of every error that the accelerator rooms raise on purpose. Its message is one line, whatever files hold."""

    def __init__(self, message: str) -> None:
        super().__init__(quote.sentence(message))


class ConfigError(AccelError):
    """A configuration file that is malformed, or whose sizes do not fit together."""


class AsmError(AccelError):
    """Assembly text that cannot be read; the message starts with `file:line:`."""


class ProgramError(AccelError):
    """A program container that is damaged, of another version, or made for another configuration."""


class DeadlockError(AccelError):
    """Units that wait for tokens which nobody will give; hardware stops with its watchdog."""


class FaultCode(IntEnum):
    """Why the accelerator stopped; the value of STATUS.fault_code."""

    NONE = 0
    ILLEGAL_OPCODE = 1
    RESERVED_BITS = 2
    ILLEGAL_FIELD = 3
    SRAM_RANGE = 4
    DRAM_RANGE = 5
    TOKEN_OVERFLOW = 6
    AXI_READ = 7
    AXI_WRITE = 8
    WATCHDOG = 9
    ACC_BANK = 10


class EncodeError(AccelError):
    """A field value that does not fit, an unknown field, or a word that decodes to nothing legal.

    `code` is the fault that hardware raises for such a word.
    """

    def __init__(self, message: str, code: FaultCode = FaultCode.ILLEGAL_FIELD) -> None:
        super().__init__(message)
        self.code = code


class Fault(AccelError):
    """An instruction that the accelerator refuses, at `index` in the program."""

    def __init__(self, code: FaultCode, index: int, detail: str) -> None:
        super().__init__(f"instruction {index}: {code.name}: {detail}")
        self.code = code
        self.index = index
        self.detail = detail
