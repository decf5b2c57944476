"""Runs `.asm` programs on any device and compares what they leave in DRAM with `.exp` files.

`python -m tests.accel.isa.runner --write` makes the `.exp` files anew with the oracle, not with the code under test.
Format of `.exp`: `done`, `deadlock`, or `fault NAME INDEX`; after `done`, per section of kind output, `section NAME`
and lines of hexadecimal bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import DeadlockError, Fault, FaultCode
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.device import Device, LaunchStats
from tests.accel.isa.oracle import Oracle, OracleDeadlock, OracleFault

PROGRAM_DIR = Path(__file__).parent / "programs"
PROGRAMS = tuple(sorted(PROGRAM_DIR.glob("*.asm")))
MakeDevice = Callable[[AccelConfig], Device]


@dataclass(frozen=True)
class Expected:
    """How a run ends, and the bytes of each output section when it ends well."""

    outcome: str
    sections: dict[str, bytes]


def run_asm(path: Path, make_device: MakeDevice) -> LaunchStats | None:
    """Run one program; assert outcome and bytes. Returns the statistics of a run that ends well."""
    program = assemble_file(path)
    return check_run(program, load_config(program.config), make_device, read_exp(path.with_suffix(".exp")))


def check_run(program: Program, config: AccelConfig, make_device: MakeDevice, expected: Expected) -> LaunchStats | None:
    device = make_device(config)
    device.load(program)
    if expected.outcome == "deadlock":
        with pytest.raises((DeadlockError, Fault)) as stuck:
            device.launch()
        assert isinstance(stuck.value, DeadlockError) or stuck.value.code is FaultCode.WATCHDOG
        return None
    if expected.outcome.startswith("fault"):
        with pytest.raises(Fault) as caught:
            device.launch()
        assert f"fault {caught.value.code.name} {caught.value.index}" == expected.outcome
        return None
    stats = device.launch()
    for name, data in expected.sections.items():
        section = program.section(name)
        assert device.read(section.offset, section.size).tobytes().hex(" ", 16) == data.hex(" ", 16), name
    return stats


def oracle_run(program: Program, config: AccelConfig) -> Expected:
    """What the oracle says. Words that do not decode are judged here, by hand."""
    window = bytearray(program.window_bytes)
    for section in program.sections:
        if section.data is not None:
            window[section.offset : section.end] = section.data
    illegal = illegal_word(program, bool(config.cof_depth))
    if illegal is not None:
        return Expected(f"fault {illegal[0]} {illegal[1]}", {})
    try:
        Oracle(config, window).run(program.code.offset, program.count)
    except OracleDeadlock:
        return Expected("deadlock", {})
    except OracleFault as fault:
        return Expected(f"fault {fault.name} {fault.index}", {})
    outputs = [section for section in program.sections if section.kind is SectionKind.OUTPUT]
    return Expected("done", {s.name: bytes(window[s.offset : s.end]) for s in outputs})


# For each opcode: bits that no field covers, as (word, mask); fields with a closed set, as (word, low bit, width,
# largest value); fields of at least 1, as (word, low bit).
_RESERVED = {
    1: [],
    2: [(0, 0xFFFFF000), (7, 0xFFFFFFFF)],
    3: [(0, 0x0000E000)],
    4: [(0, 0xFFFF8000)],
    5: [(0, 0x00008000), (7, 0xFF000000)],
    7: [],
    8: [(0, 0x0000FC00), (5, 0x80FC0000)],
    6: [(0, 0xFFFFFF00), *((word, 0xFFFFFFFF) for word in range(1, 8))],
}
_CLOSED = {1: [(0, 8, 4, 7)], 2: [(0, 8, 4, 7)], 3: [(0, 11, 2, 2)], 4: [(0, 8, 4, 6)]}
_CLOSED |= {5: [(0, 10, 2, 2)], 8: [(0, 8, 2, 2)]}
_COUNTS = {1: [(3, 16), (4, 0), (4, 16)], 2: [(3, 16), (4, 0), (4, 16)]}
_COUNTS |= {opcode: [(2, 0), (2, 16)] for opcode in (3, 4, 5, 8)}
_COUNTS |= {7: [(4, 0), (4, 16), (6, 0), (7, 0)]}


def illegal_word(program: Program, has_rows: bool) -> tuple[str, int] | None:
    """Fault name and index of the first word that the dispatcher must not accept, whatever runs before it."""
    rows = program.instruction_words().tolist()
    for index, row in enumerate(rows):
        opcode = row[0] & 0xFF
        if opcode not in _RESERVED or (opcode == 8 and not has_rows):
            return "ILLEGAL_OPCODE", index
        if any(row[word] & mask for word, mask in _RESERVED[opcode]):
            return "RESERVED_BITS", index
        bad_enum = any(row[w] >> lo & ((1 << n) - 1) > top for w, lo, n, top in _CLOSED.get(opcode, []))
        if bad_enum or any(row[w] >> lo & 0xFFFF == 0 for w, lo in _COUNTS.get(opcode, [])):
            return "ILLEGAL_FIELD", index
        if opcode == 7 and not row[3] >> 16 & 0xFF:
            return "ILLEGAL_FIELD", index
        if opcode == 6 and index + 1 < len(rows):
            return "ILLEGAL_FIELD", index
        if opcode == 5 and (row[7] & 0xFF ^ 0x80) > (row[7] >> 8 & 0xFF ^ 0x80):
            return "ILLEGAL_FIELD", index
        if opcode == 4 and row[0] >> 8 & 0xF == 6 and not row[0] >> 12 & 1:
            return "ILLEGAL_FIELD", index
    return None if rows[-1][0] & 0xFF == 6 else ("ILLEGAL_OPCODE", len(rows))


def read_exp(path: Path) -> Expected:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith(";")]
    sections: dict[str, str] = {}
    name = ""
    for line in lines[1:]:
        if line.startswith("section "):
            name = line.split()[1]
            sections[name] = ""
        else:
            sections[name] += line
    return Expected(lines[0], {key: bytes.fromhex(text) for key, text in sections.items()})


def exp_text(expected: Expected) -> str:
    lines = ["; written by the oracle: python -m tests.accel.isa.runner --write", expected.outcome]
    for name, data in expected.sections.items():
        lines.append(f"section {name}")
        lines += [data[begin : begin + 32].hex() for begin in range(0, len(data), 32)]
    return "\n".join(lines) + "\n"


def main() -> None:
    for path in PROGRAMS:
        program = assemble_file(path)
        text = exp_text(oracle_run(program, load_config(program.config)))
        if "--write" in sys.argv:
            path.with_suffix(".exp").write_text(text)
        print(path.stem, text.splitlines()[1])


if __name__ == "__main__":
    main()
