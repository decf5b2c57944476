"""Tests vta_acc_mem against a table of lanes: three users in banks of their own, then on purpose in the same one."""

from __future__ import annotations

from random import Random

import cocotb

from relay_hw.accel.sim.bench.common import Dut, field, get, parameter, rng, settle, signed, start, step

IDLE = dict.fromkeys(
    ("c_re_i", "c_raddr_i", "c_we_i", "c_waddr_i", "c_wdata_i", "o_re_i", "o_raddr_i", "o_rgroup_i", "o_we_i")
    + ("o_waddr_i", "o_wdata_i", "l_we_i", "l_expand_i", "l_waddr_i", "l_wdata_i"),
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


@cocotb.test()
async def users_in_different_banks(dut: Dut) -> None:
    random, model = rng(), Model(dut)
    banks, out_lanes = parameter(dut, "ACC_BANKS"), parameter(dut, "OUT_LANES")
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
    # What OUTPUT read at the edge before, and what it has: the last of what it read before that.
    read: list[int] | None = None
    has: list[int] | None = None
    # Who said in the cycle before that they write now, and where; of LOAD also what.
    c_write = o_write = 0
    enables, l_write = [False] * 3, (0, 0, False)
    for _ in range(500):
        readers = random.sample(range(banks), 2)
        c_read, o_read = (model.entry_in_bank(random, bank) for bank in readers)
        group, expand = random.randrange(groups), random.random() < 0.5
        c_word, o_word = random.getrandbits(32 * model.lanes), random.getrandbits(8 * model.lanes)
        l_word = random.getrandbits(8 * model.beat_bytes)
        # With two banks one of the writers, another each time, has none.
        writers = random.sample([*range(banks), None][: max(banks, 3)], 3)
        c_next, o_next = (model.entry_in_bank(random, bank or 0) for bank in writers[:2])
        beat = model.beat_in_bank(random, writers[2] or 0, expand)
        following = [bank is not None and random.random() < 0.7 for bank in writers]
        dut.c_re_i.value, dut.c_raddr_i.value = 1, c_read
        reads = random.random() < 0.7
        dut.o_re_i.value, dut.o_raddr_i.value, dut.o_rgroup_i.value = reads, o_read, group
        dut.c_we_i.value, dut.c_waddr_i.value, dut.c_wdata_i.value = following[0], c_next, c_word
        dut.o_we_i.value, dut.o_waddr_i.value, dut.o_wdata_i.value = following[1], o_next, o_word
        dut.l_we_i.value, dut.l_expand_i.value = following[2], expand
        dut.l_waddr_i.value, dut.l_wdata_i.value = beat, l_word
        await settle()
        assert not (get(dut.clash_read_o) or get(dut.clash_write_o))
        c_old, o_old = model.entry(c_read), model.entry(o_read)[group * out_lanes : (group + 1) * out_lanes]
        await step(dut)
        assert [field(get(dut.c_rdata_o), i, 32) for i in range(model.lanes)] == c_old
        has, read = read or has, o_old if reads else None
        if has:
            assert [field(get(dut.o_rdata_o), i, 32) for i in range(out_lanes)] == has
        if enables[0]:
            model.write(c_write, c_word)
        if enables[1]:
            model.write_bytes(o_write, o_word)
        if enables[2]:
            model.load(*l_write)
        c_write, o_write, enables, l_write = c_next, o_next, following, (beat, l_word, expand)


@cocotb.test()
async def collisions_name_their_users(dut: Dut) -> None:
    random, model, banks = rng(), Model(dut), parameter(dut, "ACC_BANKS")
    await start(dut, **IDLE)
    for _ in range(300):
        reads = [random.random() < 0.6 for _ in range(2)]
        writes = [random.random() < 0.6 for _ in range(3)]
        read_banks = [random.randrange(banks) for _ in range(2)]
        write_banks = [random.randrange(banks) for _ in range(3)]
        dut.c_re_i.value, dut.c_raddr_i.value = reads[0], model.entry_in_bank(random, read_banks[0])
        dut.o_re_i.value, dut.o_raddr_i.value = reads[1], model.entry_in_bank(random, read_banks[1])
        dut.c_we_i.value, dut.c_waddr_i.value = writes[0], model.entry_in_bank(random, write_banks[0])
        dut.o_we_i.value, dut.o_waddr_i.value = writes[1], model.entry_in_bank(random, write_banks[1])
        dut.l_we_i.value, dut.l_expand_i.value = writes[2], 0
        dut.l_waddr_i.value = model.beat_in_bank(random, write_banks[2], False)
        await settle()
        both_read = all(reads) and read_banks[0] == read_banks[1]

        def met(a: int, b: int, on: list[bool] = writes, where: list[int] = write_banks) -> bool:
            return on[a] and on[b] and where[a] == where[b]

        assert get(dut.clash_read_o) == both_read
        # A write is in the cycle behind the one in which its user says it.
        await step(dut)
        users = [met(0, 1) or met(0, 2), met(0, 1) or met(1, 2), met(0, 2) or met(1, 2)]
        assert get(dut.clash_write_o) == sum(bit << user for user, bit in enumerate(users))
