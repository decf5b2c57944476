"""Models of CPUs for schedules: vector lanes and registers, feature levels of builds, register tiles.

In: a CPU level or an architecture. Out: `Machine`, and how many results a kernel keeps in registers at once.
"""

from __future__ import annotations

from dataclasses import dataclass

GENERIC = "generic"
# Each level with the CPU features that it needs, the best one first.
X86_LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("x86-64-v4", ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")),
    ("x86-64-v3", ("avx2", "fma", "f16c", "bmi2")),
    ("x86-64", ("sse2",)),
)
# Names that LLVM gives processors with registers of 512 bits, and with those of 256 bits; a prefix is enough.
_WIDE = ("x86-64-v4", "skylake-avx512", "cascadelake", "cooperlake", "cannonlake", "icelake", "tigerlake")
_WIDE += ("rocketlake", "sapphirerapids", "emeraldrapids", "graniterapids", "znver4", "znver5")
_MIDDLE = ("x86-64-v3", "haswell", "broadwell", "skylake", "alderlake", "core-avx2", "znver")
# Steps between dependent multiply-adds, and how many of them start in one cycle.
LATENCY, PORTS = 4, 2
MOST_PIXELS = 16
MOST_VECTORS = 8


@dataclass(frozen=True, slots=True)
class Machine:
    """`level`: what LLVM compiles for. `lanes`: elements of 32 bits in a vector; `registers`: how many it holds.

    `broadcasts`: whether a multiply-add reads one element for all lanes from memory, so that it needs no register.
    `is_cpu`: else the kernels are scheduled for a GPU, whose lanes are threads.
    """

    level: str = GENERIC
    lanes: int = 4
    registers: int = 16
    broadcasts: bool = False
    is_cpu: bool = True


def machine(level: str, arch: str = "x86_64") -> Machine:
    """The description of `level`, an LLVM name, on the architecture `arch`."""
    if arch == "aarch64":
        # Multiplication by one lane of a register: no broadcast.
        return Machine(level, 4, 32, True)
    if level.startswith(_WIDE):
        return Machine(level, 16, 32, True)
    return Machine(level, 8) if level.startswith(_MIDDLE) else Machine(level)


@dataclass(frozen=True, slots=True)
class Tile:
    """Results in registers at once: `pixels` columns times `vectors` of `lanes` channels."""

    pixels: int
    vectors: int
    lanes: int


def choose_tile(columns: int, channels: int, target: Machine) -> Tile:
    """The tile that keeps the multiply-adds busiest for that many columns and (a group's) channels."""
    lanes = min(target.lanes, 1 << max(0, channels - 1).bit_length())
    blocks = -(-channels // lanes)
    choices = [
        Tile(pixels, vectors, lanes)
        for pixels in range(1, min(columns, MOST_PIXELS) + 1)
        for vectors in range(1, min(blocks, MOST_VECTORS) + 1)
        if blocks % vectors == 0 and _fits(pixels, vectors, target)
    ]
    return max(choices, key=lambda tile: (round(_speed(tile, columns), 2), -tile.pixels - tile.vectors, tile.pixels))


def _fits(pixels: int, vectors: int, target: Machine) -> bool:
    return pixels * vectors + vectors + (0 if target.broadcasts else 1) <= target.registers


def _speed(tile: Tile, columns: int) -> float:
    """Useful multiply-adds of a step over what the time of the step has room for."""
    work = tile.pixels * tile.vectors
    # Loads share their ports with nothing else, but late ones hold up the rest: count them half again.
    cycles = max(work / PORTS, 0.75 * (tile.pixels + tile.vectors), LATENCY)
    padded = -(-columns // tile.pixels) * tile.pixels
    staging = 1.0 if columns % tile.pixels == 0 else 0.97
    return work / (PORTS * cycles) * columns / padded * staging
