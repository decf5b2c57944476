"""The proof accepts what the compiler writes, and refuses every change that changes what a program computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Instr, Program, SectionKind, encode_instructions
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Function
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.validate.proof import validate
from tests.targets import target_for

# Changes of a field that are tried, and how many changes of a program.
STEPS = (1, -1, 2, 16, -16)
MUTANTS = 40


def region(kit: SimpleNamespace, config: Target) -> tuple[Function, Segment]:
    """Loads of all kinds, all units, padding, a residual add, a pool and tensors in scratch."""
    build = kit.Regions(1, config)
    x = build.input(16, 7, 6)
    y = build.conv(x, 16, padding=(1, 1, 1, 1), residual=x)
    y = build.max_pool(y, (2, 2), (2, 2))
    z = build.conv(y, 24, padding=(1, 1, 1, 1))
    function = build.function(build.dense(z, 12))
    return function, compile_function(function, config, "accel_0", on_chip=False)


def edited(segment: Segment, edit: Callable[[list[Instr]], None]) -> Segment:
    """The segment with its instructions edited in place."""
    program = segment.program
    instructions = [(op, dict(values)) for op, values in program.instructions]
    edit(instructions)
    code = replace(program.code, data=encode_instructions(instructions))
    others = tuple(section for section in program.sections if section.kind is not SectionKind.PROGRAM)
    return replace(segment, program=replace(program, sections=(*others, code)))


def field(segment: Segment, index: int, name: str, value: int) -> Segment:
    """The segment with one field of one instruction changed."""

    def edit(instructions: list[Instr]) -> None:
        instructions[index][1][name] = value

    return edited(segment, edit)


def byte(segment: Segment, kind: SectionKind, place: int, change: int) -> Segment:
    """The segment with one byte of constants changed."""
    program, sections = segment.program, list[object]()
    for section in program.sections:
        if section.kind is kind:
            assert section.data is not None
            data = bytearray(section.data)
            data[place] ^= change
            section = replace(section, data=bytes(data))
        sections.append(section)
    return replace(segment, program=replace(program, sections=tuple(sections)))


def first(program: Program, op: Op, **fields: int) -> int:
    """Index of the first instruction with these fields."""
    return next(i for i, (o, v) in enumerate(program.instructions) if o is op and fields.items() <= v.items())


def refused(function: Function, segment: Segment, config: Target, sentence: str) -> None:
    whole = f"accel_0 must compute what its function says: .*{sentence}.*; please report this defect of the compiler"
    with pytest.raises(TensorizeError, match=whole):
        validate(function, segment, config)


def test_says_what_was_proved(kit: SimpleNamespace, config: Target) -> None:
    function, segment = region(kit, config)
    found = validate(function, segment, config)
    assert (found.name, found.instructions) == ("accel_0", len(segment.program.instructions))
    assert found.output_bytes == 12
    assert [(layer.name, layer.values) for layer in found.layers] == [
        ("0:conv2d", 16 * 7 * 6),
        ("1:max_pool2d", 16 * 3 * 3),
        ("2:conv2d", 24 * 3 * 3),
        ("3:dense", 12),
    ]


def test_a_wrong_instruction_is_named(kit: SimpleNamespace) -> None:
    """The layer, the element, the instruction, and what differs in it."""
    config = target_for("tiny")
    function, segment = region(kit, config)
    program = segment.program
    scale = first(program, Op.REQUANT, form=0)
    values = program.instructions[scale][1]
    sentence = (
        rf"no instruction computes element \(.*\) of layer .*, which instruction {scale} \(requant\) is nearest to: "
    )
    wrong = field(segment, scale, "zero_point", values["zero_point"] + 1)
    refused(function, wrong, config, sentence + "the sum is right, its scaling is not")
    wrong = field(segment, scale, "prm_base", values["prm_base"] + 1)
    refused(function, wrong, config, sentence + "the products are right, bias or zero points are not")
    gemm = first(program, Op.GEMM)
    wrong = field(segment, gemm, "wgt_base", program.instructions[gemm][1]["wgt_base"] + 1)
    refused(function, wrong, config, r"no instruction computes .* its sum has another tap, padding, weight or input")
    store = first(program, Op.STORE, dram=program.tensor_offset("output_0"))
    wrong = field(segment, store, "sram", program.instructions[store][1]["sram"] + 4)
    refused(function, wrong, config, r"element \(0, \d+\) of output 0 is wrong, one of \d+: ")


def test_a_wrong_tap_is_named(kit: SimpleNamespace) -> None:
    """Micro-ops of the first convolution that read another pixel or other weights, twice or not; other padding."""
    config = target_for("default")
    function, segment = region(kit, config)
    program = segment.program
    gemm = program.instructions[first(program, Op.GEMM)][1]
    place = 8 * gemm["uop_begin"]
    uops = next(section for section in program.sections if section.kind is SectionKind.UOPS)
    assert uops.data is not None
    words = np.frombuffer(uops.data, "<u2").reshape(-1, 4)[gemm["uop_begin"] : gemm["uop_end"], :3]
    assert words.tolist() == [[0, 8 * (tap // 3) + tap % 3, tap] for tap in range(9)]

    def told(number: int, half: int, change: int, sentence: str) -> None:
        wrong = byte(segment, SectionKind.UOPS, place + 8 * number + 2 * half, change)
        refused(function, wrong, config, f"element .* of layer 0:conv2d.*: in its sum {sentence}; element")

    # Rows of the patch have eight pixels: 4 is 0 with four pixels more, 7 is 3 from the left.
    told(4, 1, 9 ^ 13, r"tap \(1, 1\) has pixel \(0, 4\) of its input, not \(0, 0\)")
    told(4, 2, 4 ^ 5, r"tap \(1, 1\) has the weights of tap \(1, 2\)")
    padded = first(program, Op.LOAD, mem=Mem.INP, x_pad_0=1)
    wrong = field(segment, padded, "pad_value", 3)
    refused(function, wrong, config, r"in its sum the padding under taps \(0, 0\), .* is 3 too large")


def test_constants_are_proved_too(kit: SimpleNamespace, config: Target) -> None:
    """A wrong weight, parameter or micro-op."""
    function, segment = region(kit, config)
    for kind in (SectionKind.WEIGHTS, SectionKind.CONSTANTS, SectionKind.UOPS):
        if any(section.kind is kind for section in segment.program.sections):
            refused(function, byte(segment, kind, 0, 1), config, "")


def test_padding_is_proved(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    function, segment = region(kit, config)
    padded = first(segment.program, Op.LOAD, mem=Mem.INP, x_pad_0=1)
    refused(
        function, field(segment, padded, "pad_value", 1), config, "in its sum the padding under taps .* is 1 too large"
    )


def outputs(kit: SimpleNamespace, segment: Segment, config: Target) -> list[list[int]]:
    """Of two launches on random inputs."""
    rng = np.random.default_rng(5)
    shapes = [port.shape for port in segment.inputs]
    runs = (kit.run(segment, [rng.integers(-128, 128, s).astype(np.int8) for s in shapes], config) for _ in range(2))
    return [[value for array in run for value in array.reshape(-1).tolist()] for run in runs]


def changes_are_seen(
    kit: SimpleNamespace,
    compiled: tuple[Function, Segment],
    config: Target,
    pick: Callable[[np.random.Generator, int], int],
    steps: Sequence[int],
) -> None:
    """Changed fields are refused, unless the simulator computes the same, too; what it faults at is refused as well.

    `pick`: the instruction of a change, by its number.
    """
    function, segment = compiled
    right = outputs(kit, segment, config)
    rng = np.random.default_rng(0)
    program, refusals = segment.program, 0
    for number in range(MUTANTS):
        index = pick(rng, number)
        values = program.instructions[index][1]
        key = str(rng.choice([key for key in values if key not in ("opcode", "wait", "set")]))
        try:
            wrong = field(segment, index, key, values[key] + int(rng.choice(steps)))
            found = outputs(kit, wrong, config)
        except AccelError:
            continue
        try:
            validate(function, wrong, config)
        except TensorizeError as error:
            assert re.match("accel_0 must compute what its function says: ", str(error))
            refusals += 1
        else:
            assert found == right, f"instruction {index}: {key} {values[key]}"
    assert refusals > MUTANTS // 4


@pytest.mark.parametrize("name", ["tiny", "default", "w4"])
def test_no_change_of_a_field_goes_unseen(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    function, segment = region(kit, config)
    last = len(segment.program.instructions) - 1
    changes_are_seen(kit, (function, segment), config, lambda rng, _: int(rng.integers(last)), STEPS)


def test_what_does_not_matter_is_not_refused(kit: SimpleNamespace) -> None:
    """Micro-ops in another order, and a padding value where nothing is padded."""
    config = target_for("default")
    function, segment = region(kit, config)
    plain = next(
        index
        for index, (op, v) in enumerate(segment.program.instructions)
        if op is Op.LOAD and v["mem"] == Mem.INP and not any(v[f"{a}_pad_{n}"] for a in "xy" for n in (0, 1))
    )
    validate(function, field(segment, plain, "pad_value", 7), config)


def test_sums_that_may_overflow_are_named(kit: SimpleNamespace) -> None:
    """With a bias near the end of 32 bits; else the bits that sums fit are told."""
    config = target_for("default")
    for seed in range(20):
        build = kit.Regions(seed, config)
        x = build.input(16, 4, 4)
        y = build.conv(x, 16)
        function = build.function(y)
        biases = y.op.body.args[1].data
        found = validate(function, compile_function(function, config, "accel_0"), config)
        weights = np.abs(y.op.body.args[0].args[1].data.astype(int)).sum(axis=(1, 2, 3))
        most = int((128 * weights + np.abs(biases.astype(int))).max())
        assert found.layers[0].sum_bits == most.bit_length() + 1
        assert found.overflows == (("0:conv2d",) if most >= 1 << 31 else ())


def test_constants_among_activations_are_proved(kit: SimpleNamespace) -> None:
    """What two clips leave is 50, which lies as weights beside the identity: bounds of operands are too wide."""
    config = target_for("default")
    build = kit.Regions(0, config)
    x = build.clip(build.clip(build.tensor(1, 16, 32), -10, 50), 50, 60)
    function = build.function(build.move(lambda a: op.transpose(a, (0, 2, 1)), x))
    validate(function, compile_function(function, config, "accel_0"), config)
