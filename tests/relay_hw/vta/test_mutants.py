"""A thousand mutants of programs: flags, addresses, order. Each is caught, gives a wrong result, or changes nothing.

A mutant is caught by the checker, or by the simulator as without meaning; wrong if results differ. What is left must be
proven to have no effect: on fingerprints it computes the same terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw.errors import RelayHwError
from relay_hw.vta.isa import Insn, Memory, Queue, decode, encode, show
from relay_hw.vta.layout import pack
from relay_hw.vta.program import Program
from relay_hw.vta.session import BASE
from relay_hw.vta.sim.checker import check
from relay_hw.vta.sim.choices import Choices
from relay_hw.vta.sim.machine import run
from relay_hw.vta.sim.state import Dram, State, new_state
from tests.relay_hw.vta.fingerprints import Abstract, Bytes, Numbers
from tests.relay_hw.vta.networks import sensitive
from tests.relay_hw.vta.test_region import data_of, program_of

COUNT = 1000
FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
MEMORY = ("sram_base", "dram_base", "y_size", "x_size", "x_stride", "y_pad_0", "x_pad_1")
LOOPS = ("uop_bgn", "uop_end", "iter_out", "iter_in", "dst_factor_out", "dst_factor_in", "src_factor_in")


class Subject:
    """A program at its addresses, with memories that it may begin with: small data, and data that is clipped."""

    def __init__(self, program: Program, x: np.ndarray) -> None:
        self.geometry, self.addresses = program.head.geometry, program.addresses(BASE)
        self.known = self.constants(program)
        self.memories = [self.memory(program, one) for one in (x // 16, x)]
        self.insns = decode(program.placed(self.addresses), self.geometry)
        self.want, self.same = self.result(self.insns), self.prints(self.insns)

    def memory(self, program: Program, x: np.ndarray) -> np.ndarray:
        """Constants and data; elsewhere lies what somebody left there."""
        found = program.image(self.addresses)
        noise = np.random.default_rng(5).integers(0, 256, len(found)).astype(np.uint8)
        found[~self.known] = noise[~self.known]
        (port,) = program.inputs
        packed = pack(x, port.dims, self.geometry).reshape(-1).view(np.uint8)
        begin = self.addresses[port.section] - BASE
        found[begin : begin + len(packed)] = packed
        return found

    def constants(self, program: Program) -> np.ndarray:
        """Which bytes of memory the program brings."""
        found = np.zeros(self.addresses[-1] - BASE, np.bool_)
        for number, data in program.data.items():
            begin = self.addresses[number] - BASE
            found[begin : begin + len(data)] = True
        return found

    def state(self, number: int = 0) -> State:
        return new_state(self.geometry, Dram(self.memories[number].copy(), BASE))

    def result(self, insns: Sequence[Insn]) -> np.ndarray:
        states = [self.state(number) for number in range(len(self.memories))]
        for state in states:
            run(encode(insns, self.geometry), state, Choices(first=(Queue.STORE, Queue.COMPUTE, Queue.LOAD)))
        return np.stack([state.dram.data for state in states])

    def fate(self, mutant: Sequence[Insn]) -> str:
        try:
            check(encode(mutant, self.geometry), self.state())
            found = self.result(mutant)
        except RelayHwError:
            return "caught"
        if not np.array_equal(found, self.want):
            return "wrong"
        return "no effect" if np.array_equal(self.prints(mutant), self.same) else "survived"

    def prints(self, insns: Sequence[Insn]) -> Numbers:
        return Abstract(self.state(), Bytes.of(self.memories[0], self.known)).run(encode(insns, self.geometry))


def mutant_of(insns: Sequence[Insn], rng: np.random.Generator) -> list[Insn]:
    """One flag turned, one number moved, or two instructions swapped."""
    found = list(insns)
    at = int(rng.integers(len(found) - 1))
    kind = rng.integers(3)
    if kind == 0:
        name = FLAGS[rng.integers(4)]
        insn = found[at]
        found[at] = replace(insn, flags=replace(insn.flags, **{name: not getattr(insn.flags, name)}))
    elif kind == 1:
        found[at] = moved(found[at], rng)
    else:
        other = min(at + 1 + int(rng.integers(3)), len(found) - 1)
        found[at], found[other] = found[other], found[at]
    return found


def moved(insn: Insn, rng: np.random.Generator) -> Insn:
    step = int(rng.choice([-16, -1, 1, 2, 16]))
    if isinstance(insn, Memory):
        name = MEMORY[rng.integers(len(MEMORY))]
        return replace(insn, **{name: max(getattr(insn, name) + step, 0)})
    assert not hasattr(insn, "memory_type")
    name = LOOPS[rng.integers(len(LOOPS))]
    loops = insn.loops  # type: ignore[union-attr]
    return replace(insn, loops=replace(loops, **{name: max(getattr(loops, name) + step, 0)}))  # type: ignore[call-arg]


def fates(subjects: Sequence[Subject], rng: np.random.Generator, count: int) -> tuple[Counter[str], list[str]]:
    """How so many mutants ended, and what was changed in those that survived."""
    found: Counter[str] = Counter()
    survivors: list[str] = []
    while found.total() < count:
        subject = subjects[rng.integers(len(subjects))]
        mutant = mutant_of(subject.insns, rng)
        if tuple(mutant) == tuple(subject.insns):
            continue
        fate = subject.fate(mutant)
        found[fate] += 1
        if fate == "survived":
            pairs = zip(subject.insns, mutant, strict=True)
            survivors += [
                f"{number}: {show(old)} -> {show(new)}" for number, (old, new) in enumerate(pairs) if old != new
            ]
    return found, survivors


def test_a_sample_of_mutants() -> None:
    found, survivors = fates(
        [Subject(program_of(mod := sensitive(5), "small"), data_of(mod))], np.random.default_rng(1), 40
    )
    assert survivors == [] and {*found} == {"caught", "wrong", "no effect"}


def test_the_page_says_how_many() -> None:
    assert f"{COUNT:,} mistakes in them" in (Path(__file__).parents[3] / "docs" / "verification.md").read_text()


@pytest.mark.long
def test_no_mutant_survives() -> None:
    networks = ((sensitive(), "pynq"), (sensitive(6, 16), "small"), (sensitive(5), "de10nano"))
    subjects = [Subject(program_of(mod, config), data_of(mod)) for mod, config in networks]
    found, survivors = fates(subjects, np.random.default_rng(1000), COUNT)
    print(dict(found))
    assert survivors == [] and found["caught"] > COUNT // 3 and found["wrong"] > COUNT // 10
