"""The suite that mutants must not pass: an order of trials, and a process for each mutant, which may crash or hang.

In: mutants of a shape and their library. Out: for each what killed it, or that it lives.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.randprog import random_program
from relay_hw.accel.sim.dram_timing import MemoryModel, WriteOrder
from relay_hw.accel.sim.rtl_device import RtlDevice, Simulation
from relay_hw.accel.sim.rtl_model import Answer
from tests.accel.isa.runner import PROGRAMS
from tests.accel.sim.timed_programs import timed_program
from tests.mutants.build import SHAPES_AND_SAMPLE as SHAPES
from tests.mutants.build import Mutant
from tests.mutants.chains import chains
from tests.mutants.launches import again, by_watchdog, interrupted, registers, silent, untouched
from tests.mutants.meetings import clashes, cut, holds, meetings, overflows, stuck
from tests.mutants.refused import answered, behind_padding, beyond, broken, fetched, outside, queued, waiting
from tests.mutants.roundings import roundings
from tests.mutants.rows import meets_rows, row_numbers
from tests.mutants.stimuli import BUSY, STANDARD, Expected, Trial, expect, in_order, refusal, stalled
from tests.mutants.words import bits, ends, fields

# A processor's seconds of a mutant's trials, after which it counts as one that hangs.
PATIENCE = 150


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a mutant: the trial that found it and how, or an empty text; and the processor's seconds."""

    killer: str
    seconds: float

    @property
    def lives(self) -> bool:
        """Whether it passed every trial."""
        return not self.killer


@cache
def trials(name: str) -> dict[str, Trial]:
    """All trials of a shape by name, the cheapest first."""
    config = SHAPES[name].config

    def good(seeds: range, size: int, memory: MemoryModel) -> list[Expected]:
        return [expect(config, random_program(config, seed, size), memory, has_bytes=True) for seed in seeds]

    def timed(seeds: range, memory: MemoryModel) -> list[Expected]:
        return [expect(config, timed_program(config, seed), memory, has_bytes=False) for seed in seeds]

    found: dict[str, Trial] = {"programs": in_order(good(range(3), 8, STANDARD), STANDARD)}
    (case,) = good(range(3, 4), 30, BUSY)
    (other,) = good(range(7, 8), 50, BUSY)
    (quiet,) = good(range(5, 6), 12, STANDARD)
    found["registers"] = registers(config, quiet)
    found["resets"] = interrupted(config, case, 1, by_pin=True)
    found["faults"] = in_order([*_bad(name), *good(range(4, 5), 5, STANDARD)], STANDARD)
    found["aborts"] = interrupted(config, case, 2, by_pin=False)
    found["watchdog"] = by_watchdog(case, 3)
    found["outside"] = outside(config)
    found["fetched"] = fetched(config)
    found["waiting"] = waiting(config)
    found["meetings"] = meetings(config)
    found["cut"] = cut(config)
    found["clashes"] = clashes(config)
    found["meets rows"] = meets_rows(config)
    found["holds"] = in_order(holds(config), STANDARD)
    found["beyond"] = in_order(list(filter(None, (beyond(config, seed) for seed in range(40)))), STANDARD)
    found["queued"] = in_order(queued(config), STANDARD)
    found["behind padding"] = behind_padding(config)
    found["stuck"] = stuck(config)
    found["untouched"] = untouched(config, quiet)
    found["again"] = again(quiet, STANDARD, 5, is_cut=False)
    found["again, cut"] = again(quiet, STANDARD, 6, is_cut=True)
    found["busy again, cut"] = again(case, BUSY, 7, is_cut=True)
    found["timed programs"] = in_order(timed(range(6), STANDARD), STANDARD)
    found |= {answer.name: answered(config, other, answer, answer, 5) for answer in Answer}
    found["roundings"] = in_order(roundings(config), STANDARD)
    found["row numbers"] = in_order(row_numbers(config), STANDARD)
    found["chains"] = in_order(chains(config), STANDARD)
    found["silent"] = silent(case, 4)
    for order in WriteOrder:
        memory = replace(BUSY, write_order=order)
        found[order.name] = in_order([*good(range(10, 13), 40, memory), *timed(range(20, 22), memory)], memory)
        found[f"stalled {order.name}"] = stalled(good(range(14, 17), 40, BUSY), order, 1 + order)
    found["more programs"] = in_order(good(range(30, 50), 45, STANDARD), STANDARD)
    found["more timed programs"] = in_order(timed(range(40, 64), STANDARD), STANDARD)
    found["many programs"] = in_order(good(range(100, 180), 25, STANDARD), STANDARD)
    found |= {f"more {answer.name}": answered(config, other, answer, 9 + answer, 24) for answer in Answer}
    found["ends"] = in_order(ends(config), STANDARD)
    found["bits"] = in_order(bits(config), STANDARD)
    found["fields"] = in_order(fields(config), STANDARD)
    found["overflows"] = overflows(config)
    found["more resets"] = interrupted(config, other, 11, by_pin=True)
    found["more aborts"] = interrupted(config, other, 12, by_pin=False)
    return found


def _bad(name: str) -> Iterator[Expected]:
    """Programs that are refused: those of the instruction set's tests, and random ones with a wrong bit."""
    config = SHAPES[name].config
    listed = [assemble_file(path) for path in PROGRAMS if path.name.startswith("fault")]
    here = (program for program in listed if load_config(program.config) == config)
    made = (broken(config, seed) for seed in range(1500))
    yield from (case for program in here if (case := refusal(config, program)) is not None)
    yield from islice((case for case in made if case is not None), 300)


def judge(mutant: Mutant | None, shape: str, library: Path) -> str:
    """Run the trials on a mutant, or none, until one finds it: which one and what it says, or an empty text."""
    number = mutant.number if mutant else 0

    def make(memory: MemoryModel, run: Simulation) -> RtlDevice:
        drawn = replace(run, power_seed=1 + number, arguments=(f"+mutant={number}",))
        return RtlDevice(SHAPES[shape].config, memory, drawn, library)

    for name, trial in trials(shape).items():
        try:
            for text in trial(make):
                return f"{name}: {text}"
        except AccelError as error:
            return f"{name}: {error}"
    return ""


def run(
    shape: str, library: Path, mutants: Sequence[Mutant | None], jobs: int
) -> Iterator[tuple[Mutant | None, Verdict]]:
    """Verdicts on mutants, some at a time, in the order in which they end."""
    trials(shape)
    waiting, running = list(reversed(mutants)), dict[int, tuple[Mutant | None, int]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            pid, pipe = _start(mutant, shape, library)
            running[pid] = mutant, pipe
        for pid, (mutant, pipe) in list(running.items()):
            done, status, used = os.wait4(pid, os.WNOHANG)
            if done:
                told = os.read(pipe, 1 << 16).decode()
                os.close(pipe)
                del running[pid]
                crashed = f"crash: signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""
                yield mutant, Verdict(crashed or told, used.ru_utime + used.ru_stime)
        time.sleep(0.01)


def _start(mutant: Mutant | None, shape: str, library: Path) -> tuple[int, int]:
    """A process that judges a mutant: its ID, and where its verdict can be read."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    os.close(reader)
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writer, judge(mutant, shape, library)[:4000].encode())
    except BaseException as error:  # whatever a mutant did to its process
        os.write(writer, f"{type(error).__name__}: {error}"[:4000].encode())
    finally:
        os._exit(0)
