"""Tests vta_row with memories around it: random ROW instructions leave what the semantics say, when TIMING.md says."""

from __future__ import annotations

from random import Random

import cocotb
import numpy as np

from relay_hw.accel.isa.config import AccelConfig, config_from_dict, load_config
from relay_hw.accel.isa.rows import entries
from relay_hw.accel.isa.rules import row_coefficients, row_entries
from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.slots import instruction_slots, row_round_slots
from relay_hw.accel.isa.spec import Op, RowKind, encode
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.stream import complete
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step

INPUTS = ("head_valid_i", "insn_i", "index_i", "start_i", "stop_i", "acc_i", "cof_s_i", "cof_r_i")
# From the read of an entry for its results to the write; from the last slot to the tokens.
WRITTEN, GIVEN = 20, 4


def config_of(dut: Dut) -> AccelConfig:
    """A configuration with the sizes of the module."""
    block = parameter(dut, "BLOCK_OUT")
    sizes = load_config("default").sizes | {"block_in": 16, "block_out": block, "out_lanes": 1}
    sizes |= {"acc_depth": parameter(dut, "ACC_DEPTH"), "acc_banks": 1, "cof_depth": 512}
    return config_from_dict(sizes, "bench")


def random_row(config: AccelConfig, random: Random) -> dict[str, int]:
    """A legal instruction whose rows lie apart."""
    most = min(config.acc_depth * config.block_out, 40 * config.block_out)
    columns = random.choice([1, config.block_out, random.randint(1, most), random.randint(1, most // 4)])
    count = row_entries(config, columns)
    rows = random.randint(1, max(1, min(6, config.acc_depth // count)))
    interleaved = random.random() < 0.3
    row_step, entry_step = (1, rows) if interleaved else (count, 1)
    kind = random.choice(list(RowKind))
    bounded = random.randint(0, 1) if kind is RowKind.SOFTMAX else 0
    reads = row_coefficients(config, {"kind": kind, "columns": columns, "bounded": bounded})
    values = {
        "kind": kind,
        "rows": rows,
        "columns": columns,
        "acc_base": random.randint(0, config.acc_depth - rows * count),
        "cof_base": random.randint(0, config.cof_depth - reads),
        "row_step": row_step,
        "entry_step": entry_step,
        "zero_point": random.choice([0, -128, 127, random.randint(-128, 127)]),
        "inp_zero": random.randint(-128, 127),
        "visible": random.choice([0, columns, random.randint(0, columns), 65535]),
        "visible_step": random.randint(0, 1),
        "bounded": bounded,
        "shift": random.randint(-15, 15) if kind is RowKind.SOFTMAX else random.choice([0, 40, random.randint(8, 22)]),
        "epsilon_low": random.choice([0, (1 << 32) - 1, random.getrandbits(32)]),
        "epsilon_high": random.choice([0, 0, (1 << 16) - 1, random.getrandbits(16)]),
        "multiplier": random.choice([65535, 32768, random.getrandbits(16)]),
        "set": random.getrandbits(16),
    }
    return complete(Op.ROW, values)


def random_state(config: AccelConfig, random: Random) -> AccelState:
    """Accumulators of int8 numbers, wide and narrow, and coefficients of sensible and of any size."""
    state, numbers = AccelState(config, np.zeros(0, np.uint8)), np.random.default_rng(random.getrandbits(32))
    shape = state.acc.shape
    kind = random.randint(0, 3)
    if kind == 0:
        state.acc[...] = numbers.integers(-128, 128, shape)
    elif kind == 1:
        state.acc[...] = random.choice([-128, 0, 127])
    elif kind == 2:
        state.acc[...] = np.where(numbers.random(shape) < 0.5, -128, 127)
    else:
        state.acc[...] = np.clip(numbers.normal(0, 20, shape), -128, 127)
    if random.random() < 0.5:
        state.cof[...] = numbers.integers(0, 1 << 63, state.cof.shape, np.uint64) * np.uint64(2)
    else:
        gain, bias = (
            numbers.integers(-2000, 2000, state.cof.shape),
            numbers.integers(-(1 << 20), 1 << 20, state.cof.shape),
        )
        state.cof[...] = (gain & 0xFFFF).astype(np.uint64) | (bias & 0xFFFFFFFF).astype(np.uint64) << np.uint64(32)
    return state


class _Memories:
    """Accumulators and coefficients as vta_row sees them: what is read comes later, what is written a cycle later."""

    def __init__(self, dut: Dut, state: AccelState) -> None:
        self.dut, self.state = dut, state
        self.reads: list[int | None] = [None, None]
        # What acc_i, cof_s_i and cof_r_i are in the next cycle; None: as before.
        self.driven: tuple[int | None, int | None, int | None] = (None, None, None)
        self.write: int | None = None
        self.written: list[tuple[int, int]] = []

    def cycle(self, now: int) -> None:
        """What happens in the cycle `now`, before its end; call it when outputs have settled."""
        dut, state = self.dut, self.state
        if self.write is not None:
            word = get(dut.acc_wdata_o).to_bytes(state.config.block_out, "little")
            state.acc[self.write] = np.frombuffer(word, np.int8)
            self.written.append((now, self.write))
        self.write = get(dut.acc_waddr_o) if get(dut.acc_we_o) else None

    def next(self) -> None:
        """Drive what was asked for: call it at the end of the cycle, with outputs still those of it."""
        dut, state = self.dut, self.state
        lanes = state.config.row_lanes
        self.reads = [get(dut.acc_raddr_o) if get(dut.acc_re_o) else None, self.reads[0]]
        entry = None if self.reads[1] is None else state.acc[self.reads[1]].astype(np.int8).tobytes()
        self.driven = (
            None if entry is None else int.from_bytes(entry, "little"),
            self._look(dut.cof_s_re_o, dut.cof_s_raddr_o, lanes, 16),
            self._look(dut.cof_r_re_o, dut.cof_r_raddr_o, lanes, 48),
        )

    def _look(self, enable: Dut, address: Dut, lanes: int, bits: int) -> int | None:
        if not get(enable):
            return None
        word, at = 0, get(address)
        for lane in range(lanes):
            record = int(self.state.cof[(at >> 16 * lane & 0xFFFF) % self.state.config.cof_depth, lane])
            kept = record & 0xFFFF if bits == 16 else record & 0xFFFF | record >> 32 << 16
            word |= kept << bits * lane
        return word


async def run(dut: Dut, state: AccelState, values: dict[str, int]) -> tuple[list[tuple[int, int]], list[int], int]:
    """Writes (cycle, entry), cycles of reads, and the cycle of the tokens; cycle 0 is that of the start."""
    memories, reads, now = _Memories(dut, state), list[int](), 0
    dut.head_valid_i.value, dut.insn_i.value, dut.index_i.value = 1, encode(Op.ROW, values), 77
    await settle()
    assert get(dut.want_o) and get(dut.idle_o)
    dut.start_i.value = 1
    while True:
        await settle()
        assert not get(dut.fault_o)
        memories.cycle(now)
        if get(dut.acc_re_o):
            reads.append(now)
        if now:
            assert not get(dut.want_o) and not get(dut.idle_o)
        if get(dut.give_o):
            assert get(dut.set_o) == values["set"] and get(dut.done_index_o) == 77
            break
        memories.next()
        await step(dut)
        dut.start_i.value, dut.head_valid_i.value = 0, int(cocotb.RANDOM_SEED & 1)
        for port, word in zip((dut.acc_i, dut.cof_s_i, dut.cof_r_i), memories.driven, strict=True):
            if word is not None:
                port.value = word
        now += 1
    await step(dut)
    dut.head_valid_i.value = 0
    return memories.written, reads, now


def expected_times(config: AccelConfig, v: dict[str, int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Writes and reads as TIMING.md has them, by the number of the cycle that ends at the edge, from the start's on."""
    count, turn = row_entries(config, v["columns"]), row_round_slots(config, v["columns"])
    places = entries(v, count)
    writes, reads = list[tuple[int, int]](), list[int]()
    for row in range(v["rows"]):
        for e in range(count):
            reads += [1 + (row + lag) * turn + 4 * e + phase for lag, phase in ((0, 0), (1, 1), (3, 2))]
            writes.append((1 + (row + 3) * turn + 4 * e + 2 + WRITTEN, int(places[row, e])))
    return writes, sorted(reads)


async def executes(dut: Dut, state: AccelState, values: dict[str, int]) -> None:
    """Run an instruction: it leaves what the semantics say, and reads, writes and gives tokens when TIMING.md says."""
    config = state.config
    wanted = AccelState(config, np.zeros(0, np.uint8))
    for mem in state.scratch:
        wanted.scratch[mem][:] = state.scratch[mem]
    SEMANTICS[Op.ROW](wanted, values, 0)
    written, reads, given = await run(dut, state, values)
    assert given == instruction_slots(config, Op.ROW, values) + GIVEN, values
    writes, wanted_reads = expected_times(config, values)
    assert written == writes and reads == wanted_reads, values
    wrong = np.argwhere(state.acc != wanted.acc)
    assert not wrong.size, (values, wrong[:4], state.acc[tuple(wrong[0])], wanted.acc[tuple(wrong[0])])


@cocotb.test()
async def executes_like_the_semantics_one_behind_the_other(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    await start(dut, **dict.fromkeys(INPUTS, 0))
    for _ in range(40):
        await executes(dut, random_state(config, random), random_row(config, random))


@cocotb.test()
async def reads_outside_are_faults_and_a_stop_ends_it(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    await start(dut, **dict.fromkeys(INPUTS, 0))
    fields = {"rows": 3, "columns": 1, "acc_base": config.acc_depth - 1, "row_step": 1, "kind": random.randint(0, 2)}
    values = complete(Op.ROW, fields)
    dut.insn_i.value, dut.index_i.value, dut.start_i.value = encode(Op.ROW, values), 9, 1
    for _ in range(row_round_slots(config, 1) + 1):
        await settle()
        assert not get(dut.fault_o)
        await step(dut)
        dut.start_i.value = 0
    await settle()
    assert get(dut.fault_o) and get(dut.read_index_o) == 9
    dut.stop_i.value = 1
    await step(dut)
    for _ in range(300):
        await settle()
        assert not (get(dut.acc_re_o) or get(dut.acc_we_o) or get(dut.give_o)) and get(dut.idle_o)
        await step(dut)


@cocotb.test()
async def what_a_stop_cuts_off_leaves_nothing_behind(dut: Dut) -> None:
    random, config = rng(), config_of(dut)
    await start(dut, **dict.fromkeys(INPUTS, 0))
    for _ in range(6):
        values = random_row(config, random)
        dut.insn_i.value, dut.index_i.value, dut.start_i.value = encode(Op.ROW, values), 5, 1
        for _ in range(random.randrange(1, instruction_slots(config, Op.ROW, values) + GIVEN)):
            await step(dut)
            dut.start_i.value = 0
            dut.acc_i.value = random.getrandbits(8 * config.block_out)
            dut.cof_r_i.value = random.getrandbits(48 * config.row_lanes)
            await settle()
            assert not get(dut.give_o)
        dut.stop_i.value = 1
        for _ in range(3):
            await step(dut)
            await settle()
            assert not (get(dut.acc_re_o) or get(dut.acc_we_o) or get(dut.give_o)) and get(dut.idle_o)
        # The core goes on with a reset, and the next instruction at once.
        dut.rst_ni.value = 0
        await step(dut)
        dut.rst_ni.value, dut.stop_i.value = 1, 0
        await executes(dut, random_state(config, random), random_row(config, random))
