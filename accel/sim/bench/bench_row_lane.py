"""Tests vta_row_lane: what an element adds to its row's sums, and its result, in the stages that its header states."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import cocotb

from relay_hw.accel.isa.rows import ELEMENT_BITS, reach
from relay_hw.accel.isa.spec import RowKind
from relay_hw.accel.sim.bench.common import Dut, get, rng, settle, start, step

# Ports that hold with the row, and those of an element, each driven so many cycles behind its own stage 0.
ROW = (
    *("softmax_i", "inp_zero_i", "columns_i", "shift_i", "half_i", "zero_point_i"),
    *("b_top_i", "c_top_i", "c_sum_i", "c_inverse_i", "c_drop_i", "c_down_i"),
)
SUMMED, RESULT = 3, 13
# A shift by more leaves nothing, as by this.
LONGEST = 35
Z_MOST = (1 << (ELEMENT_BITS - 1)) - 1


def random_row(random: Random) -> dict[str, int]:
    """Ports of a row, as vta_row and vta_row_inverse have them."""
    kind = random.choice(list(RowKind))
    n, half = random.choice([1, 1 << 14, random.randint(1, 1 << 14)]), random.randint(-5, 17)
    drop = max(half + reach(n), 0)
    shift = 0 if kind is RowKind.SOFTMAX else min(random.randint(0, 40), LONGEST)
    values = {"softmax_i": int(kind is RowKind.SOFTMAX), "columns_i": n, "shift_i": shift, "half_i": (1 << shift) >> 1}
    values |= {"inp_zero_i": random.randint(-128, 127) if kind is RowKind.RMS_NORM else 0}
    values |= {"b_top_i": random.randint(-128, 127), "c_top_i": random.randint(-128, 127)}
    values |= {"zero_point_i": random.choice([-128, 0, 127]), "c_drop_i": drop, "c_down_i": 11 + half - drop}
    values["c_sum_i"] = random.randint(-128 * n, 127 * n) if kind is RowKind.LAYER_NORM else 0
    values["c_inverse_i"] = random.choice([random.getrandbits(16), (1 << 16) - 1])
    if kind is RowKind.SOFTMAX:
        values |= {"c_inverse_i": random.getrandbits(17), "c_drop_i": 0, "c_down_i": random.randint(-14, 59)}
    return values


def random_element(random: Random) -> dict[str, int]:
    """Ports of an element, and its words of coefficients."""
    word = random.getrandbits(48) if random.random() < 0.5 else random.getrandbits(24) << 16 | random.getrandbits(11)
    return {
        "b_data_i": random.randint(-128, 127),
        "b_counts_i": int(random.random() < 0.8),
        "b_entry_i": random.getrandbits(16),
        "c_data_i": random.randint(-128, 127),
        "c_counts_i": int(random.random() < 0.8),
        "c_word_i": word,
    }


def half_up(value: int, down: int) -> int:
    """A number over two to the power of `down`, to the nearest, halves up."""
    return value + (1 << down >> 1) >> down


def signed(value: int, bits: int) -> int:
    return (value & (1 << bits) - 1) - ((value >> bits - 1 & 1) << bits)


def summed(row: Mapping[str, int], element: Mapping[str, int]) -> tuple[int, int]:
    """What an element adds to the sum of squares or exponentials, and to that of elements."""
    if not element["b_counts_i"]:
        return 0, 0
    u, entry = element["b_data_i"] - row["inp_zero_i"], element["b_entry_i"]
    return (entry % 4096 << entry // 4096 if row["softmax_i"] else u * u), u


def result(row: Mapping[str, int], element: Mapping[str, int]) -> int:
    """An element's result, by ISA.md's words from the row's inverse on."""
    gain, bias = signed(element["c_word_i"], 16), signed(element["c_word_i"] >> 16, 32)
    if row["softmax_i"]:
        entry = element["c_word_i"] & 0xFFFF if element["c_counts_i"] else 0
        down = max(row["c_down_i"] - entry // 4096, 0)
        value = half_up(entry % 4096 * row["c_inverse_i"], down)
    else:
        u = element["c_data_i"] - row["inp_zero_i"]
        e = signed(half_up(row["columns_i"] * u - row["c_sum_i"], row["c_drop_i"]), ELEMENT_BITS)
        z = min(max(half_up(e * row["c_inverse_i"], row["c_down_i"]), -Z_MOST), Z_MOST)
        value = half_up(z * gain + bias, row["shift_i"])
    return min(max(value + row["zero_point_i"], -128), 127)


def drive(dut: Dut, name: str, value: int) -> None:
    port = getattr(dut, name)
    port.value = value & (1 << len(port)) - 1


@cocotb.test()
async def adds_and_results(dut: Dut) -> None:
    random = rng()
    elements = [random_element(random) for _ in range(100)]
    await start(dut, en_i=1, **dict.fromkeys((*ROW, *elements[0]), 0))
    for _ in range(60):
        row = random_row(random)
        elements = [random_element(random) for _ in range(60)]
        behind = {"b_entry_i": 2, "c_word_i": 2 if row["softmax_i"] else 8}
        for name in ROW:
            drive(dut, name, row[name])
        for cycle in range(len(elements)):
            for name in elements[0]:
                drive(dut, name, elements[max(cycle - behind.get(name, 0), 0)][name])
            await settle()
            if cycle >= 1:
                near = [row[f"{side}_top_i"] - elements[cycle - 1][f"{side}_data_i"] & 0xFF for side in "bc"]
                assert [get(dut.b_dist_o), get(dut.c_dist_o)] == near
            if cycle >= SUMMED:
                value, part = summed(row, elements[cycle - SUMMED])
                assert get(dut.b_value_o) == value and get(dut.b_part_o) == part & 0x1FF, row
            if cycle >= RESULT:
                element = elements[cycle - RESULT]
                assert get(dut.byte_o) == result(row, element) & 0xFF, (row, element)
            await step(dut)
