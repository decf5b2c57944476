"""Chooses the memory model and board to run a build with: its own, unless others are asked for.

In: a manifest, names. Out: names, and what is to be said about them.
"""

from __future__ import annotations

from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.errors import InputError
from relay_hw.runtime.manifest import Manifest
from relay_hw.target.accel.board import OnBoard, on_board


def told_board(manifest: Manifest, asked: str | None) -> OnBoard | None:
    """The board to use: the one asked for, else the build's. Raises InputError if the build cannot run there."""
    name = asked or manifest.board
    return None if name is None else on_board(name, manifest.sizes.name)


def told_memory(manifest: Manifest, asked: str | None, board: str | None = None) -> tuple[str, str]:
    """The memory model to use: the build's, unless another one or a board is asked for.

    Also returns a warning. Raises ConfigError for an unknown memory, InputError for two, for a
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
