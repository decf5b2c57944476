"""Programs for VTA: equal to the interpreter byte by byte, checked by tokens, the same under every implementation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from relay_hw.errors import ArtifactError, InputError
from relay_hw.interp import evaluate
from relay_hw.ir.module import IRModule
from relay_hw.target import Request, partition_pipeline
from relay_hw.vta import make
from relay_hw.vta.geometry import Core
from relay_hw.vta.isa import Queue, decode, encode
from relay_hw.vta.kernel import Kernel, Kind, Window
from relay_hw.vta.program import Program, read_program
from relay_hw.vta.session import BASE, launch
from relay_hw.vta.sim.checker import check
from relay_hw.vta.sim.choices import CHOICES
from relay_hw.vta.sim.state import Dram, new_state
from relay_hw.vta.tiles import Plan, candidates, choose
from tests.relay_hw.vta.networks import dense, mixed

CONFIGS = ("pynq", "de10nano", "pynq_4x8", "small")


def program_of(mod: IRModule, config: str) -> Program:
    target = make(config)
    parts = partition_pipeline(target)(mod)
    functions = {name: one for name, one in parts.functions.items() if name != "main"}
    assert list(functions) == ["vta_0"], "one region must hold all layers"
    return target.compile(functions, Request(("vta_0",)))["vta_0"]


def data_of(mod: IRModule, seed: int = 1) -> np.ndarray:
    shape = mod["main"].params[0].type.static_shape
    return np.random.default_rng(seed).integers(-128, 128, shape).astype("int8")


def check_all(mod: IRModule, program: Program) -> None:
    """The interpreter's result on the machine of the geometry, tokens in order, words that decode to themselves."""
    geometry, x = program.head.geometry, data_of(mod)
    want = np.asarray(evaluate(mod, {"x": x}))
    for first in ((Queue.LOAD, Queue.COMPUTE, Queue.STORE), (Queue.STORE, Queue.COMPUTE, Queue.LOAD)):
        found, _ = launch(program, [x], replace(CHOICES[geometry.core], first=first))
        np.testing.assert_array_equal(found[0], want)
    addresses = program.addresses(BASE)
    check(program.placed(addresses), new_state(geometry, Dram(program.image(addresses), BASE)))
    np.testing.assert_array_equal(encode(decode(program.words, geometry), geometry), program.words)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("mod", [mixed(), mixed(9, 16, 64, batch=2), dense(), dense(260, 16, 1)])
def test_results_are_those_of_the_interpreter(mod: IRModule, config: str) -> None:
    check_all(mod, program_of(mod, config))


def test_all_implementations_agree_about_programs() -> None:
    """No program depends on what they disagree about."""
    mod = mixed(9)
    program, x = program_of(mod, "pynq"), data_of(mod)
    want = np.asarray(evaluate(mod, {"x": x}))
    for core in Core:
        np.testing.assert_array_equal(launch(program, [x], CHOICES[core])[0][0], want)


def fitting(kernel: Kernel, config: str) -> Iterator[Plan]:
    geometry = make(config).geometry
    yield from (p for p in (Plan(kernel, tile, geometry) for tile in candidates(kernel, geometry)) if p.fits())


def test_the_tile_is_the_cheapest_that_fits() -> None:
    kernel = Kernel(Kind.MAXIMUM, (1, 64, 56, 56), (1, 64, 28, 28), Window((3, 3), (2, 2), (1, 1), (1, 1)))
    best = choose(kernel, make("pynq").geometry)
    assert best.cycles() == min(plan.cycles() for plan in fitting(kernel, "pynq"))
    huge = replace(kernel, window=Window((300, 300), (2, 2)))
    with pytest.raises(InputError, match="a tile of one result must fit into half of each buffer of 1x16_"):
        choose(huge, make("pynq").geometry)


def test_a_program_is_a_file() -> None:
    program = program_of(dense(), "pynq")
    data = program.to_bytes()
    again = read_program(data)
    assert again.head == program.head and again.to_bytes() == data
    assert program_of(dense(), "pynq").to_bytes() == data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:7], "a program of VTA must begin with its mark and its head"),
        (lambda data: b"x" + data[1:], "a program of VTA must begin with its mark and its head"),
        (lambda data: data[:16] + b"[" + data[17:], "the head of a program of VTA must be readable"),
        (lambda data: data[:-1], "a program of VTA must have .* bytes behind its head"),
        (lambda data: data.replace(b'"section": 0', b'"section": 9'), "must be readable: ports must lie in sections"),
        (lambda data: data.replace(b'"entry_bytes": 16', b'"entry_bytes": 17'), "sections must have sizes"),
    ],
)
def test_what_is_no_program(change: object, message: str) -> None:
    assert callable(change)
    with pytest.raises(ArtifactError, match=message):
        read_program(change(program_of(dense(), "pynq").to_bytes()))


def test_a_section_that_is_not_there() -> None:
    program = program_of(dense(), "pynq")
    with pytest.raises(ArtifactError, match="instructions of a program of VTA must name sections that it has"):
        read_program(replace(program, used=program.used + 99).to_bytes())
