"""The proof refuses every change of ROW, of what it reads and of its coefficients that changes a result."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.isa.spec import Mem, Op, RowKind
from relay_hw.ir.expr import Function
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.validate.proof import validate
from tests.targets import target_for
from tests.tensorize.validate.test_proof import byte, changes_are_seen, field, first, refused

CONFIGS = ("default", "tiny", "w4", "wide")
STEPS = (1, -1, 2, 16, -16, 128)
# Fields that a kind does not read.
UNREAD = {
    RowKind.SOFTMAX: ("inp_zero", "epsilon_low", "epsilon_high"),
    RowKind.LAYER_NORM: ("inp_zero", "visible", "visible_step", "multiplier"),
    RowKind.RMS_NORM: ("visible", "visible_step", "multiplier"),
}


@pytest.fixture(params=CONFIGS)
def device(request: pytest.FixtureRequest) -> Target:
    """Configurations with a row unit."""
    return target_for(request.param)


def region(kit: SimpleNamespace, config: Target, kind: RowKind) -> tuple[Function, Segment]:
    """Two matrices, whose rows end inside an entry and, of softmax, see more and more columns."""
    build = kit.Regions(1, config)
    x = build.tensor(2, 9, 11)
    match kind:
        case RowKind.SOFTMAX:
            y = build.softmax(x, causal=True, lengths=(7, 11))
        case RowKind.LAYER_NORM:
            y = build.norm(x)
        case RowKind.RMS_NORM:
            y = build.norm(x, centered=False)
    function = build.function(y)
    return function, compile_function(function, config, "accel_0", resident=False)


def wrong_fields(values: dict[str, int]) -> list[tuple[str, int]]:
    """Another value of each field that its kind reads."""
    kind = RowKind(values["kind"])
    found = [("kind", (kind + 1) % len(RowKind)), ("kind", (kind + 2) % len(RowKind))]
    for name in ("zero_point", "inp_zero", "shift", "epsilon_low", "epsilon_high", "multiplier", "visible"):
        if name not in UNREAD[kind]:
            found.append((name, values[name] - 1 if values[name] > 0 else values[name] + 1))
    if kind is RowKind.SOFTMAX:
        found.append(("visible_step", 1 - values["visible_step"]))
    return [*found, ("columns", 1), ("rows", values["rows"] - 1), ("acc_base", values["acc_base"] + 1)]


@pytest.mark.parametrize("kind", RowKind)
def test_each_field_is_proved(kit: SimpleNamespace, device: Target, kind: RowKind) -> None:
    function, segment = region(kit, device, kind)
    validate(function, segment, device)
    row = first(segment.program, Op.ROW)
    values = segment.program.instructions[row][1]
    for name, value in wrong_fields(values):
        refused(function, field(segment, row, name, value), device, "")


@pytest.mark.parametrize("kind", RowKind)
def test_fields_that_are_not_read_are_not_proved(kit: SimpleNamespace, kind: RowKind) -> None:
    config = target_for("default")
    function, segment = region(kit, config, kind)
    row = first(segment.program, Op.ROW)
    for name in UNREAD[kind]:
        value = 1 - segment.program.instructions[row][1][name]
        assert validate(function, field(segment, row, name, value), config).output_bytes == 2 * 9 * 11


@pytest.mark.parametrize("kind", RowKind)
def test_each_coefficient_is_proved(kit: SimpleNamespace, device: Target, kind: RowKind) -> None:
    """A bit of each byte that is read, of the first and of the last record: a softmax reads no bias."""
    function, segment = region(kit, device, kind)
    section = next(one for one in segment.program.sections if one.name == "coefficients")
    lanes = device.row_lanes
    records = (0, 256 * lanes - 1) if kind is RowKind.SOFTMAX else (0, 10)
    places = (0, 1) if kind is RowKind.SOFTMAX else (0, 1, 4, 5, 6, 7)
    for record in records:
        for place in places:
            wrong = coefficient(segment, 8 * record + place)
            refused(function, wrong, device, "")
    assert section.data is not None and len(section.data) >= 8 * (records[-1] + 1)


def coefficient(segment: Segment, place: int) -> Segment:
    """The segment with one bit of its coefficients changed."""
    others = [one for one in segment.program.sections if one.kind is SectionKind.CONSTANTS]
    assert [one.name for one in others] == ["coefficients"]
    return byte(segment, SectionKind.CONSTANTS, place, 1)


def test_lanes_must_look_up_one_table(kit: SimpleNamespace) -> None:
    config = target_for("default")
    function, segment = region(kit, config, RowKind.SOFTMAX)
    sentence = r"instruction \d+ must have the same table of exponentials in all lanes"
    refused(function, coefficient(segment, 8), config, sentence)


def test_places_of_rows_are_proved(kit: SimpleNamespace) -> None:
    config = target_for("default")
    function, segment = region(kit, config, RowKind.LAYER_NORM)
    row, load = first(segment.program, Op.ROW), first(segment.program, Op.LOAD, mem=Mem.COF)
    refused(function, field(segment, row, "row_step", 0), config, "must have rows that share no entry of acc")
    refused(function, field(segment, row, "row_step", 2), config, "")
    refused(function, field(segment, row, "acc_base", 0xFFFF), config, r"must use a entry of acc below 2048, not 65535")
    wrong = field(segment, load, "sram", 4)
    refused(function, wrong, config, "must read cof where it holds constants of the program")


def chain(kit: SimpleNamespace, config: Target) -> tuple[Function, Segment]:
    build = kit.Regions(4, config)
    x = build.tensor(9, 20)
    y = build.norm(build.rows(x, 12))
    y = build.norm(build.rows(y, 12), centered=False)
    function = build.function(build.rows(build.softmax(y, lengths=(7,)), 10))
    return function, compile_function(function, config, "accel_0")


@pytest.mark.parametrize("name", CONFIGS)
def test_no_change_of_a_field_goes_unseen(kit: SimpleNamespace, name: str) -> None:
    """Of instructions on the way from DRAM through ROW and back: refused, unless the simulator computes the same."""
    config = target_for(name)
    function, segment = chain(kit, config)
    rows = [index for index, (op, _) in enumerate(segment.program.instructions) if op is Op.ROW]
    last = len(segment.program.instructions) - 1

    def pick(rng: np.random.Generator, number: int) -> int:
        return rows[number % len(rows)] if number % 2 else int(rng.integers(last))

    changes_are_seen(kit, (function, segment), config, pick, STEPS)


def test_a_wrong_row_is_named(kit: SimpleNamespace) -> None:
    """The layer and the element."""
    config = target_for("default")
    function, segment = region(kit, config, RowKind.RMS_NORM)
    row = first(segment.program, Op.ROW)
    wrong = field(segment, row, "epsilon_low", segment.program.instructions[row][1]["epsilon_low"] ^ 1)
    sentence = r"which instruction \d+ \(requant\) is nearest to: its row has another element, coefficient or number"
    refused(function, wrong, config, rf"no instruction computes element \(0, 0, 0\) of layer 0:rms_norm, {sentence}")
