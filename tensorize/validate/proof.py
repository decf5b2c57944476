"""Holds what a program leaves in DRAM against what its Relay function means.

In: a function and the segment that was compiled from it. Out: `Certificate`. The program runs in its own order, which
`emit/check.py` proves to be as good as any that the units may take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.program import decode_instructions
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Function
from relay_hw.tensorize.certificate import Certificate, LayerProof
from relay_hw.tensorize.segment import Segment
from relay_hw.tensorize.validate.explain import Place, explain
from relay_hw.tensorize.validate.machine import launch
from relay_hw.tensorize.validate.meaning import Meaning, meaning_of
from relay_hw.tensorize.validate.memories import Failure, Memories, Vectors, Watch, ignore, known
from relay_hw.tensorize.validate.ports import places, write_input
from relay_hw.tensorize.validate.terms import Terms, key, unknown

_REPORT = "please report this defect of the compiler"


def validate(function: Function, segment: Segment, config: AccelConfig) -> Certificate:
    """Prove that the segment's program computes what the function says.

    Raises TensorizeError that names the layer, the element and the instruction where it computes something else.
    """
    inputs = [unknown(key("input", number), port.shape) for number, port in enumerate(segment.inputs)]
    reach: dict[int, int] = {}

    def note(index: int, vectors: Vectors) -> None:
        reach[index] = max(reach.get(index, 0), vectors.reach)

    try:
        state = _run(segment, config, inputs, note)
        meaning = meaning_of(function, inputs)
        place = _first_wrong(state, segment, meaning)
        if place is not None:
            seen: list[tuple[int, Vectors]] = []
            _run(segment, config, inputs, lambda index, vectors: seen.append((index, vectors)))
            raise Failure(explain(segment, meaning, place, seen))
    except Failure as failure:
        what = f"{segment.name} must compute what its function says"
        raise TensorizeError(f"{what}: {failure.message}; {_REPORT}") from None
    return _certificate(segment, meaning, reach)


def _run(segment: Segment, config: AccelConfig, inputs: Sequence[Terms], watch: Watch) -> Memories:
    """The memories after a launch; `watch` is told of the main stream only."""
    program = segment.program
    state = Memories.of(program, config)
    for port, terms in zip(segment.inputs, inputs, strict=True):
        write_input(state, program, port, terms)
    if program.resident is not None:
        launch(state, decode_instructions(program.resident.data or b""))
    state = replace(state, watch=watch)
    launch(state, program.instructions)
    return replace(state, watch=ignore)


def _first_wrong(state: Memories, segment: Segment, meaning: Meaning) -> Place | None:
    for number, (port, wanted) in enumerate(zip(segment.outputs, meaning.results, strict=True)):
        where, _ = places(port, state.config)
        found = known(state.dram[segment.program.tensor_offset(port.name) + where]).numbers
        wrong = np.argwhere(found != wanted.numbers)
        if wrong.size:
            element = tuple(wrong[0].tolist())
            return Place(number, element, int(found[element]), len(wrong))
    return None


def _certificate(segment: Segment, meaning: Meaning, reach: dict[int, int]) -> Certificate:
    most = [0] * len(segment.layers)
    for index, size in reach.items():
        owner = segment.owners[index]
        most[owner] = max(most[owner], size)
    values = {layer.composite: layer.result.numbers.size for layer in meaning.layers}
    layers = tuple(
        LayerProof(layer.name, values.get(layer.composite, 0), size.bit_length() + 1)
        for layer, size in zip(segment.layers, most, strict=True)
    )
    outputs = sum(wanted.numbers.size for wanted in meaning.results)
    return Certificate(segment.name, len(segment.program.instructions), outputs, layers)
