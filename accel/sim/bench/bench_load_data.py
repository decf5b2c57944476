"""Tests vta_load_data: the beats of random padded blocks become writes at consecutive addresses, tokens with the last.

GATHER's part is in bench_gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import cocotb

from relay_hw.accel.isa.spec import Mem, Op, encode
from relay_hw.accel.sim.bench.bench_gather import INPUTS, keeps_its_time, writes_windows_in_order  # noqa: F401
from relay_hw.accel.sim.bench.common import Dut, get, parameter, quiet_behind_a_reset, rng, settle, start, step


@dataclass(frozen=True)
class LoadCase:
    index: int
    tokens: int
    mem: int
    expand: int
    pad: int
    first: int
    run: int
    x: int
    y: int
    pads: tuple[int, int, int, int]  # x1, x0, y1, y0
    pitch: int

    def insn(self, granule_beats: int) -> int:
        x1, x0, y1, y0 = self.pads
        values = {"set": self.tokens, "mem": self.mem, "expand": self.expand, "pitch": self.pitch}
        values |= {"pad_value": self.pad - 256 if self.pad > 127 else self.pad, "z": self.run // granule_beats}
        values |= {"y": self.y, "x": self.x, "y_pad_0": y0, "y_pad_1": y1, "x_pad_0": x0, "x_pad_1": x1}
        return encode(Op.LOAD, values)

    def address(self, n: int, line: int) -> int:
        """Beat address of the n-th word; a line has `line` beats."""
        if not self.pitch or self.expand:
            return self.first + n
        run, beat = divmod(n, self.run)
        return self.first + (4 * self.pitch * (beat // line) + run) * line + beat % line

    def writes(self, data: list[int], bus: int) -> list[int]:
        """Words written, in order; `data` are the beats that arrive."""
        x1, x0, y1, y0 = self.pads
        beats, padding = iter(data), int.from_bytes(bytes([self.pad]) * bus, "little")
        result = []
        for row in range(y0 + self.y + y1):
            for column in range(x0 + self.x + x1):
                inside = y0 <= row < y0 + self.y and x0 <= column < x0 + self.x
                result += [next(beats) if inside else padding for _ in range(self.run)]
        return result


def random_block(random: Random, index: int, line: int, granule: int) -> LoadCase:
    """`line`, `granule`: beats of them."""
    pick = lambda: random.choice((0, 0, 1, 2))  # noqa: E731
    pads = (pick(), pick(), pick(), pick())
    pitch = random.choice((0, 0, 1, 3))
    unit = max(line, granule) if pitch else granule
    return LoadCase(index, random.getrandbits(16), random.choice((0, 1, 2, 4, 5)),
                    0 if pitch else random.getrandbits(1), random.getrandbits(8), unit * random.randrange(1000),
                    unit * random.choice((1, 2, 4)), random.choice((1, 3)), random.choice((1, 2)),
                    pads, pitch)  # fmt: skip


def factored_block(random: Random, index: int, granule: int) -> LoadCase:
    """Weights with factors in front of them."""
    run = granule * random.randrange(1, 80)
    first = granule * random.randrange(1000)
    return LoadCase(index, random.getrandbits(16), Mem.WGT, 1, 0, first, run, 1, 1, (0, 0, 0, 0), 1)


def factors_of(
    random: Random, beats: int, lead: int, sizes: tuple[int, int], count: int
) -> tuple[list[int], dict[int, list[int]]]:
    """Of each beat of weights its `count` factors as one number; beats of factors by the beat that is behind them.

    `lead`: beats of weights behind each granule of factors; `sizes`: bytes of a granule and of a beat.
    """
    granule, bus = sizes
    share = lead * count // (2 * granule)
    found: list[int] = []
    leads: dict[int, list[int]] = {}
    for begin in range(0, beats, lead):
        factors = random.randbytes(granule)
        number = int.from_bytes(factors, "little")
        found += [number >> 4 * count * (n // share) & ((1 << 4 * count) - 1) for n in range(min(lead, beats - begin))]
        leads[begin] = [int.from_bytes(factors[at : at + bus], "little") for at in range(0, granule, bus)]
    return found, leads


@cocotb.test()
async def writes_blocks_in_order(dut: Dut) -> None:
    random, bus = rng(), parameter(dut, "AXI_DATA_BITS") // 8
    await start(dut, **dict.fromkeys(INPUTS, 0))
    line, granule = parameter(dut, "LINE_BEATS"), max(1, 16 // bus)
    lead = parameter(dut, "FACTOR_GRANULES") * granule
    blocks = [random_block(random, index, line, granule) for index in range(40)]
    blocks += [factored_block(random, index, granule) for index in range(40, 60)] if lead else []
    random.shuffle(blocks)
    waiting, data, expected = list(blocks), [], []
    for block in blocks:
        arriving = [random.getrandbits(8 * bus) for _ in range(block.run * block.x * block.y)]
        factors = [0] * len(arriving)
        if block.expand and block.pitch:
            factors, leads = factors_of(random, len(arriving), lead, (granule * bus, bus), parameter(dut, "FACTORS"))
            data += [word for n, beat in enumerate(arriving) for word in (*leads.get(n, ()), beat)]
        else:
            data += arriving
        words = block.writes(arriving, bus)
        for n, word in enumerate(words):
            factor = factors[n] if block.expand and block.pitch else 0
            expected.append((block, block.address(n, line), word, n == len(words) - 1, factor))
    for _ in range(20 * len(expected)):
        if not expected:
            break
        valid = bool(waiting) and random.random() < 0.7
        dut.valid_i.value = valid
        if waiting:
            block = waiting[0]
            dut.insn_i.value, dut.index_i.value = block.insn(granule), block.index
            dut.first_beat_i.value = block.first
        dut.inp_soon_i.value = hold = random.random() < 0.3
        await settle()
        offered = bool(data) and random.random() < 0.8
        answer = offered and bool(get(dut.beat_want_o))
        dut.beat_i.value, dut.data_i.value = offered, data[0] if offered else 0
        await settle()
        if get(dut.pop_o):
            assert valid
            waiting.pop(0)
        if answer:
            data.pop(0)
        await step(dut)
        if get(dut.we_o):
            block, address, word, last, factor = expected.pop(0)
            assert get(dut.factor_o) == factor
            assert get(dut.we_o) == 1 << block.mem and not (hold and block.mem == 0)
            assert (get(dut.waddr_o), get(dut.wdata_o), get(dut.expand_o)) == (address, word, block.expand)
            assert get(dut.give_o) == last
            if last:
                assert (get(dut.set_o), get(dut.done_index_o)) == (block.tokens, block.index)
        else:
            assert not get(dut.give_o)
    assert not expected and not data
    dut.beat_i.value = 0
    await step(dut)
    assert get(dut.idle_o)


@cocotb.test()
async def writes_nothing_behind_a_reset(dut: Dut) -> None:
    granule = max(1, 16 // (parameter(dut, "AXI_DATA_BITS") // 8))
    block = LoadCase(0, 0, Mem.WGT, 0, 0, 0, 4 * granule, 1, 1, (0, 0, 0, 0), 0)
    begin = dict.fromkeys(INPUTS, 0) | {"valid_i": 1, "beat_i": 1, "insn_i": block.insn(granule)}
    await quiet_behind_a_reset(dut, begin, "valid_i", ("we_o", "give_o", "beat_want_o"))
