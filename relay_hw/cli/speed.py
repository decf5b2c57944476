"""Speed of an inference on a board, for commands with `--board`.

In: a build, `--board`. Out: figures, and lines of text with them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relay_hw.cli.console import Console

if TYPE_CHECKING:
    from relay_hw.report import HostTime, Speed
    from relay_hw.runtime.artifact import Artifact


def speed_of(
    args: Namespace,
    artifact: Artifact,
    console: Console,
    data: Mapping[str, Any] | None = None,
    host: HostTime | None = None,
) -> Speed | None:
    """Time an inference on the board asked for, or the build's own; None without one. Raises InputError."""
    from relay_hw.runtime.host_time import measure_host
    from relay_hw.runtime.speed import speed_on
    from relay_hw.runtime.told import told_board

    place = told_board(artifact.manifest, args.board)
    if place is None:
        return None
    console.started(f"timing {place.board}")
    return speed_on(place, artifact, host or measure_host(artifact, data), data)


def speed_lines(speed: Speed | None, console: Console) -> list[str]:
    """The figures as lines of text."""
    from relay_hw.report import speed_table

    return [] if speed is None else ["", speed_table(speed, console.width)]
