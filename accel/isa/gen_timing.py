"""Generates the table of slots in accel/rtl/TIMING.md from slots.py; the rest of that page is written by hand.

`python -m relay_hw.accel.isa.gen_timing --check` fails when the table is stale, `--write` renews it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from relay_hw.accel.isa.slots import slots_table

TIMING_PATH = Path(__file__).parents[1] / "rtl" / "TIMING.md"
MARK = re.compile(r"(<!-- slots: .* -->\n\n)(.*?)(\n\n)", re.DOTALL)


def timing_text(text: str) -> str:
    """The page with a fresh table behind its mark. Raises ValueError where the mark is missing."""
    if MARK.search(text) is None:
        raise ValueError(f"{TIMING_PATH.name} must have the mark that begins the table of slots")
    rows = "\n".join(f"| {what} | {slots} |" for what, slots in slots_table())
    table = f"| one | slots |\n|---|---|\n{rows}"
    return MARK.sub(lambda found: f"{found[1]}{table}{found[3]}", text, count=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns 1 when `--check` finds a stale table."""
    parser = argparse.ArgumentParser(prog="python -m relay_hw.accel.isa.gen_timing", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail when the table is stale")
    action.add_argument("--write", action="store_true", help="write the table")
    options = parser.parse_args(arguments)
    text = TIMING_PATH.read_text(encoding="utf-8")
    fresh = timing_text(text)
    if options.write:
        TIMING_PATH.write_text(fresh, encoding="utf-8")
    elif fresh != text:
        print(f"{TIMING_PATH.name} must match slots.py: run python -m relay_hw.accel.isa.gen_timing --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
