"""Axes and spaces: what texts say, numbers of points, neighbours, and designs with the reasons why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relay_hw.accel.fpga.board_sdram import board_memory
from relay_hw.accel.fpga.boards import find_board
from relay_hw.accel.fpga.parts import ECP5_PARTS
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.errors import InputError
from relay_hw.explore.design import Base, Placed, Refusal, placed
from relay_hw.explore.space import Axis, Space, read_axis, spanned, usual_space

LARGEST = ECP5_PARTS[-1]
TINY = Base(load_config("tiny"), "int8", LARGEST)


def test_values_of_an_axis_are_listed_or_a_range_that_doubles() -> None:
    assert read_axis("block_in=8,16,32") == Axis("block_in", (8, 16, 32))
    assert read_axis("wgt_depth=256..2048,8192") == Axis("wgt_depth", (256, 512, 1024, 2048, 8192))
    assert read_axis("latency=30..100").values == (30, 60)
    assert read_axis("strategy=int8, w4a8") == Axis("strategy", ("int8", "w4a8"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("block_in", "an axis must be NAME=VALUE,..., such as block_in=8,16,32, not block_in"),
        ("blocks=8", "axis must be one of batch, block_in,"),
        ("block_in=8,8", "axis block_in must have different values, not 8 twice"),
        ("block_in=wide", "axis block_in must have integers, or a range such as 256..4096, not wide"),
        ("block_in=64..8", "axis block_in: a range must go up from 1 or more, not be 64..8"),
        ("resident=never", "axis resident must have values of auto, off, not never"),
        ("memory=fast", "axis memory must have values of standard, narrow,"),
        ("latency=1.." + "9" * 30, "axis latency must have integers"),
    ],
)
def test_what_is_no_axis(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_axis(text)
    assert sentence in str(refusal.value)


def test_points_are_numbered_and_have_neighbours() -> None:
    space = spanned({"block_in": (4, 8, 16), "out_lanes": (1, 2), "memory": ("standard", "narrow")})
    points = [space.point(number) for number in range(space.size)]
    assert len({point.values for point in points}) == space.size == 12
    assert points[0].values == (("block_in", 4), ("out_lanes", 1), ("memory", "standard"))
    for number in range(space.size):
        for other in space.near(number):
            pairs = zip(points[number].values, points[other].values, strict=True)
            assert sum(a != b for a, b in pairs) == 1 and number in space.near(other)
    assert usual_space(load_config("default")).size == 4 * 4 * 3 * 27 * 2


def test_a_space_has_axes_that_differ_and_not_too_many_points() -> None:
    with pytest.raises(InputError, match="a space must have an axis, not none"):
        Space(())
    with pytest.raises(InputError, match="a space must have different axes, not block_in twice"):
        Space((Axis("block_in", (4,)), Axis("block_in", (8,))))
    with pytest.raises(InputError, match="a space must have at most 10,000,000 points, not 16,777,216"):
        Space(tuple(Axis(name, tuple(range(64))) for name in ("block_in", "block_out", "inp_depth", "wgt_depth")))


def test_points_that_no_hardware_could_be_are_refused_by_the_configuration() -> None:
    found = placed(spanned({"axi_data_bits": (96,)}).point(0), TINY)
    assert found == Refusal("configuration point-0: axi_data_bits must be a power of two from 64 to 512, not 96")
    found = placed(spanned({"latency": (0,)}).point(0), TINY)
    assert found == Refusal("memory model: latency must be from 1 to 65535, not 0")


def test_points_that_a_part_has_no_room_for_are_refused_by_what_it_lacks() -> None:
    small = Base(replace(load_config("tiny"), cof_depth=0), "int8", ECP5_PARTS[0])
    found = placed(spanned({"wgt_depth": (8192,)}).point(0), small)
    assert isinstance(found, Refusal) and found.reason.startswith("part lfe5u-25f must have room, not ")
    assert "block RAMs of 56" in found.reason
    assert isinstance(placed(spanned({"wgt_depth": (1024,)}).point(0), small), Placed)


def test_a_board_brings_its_memory_at_the_clock() -> None:
    board = find_board("ulx3s-85f")
    base = Base(load_config("ecp5"), "int8", board.part, board=board)
    space = spanned({"clock": (40, 80)})
    for number, hertz in enumerate((40_000_000, 80_000_000)):
        found = placed(space.point(number), base)
        assert isinstance(found, Placed) and found.design.clock_hz == hertz
        assert memory_model(found.design.memory) == board_memory(board, hertz)


def test_limits_of_the_memory_are_axes() -> None:
    found = placed(spanned({"latency": (20,), "memory": ("narrow",), "resident": ("off",)}).point(0), TINY)
    assert isinstance(found, Placed)
    assert (found.design.memory, found.design.resident) == ("narrow,latency=20", "off")
