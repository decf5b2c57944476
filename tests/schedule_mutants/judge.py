"""Judges a mutant: what the compiler's checks say of it before anything runs, and whether it runs otherwise.

In: a subject and a mutant of its program. Out: `Verdict`. The functional simulator is asked with queues in several
orders, and with noise wherever a program must not look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.errors import RelayHwError
from relay_hw.tensorize import Segment
from relay_hw.tensorize.emit.check import check_program
from relay_hw.tensorize.layout import pack_activation, unpack_activation
from relay_hw.tensorize.validate.proof import validate
from tests.schedule_mutants.subjects import Arrays, Subject

# Orders of the units: round robin, then drawn ones.
ORDERS = (None, 1, 2, 3)
# What a program may leave behind, and what it may find.
_OWN = (SectionKind.SCRATCH, SectionKind.OUTPUT)


class Refusal(Enum):
    """What refuses a program before anything runs."""

    CHECK = "check"
    PROOF = "proof"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who refuses it, with which words; how it ran otherwise than the sound program ("" if it did not)."""

    refusal: Refusal
    reason: str
    difference: str

    @property
    def is_missed(self) -> bool:
        """Whether it runs otherwise, and nothing said so before."""
        return self.refusal is Refusal.NEITHER and bool(self.difference)


def judge(subject: Subject, mutant: Segment) -> Verdict:
    """Errors that are not meant, such as of an index, are raised as they are."""
    refusal, reason = refusal_of(subject, mutant)
    return Verdict(refusal, reason, difference_of(subject, mutant))


def refusal_of(subject: Subject, mutant: Segment) -> tuple[Refusal, str]:
    """What the compiler would say of the program before it runs."""
    try:
        check_program(mutant.program, subject.config)
    except (RelayHwError, AccelError) as error:
        return Refusal.CHECK, str(error)
    try:
        validate(subject.function, mutant, subject.config)
    except (RelayHwError, AccelError) as error:
        return Refusal.PROOF, str(error)
    return Refusal.NEITHER, ""


def difference_of(subject: Subject, mutant: Segment) -> str:
    """The first launch whose outputs are not the interpreter's, or that does not end as it should."""
    for order in ORDERS:
        try:
            for number, found in enumerate(_launches(subject, mutant, order)):
                if any(
                    one.tobytes() != wanted.tobytes()
                    for one, wanted in zip(found, subject.outputs[number], strict=True)
                ):
                    return f"order {order}: launch {number} has other results"
        except (AccelError, RelayHwError) as error:
            return f"order {order}: {error}"
    return ""


def _launches(subject: Subject, segment: Segment, order: int | None) -> Iterator[Arrays]:
    """Outputs of launches that follow each other on one device."""
    device = FunctionalDevice(subject.config, order)
    _add_noise(device, segment, 0 if order is None else order)
    if segment.program.resident is not None:
        device.launch(SectionKind.RESIDENT)
    for values in subject.inputs:
        yield _launch(subject, segment, device, values)


def _add_noise(device: FunctionalDevice, segment: Segment, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for memory in device.state.scratch.values():
        memory[:] = rng.integers(0, 256, memory.size, np.uint8)
    device.load(segment.program)
    for section in segment.program.sections:
        if section.kind in _OWN:
            device.write(section.offset, rng.integers(0, 256, section.size, np.uint8))


def _launch(subject: Subject, segment: Segment, device: FunctionalDevice, values: Arrays) -> Arrays:
    config, program = subject.config, segment.program
    for port, value in zip(segment.inputs, values, strict=True):
        data = pack_activation(value, config, port.layout)
        device.write(program.tensor_offset(port.name), data.view(np.uint8))
    device.launch()
    found: list[Sequence[int]] = []
    for port in segment.outputs:
        size = pack_activation(np.zeros(port.shape, np.int8), config).size
        data = device.read(program.tensor_offset(port.name), size)
        found.append(unpack_activation(data, port.shape, config))
    return found
