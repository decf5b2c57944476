"""What a build is to be run with: its own memory and board, unless others are asked for.

In: a manifest, names. Out: names, and what is to be said about them.
"""

from __future__ import annotations

from relay_hw.accel.sim.memory import memory_model
from relay_hw.errors import InputError
from relay_hw.runtime.manifest import Manifest
from relay_hw.target.accel.board import OnBoard, on_board


def told_board(manifest: Manifest, asked: str | None) -> OnBoard | None:
    """The board that a build is for: the one asked for, else its own. Raises InputError where it cannot run there."""
    name = asked or manifest.board
    return None if name is None else on_board(name, manifest.sizes.name)


def told_memory(manifest: Manifest, asked: str | None, board: str | None = None) -> tuple[str, str]:
    """The memory to run a build with: its own unless another one, or a board with another one, is asked for.

    With what is to be said about that. Raises ConfigError for a memory that there is not, InputError for two, for a
    board that the build cannot run on, or for a build for another target.
    """
    own, config = manifest.memory_model, manifest.sizes
    if board is not None:
        place = on_board(board, config.name)
        if asked is not None and memory_model(asked) != memory_model(place.memory):
            raise InputError(f"memory must be that of board {place.board}, {place.memory}, not {asked}: leave it out")
        asked = place.memory
    if asked is None or not manifest.regions or memory_model(asked) == memory_model(own):
        return asked or own, ""
    return (
        asked,
        f"memory must be {own}, which the build was optimised for, not {asked}: compile it for that one",
    )
