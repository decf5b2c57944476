"""`relay-hw list`: the names that options take, each with what a reader chooses it by.

In: parsed arguments. Out: exit status; a table or JSON through the console.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from relay_hw.cli.console import Console

Rows = list[dict[str, Any]]


def list_command(args: Namespace, console: Console) -> int:
    """Print all names of one kind."""
    from relay_hw.report import table

    rows = _KINDS[args.kind]()
    header = tuple(rows[0])
    cells = [tuple(_text(value) for value in row.values()) for row in rows]
    right = frozenset(key for key in header if isinstance(rows[0][key], int | float))
    console.result({args.kind: rows}, table(header, cells, right, console.width))
    return 0


def names(kind: str) -> list[str]:
    """Only the names."""
    return [row["name"] for row in _KINDS[kind]()]


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _configs() -> Rows:
    from relay_hw.accel.isa.config import config_names, load_config

    return [
        {
            "name": config.name,
            "MACs per cycle": config.macs_per_cycle,
            "weight bits": config.wgt_bits,
            "scratchpad bytes": config.scratchpad_bytes,
            "bus bits": config.axi_data_bits,
        }
        for config in map(load_config, config_names())
    ]


def _strategies() -> Rows:
    from relay_hw.quantize.recipes import STRATEGIES

    return [{"name": strategy.name, "summary": strategy.summary} for strategy in STRATEGIES]


def _boards() -> Rows:
    from relay_hw.accel.fpga.boards import BOARDS

    return [
        {
            "name": board.name,
            "board": board.title,
            "configurations": ", ".join(f"{fit.config} at {fit.mhz:g} MHz" for fit in board.fits),
            "memory": board.sdram.name,
            "link": board.link.value,
        }
        for board in BOARDS
    ]


def _memories() -> Rows:
    from relay_hw.accel.sim.dram_timing import MEMORY_MODELS

    return [
        {
            "name": name,
            "latency": model.latency,
            "reads in flight": model.read_outstanding,
            "writes in flight": model.write_outstanding,
            "chip": "none" if model.sdram is None else f"SDRAM of {8 * model.sdram.column_bytes} bits",
        }
        for name, model in MEMORY_MODELS.items()
    ]


def _targets() -> Rows:
    from relay_hw.target.registry import find_target, target_names

    return [{"name": name, "devices": ", ".join(find_target(name).devices)} for name in target_names()]


def _devices() -> Rows:
    from relay_hw.target.accel.devices import DEVICES

    exact = {True: "exact", False: "none"}
    return [{"name": kind.name, "cycles": exact[kind.has_exact_cycles]} for kind in DEVICES]


_KINDS: Final[Mapping[str, Callable[[], Rows]]] = MappingProxyType(
    {
        "configs": _configs,
        "strategies": _strategies,
        "boards": _boards,
        "memories": _memories,
        "targets": _targets,
        "devices": _devices,
    }
)
KINDS: Final = tuple(_KINDS)
