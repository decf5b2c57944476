"""Change the Verilog in hundreds of places, one at a time, and see whether tests find it.

In: the Verilog. `tests/mutants` chooses changes by operator, in proportion to the size of the modules, builds one model
a configuration that holds all of them, and runs trials on each until one fails. Those that pass every trial are named
in `tests/mutants/survivors.txt`, with what becomes of them in their module alone: its bench fails, or a property of
`make formal`, or it is proven that nothing changes, or none of these, and why.
Out: counts, and a line for each mutant that lives; 1 if the file does not name it, or names another, or, with --fates,
if something else becomes of it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.sim.verilator import build_library
from tests.mutants.alone import Fate
from tests.mutants.build import SHAPES, SHAPES_AND_SAMPLE, Mutant, chosen
from tests.mutants.equivalence import has_fate
from tests.mutants.suite import Verdict, run

SURVIVORS = Path(__file__).resolve().parents[1] / "tests" / "mutants" / "survivors.txt"
SEED = 1


def known_survivors() -> dict[str, tuple[Fate, str]]:
    """Mutants that pass every trial, each with its fate and words about it."""
    lines = (line for line in SURVIVORS.read_text().splitlines() if line and not line.startswith("#"))
    rows = (line.rsplit(" | ", 2) for line in lines)
    return {name: (Fate(fate), reason) for name, fate, reason in rows}


def judged(shape: str, jobs: int) -> Iterator[tuple[Mutant, Verdict]]:
    """Verdicts on the mutants of a shape. Raises RuntimeError where the Verilog without a mutant is found wrong."""
    mutants, folder = chosen(shape, SEED)
    library = build_library(SHAPES_AND_SAMPLE[shape].build(folder))
    for mutant, verdict in run(shape, library, [None, *mutants], jobs):
        if mutant is not None:
            yield mutant, verdict
        elif not verdict.lives:
            raise RuntimeError(f"without a mutant {shape} must pass every trial: {verdict.killer}")


def groups(mutant: Mutant) -> Iterator[str]:
    """Lines of the table that count a mutant."""
    yield "all"
    yield f"configuration {mutant.shape}"
    yield f"operator {mutant.site.operator.value}"
    yield f"subject {mutant.site.subject.value}"


def told(table: Counter[tuple[str, str]]) -> Iterator[str]:
    """The table's lines: found of those that are not proven to change nothing, and by what."""
    for group in sorted({group for group, _ in table}):
        trials, bench, prop, same, lives = (
            table[group, how] for how in ("trials", "bench", "property", "same", "open")
        )
        found = trials + bench + prop
        share = 100 * found / max(1, found + lives)
        yield (
            f"{group}: {found} of {found + lives} found, {share:.1f} % ({trials} by trials, {bench} by benches, "
            f"{prop} by properties); {same} change nothing"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=list(SHAPES), help="one configuration instead of all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="mutants at a time")
    parser.add_argument("--fates", action="store_true", help="ask benches, properties and ABC about those that live")
    parser.add_argument("--seconds", type=float, default=300, metavar="S", help="of each such question")
    options = parser.parse_args(arguments)
    known, living, seconds = known_survivors(), dict[str, Mutant](), 0.0
    table, wrong = Counter[tuple[str, str]](), list[str]()
    shapes = [options.shape] if options.shape else list(SHAPES)
    for mutant, verdict in chain.from_iterable(judged(shape, options.jobs) for shape in shapes):
        seconds += verdict.seconds
        fate, reason = known.get(str(mutant), (Fate.OPEN, "not known"))
        table.update((group, fate.value if verdict.lives else "trials") for group in groups(mutant))
        if verdict.lives:
            living[str(mutant)] = mutant
            print(f"{mutant} | {fate.value} | {reason}", flush=True)
    print("\n".join(told(table)))
    print(f"{seconds / 60:.1f} minutes of a processor")
    wrong += [f"survivors.txt must name {name}" for name in living.keys() - known.keys()]
    here = {name for name in known if name.endswith(tuple(f"[{shape}]" for shape in shapes))}
    wrong += [f"survivors.txt must not name {name}, which does not live" for name in here - living.keys()]
    if options.fates:
        fates = ((name, known[name][0]) for name in living if name in known)
        wrong += [f"{fate.value} is not the fate of {name}" for name, fate in fates
                  if not has_fate(living[name], fate, options.seconds)]  # fmt: skip
    print("\n".join(sorted(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
