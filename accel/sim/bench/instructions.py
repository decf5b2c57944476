"""Random instructions for benches: legal ones, and ones with a single flaw and the fault that it must raise."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from relay_hw.accel.isa.alu import ALU_OPS, AluOp
from relay_hw.accel.isa.config import EXPONENTIALS, ROW_QUARTERS, TABLE_RECORD_BYTES, TABLE_RECORDS, UOP_BYTES
from relay_hw.accel.isa.errors import FaultCode
from relay_hw.accel.isa.spec import BY_OP, Dst, Form, GemmMode, Mem, Nibble, Op, RowKind, encode
from relay_hw.accel.sim.bench.common import Dut, parameter


@dataclass(frozen=True)
class Sizes:
    """Sizes of the module under test."""

    bus: int
    elements: dict[Mem, int]  # bytes of an entry
    depths: dict[Mem, int]
    wgt_bits: int = 8

    @property
    def granule(self) -> int:
        return max(16, self.bus)

    @property
    def line(self) -> int:
        """Bytes of a line of INP."""
        return max(self.granule, self.elements[Mem.INP], self.elements[Mem.OUT])


def sizes_of(dut: Dut) -> Sizes:
    """Read the sizes from the parameters of the module under test."""
    block_in, block_out, bits = (parameter(dut, key) for key in ("BLOCK_IN", "BLOCK_OUT", "WGT_BITS"))
    elements = {Mem.INP: block_in * bits // 8, Mem.WGT: block_in * block_out * bits // 8, Mem.ACC: 4 * block_out}
    elements |= {Mem.OUT: block_out, Mem.UOP: UOP_BYTES, Mem.PRM: 16 * block_out, Mem.TAB: TABLE_RECORD_BYTES}
    elements[Mem.COF] = 2 * block_out
    depths = {mem: parameter(dut, f"{mem.name}_DEPTH") for mem in Mem if mem is not Mem.TAB}
    depths[Mem.TAB] = parameter(dut, "TABLES") * TABLE_RECORDS
    return Sizes(parameter(dut, "AXI_DATA_BITS") // 8, elements, depths, bits)


def ops_of(sizes: Sizes) -> list[Op]:
    """Operations that the module has: ROW needs coefficients."""
    return [op for op in Op if op is not Op.ROW or sizes.depths[Mem.COF]]


def has_factors(values: dict[str, int]) -> bool:
    """True for a LOAD of weights behind factors."""
    return bool(values.get("pitch")) and values.get("mem") == Mem.WGT


def factor_granules(sizes: Sizes) -> int:
    """Granules of weights behind each granule of factors; 0 where entries are too small."""
    large = sizes.elements[Mem.WGT] >= 2 * sizes.granule
    return sizes.elements[Mem.INP] * sizes.wgt_bits // 8 if large else 0


def widening(mem: Mem, expand: int) -> int:
    """Scratchpad bytes for each byte of DRAM."""
    return (2 if mem is Mem.WGT else 4) if expand else 1


def capacity_beats(sizes: Sizes, mem: Mem, expand: int) -> int:
    return sizes.depths[mem] * sizes.elements[mem] // (sizes.bus * widening(mem, expand))


def first_beat(sizes: Sizes, values: dict[str, int]) -> int:
    if "row_bytes" in values:
        return values["sram"] * sizes.elements[Mem.INP] // sizes.bus
    beat = sizes.bus * widening(Mem(values["mem"]), values.get("expand", 0))
    return values["sram"] * sizes.elements[Mem(values["mem"])] // beat


def transfer_beats(sizes: Sizes, values: dict[str, int]) -> tuple[int, int]:
    """Beats of one padded row (of a LOAD with pitch: its runs), and padded rows."""
    if "row_bytes" in values:
        row = values["x"] * values["pitch"] * sizes.elements[Mem.INP] // sizes.bus
        return row, values["y_pad_0"] + values["y"] + values["y_pad_1"]
    pads = [values.get(key, 0) for key in ("x_pad_0", "x_pad_1", "y_pad_0", "y_pad_1")]
    if values.get("pitch") and not has_factors(values):
        return values["x"] + pads[0] + pads[1], values["y"] + pads[2] + pads[3]
    row = (values["x"] + pads[0] + pads[1]) * values["z"] * sizes.granule // sizes.bus
    return row, values["y"] + pads[2] + pads[3]


def last_plane(sizes: Sizes, values: dict[str, int]) -> int:
    """Steps of four lines from the first plane of a LOAD with pitch to its last."""
    return values["pitch"] * (values["z"] * sizes.granule // sizes.line - 1)


def legal_planes(random: Random, sizes: Sizes) -> dict[str, int]:
    """A LOAD with pitch whose planes are inside INP; its DRAM range may be anything aligned."""
    entries = sizes.line // sizes.elements[Mem.INP]
    lines = sizes.depths[Mem.INP] // entries
    while True:
        values = {"mem": Mem.INP, "dram": random.randrange(1 << 12) * sizes.granule, "expand": 0}
        values |= {"y": random.choice((1, 2)), "x": random.choice((1, 3)), "pitch": random.choice((1, 2, 5))}
        values |= {"z": random.choice((1, 1, 2, 3)) * sizes.line // sizes.granule}
        values |= {"y_stride": random.randrange(64) * sizes.granule, "x_stride": random.randrange(64) * sizes.granule}
        values |= {k: random.choice((0, 0, 1)) for k in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")}
        line = random.randrange(lines)
        row, rows = transfer_beats(sizes, values)
        if line + 4 * last_plane(sizes, values) + row * rows <= lines:
            return values | {"sram": line * entries, "pad_value": random.randrange(-128, 128)}


def legal_transfer(random: Random, sizes: Sizes, op: Op) -> dict[str, int]:
    """A LOAD or STORE whose scratchpad range is legal; its DRAM range may be anything aligned."""
    while True:
        mem = Mem.OUT if op is Op.STORE else random.choice([m for m in Mem if m is not Mem.OUT and sizes.depths[m]])
        expand = int(mem in (Mem.ACC, Mem.WGT) and random.random() < 0.5)
        values = {"mem": mem, "dram": random.randrange(1 << 12) * sizes.granule, "z": random.choice((1, 1, 2, 5))}
        values |= {"y": random.choice((1, 2, 5)), "x": random.choice((1, 3, 6))}
        values |= {"y_stride": random.randrange(64) * sizes.granule, "x_stride": random.randrange(64) * sizes.granule}
        if op is Op.LOAD:
            values |= {"pitch": 0, "expand": expand, "pad_value": random.randrange(-128, 128)}
            values |= {k: random.choice((0, 0, 1, 3)) for k in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")}
        step = max(1, sizes.bus * widening(mem, expand) // sizes.elements[mem])
        values["sram"] = random.randrange(0, sizes.depths[mem], step)
        row, rows = transfer_beats(sizes, values)
        if first_beat(sizes, values) + row * rows <= capacity_beats(sizes, mem, expand):
            return values


def legal_factored(random: Random, sizes: Sizes) -> dict[str, int]:
    """A LOAD of weights behind factors, one run, that is inside WGT."""
    lead, step = factor_granules(sizes), max(1, 2 * sizes.bus // sizes.elements[Mem.WGT])
    while True:
        values = {"mem": Mem.WGT, "expand": 1, "pitch": 1, "dram": random.randrange(1 << 12) * sizes.granule}
        values |= {"z": random.choice((1, 2, lead - 1, lead, lead + 1, 2 * lead + 1)), "x": 1, "y": 1}
        values |= {"y_stride": random.randrange(64) * sizes.granule, "x_stride": random.randrange(64) * sizes.granule}
        values |= dict.fromkeys(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), 0)
        values |= {"sram": random.randrange(0, sizes.depths[Mem.WGT], step), "pad_value": random.randrange(-128, 128)}
        row, rows = transfer_beats(sizes, values)
        if first_beat(sizes, values) + row * rows <= capacity_beats(sizes, Mem.WGT, 1):
            return values


def source_beats(sizes: Sizes, values: dict[str, int]) -> int:
    """Beats of one row that a transfer reads or writes in DRAM."""
    if "row_bytes" in values:
        return -(-values["row_bytes"] // sizes.granule) * sizes.granule // sizes.bus
    return values["x"] * values["z"] * sizes.granule // sizes.bus


def block_of(sizes: Sizes, values: dict[str, int]) -> dict[str, int]:
    """What a transfer moves in DRAM, as the walk of bursts sees it: bytes, rows, runs, strides."""
    block = {"dram": values["dram"], "y": values["y"], "ys": values["y_stride"]}
    if "row_bytes" in values:
        return block | {"x": 1, "xs": 0, "run": source_beats(sizes, values) * sizes.bus}
    if has_factors(values):
        granules = values["z"] + -(-values["z"] // factor_granules(sizes))
        return block | {"x": 1, "xs": values["x_stride"], "run": granules * sizes.granule}
    return block | {"x": values["x"], "xs": values["x_stride"], "run": values["z"] * sizes.granule}


def legal_gather(random: Random, sizes: Sizes) -> dict[str, int]:
    """A GATHER whose scratchpad range is legal; its DRAM range may be anything aligned."""
    element = sizes.elements[Mem.INP]
    beat = max(1, sizes.bus // element)
    while True:
        pitch = beat * random.choice((1, 1, 2, 3))
        values = {"dram": random.randrange(1 << 12) * sizes.granule, "pitch": pitch, "y": random.choice((1, 2, 5))}
        values |= {"x": random.choice((1, 2, 3, 7)), "y_stride": random.randrange(20) * sizes.granule}
        values |= {"row_bytes": random.choice((1, 30, random.randrange(1, 200), random.randrange(1, 4097)))}
        values |= {"run": random.randrange(1, pitch * element + 1), "x_step": random.choice((0, 1, 2, 9, 255))}
        values |= {"lane": random.randrange(pitch * element - values["run"] + 1)}
        values |= {"left": random.choice((0, 0, random.randrange(-30, 30), -(1 << 15), (1 << 15) - 1))}
        values |= {"pad_value": random.randrange(-128, 128)}
        values |= {k: random.choice((0, 0, 1, 3)) for k in ("y_pad_0", "y_pad_1")}
        values["sram"] = random.randrange(0, sizes.depths[Mem.INP], beat)
        row, rows = transfer_beats(sizes, values)
        if first_beat(sizes, values) + row * rows <= capacity_beats(sizes, Mem.INP, 0):
            return values


def coefficients(sizes: Sizes, kind: int, columns: int, bounded: int = 0) -> int:
    """Entries of coefficients that ROW takes."""
    if kind == RowKind.SOFTMAX:
        return EXPONENTIALS + bounded
    return ROW_QUARTERS * -(-columns // sizes.elements[Mem.OUT])


def legal_row(random: Random, sizes: Sizes) -> dict[str, int]:
    """Fields of ROW that have a rule: coefficients that there are, a shift of its kind."""
    depth, kind = sizes.depths[Mem.COF], random.choice(list(RowKind))
    most = (1 << 16) - 1 if kind is RowKind.SOFTMAX else depth // ROW_QUARTERS * sizes.elements[Mem.OUT]
    columns = random.choice((1, most, random.randint(1, most)))
    bounded = random.getrandbits(1) if kind is RowKind.SOFTMAX and depth > EXPONENTIALS else 0
    last = depth - coefficients(sizes, kind, columns, bounded)
    low, high = (-15, 15) if kind is RowKind.SOFTMAX else (0, 40)
    values = {"kind": kind, "columns": columns, "bounded": bounded}
    values |= {"shift": random.choice((low, high, random.randint(low, high)))}
    return values | {"cof_base": random.choice((0, last, random.randint(0, last)))}


def row_flaws(sizes: Sizes, values: dict[str, int]) -> list[tuple[FaultCode, dict[str, int]]]:
    """Single flaws of a legal ROW."""
    illegal, behind = FaultCode.ILLEGAL_FIELD, FaultCode.SRAM_RANGE
    is_softmax = values["kind"] == RowKind.SOFTMAX
    flaws = [(illegal, {"rows": 0}), (illegal, {"columns": 0}), (illegal, {"kind": 3})]
    flaws += [(illegal, {"shift": shift}) for shift in ((-64, -16, 16, 63) if is_softmax else (-64, -1, 41, 63))]
    last = sizes.depths[Mem.COF] - coefficients(sizes, values["kind"], values["columns"], values["bounded"])
    flaws += [(behind, {"cof_base": last + 1}), (behind, {"cof_base": (1 << 16) - 1})]
    return flaws if is_softmax else [*flaws, (behind, {"columns": (1 << 16) - 1})]


def legal(random: Random, sizes: Sizes, op: Op) -> dict[str, int]:
    """Field values of a legal instruction; fields without a rule of their own are random."""
    layout = BY_OP[op].layout
    values = {f.name: random.randint(max(f.low_value, -(1 << 31)), f.high_value) for f in layout.fields}
    if op is Op.LOAD and random.random() < 0.3:
        return values | legal_planes(random, sizes)
    if op is Op.LOAD and factor_granules(sizes) and random.random() < 0.2:
        return values | legal_factored(random, sizes)
    if op in (Op.LOAD, Op.STORE):
        return values | legal_transfer(random, sizes, op)
    if op is Op.GEMM:
        values["mode"] = random.choice(list(GemmMode))
        if values["mode"] == GemmMode.MAX:
            values |= {"wgt_base": 0, "wgt_out": 0, "wgt_in": 0}
        halves = sizes.wgt_bits == 4 and values["mode"] != GemmMode.MAX
        values["nibble"] = random.choice(list(Nibble)) if halves else Nibble.WHOLE
    if op is Op.GATHER:
        return values | legal_gather(random, sizes)
    if op is Op.ROW:
        return values | legal_row(random, sizes)
    if op in (Op.GEMM, Op.ALU):
        values["uop_begin"] = random.randrange(sizes.depths[Mem.UOP])
        values["uop_end"] = random.randint(values["uop_begin"] + 1, sizes.depths[Mem.UOP])
    if op is Op.ALU:
        values["alu_op"], values["rounding"] = random.choice(list(AluOp)), random.randrange(4)
        values["use_imm"] |= ALU_OPS[AluOp(values["alu_op"])].needs_imm
    if op is Op.REQUANT:
        values["form"], values["dst"] = random.choice(list(Form)), random.choice(list(Dst))
        values["table"] = random.randint(0, sizes.depths[Mem.TAB] // TABLE_RECORDS)
        values["clip_lo"], values["clip_hi"] = sorted((values["clip_lo"], values["clip_hi"]))
    return values


def word_of(op: Op, values: dict[str, int]) -> int:
    return encode(op, {key: value for key, value in values.items() if key != "opcode"})


def put(op: Op, word: int, name: str, value: int) -> int:
    """`word` with one field overwritten, legal or not."""
    field = next(f for f in BY_OP[op].layout.fields if f.name == name)
    mask = ((1 << field.width) - 1) << field.lo
    return word & ~mask | (value << field.lo) & mask


def flawed(random: Random, sizes: Sizes, op: Op) -> tuple[int, dict[str, int], FaultCode]:
    """A word with one flaw, its values, and the fault code."""
    values = legal(random, sizes, op)
    word = word_of(op, values)
    flaws: list[tuple[FaultCode, dict[str, int]]] = []
    reserved = BY_OP[op].layout.reserved_mask
    if reserved and random.random() < 0.2:
        bits = [bit for bit in range(256) if reserved >> bit & 1]
        return word | 1 << random.choice(bits), values, FaultCode.RESERVED_BITS
    if random.random() < 0.2 or op is Op.FINISH:
        opcode = random.choice([n for n in range(256) if n not in ops_of(sizes)])
        return word & ~0xFF | opcode, values, FaultCode.ILLEGAL_OPCODE
    illegal = FaultCode.ILLEGAL_FIELD
    if op in (Op.LOAD, Op.STORE):
        flaws += [(illegal, {key: 0}) for key in ("x", "y", "z")]
        flaws += [(illegal, {key: values[key] + sizes.granule // 2}) for key in ("dram", "x_stride", "y_stride")]
        flaws += [(illegal, {"mem": len(Mem) + random.randrange(16 - len(Mem))})]
        wrong = Mem.OUT if op is Op.LOAD else random.choice([mem for mem in Mem if mem is not Mem.OUT])
        flaws += [(illegal, {"mem": int(wrong)})]
        flaws += [(FaultCode.SRAM_RANGE, {"sram": 1 << 15})]
        factored = has_factors(values)
        flaws += [] if factored else [(FaultCode.SRAM_RANGE, {"y": 65535, "x": 65535})]
        if op is Op.LOAD and values["mem"] not in (Mem.ACC, Mem.WGT):
            flaws += [(illegal, {"expand": 1})]
        if op is Op.LOAD and values["mem"] != Mem.INP:
            flaws += [(illegal, {"pitch": 2 + random.randrange(2046)})]
            flaws += [] if values["mem"] == Mem.WGT else [(illegal, {"pitch": 1})]
        if factored:
            flaws += [(illegal, {"expand": 0})] + [(illegal, {key: 2 + random.randrange(254)}) for key in ("y", "x")]
            flaws += [(illegal, {f"{axis}_pad_{n}": 1 << random.randrange(8)}) for axis in "yx" for n in (0, 1)]
        elif op is Op.LOAD and values["mem"] == Mem.WGT and not factor_granules(sizes):
            flaws += [(illegal, {"expand": 1, "pitch": 1})]
        elif op is Op.LOAD and values["pitch"]:
            granules, entries = sizes.line // sizes.granule, sizes.line // sizes.elements[Mem.INP]
            flaws += [(FaultCode.SRAM_RANGE, {"pitch": 2047, "z": 3 * granules})]
            flaws += [(FaultCode.SRAM_RANGE, {"sram": sizes.depths[Mem.INP]})]
            flaws += [(illegal, {"z": values["z"] + 1})] if granules > 1 else []
            flaws += [(illegal, {"sram": values["sram"] + 1})] if entries > 1 else []
    elif op is Op.GATHER:
        flaws += [(illegal, {key: 0}) for key in ("x", "y", "pitch", "run", "row_bytes")]
        flaws += [(illegal, {key: values[key] + sizes.granule // 2}) for key in ("dram", "y_stride")]
        flaws += [(illegal, {"row_bytes": 4097}), (illegal, {"lane": 65535})]
        flaws += [
            (FaultCode.SRAM_RANGE, {"sram": 1 << 15}),
            (FaultCode.SRAM_RANGE, {"y": 65535}),
            (FaultCode.SRAM_RANGE, {"y": 65535, "x": 65535}),
        ]
        if sizes.bus > sizes.elements[Mem.INP]:
            flaws += [(illegal, {"pitch": values["pitch"] + 1}), (illegal, {"sram": values["sram"] + 1})]
    elif op is Op.ROW:
        flaws += row_flaws(sizes, values)
    else:
        flaws += [(illegal, {key: 0}) for key in ("iter_out", "iter_in")]
    if op in (Op.GEMM, Op.ALU):
        flaws += [(FaultCode.SRAM_RANGE, {"uop_begin": values["uop_end"]})]
        flaws += [(FaultCode.SRAM_RANGE, {"uop_end": sizes.depths[Mem.UOP] + 1})]
    if op is Op.GEMM:
        flaws += [(illegal, {"nibble": 3}), (illegal, {"mode": GemmMode.MAX, "nibble": 1})]
        flaws += [(illegal, {"nibble": 1 + random.randrange(2)})] if sizes.wgt_bits == 8 else []
        flaws += [(illegal, {"mode": GemmMode.MAX, key: 1}) for key in ("wgt_base", "wgt_out", "wgt_in")]
    if op is Op.ALU:
        flaws += [(illegal, {"alu_op": random.choice([code for code in range(16) if code not in list(AluOp)])})]
        flaws += [(illegal, {"alu_op": op, "use_imm": 0}) for op, row in ALU_OPS.items() if row.needs_imm]
    if op is Op.REQUANT:
        behind = sizes.depths[Mem.TAB] // TABLE_RECORDS + 1
        flaws += [
            (illegal, {"table": random.randint(behind, 255)}),
            (illegal, {"dst": 3}),
            (illegal, {"clip_lo": 5, "clip_hi": 4}),
        ]
    code, change = random.choice(flaws)
    for name, value in change.items():
        word = put(op, word, name, value)
    return word, values | change, code
