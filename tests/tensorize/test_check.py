"""The program check accepts what the compiler writes and refuses what was broken in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from relay_hw.accel.isa.config import SEMAPHORES
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.spec import BY_OP, Dst, Mem, Op, Unit
from relay_hw.accel.isa.stream import Instr, encode_instructions
from relay_hw.errors import TensorizeError
from relay_hw.tensorize import compile_function
from relay_hw.tensorize.emit.check import check_program
from relay_hw.tensorize.target import Target
from tests.targets import target_for


def program_of(kit: SimpleNamespace, config: Target) -> Program:
    """A region with loads of all kinds, all units, and tensors in scratch."""
    build = kit.Regions(1, config)
    x = build.input(16, 10, 9)
    y = build.conv(x, 16, padding=(1, 1, 1, 1), residual=x)
    y = build.max_pool(y, (2, 2), (2, 2))
    z = build.conv(y, 40, padding=(1, 1, 1, 1))
    return compile_function(build.function(build.dense(z, 12)), config, "accel_0", on_chip=False).program


def changed(program: Program, edit: Callable[[list[Instr]], None]) -> Program:
    """The program with its instructions edited in place."""
    instructions = [(op, dict(values)) for op, values in program.instructions]
    edit(instructions)
    data = encode_instructions(instructions)
    code = replace(program.code, size=len(data), data=data)
    others = tuple(section for section in program.sections if section.kind is not SectionKind.PROGRAM)
    # A longer or shorter program still lies behind everything else.
    return replace(program, sections=(*others, code), regions=(), window_bytes=program.window_bytes + 4096)


def refused(program: Program, config: Target, sentence: str) -> None:
    with pytest.raises(TensorizeError, match=sentence):
        check_program(program, config)


def test_accepts_what_the_compiler_writes(kit: SimpleNamespace, config: Target) -> None:
    check_program(program_of(kit, config), config)


def token_pairs(program: Program) -> list[tuple[int, int, int]]:
    """(semaphore, giver, taker) of every token."""
    body = list(enumerate(program.instructions[:-1]))
    pairs: list[tuple[int, int, int]] = []
    for semaphore in range(SEMAPHORES):
        given = [i for i, (_, v) in body if v["set"] >> semaphore & 1]
        taken = [i for i, (_, v) in body if v["wait"] >> semaphore & 1]
        pairs += [(semaphore, giver, taker) for giver, taker in zip(given, taken, strict=True)]
    return pairs


def test_every_token_is_needed(kit: SimpleNamespace, config: Target) -> None:
    """Dropping a token breaks the order that it keeps; between LOAD and OUTPUT a whole bank may be kept too long."""
    program = program_of(kit, config)
    units = [BY_OP[op].unit for op, _ in program.instructions]
    pairs = token_pairs(program)
    assert len(pairs) > 10
    for semaphore, giver, taker in pairs:

        def drop(instructions: list[Instr], s: int = semaphore, g: int = giver, t: int = taker) -> None:
            instructions[g][1]["set"] &= ~(1 << s)
            instructions[t][1]["wait"] &= ~(1 << s)

        broken = changed(program, drop)
        if {units[giver], units[taker]} == {Unit.LOAD, Unit.OUTPUT}:
            continue
        with pytest.raises(TensorizeError, match=r"instruction \d+ \(\w+\) must wait for instruction \d+"):
            check_program(broken, config)


def first(program: Program, op: Op, mem: Mem | None = None) -> int:
    """Index of the first such instruction."""
    return next(i for i, (o, v) in enumerate(program.instructions) if o is op and mem in (None, v.get("mem")))


def test_refuses_tokens_that_are_not_taken(kit: SimpleNamespace, config: Target) -> None:
    program = program_of(kit, config)
    semaphore, giver, taker = token_pairs(program)[0]

    def no_wait(instructions: list[Instr]) -> None:
        instructions[taker][1]["wait"] &= ~(1 << semaphore)

    refused(changed(program, no_wait), config, f"semaphore {semaphore} must be given as often as taken, not")

    def no_set(instructions: list[Instr]) -> None:
        instructions[giver][1]["set"] &= ~(1 << semaphore)

    refused(changed(program, no_set), config, f"semaphore {semaphore} must be given as often as taken, not")


def test_refuses_a_deadlock(kit: SimpleNamespace, config: Target) -> None:
    def wait_for_the_end(instructions: list[Instr]) -> None:
        load = first(program, Op.LOAD)
        store = max(i for i, (op, _) in enumerate(instructions) if op is Op.STORE)
        instructions[load][1]["wait"] |= 1 << 15
        instructions[store][1]["set"] |= 1 << 15

    program = program_of(kit, config)
    refused(changed(program, wait_for_the_end), config, "must wait for an instruction before it, not for .*: deadlock")


def test_refuses_a_shared_semaphore(kit: SimpleNamespace, config: Target) -> None:
    def share(instructions: list[Instr]) -> None:
        load, gemm = first(program, Op.LOAD), first(program, Op.GEMM)
        stores = [i for i, (op, _) in enumerate(instructions) if op is Op.STORE]
        instructions[load][1]["set"] |= 1 << 15
        instructions[gemm][1]["set"] |= 1 << 15
        instructions[stores[-1]][1]["wait"] |= 1 << 15
        instructions[stores[-2]][1]["wait"] |= 1 << 15

    program = program_of(kit, config)
    refused(changed(program, share), config, "semaphore 15 must have one giving unit, not compute, load")


def edit_field(op: Op, mem: Mem | None, field: str, value: int | Callable[[int], int]) -> Callable[[list[Instr]], None]:
    """Set a field of the first such instruction."""

    def edit(instructions: list[Instr]) -> None:
        for found, values in instructions:
            if found is op and mem in (None, values.get("mem")):
                values[field] = value(values[field]) if callable(value) else value
                return

    return edit


def test_refuses_shifted_addresses(kit: SimpleNamespace, config: Target) -> None:
    program = program_of(kit, config)
    granule = config.granule_bytes
    cases: list[tuple[Callable[[list[Instr]], None], str]] = [
        (edit_field(Op.LOAD, Mem.INP, "dram", program.window_bytes + 4096), "must stay inside the window"),
        (edit_field(Op.LOAD, Mem.INP, "dram", lambda v: v + 1), f"dram must be a multiple of {granule}"),
        (edit_field(Op.LOAD, Mem.INP, "sram", config.inp_depth - 1), "(inp entry must be below|must start on a beat)"),
        (edit_field(Op.STORE, None, "dram", 0), "must write output and scratch sections only, not byte 0"),
        (edit_field(Op.GEMM, None, "inp_base", config.inp_depth), f"inp entry must be below {config.inp_depth}"),
        (edit_field(Op.GEMM, None, "wgt_base", config.wgt_depth), f"wgt entry must be below {config.wgt_depth}"),
        (edit_field(Op.GEMM, None, "uop_end", config.uop_depth), "must be loaded before"),
        (edit_field(Op.GEMM, None, "uop_end", config.uop_depth + 1), "micro-ops must lie in"),
        (edit_field(Op.GEMM, None, "overwrite", 0), "must read acc .* only after it was written"),
        (
            edit_field(Op.REQUANT, None, "prm_base", config.prm_depth - 1),
            "(must read prm .* only after it was|prm entry must be below)",
        ),
        (edit_field(Op.REQUANT, None, "acc_base", lambda v: (v + config.acc_depth // 2) % config.acc_depth), "must "),
        (edit_field(Op.STORE, None, "sram", config.out_depth - 64), "must read out .* only after it was written"),
    ]
    for edit, sentence in cases:
        refused(changed(program, edit), config, sentence)


def narrow_windows(body: list[Instr]) -> None:
    """One window a row: of a vector that several instructions fill, too."""
    for op, values in body:
        if op is Op.GATHER:
            values["x"] = 1


def test_refuses_shifted_windows(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(2, config)
    y = build.conv(build.input(3, 12, 12), 8, (3, 3), padding=(1, 1, 1, 1))
    program = compile_function(build.function(y), config, "accel_0").program
    check_program(program, config)
    granule = config.granule_bytes
    cases: list[tuple[Callable[[list[Instr]], None], str]] = [
        (edit_field(Op.GATHER, None, "dram", program.window_bytes + 4096), "must stay inside the window"),
        (edit_field(Op.GATHER, None, "dram", lambda v: v + 1), f"dram must be a multiple of {granule}"),
        (edit_field(Op.GATHER, None, "y_stride", granule + 1), f"y_stride must be a multiple of {granule}"),
        (edit_field(Op.GATHER, None, "sram", config.inp_depth - 2), "inp entry must be below"),
        (edit_field(Op.GATHER, None, "lane", 4096), "a window must end before entry"),
        (narrow_windows, "must read inp .* only after it was written"),
    ]
    if config.bus_bytes > config.inp_bytes:
        cases.append((edit_field(Op.GATHER, None, "sram", lambda v: v + 1), "vectors must start on a beat"))
    for edit, sentence in cases:
        refused(changed(program, edit), config, sentence)


def test_refuses_programs_that_lack_an_instruction(kit: SimpleNamespace) -> None:
    """In a program that uses no place twice: something is read that was not written, unless it was done in place."""
    config = target_for("default")
    build = kit.Regions(1, config)
    function = build.function(build.dense(build.conv(build.input(16, 4, 4), 16), 12))
    program = compile_function(function, config, "accel_0").program
    for index, (op, values) in enumerate(program.instructions[:-1]):
        in_place = op is Op.ALU or (op is Op.REQUANT and values["dst"] == Dst.ACC)
        if in_place or (op is Op.GEMM and not values["overwrite"]):
            continue
        pairs = [pair for pair in token_pairs(program) if index in pair[1:]]

        def drop(instructions: list[Instr], gone: int = index, tokens: list[tuple[int, int, int]] = pairs) -> None:
            for semaphore, giver, taker in tokens:
                instructions[giver][1]["set"] &= ~(1 << semaphore)
                instructions[taker][1]["wait"] &= ~(1 << semaphore)
            del instructions[gone]

        with pytest.raises(TensorizeError):
            check_program(changed(program, drop), config)


def test_refuses_a_program_without_finish(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    program = program_of(kit, config)
    refused(changed(program, lambda instructions: instructions.pop()), config, "program must end with finish")
    early = changed(program, lambda instructions: instructions.insert(3, (Op.FINISH, {})))
    refused(early, config, "instruction 3: finish must be the last instruction")


def test_refuses_outputs_that_nobody_writes(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    program = program_of(kit, config)
    output = program.section("output")
    # The output moves behind everything else, where there is room for more channels.
    moved = replace(output, offset=program.window_bytes, size=output.size + 64)
    shift = moved.offset - output.offset

    def move(instructions: list[Instr]) -> None:
        for op, values in instructions:
            if op is Op.STORE and output.offset <= values["dram"] < output.end:
                values["dram"] += shift

    others = tuple(s for s in program.sections if s.kind is not SectionKind.OUTPUT)
    edited = changed(replace(program, sections=(*others, moved), window_bytes=moved.offset + 4096), move)
    check_program(edited, config)
    tensors = tuple(replace(t, shape=(1, t.shape[1] + 16)) if t.name == "output_0" else t for t in program.tensors)
    refused(replace(edited, tensors=tensors), config, "output output_0 must be written by the program")


def minimal(config: Target, instructions: list[Instr]) -> Program:
    data = np.arange(4096, dtype=np.uint8).tobytes()
    sections = [
        Section("weights", SectionKind.WEIGHTS, 0, 4096, data),
        Section("scratch", SectionKind.SCRATCH, 4096, 4096),
    ]
    return Program.build(config, [*instructions, (Op.FINISH, {})], WindowPlan(sections))


def test_refuses_two_units_on_one_accumulator_bank() -> None:
    """Different entries of a bank, so that only its ports clash."""
    config = target_for("default")
    load = {"mem": Mem.ACC, "expand": 1, "z": 1}
    requant = {"form": 2, "dst": Dst.ACC, "clip_lo": -128, "clip_hi": 127, "iter_out": 1, "iter_in": 1}
    body: list[Instr] = [
        (Op.LOAD, {**load, "set": 1}),
        (Op.REQUANT, {**requant, "wait": 1}),
        (Op.LOAD, {**load, "sram": 8}),
    ]
    sentence = r"instruction 2 \(load\) must wait for instruction 1 \(requant\) before it uses acc bank 0"
    refused(minimal(config, body), config, sentence)
    other_bank = [*body[:2], (Op.LOAD, {**load, "sram": config.acc_bank_depth})]
    check_program(minimal(config, other_bank), config)
    into_out = [body[0], (Op.REQUANT, {**requant, "dst": Dst.OUT, "wait": 1}), body[2]]
    check_program(minimal(config, into_out), config)


def test_refuses_more_tokens_than_a_semaphore_counts() -> None:
    config = target_for("default")
    load = {"mem": Mem.ACC, "expand": 1, "z": 1, "set": 1}
    requant = {"form": 2, "clip_lo": -128, "clip_hi": 127, "iter_out": 1, "iter_in": 1, "wait": 1}

    def loads(count: int) -> list[Instr]:
        each: list[Instr] = [(Op.LOAD, {**load, "sram": 4 * n}) for n in range(count)]
        return [*each, *((Op.REQUANT, {**requant, "acc_base": 4 * n}) for n in range(count))]

    check_program(minimal(config, loads(240)), config)
    many = loads(250)
    refused(minimal(config, many), config, "semaphore 0 must hold at most 255 tokens, not 250")
