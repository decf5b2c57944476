"""Time of each reader against the size of what it reads: at most 2.3 times for each doubling.

In: names of cases (default: all). Out: a table of processor time by size, the best of several; status 1 where a reader
takes more. Text goes to 4 MB, bytes to 64 MB, or until one reading takes ten seconds.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.errors import RelayHwError
from relay_hw.report import table
from relay_hw.text import print_module
from scripts.scaling_cases import CASES, Case, Made

MOST_RATIO: Final = 2.3
MOST_SECONDS: Final = 10.0
# Shorter times are mostly those of the first call and of the clock.
LEAST_SECONDS: Final = 0.05
REPEATS: Final = 3
AGAIN: Final = 3


def seconds(case: Case, made: Made) -> float:
    """Processor time of the fastest of some readings."""
    best = float("inf")
    for _ in range(REPEATS):
        # Collections come at sizes of their own, and go over whatever this process holds.
        gc.collect()
        gc.disable()
        begin = time.process_time()
        case.read(made)
        best = min(best, time.process_time() - begin)
        gc.enable()
        if best > 2:
            break
    return best


def size_of(made: Made) -> int:
    """Bytes of an input; of a module those of its text."""
    if isinstance(made, dict):
        return sum(map(len, made.values()))
    return len(made) if isinstance(made, (str, bytes)) else len(print_module(made))


def measure(case: Case, most_seconds: float) -> list[tuple[int, float]]:
    """Size and time, each double the one before."""
    found: list[tuple[int, float]] = []
    n = 64
    while True:
        try:
            made = case.make(n)
            size = size_of(made)
            if size > case.most:
                return found
            taken = seconds(case, made)
        except RelayHwError:
            # A limit ends the growth as `case.most` does; what is refused from the first size on is a mistake here.
            if not found:
                raise
            return found
        found.append((size, taken))
        for _ in range(AGAIN):
            if worst(found[-2:]) <= MOST_RATIO:
                break
            # Other work on the machine makes caches slower: the least of both sizes counts.
            before = case.make(n // 2)
            found[-2] = (found[-2][0], min(found[-2][1], seconds(case, before)))
            found[-1] = (size, min(found[-1][1], seconds(case, made)))
        if taken > most_seconds / 2.5:
            return found
        n *= 2


def worst(rows: Sequence[tuple[int, float]]) -> float:
    """The largest growth of time against that of size, as for a doubling, where times are long enough to tell."""
    ratios = [
        2 ** (math.log(later / earlier) / math.log(size / before))
        for (before, earlier), (size, later) in pairwise(rows)
        if earlier >= LEAST_SECONDS
    ]
    return max(ratios, default=0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", help="parts of names of cases (default: all)")
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="of the longest reading (default 10)")
    args = parser.parse_args(arguments)
    table_rows: list[tuple[str, ...]] = []
    for name, case in CASES.items():
        if args.cases and not any(part in name for part in args.cases):
            continue
        rows = measure(case, args.seconds)
        size, taken = rows[-1]
        ratio = worst(rows)
        table_rows.append(
            (
                name,
                f"{size:,}",
                f"{taken:.2f}",
                f"{ratio:.2f}",
                "" if ratio <= MOST_RATIO and taken <= MOST_SECONDS else "MORE",
            )
        )
        print(*table_rows[-1], sep="\t", file=sys.stderr, flush=True)
    print(
        table(("case", "bytes", "seconds", "a doubling", ""), table_rows, frozenset({"bytes", "seconds", "a doubling"}))
    )
    return int(any(row[-1] for row in table_rows))


if __name__ == "__main__":
    sys.exit(main())
