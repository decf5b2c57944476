"""Tests vta_acc_mem against a table of lanes: its users in banks of their own, then on purpose in the same one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from dataclasses import field as default
from random import Random

import cocotb

from relay_hw.accel.sim.bench.common import Dut, field, get, parameter, rng, settle, signed, start, step

IDLE = dict.fromkeys(
    ("c_re_i", "c_raddr_i", "c_we_i", "c_waddr_i", "c_wdata_i", "o_re_i", "o_raddr_i", "o_rgroup_i", "o_we_i")
    + ("o_waddr_i", "o_wdata_i", "l_we_i", "l_expand_i", "l_waddr_i", "l_wdata_i")
    + ("r_re_i", "r_raddr_i", "r_we_i", "r_waddr_i", "r_wdata_i"),
    0,
)


class Model:
    """Entries of int32 lanes, and the way that a beat of LOAD changes them."""

    def __init__(self, dut: Dut) -> None:
        self.lanes = parameter(dut, "BLOCK_OUT")
        self.depth = parameter(dut, "ACC_DEPTH")
        self.bank_depth = self.depth // parameter(dut, "ACC_BANKS")
        self.beat_bytes = parameter(dut, "BEAT_W") // 8
        self.words = [0] * (self.depth * self.lanes)

    def entry(self, index: int) -> list[int]:
        return self.words[index * self.lanes : (index + 1) * self.lanes]

    def write(self, index: int, word: int) -> None:
        self.words[index * self.lanes : (index + 1) * self.lanes] = [field(word, i, 32) for i in range(self.lanes)]

    def write_bytes(self, index: int, word: int) -> None:
        values = [signed(field(word, i, 8), 8) & 0xFFFFFFFF for i in range(self.lanes)]
        self.words[index * self.lanes : (index + 1) * self.lanes] = values

    def lanes_of_beat(self, expand: bool) -> int:
        return self.beat_bytes if expand else self.beat_bytes // 4

    def load(self, beat: int, word: int, expand: bool) -> None:
        lanes = self.lanes_of_beat(expand)
        values = [signed(field(word, i, 8), 8) & 0xFFFFFFFF if expand else field(word, i, 32) for i in range(lanes)]
        self.words[beat * lanes : (beat + 1) * lanes] = values

    def beat_in_bank(self, random: Random, bank: int, expand: bool) -> int:
        beats = self.bank_depth * self.lanes // self.lanes_of_beat(expand)
        return bank * beats + random.randrange(beats)

    def entry_in_bank(self, random: Random, bank: int) -> int:
        return bank * self.bank_depth + random.randrange(self.bank_depth)


@dataclass
class Writes:
    """Whether COMPUTE, OUTPUT, ROW and LOAD write in a cycle, and the entries of the first three."""

    on: list[bool] = default(default_factory=lambda: [False] * 4)
    where: list[int] = default(default_factory=lambda: [0] * 3)


def in_banks(random: Random, banks: int, users: int) -> list[int | None]:
    """A bank of its own for each of so many users; where there are too few banks some have none."""
    free: list[int | None] = [*range(banks), *[None] * users]
    return random.sample(free[: max(banks, users)], users)


@cocotb.test()
async def users_in_different_banks(dut: Dut) -> None:
    random, model = rng(), Model(dut)
    banks, out_lanes = parameter(dut, "ACC_BANKS"), parameter(dut, "OUT_LANES")
    has_row = bool(parameter(dut, "ROW"))
    groups = model.lanes // out_lanes
    await start(dut, **IDLE)
    for index in range(model.depth):
        word = random.getrandbits(32 * model.lanes)
        dut.c_we_i.value, dut.c_waddr_i.value = 1, index
        await step(dut)
        dut.c_wdata_i.value = word
        model.write(index, word)
    dut.c_we_i.value = 0
    await step(dut)
    # What OUTPUT and ROW read at the edge before, and what they have: the last of what they read before that.
    read: list[list[int] | None] = [None, None]
    has: list[list[int] | None] = [None, None]
    # Who said in the cycle before that they write now, and where; of LOAD also what.
    writes, l_write = Writes(), (0, 0, False)
    for _ in range(500):
        readers = in_banks(random, banks, 3)
        group, expand = random.randrange(groups), random.random() < 0.5
        c_read, o_read, r_read = (model.entry_in_bank(random, bank or 0) for bank in readers)
        reads = [bank is not None and random.random() < 0.8 for bank in readers]
        reads[2] &= has_row
        dut.c_re_i.value, dut.c_raddr_i.value = reads[0], c_read
        dut.o_re_i.value, dut.o_raddr_i.value, dut.o_rgroup_i.value = reads[1], o_read, group
        dut.r_re_i.value, dut.r_raddr_i.value = reads[2], r_read
        c_word, o_word, r_word = (random.getrandbits(bits * model.lanes) for bits in (32, 8, 8))
        l_word = random.getrandbits(8 * model.beat_bytes)
        writers = in_banks(random, banks, 4)
        following = [bank is not None and random.random() < 0.7 for bank in writers]
        following[2] &= has_row
        coming = Writes(following, [model.entry_in_bank(random, bank or 0) for bank in writers[:3]])
        beat = model.beat_in_bank(random, writers[3] or 0, expand)
        dut.c_we_i.value, dut.c_waddr_i.value, dut.c_wdata_i.value = following[0], coming.where[0], c_word
        dut.o_we_i.value, dut.o_waddr_i.value, dut.o_wdata_i.value = following[1], coming.where[1], o_word
        dut.r_we_i.value, dut.r_waddr_i.value, dut.r_wdata_i.value = following[2], coming.where[2], r_word
        dut.l_we_i.value, dut.l_expand_i.value = following[3], expand
        dut.l_waddr_i.value, dut.l_wdata_i.value = beat, l_word
        await settle()
        assert not (get(dut.clash_read_o) or get(dut.clash_write_o))
        c_old, o_old = model.entry(c_read), model.entry(o_read)[group * out_lanes : (group + 1) * out_lanes]
        r_old = [lane & 0xFF for lane in model.entry(r_read)]
        await step(dut)
        if reads[0]:
            assert [field(get(dut.c_rdata_o), i, 32) for i in range(model.lanes)] == c_old
        has = [old or kept for old, kept in zip(read, has, strict=True)]
        read = [o_old if reads[1] else None, r_old if reads[2] else None]
        if has[0]:
            assert [field(get(dut.o_rdata_o), i, 32) for i in range(out_lanes)] == has[0]
        if has[1]:
            assert [field(get(dut.r_rdata_o), i, 8) for i in range(model.lanes)] == has[1]
        if writes.on[0]:
            model.write(writes.where[0], c_word)
        for user, word in ((1, o_word), (2, r_word)):
            if writes.on[user]:
                model.write_bytes(writes.where[user], word)
        if writes.on[3]:
            model.load(*l_write)
        writes, l_write = coming, (beat, l_word, expand)
    assert has[0] and bool(has[1]) == has_row


@cocotb.test()
async def collisions_name_their_users(dut: Dut) -> None:
    random, model, banks = rng(), Model(dut), parameter(dut, "ACC_BANKS")
    has_row = bool(parameter(dut, "ROW"))
    await start(dut, **IDLE)
    for _ in range(300):
        reads = [random.random() < 0.6 for _ in range(3)]
        writes = [random.random() < 0.6 for _ in range(4)]
        read_banks = [random.randrange(banks) for _ in range(3)]
        write_banks = [random.randrange(banks) for _ in range(4)]
        for name, bank, on in zip("cor", read_banks, reads, strict=True):
            getattr(dut, f"{name}_re_i").value = on
            getattr(dut, f"{name}_raddr_i").value = model.entry_in_bank(random, bank)
        for name, bank, on in zip("colr", write_banks, writes, strict=True):
            place = model.beat_in_bank(random, bank, False) if name == "l" else model.entry_in_bank(random, bank)
            getattr(dut, f"{name}_we_i").value, getattr(dut, f"{name}_waddr_i").value = on, place
        dut.l_expand_i.value = 0
        # Without a row unit what its inputs say counts for nothing.
        reads[2] &= has_row
        writes[3] &= has_row
        await settle()
        assert get(dut.clash_read_o) == met(reads, read_banks)
        # A write is in the cycle behind the one in which its user says it.
        await step(dut)
        assert get(dut.clash_write_o) == met(writes, write_banks)


def met(on: list[bool], banks: list[int]) -> int:
    """The users, a bit each, that are in a bank with another one."""
    together = Counter(bank for bank, is_on in zip(banks, on, strict=True) if is_on)
    return sum((is_on and together[bank] > 1) << n for n, (bank, is_on) in enumerate(zip(banks, on, strict=True)))
