"""Runs every generator of committed files: `--write` renews them, `--check` (the default) compares and fails on a
difference."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.isa import gen_docs, gen_timing, gen_verilog

GENERATORS: tuple[tuple[str, Callable[[Sequence[str]], int]], ...] = (
    ("accel/rtl/gen/vta_isa.vh", gen_verilog.main),
    ("accel/isa/ISA.md", gen_docs.main),
    ("accel/rtl/TIMING.md", gen_timing.main),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns 1 when `--check` finds a stale file."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="fail when a generated file is stale")
    action.add_argument("--write", action="store_true", help="write all generated files")
    flag = "--write" if parser.parse_args(arguments).write else "--check"
    stale = [path for path, generate in GENERATORS if generate([flag])]
    for path, _ in GENERATORS:
        print(f"{path}: {'stale' if path in stale else 'written' if flag == '--write' else 'up to date'}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
