"""`relay-hw diff`: compare two builds layer by layer.

In: parsed arguments. Out: exit status; a table of the layers of both, optionally an HTML page.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from relay_hw.cli.console import Console
from relay_hw.cli.data import save_text
from relay_hw.report import Report
from relay_hw.support.quote import line


def diff_command(args: Namespace, console: Console) -> int:
    """Match the layers of two builds, and print what changed and where cycles were gained and lost."""
    from relay_hw.report import diff

    found = diff(_timed(args.a, console), _timed(args.b, console))
    text = found.to_text(console.width)
    if args.output:
        save_text(args.output, found.to_html())
        text += f"\npage: {line(args.output)}"
    console.result(found.to_json(), text)
    return 0


def _timed(path: Path, console: Console) -> Report:
    """Time an inference on the cycle simulator, with the memory model that the build was made for."""
    from relay_hw.runtime.artifact import load_artifact
    from relay_hw.runtime.profile import timed_report

    console.started(f"timing {path}")
    return timed_report(load_artifact(path))
