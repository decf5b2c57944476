"""Tests GATHER in vta_load_data: windows of random rows, byte by byte, in time, and tokens with the last write."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import cocotb

from relay_hw.accel.isa.spec import Op, encode
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

INPUTS = (
    "valid_i",
    "gather_i",
    "insn_i",
    "index_i",
    "first_beat_i",
    "inp_soon_i",
    "beat_i",
    "data_i",
    "error_i",
    "stop_i",
)


@dataclass(frozen=True)
class Gather:
    index: int
    tokens: int
    pad: int
    first: int  # beat
    row_beats: int
    x: int
    y: int
    pads: tuple[int, int]
    pitch: int  # beats
    x_step: int
    left: int
    row_bytes: int
    run: int
    lane: int

    def insn(self, pitch_entries: int) -> int:
        values = {"set": self.tokens, "pad_value": self.pad, "x": self.x, "y": self.y}
        values |= {"y_pad_0": self.pads[0], "y_pad_1": self.pads[1], "pitch": pitch_entries, "x_step": self.x_step}
        values |= {"left": self.left, "row_bytes": self.row_bytes, "run": self.run, "lane": self.lane}
        return encode(Op.GATHER, values)

    def bytes_written(self, rows: list[bytes], bus: int) -> list[dict[int, int]]:
        """Byte addresses and values of each write, in order."""
        writes: list[dict[int, int]] = []
        vector = self.first * bus
        for row in range(-self.pads[0], self.y + self.pads[1]):
            for column in range(self.x):
                beats: dict[int, dict[int, int]] = {}
                for n in range(self.run):
                    at = column * self.x_step - self.left + n
                    inside = 0 <= row < self.y and 0 <= at < self.row_bytes
                    address = vector + self.lane + n
                    beats.setdefault(address // bus, {})[address] = rows[row][at] if inside else self.pad & 255
                writes += beats.values()
                vector += self.pitch * bus
        return writes


def random_gather(random: Random, index: int, bus: int, unit: int) -> Gather:
    """`unit`: beats that a vector's length is a multiple of."""
    pitch = unit * random.choice((1, 2, 3))
    run = random.randrange(1, pitch * bus + 1)
    row = random.choice((1, random.randrange(1, 40), random.randrange(1, 300)))
    granule = max(16, bus)
    pick = lambda: random.choice((0, 0, 1, 2))  # noqa: E731
    return Gather(index, random.getrandbits(16), random.randrange(-128, 128), random.randrange(1000),
                  -(-row // granule) * granule // bus, random.choice((1, 2, 5)), random.choice((1, 2, 4)),
                  (pick(), pick()), pitch, random.choice((0, 1, 2, 7, 255)), random.randrange(-40, 40), row, run,
                  random.randrange(pitch * bus - run + 1))  # fmt: skip


def drive(dut: Dut, gather: Gather | None, block: int) -> None:
    dut.valid_i.value = gather is not None
    if gather is not None:
        bus = parameter(dut, "AXI_DATA_BITS") // 8
        dut.gather_i.value, dut.index_i.value, dut.first_beat_i.value = 1, gather.index, gather.first
        dut.insn_i.value = gather.insn(gather.pitch * bus // block)


@cocotb.test()
async def writes_windows_in_order(dut: Dut) -> None:
    random, bus, block = rng(), parameter(dut, "AXI_DATA_BITS") // 8, parameter(dut, "INP_LANES")
    await start(dut, **dict.fromkeys(INPUTS, 0))
    gathers = [random_gather(random, index, bus, max(1, block // bus)) for index in range(60)]
    waiting, data, expected = list(gathers), [], []
    for gather in gathers:
        rows = [random.randbytes(gather.row_beats * bus) for _ in range(gather.y)]
        data += [row[n * bus : (n + 1) * bus] for row in rows for n in range(gather.row_beats)]
        writes = gather.bytes_written(rows, bus)
        expected += [(gather, write, n == len(writes) - 1) for n, write in enumerate(writes)]
    hold = False
    for _ in range(30 * len(expected)):
        if not expected:
            break
        valid = bool(waiting) and random.random() < 0.7
        drive(dut, waiting[0] if valid else None, block)
        await settle()
        # A read that is held now is not written after the next cycle.
        held, hold = hold, random.random() < 0.2
        dut.inp_soon_i.value = hold << 1
        offered = bool(data) and random.random() < 0.7
        answer = offered and bool(get(dut.beat_want_o))
        dut.beat_i.value, dut.data_i.value = offered, int.from_bytes(data[0], "little") if offered else 0
        await settle()
        if get(dut.pop_o):
            assert valid
            waiting.pop(0)
        if answer:
            data.pop(0)
        await step(dut)
        if not get(dut.we_o):
            assert not get(dut.give_o)
            continue
        gather, write, last = expected.pop(0)
        assert not held
        word, begin = get(dut.wdata_o), get(dut.waddr_o) * bus
        found = {begin + n: word >> (8 * n) & 255 for n in range(bus) if get(dut.be_o) >> n & 1}
        assert found == write, gather
        assert get(dut.give_o) == last
        if last:
            assert (get(dut.set_o), get(dut.done_index_o)) == (gather.tokens, gather.index)
    assert not expected and not data
    dut.beat_i.value = dut.valid_i.value = 0
    await step(dut)
    assert get(dut.idle_o)


@cocotb.test()
async def keeps_its_time(dut: Dut) -> None:
    """TIMING.md: with a bus that always answers, reads of a row follow its last beat and one another without a gap."""
    random, bus, block = rng(), parameter(dut, "AXI_DATA_BITS") // 8, parameter(dut, "INP_LANES")
    for index in range(30):
        gather = random_gather(random, index, bus, max(1, block // bus))
        await start(dut, **dict.fromkeys(INPUTS, 0))
        drive(dut, gather, block)
        await step(dut)  # taken at edge 0
        dut.valid_i.value = 0
        edge, beats, given = 0, [], -1
        while given < 0:
            await settle()
            answer = bool(get(dut.beat_want_o))
            dut.beat_i.value = answer
            edge += 1
            if answer:
                beats.append(edge)
            await step(dut)
            given = edge if get(dut.give_o) else -1
            assert edge < 5000
        reads = gather.x * -(-(gather.lane % bus + gather.run) // bus)
        read, fill, released = 1 + gather.pads[0] * reads, 1, [0, 0]
        wanted = []
        for _ in range(gather.y):
            fill = max(fill, released[-2] + 1)
            wanted += range(fill, fill + gather.row_beats)
            fill += gather.row_beats
            read = max(read, fill) + reads
            released.append(read - 1)
        assert beats == wanted, gather
        assert given == read + gather.pads[1] * reads, gather
