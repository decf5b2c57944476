"""Helpers of benches of a whole unit: its configuration from parameters, scratchpads around it, random content."""

from __future__ import annotations

from random import Random

import numpy as np

from relay_hw.accel.isa.alu import ALU_OPS, AluOp
from relay_hw.accel.isa.config import EXPONENTIALS, AccelConfig
from relay_hw.accel.isa.rules import row_coefficients
from relay_hw.accel.isa.spec import PRM, UOP, Dst, Form, GemmMode, Nibble, Op, Rounding, RowKind
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.sim.bench.common import Dut, parameter

# What a unit's module may lack as a parameter; any legal value serves.
_DEFAULTS = {"BLOCK_IN": 4, "INP_DEPTH": 256, "WGT_DEPTH": 64, "ACC_DEPTH": 64, "OUT_DEPTH": 64, "UOP_DEPTH": 64,
             "PRM_DEPTH": 64, "OUT_LANES": 2, "MULTIPLIER_BITS": 31, "AXI_DATA_BITS": 64, "BURST_BEATS": 64,
             "BLOCK_OUT": 4, "WGT_BITS": 8, "TABLES": 2, "COF_DEPTH": 256, "READ_OUTSTANDING": 16,
             "WRITE_OUTSTANDING": 16}  # fmt: skip


def config_of(dut: Dut) -> AccelConfig:
    """The configuration that the parameters of the module under test belong to."""
    sizes = {key.lower(): parameter(dut, key) if hasattr(dut, key) else value for key, value in _DEFAULTS.items()}
    if hasattr(dut, "INP_LANES"):
        sizes["block_in"] = parameter(dut, "INP_LANES") * 8 // sizes["wgt_bits"]
    return AccelConfig(name="bench", batch=1, inp_bits=8, acc_bits=32, acc_banks=4, queue_depth=8, **sizes)


def random_state(config: AccelConfig, random: Random, window_bytes: int = 0) -> AccelState:
    """Scratchpads and window full of random bytes."""
    state = AccelState(config, np.frombuffer(random.randbytes(window_bytes), np.uint8).copy())
    for memory in state.scratch.values():
        memory[:] = np.frombuffer(random.randbytes(memory.size), np.uint8)
    return state


def random_uops(state: AccelState, random: Random, count: int, limit: int) -> None:
    """The first `count` micro-ops get indices below `limit`."""
    for i in range(count):
        fields = {key: random.randrange(limit) for key in ("dst", "src", "wgt")}
        # A weight index may serve as a mask of taps; a source may start an output block.
        fields["wgt"] = random.randrange(1, min(limit, 16))
        fields["src"] -= fields["src"] % state.config.block_parts
        state.uop[i] = UOP.encode(fields | {"first": random.getrandbits(1)})


def random_prm(state: AccelState, random: Random) -> None:
    """Parameter records in the range that compilers use, corners included."""
    bits = state.config.multiplier_bits
    records = state.prm.view(np.uint8).reshape(-1, 16)
    for record in records:
        multiplier = random.choice((0, 1, (1 << bits) - 1, random.randrange(1 << bits)))
        values = {"bias": random.randrange(-(1 << 20), 1 << 20), "multiplier": multiplier}
        values |= {"shift": random.randrange(63)} | {key: random.randrange(-128, 128) for key in ("y_zero", "r_zero")}
        record[:] = np.frombuffer(PRM.encode(values).to_bytes(16, "little"), np.uint8)


def random_compute(
    random: Random, uops: int, limit: int, part: int = 1, halves: bool = False
) -> tuple[Op, dict[str, int]]:
    """A GEMM or ALU instruction inside memories of 64 entries (INP: 256) when micro-ops are below `limit`."""
    begin = random.randrange(uops)
    values = {"iter_out": random.choice((1, 2, 3)), "iter_in": random.choice((1, 2, 4)), "set": random.getrandbits(16)}
    values |= {"uop_begin": begin, "uop_end": random.randint(begin + 1, uops)}
    step = lambda: random.choice((0, 0, 1, 3))  # noqa: E731
    base = lambda: random.randrange(64 - limit - 15)  # noqa: E731
    if random.random() < 0.6:
        loops = {f"{name}_{loop}": step() for name in ("acc", "inp", "wgt") for loop in ("out", "in")}
        bases = {f"{name}_base": base() for name in ("acc", "inp", "wgt")}
        values |= loops | bases | {"overwrite": random.getrandbits(1), "mode": random.choice(list(GemmMode))}
        values["nibble"] = random.choice(list(Nibble)) if halves else Nibble.WHOLE
        if values["mode"] == GemmMode.MAX:
            values |= {"nibble": Nibble.WHOLE}
            values |= dict.fromkeys(("wgt_base", "wgt_out", "wgt_in"), 0)
        if values["mode"] in (GemmMode.TAPS, GemmMode.MAX):
            keys = ("inp_base", "inp_out", "inp_in")
            values |= {key: values[key] * part if key != "inp_base" else values[key] // part * part for key in keys}
        return Op.GEMM, values
    op = random.choice(list(AluOp))
    loops = {f"{name}_{loop}": step() for name in ("dst", "src") for loop in ("out", "in")}
    imm = random.choice((0, 1, -1, 7, 31, random.randrange(-(1 << 31), 1 << 31)))
    values |= loops | {"dst_base": base(), "src_base": base(), "alu_op": op, "imm": imm}
    return Op.ALU, values | {
        "use_imm": int(ALU_OPS[op].needs_imm or random.random() < 0.5),
        "rounding": random.randrange(4),
    }


def random_requant(random: Random, part: int = 1, tables: int = 0) -> dict[str, int]:
    """A REQUANT instruction inside memories of 64 entries (INP: 256), in place at times."""
    step = lambda: random.choice((0, 1, 1, 3))  # noqa: E731
    base = lambda: random.randrange(48)  # noqa: E731
    clip = sorted(random.randrange(-128, 128) for _ in range(2))
    values = {"form": random.choice(list(Form)), "dst": random.choice(list(Dst)), "set": random.getrandbits(16)}
    values |= {"rounding": random.choice(list(Rounding)), "zero_point": random.randrange(-128, 128)}
    values |= {"iter_out": random.choice((1, 2, 3)), "iter_in": random.choice((1, 2, 4))}
    values |= {"prm_out": random.randrange(3)}
    values |= {key: base() for key in ("acc_base", "dst_base", "res_base", "prm_base")}
    values |= {key: step() for key in ("acc_out", "acc_in", "dst_out", "dst_in")}
    values |= {"still": random.getrandbits(1), "table": random.choice((0, random.randint(0, tables)))}
    if random.random() < 0.3:
        values |= {"dst_base": values["acc_base"], "dst_out": values["acc_out"], "dst_in": values["acc_in"]}
    if values["dst"] == Dst.INP:
        values |= {key: values[key] * part for key in ("dst_base", "dst_out", "dst_in")}
    return values | {"clip_lo": clip[0], "clip_hi": clip[1]}


def random_row(random: Random, config: AccelConfig) -> dict[str, int]:
    """A ROW instruction inside an accumulator of 64 entries, whose rows share none of them."""
    kind, entries, rows = random.choice(list(RowKind)), random.choice((1, 2, 3, 7)), random.choice((1, 2, 5))
    steps = random.choice(((entries, 1), (1, rows), (entries + 1, 1)))
    last = (rows - 1) * steps[0] + (entries - 1) * steps[1]
    columns = random.randint((entries - 1) * config.block_out + 1, entries * config.block_out)
    bounded = random.getrandbits(1) if kind is RowKind.SOFTMAX and config.cof_depth > EXPONENTIALS else 0
    need = row_coefficients(config, {"kind": kind, "columns": columns, "bounded": bounded})
    low, high = (-15, 15) if kind is RowKind.SOFTMAX else (0, 40)
    values = {"kind": kind, "rows": rows, "columns": columns, "acc_base": random.randrange(64 - last)}
    values |= {"row_step": steps[0], "entry_step": steps[1], "cof_base": random.randint(0, config.cof_depth - need)}
    values |= {"shift": random.randint(low, high), "visible": random.randint(0, columns + 2)}
    values |= {"bounded": bounded, "visible_step": random.getrandbits(1), "multiplier": random.getrandbits(16)}
    values |= {"epsilon_low": random.getrandbits(32), "epsilon_high": random.choice((0, random.getrandbits(16)))}
    zeros = {name: random.randrange(-128, 128) for name in ("zero_point", "inp_zero")}
    return values | zeros | {"set": random.getrandbits(16)}
