"""`python -m relay_hw.vta PROGRAM -o FOLDER [--address 0x...]`: a build's program as files for a board.

In: a program of a build. Out: a folder; see `deploy.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from relay_hw.errors import RelayHwError
from relay_hw.support.durable import read_given
from relay_hw.vta.deploy import write
from relay_hw.vta.program import PAGE, read_program


def address(text: str) -> int:
    """A physical address at the begin of a page."""
    value = int(text, 0)
    if not 0 <= value < 1 << 32 or value % PAGE:
        raise argparse.ArgumentTypeError(f"address must be a multiple of {PAGE} below 2**32, not {text}")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m relay_hw.vta", description="Write a program's files for a board.")
    parser.add_argument("program", type=Path, help="a program of a build for target vta")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write")
    parser.add_argument("--address", type=address, help="physical address of the first section, to fill in addresses")
    args = parser.parse_args(arguments)
    try:
        write(read_program(read_given(args.program)), args.output, args.address)
    except (OSError, RelayHwError) as error:
        parser.exit(2, f"relay_hw.vta: error: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
