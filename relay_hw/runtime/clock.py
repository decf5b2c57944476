"""The compiler's clock: the exact engine of the cycle simulator, with the memory that programs are made for.

In: a configuration and a memory model. Out: the target that tensorize compiles for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accel.isa.config import AccelConfig
from accel.sim.cycle.timing import Launch, launch_of
from accel.sim.memory import MemoryModel, memory_model
from relay_hw.errors import InputError
from relay_hw.runtime.board import OnBoard, on_board
from relay_hw.runtime.manifest import Manifest
from tensorize.target import Instruction, Memory, Target

# The memory that a build is made for where none is named.
STANDARD = "standard"
# Bursts of an SDRAM controller: one that it works at, one that waits in its registers.
_SDRAM_BURSTS = 2


@dataclass(frozen=True, slots=True)
class EngineClock:
    """Launches by the exact engine; see `tensorize.target.Clock`."""

    memory: MemoryModel

    def __call__(self, instructions: Sequence[Instruction], config: AccelConfig, place: int) -> Launch:
        """The launch. Raises Fault, DeadlockError."""
        return launch_of(config, self.memory, place, instructions)


def target_of(config: AccelConfig, memory: MemoryModel) -> Target:
    """The target of programs for that accelerator with that memory."""
    return Target.of(config, _numbers(config, memory), EngineClock(memory))


def told_board(manifest: Manifest, asked: str | None) -> OnBoard | None:
    """The board that a build is for: the one asked for, else its own. Raises InputError where it cannot run there."""
    name = asked or manifest.board
    return None if name is None else on_board(name, manifest.config.name)


def told_memory(manifest: Manifest, asked: str | None, board: str | None = None) -> tuple[str, str]:
    """The memory to run a build with: its own unless another one, or a board with another one, is asked for.

    With what is to be said about that. Raises ConfigError for a memory that there is not, InputError for two, or for a
    board that the build cannot run on.
    """
    own = manifest.memory_model
    if board is not None:
        place = on_board(board, manifest.config.name)
        if asked is not None and memory_model(asked) != memory_model(place.memory):
            raise InputError(f"memory must be that of board {place.board}, {place.memory}, not {asked}: leave it out")
        asked = place.memory
    if asked is None or not manifest.accel or memory_model(asked) == memory_model(own):
        return asked or own, ""
    return (
        asked,
        f"memory must be {own}, for which this build was made, to be its best, not {asked}: compile it for that",
    )


def _numbers(config: AccelConfig, memory: MemoryModel) -> Memory:
    """What closed forms know of the model."""
    chip = memory.sdram
    if chip is None:
        return Memory(memory.latency, memory.read_outstanding, memory.write_outstanding)
    # Of a row that is opened for it.
    latency = chip.rp + 1 + chip.rcd + chip.beat_cycles(config) + memory.latency
    return Memory(latency, _SDRAM_BURSTS, _SDRAM_BURSTS)
