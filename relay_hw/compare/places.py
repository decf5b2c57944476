"""Places that strategies are compiled for: accelerators with a memory model, or those that run on a board.

In: names of configurations, maybe of a board. Out: `Place`s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.isa.config import AccelConfig, config_names, load_config
from relay_hw.errors import InputError
from relay_hw.target.accel.board import on_board
from relay_hw.target.accel.clock import STANDARD

# Default configurations, as far as they exist.
USUAL_CONFIGS: Final = ("default", "w4")


@dataclass(frozen=True, slots=True)
class Place:
    """An accelerator, the name of the memory model behind it, and on a board its clock.

    `is_named`: asked for by name, so that every strategy is tried there.
    """

    config: AccelConfig
    memory: str = STANDARD
    board: str = ""
    clock_hz: int | None = None
    is_named: bool = False


def places(configs: Sequence[str | AccelConfig] | None, board: str | None) -> tuple[Place, ...]:
    """The places of these configurations, of the default ones, or of all that a board has a clock for.

    Raises InputError for none, for two of one name, and for a configuration that has no clock on the board.
    """
    is_named = configs is not None
    if configs is None:
        usual = [name for name in USUAL_CONFIGS if name in config_names()]
        configs = usual if board is None else [fit.config for fit in find_board(board).fits]
    loaded = [load_config(config) if isinstance(config, str) else config for config in configs]
    if not loaded:
        raise InputError("configurations must have at least one entry, not none")
    twice = sorted({config.name for config in loaded if [one.name for one in loaded].count(config.name) > 1})
    if twice:
        raise InputError(f"configurations must have different names, not {twice[0]} twice")
    found = (Place(config) if board is None else _on(board, config) for config in loaded)
    return tuple(replace(place, is_named=is_named) for place in found)


def _on(board: str, config: AccelConfig) -> Place:
    found = on_board(board, config.name)
    return Place(config, found.memory, found.board, found.clock_hz)
