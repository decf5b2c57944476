"""Seeded random legal programs for testing devices against one another.

In: a configuration, a seed, a number of instructions. Out: a Program that uses every instruction, keeps to all rules of
ISA.md and gives the same bytes for every timing: whatever two units could race for is ordered by tokens.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from accel.isa.asm import random_bytes
from accel.isa.config import AccelConfig
from accel.isa.program import Program, Section, SectionKind, align, complete
from accel.isa.records import encode_prm, encode_uops
from accel.isa.spec import BY_OP, AluOp, Dst, Form, Mem, Op, Rounding, Unit
from accel.isa.state import depth, element_bytes

# Micro-ops of random programs point below these.
_UOP_DST, _UOP_SRC, _UOP_WGT = 3, 6, 4
_UOPS = 64
_DRAM = "dram"


@dataclass(frozen=True, slots=True)
class Access:
    """Entries [begin, end) of a scratchpad, an accumulator bank (`exclusive`), or bytes of DRAM."""

    space: Mem | str
    begin: int
    end: int
    writes: bool
    exclusive: bool = False

    def conflicts(self, other: Access) -> bool:
        """True when the order of the two could matter, or hardware could not serve them at once."""
        if self.space != other.space or self.end <= other.begin or other.end <= self.begin:
            return False
        return self.exclusive or self.writes or other.writes


@dataclass(slots=True)
class _Step:
    """One instruction and what it touches."""

    op: Op
    values: dict[str, int]
    accesses: list[Access]


@dataclass(slots=True)
class TokenBuilder:
    """Instructions in program order; `add` inserts the tokens that order conflicting accesses of different units.

    Each ordered pair of units has a semaphore; its n-th token is given by one instruction and taken by a later one.
    """

    steps: list[_Step] = field(default_factory=list[_Step])
    synced: dict[tuple[Unit, Unit], int] = field(default_factory=dict[tuple[Unit, Unit], int])

    def add(self, op: Op, values: dict[str, int], accesses: list[Access]) -> None:
        """Append one instruction, all fields but `wait` and `set` given or default."""
        step = _Step(op, complete(op, values), accesses)
        unit = BY_OP[op].unit
        if unit is not None:
            for other in Unit:
                if other is not unit:
                    self._order(step, other, unit)
        self.steps.append(step)

    def _order(self, step: _Step, other: Unit, unit: Unit) -> None:
        """Let `step` wait for the last conflicting instruction of `other`, unless its unit already has."""
        for index in range(len(self.steps) - 1, self.synced.get((other, unit), -1), -1):
            earlier = self.steps[index]
            if BY_OP[earlier.op].unit is not other:
                continue
            if any(a.conflicts(b) for a in step.accesses for b in earlier.accesses):
                semaphore = 1 << (other * 4 + unit)
                earlier.values["set"] |= semaphore
                step.values["wait"] |= semaphore
                self.synced[other, unit] = index
                return

    def instructions(self) -> list[tuple[Op, dict[str, int]]]:
        """The program so far."""
        return [(step.op, step.values) for step in self.steps]


def random_program(config: AccelConfig, seed: int, size: int) -> Program:
    """About `size` random instructions between a prologue that fills the scratchpads and an epilogue that stores them.

    Sections of kind output hold all results.
    """
    return _Generator(config, random.Random(f"{seed}/{size}/{config.hash32}")).program(size)


class _Generator:
    def __init__(self, config: AccelConfig, rng: random.Random) -> None:
        self.config = config
        self.rng = rng
        self.builder = TokenBuilder()
        smallest = {Mem.INP: 16, Mem.WGT: 8, Mem.OUT: 32, Mem.UOP: _UOPS, Mem.PRM: 4}
        self.entries = {
            mem: min(depth(config, mem), max(least, 512 // element_bytes(config, mem)))
            for mem, least in smallest.items()
        }
        self.bank_entries = min(config.acc_bank_depth, max(16, 512 // config.acc_bytes))
        self.sections: list[Section] = []
        self._lay_out()

    def program(self, size: int) -> Program:
        self._prologue()
        kinds = [self._load, self._gather, self._gemm, self._alu, self._requant, self._store]
        for kind in self.rng.choices(kinds, weights=[3, 2, 3, 3, 3, 2], k=size):
            kind()
        self._epilogue()
        self.builder.add(Op.FINISH, {}, [])
        return Program.build(self.config, self.builder.instructions(), self.sections)

    def _lay_out(self) -> None:
        c, rng = self.config, self.rng
        n = self.entries[Mem.UOP]
        uops = encode_uops(
            [rng.randrange(_UOP_DST) for _ in range(n)],
            [rng.randrange(_UOP_SRC) for _ in range(n)],
            [rng.randrange(_UOP_WGT) for _ in range(n)],
            [rng.randrange(2) for _ in range(n)],
        )
        lanes = self.entries[Mem.PRM] * c.block_out
        bound = 1 << c.multiplier_bits
        shifts = [rng.choice([0, 1, rng.randrange(c.multiplier_bits), rng.randrange(63)]) for _ in range(lanes)]
        prm = encode_prm(
            [rng.choice([rng.randrange(-1000, 1000), rng.randrange(-(1 << 31), 1 << 31)]) for _ in range(lanes)],
            [rng.choice([1, -1, rng.randrange(-bound, bound), bound - 1, -bound]) for _ in range(lanes)],
            shifts,
            [rng.randrange(-128, 128) for _ in range(lanes)],
            [rng.randrange(-128, 128) for _ in range(lanes)],
            c.multiplier_bits,
        )
        weights = self.entries[Mem.WGT] * c.wgt_bytes
        banks = c.acc_banks * self.bank_entries * c.acc_bytes
        data = max(self.entries[Mem.INP] * c.inp_bytes, banks, 2048)
        self._section("uops", SectionKind.UOPS, len(uops), uops.tobytes())
        self._section("prm", SectionKind.CONSTANTS, len(prm), prm.tobytes())
        self._section("weights", SectionKind.WEIGHTS, weights, random_bytes(rng.randrange(1 << 30), weights))
        self._section("input", SectionKind.INPUT, data, random_bytes(rng.randrange(1 << 30), data))
        self._section("middle", SectionKind.OUTPUT, 2048, None)
        self._section("result", SectionKind.OUTPUT, 2 * c.acc_banks * self._bank_out_bytes(), None)

    def _section(self, name: str, kind: SectionKind, size: int, data: bytes | None) -> None:
        begin = self.sections[-1].end if self.sections else 0
        size = align(size, 32)
        stored = None if data is None else data.ljust(size, b"\0")
        self.sections.append(Section(name, kind, align(begin, 32), size, stored))

    def _bank_out_bytes(self) -> int:
        """Bytes of one bank's working entries as int8."""
        return align(self.bank_entries * self.config.out_bytes, self.config.granule_bytes)

    def _find(self, name: str) -> Section:
        return next(section for section in self.sections if section.name == name)

    def _prologue(self) -> None:
        c = self.config
        for mem, name in ((Mem.UOP, "uops"), (Mem.PRM, "prm"), (Mem.WGT, "weights"), (Mem.INP, "input")):
            self._load_all(mem, 0, self.entries[mem], self._find(name).offset)
        for bank in range(c.acc_banks):
            size = self.bank_entries * c.acc_bytes
            self._load_all(
                Mem.ACC, bank * c.acc_bank_depth, self.bank_entries, self._find("input").offset + bank * size
            )
        for begin in range(0, self.entries[Mem.OUT], self.bank_entries):
            count = min(self.bank_entries, self.entries[Mem.OUT] - begin)
            self._pass(0, count, begin)

    def _load_all(self, mem: Mem, begin: int, entries: int, dram: int) -> None:
        size = entries * element_bytes(self.config, mem)
        values = {"mem": mem, "dram": dram, "sram": begin, "z": size // self.config.granule_bytes}
        self.builder.add(Op.LOAD, values, [Access(_DRAM, dram, dram + size, False), self._scratch(mem, begin, entries)])

    def _epilogue(self) -> None:
        """Store every bank twice: saturated, and its low bytes."""
        c = self.config
        target = self._find("result").offset
        # Padding makes a micro-op of zeros behind one granule, whatever the random loads left.
        self.builder.add(
            Op.LOAD,
            {"mem": Mem.UOP, "dram": self._find("middle").offset, "z": 1, "x_pad_1": 1, "pad_value": 0},
            [self._scratch(Mem.UOP, 0, self.entries[Mem.UOP]), self._dram_of("middle")],
        )
        begin = c.granule_bytes // 8
        for low in (False, True):
            for bank in range(c.acc_banks):
                base = bank * c.acc_bank_depth
                if low:
                    for op, imm in ((AluOp.MUL, 1 << 24), (AluOp.SHR, 24)):
                        values = {"alu_op": op, "use_imm": 1, "imm": imm, "rounding": Rounding.FLOOR}
                        values |= {"uop_begin": begin, "uop_end": begin + 1}
                        values |= {"iter_in": self.bank_entries, "dst_in": 1, "dst_base": base}
                        accesses = [self._bank(bank), Access(Mem.UOP, begin, begin + 1, False)]
                        self.builder.add(Op.ALU, values, accesses)
                count = self.bank_entries
                self._pass(base, count, 0)
                size = self._bank_out_bytes()
                values = {"mem": Mem.OUT, "dram": target, "z": size // c.granule_bytes}
                entries = size // c.out_bytes
                reads = Access(Mem.OUT, 0, entries, False)
                self.builder.add(Op.STORE, values, [reads, Access(_DRAM, target, target + size, True)])
                target += size

    def _pass(self, acc: int, count: int, out: int) -> None:
        values = {"form": Form.PASS, "clip_lo": -128, "clip_hi": 127, "iter_in": count, "acc_in": 1, "dst_in": 1}
        values |= {"acc_base": acc, "dst_base": out}
        bank = self._bank(acc // self.config.acc_bank_depth)
        self.builder.add(Op.REQUANT, values, [bank, Access(Mem.OUT, out, out + count, True)])

    def _bank(self, bank: int) -> Access:
        size = self.config.acc_bank_depth
        return Access(Mem.ACC, bank * size, (bank + 1) * size, True, exclusive=True)

    def _dram_of(self, name: str) -> Access:
        section = self._find(name)
        return Access(_DRAM, section.offset, section.end, False)

    def _scratch(self, mem: Mem, begin: int, entries: int) -> Access:
        if mem is Mem.ACC:
            return self._bank(begin // self.config.acc_bank_depth)
        return Access(mem, begin, begin + entries, True)

    def _load(self) -> None:
        c, rng = self.config, self.rng
        mem = rng.choice([Mem.INP, Mem.INP, Mem.WGT, Mem.ACC, Mem.ACC, Mem.UOP, Mem.PRM])
        expand = rng.randrange(2) if mem is Mem.ACC else 0
        names = {Mem.INP: ["input", "middle"], Mem.ACC: ["input", "middle"], Mem.WGT: ["weights", "input"]}
        section = self._find(rng.choice(names.get(mem, ["uops" if mem is Mem.UOP else "prm"])))
        entries = self.bank_entries if mem is Mem.ACC else self.entries[mem]
        room = entries * element_bytes(c, mem) // (c.granule_bytes * (4 if expand else 1))
        shape = self._shape(room, pads=True)
        if shape is None:
            return
        pads, z, y, x = shape
        size = (pads[0] + y + pads[1]) * (pads[2] + x + pads[3]) * z * c.granule_bytes * (4 if expand else 1)
        step = max(1, c.bus_bytes * (4 if expand else 1) // element_bytes(c, mem))
        taken = -(-size // element_bytes(c, mem))
        base = rng.randrange(c.acc_banks) * c.acc_bank_depth if mem is Mem.ACC else 0
        sram = base + rng.randrange((entries - taken) // step + 1) * step
        values, source = self._dram(section, z, y, x, False)
        values |= {"mem": mem, "expand": expand, "sram": sram}
        values |= dict(zip(("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), pads, strict=True))
        # Padding must not make a micro-op that points outside.
        values["pad_value"] = 0 if mem is Mem.UOP else rng.randrange(-128, 128)
        self.builder.add(Op.LOAD, values, [source, self._scratch(mem, sram, taken)])

    def _gather(self) -> None:
        """Windows of some rows of a section into a few vectors; now and then all of them lie beside the row."""
        c, rng = self.config, self.rng
        section = self._find(rng.choice(["input", "middle"]))
        beat = max(1, c.bus_bytes // c.inp_bytes)
        entries = self.entries[Mem.INP]
        pitch = beat * rng.choice([1, 1, 2, 3])
        room = entries // pitch
        x = rng.randrange(1, min(room, 6) + 1)
        y = rng.randrange(1, min(room // x, 4) + 1)
        pads = [0, 0]
        while x * (sum(pads) + y) < room - x and rng.random() < 0.4:
            pads[rng.randrange(2)] += 1
        size = pitch * c.inp_bytes
        run = rng.randrange(1, size + 1)
        row = rng.choice([rng.randrange(1, 65), rng.randrange(1, 300)])
        fetched = align(row, c.granule_bytes)
        stride = rng.choice([fetched, fetched, 0, rng.randrange(6) * c.granule_bytes])
        if (y - 1) * stride + fetched > section.size:
            stride = 0
        span = (y - 1) * stride + fetched
        first = section.offset + rng.randrange((section.size - span) // c.granule_bytes + 1) * c.granule_bytes
        taken = x * (sum(pads) + y) * pitch
        sram = rng.randrange((entries - taken) // beat + 1) * beat
        values = {"dram": first, "y": y, "x": x, "y_stride": stride, "row_bytes": row, "run": run, "pitch": pitch}
        values |= {"sram": sram, "lane": rng.randrange(size - run + 1), "x_step": rng.choice([1, 2, 3, 6, 255])}
        values |= {"left": rng.choice([0, 0, rng.randrange(-40, 40), 4000]), "pad_value": rng.randrange(-128, 128)}
        values |= {"y_pad_0": pads[0], "y_pad_1": pads[1]}
        source = Access(_DRAM, first, first + span, False)
        self.builder.add(Op.GATHER, values, [source, self._scratch(Mem.INP, sram, taken)])

    def _shape(self, room: int, pads: bool) -> tuple[tuple[int, int, int, int], int, int, int] | None:
        """Pads, z, y, x that take at most `room` granules."""
        rng = self.rng
        for _ in range(50):
            z, y, x = rng.choice([1, 1, 2, 3, rng.randrange(1, 9)]), rng.randrange(1, 5), rng.randrange(1, 5)
            p0, p1, p2, p3 = (rng.choice([0, 0, 1, 2]) if pads and z < 3 else 0 for _ in range(4))
            if (p0 + y + p1) * (p2 + x + p3) * z <= room:
                return (p0, p1, p2, p3), z, y, x
        return None

    def _dram(self, section: Section, z: int, y: int, x: int, writes: bool) -> tuple[dict[str, int], Access]:
        """Offset and strides, merging or not, of a transfer inside a section."""
        c, rng = self.config, self.rng
        granules = section.size // c.granule_bytes
        x_step = rng.choice([z, z, z + 1, rng.randrange(8)])
        y_step = rng.choice([x * x_step, x * x_step, x * x_step + 1, rng.randrange(16)])
        span = (y - 1) * y_step + (x - 1) * x_step + z
        if span > granules:
            x_step, y_step, span = 0, 0, z
        first = section.offset + rng.randrange(granules - span + 1) * c.granule_bytes
        values = {"dram": first, "z": z, "y": y, "x": x}
        values |= {"y_stride": y_step * c.granule_bytes, "x_stride": x_step * c.granule_bytes}
        return values, Access(_DRAM, first, first + span * c.granule_bytes, writes)

    def _store(self) -> None:
        c, rng = self.config, self.rng
        entries = self.entries[Mem.OUT]
        shape = self._shape(entries * c.out_bytes // c.granule_bytes, pads=False)
        if shape is None:
            return
        _, z, y, x = shape
        taken = -(-z * y * x * c.granule_bytes // c.out_bytes)
        step = max(1, c.bus_bytes // c.out_bytes)
        sram = rng.randrange((entries - taken) // step + 1) * step
        values, target = self._dram(self._find("middle"), z, y, x, True)
        values |= {"mem": Mem.OUT, "sram": sram}
        self.builder.add(Op.STORE, values, [target, Access(Mem.OUT, sram, sram + taken, False)])

    def _walk(self, v: dict[str, int], keys: tuple[str, str, str], reach: int, limit: int) -> tuple[int, int]:
        """Choose base and steps so that base + trips + [0, reach) stays in [0, limit). Returns the interval.

        Steps of inner and outer loop that were chosen before stay.
        """
        base, outer, inner = keys
        for attempt in range(40):
            if attempt == 39:
                v[outer] = v[inner] = 0
            elif outer not in v or attempt:
                v[outer], v[inner] = (self.rng.choice([0, 1, 1, 2, 3, -1, -2, v["iter_in"]]) for _ in range(2))
            corners = [o * v[outer] + i * v[inner] for o in (0, v["iter_out"] - 1) for i in (0, v["iter_in"] - 1)]
            low, high = -min(corners), limit - reach - max(corners)
            if low <= high:
                v[base] = self.rng.randint(low, high)
                v[outer], v[inner] = v[outer] & 0xFFFF, v[inner] & 0xFFFF
                return v[base] + min(corners), v[base] + max(corners) + reach
        raise AssertionError("a walk without steps always fits")

    def _loops(self) -> dict[str, int]:
        rng = self.rng
        return {"iter_out": rng.randrange(1, 4), "iter_in": rng.choice([1, 2, 4, rng.randrange(1, 9)])}

    def _uop_range(self, v: dict[str, int], longest: int) -> Access:
        count = self.rng.randrange(1, longest + 1)
        v["uop_begin"] = self.rng.randrange(self.entries[Mem.UOP] - count + 1)
        v["uop_end"] = v["uop_begin"] + count
        return Access(Mem.UOP, v["uop_begin"], v["uop_end"], False)

    def _gemm(self) -> None:
        v = self._loops()
        v["overwrite"] = self.rng.randrange(2)
        accesses = [self._uop_range(v, 12)]
        self._walk(v, ("acc_base", "acc_out", "acc_in"), _UOP_DST, self.bank_entries)
        accesses.append(self._place(v, "acc_base"))
        inp = self._walk(v, ("inp_base", "inp_out", "inp_in"), _UOP_SRC, self.entries[Mem.INP])
        wgt = self._walk(v, ("wgt_base", "wgt_out", "wgt_in"), _UOP_WGT, self.entries[Mem.WGT])
        accesses += [Access(Mem.INP, *inp, False), Access(Mem.WGT, *wgt, False)]
        self.builder.add(Op.GEMM, v, accesses)

    def _place(self, v: dict[str, int], base: str, bank: int | None = None) -> Access:
        """Move an index that was chosen inside one bank's working entries to a bank."""
        bank = self.rng.randrange(self.config.acc_banks) if bank is None else bank
        v[base] += bank * self.config.acc_bank_depth
        return self._bank(bank)

    def _alu(self) -> None:
        rng = self.rng
        v = self._loops()
        op = rng.choice(list(AluOp))
        v |= {"alu_op": op, "use_imm": 1 if op is AluOp.CLIP else rng.randrange(2), "rounding": rng.randrange(4)}
        v["imm"] = rng.choice([rng.randrange(-40, 40), rng.randrange(-(1 << 31), 1 << 31)])
        accesses = [self._uop_range(v, 6)]
        self._walk(v, ("dst_base", "dst_out", "dst_in"), _UOP_DST, self.bank_entries)
        accesses.append(self._place(v, "dst_base"))
        self._walk(v, ("src_base", "src_out", "src_in"), _UOP_SRC, self.bank_entries)
        source = self._place(v, "src_base")
        self.builder.add(Op.ALU, v, accesses if v["use_imm"] else [*accesses, source])

    def _requant(self) -> None:
        c, rng = self.config, self.rng
        v = self._loops()
        form = rng.choice(list(Form))
        v |= {"form": form, "rounding": rng.randrange(4), "zero_point": rng.randrange(-128, 128)}
        v["clip_lo"] = rng.choice([-128, rng.randrange(-128, 128)])
        v["clip_hi"] = rng.choice([127, rng.randrange(v["clip_lo"], 128)])
        v["prm_out"] = rng.randrange(2)
        v["prm_base"] = rng.randrange(self.entries[Mem.PRM] - (v["iter_out"] - 1) * v["prm_out"])
        accesses: list[Access] = []
        if form is not Form.PASS:
            accesses.append(Access(Mem.PRM, v["prm_base"], v["prm_base"] + v["iter_out"], False))
        low, high = self._walk(v, ("acc_base", "acc_out", "acc_in"), 1, self.bank_entries)
        bank = rng.randrange(c.acc_banks)
        if form is Form.ADD:
            # The same steps as y, anywhere that keeps them inside.
            v["res_base"] = v["acc_base"] - low + rng.randrange(self.bank_entries - (high - low) + 1)
            accesses.append(self._place(v, "res_base", bank if c.acc_banks < 3 else None))
        accesses.append(self._place(v, "acc_base", bank))
        self._requant_target(v, accesses)
        self.builder.add(Op.REQUANT, v, accesses)

    def _requant_target(self, v: dict[str, int], accesses: list[Access]) -> None:
        """OUT, or any bank: an entry may well be written here and read by a later vector of the same instruction."""
        v["dst"] = Dst.ACC if self.rng.randrange(3) == 0 else Dst.OUT
        limit = self.bank_entries if v["dst"] == Dst.ACC else self.entries[Mem.OUT]
        begin, end = self._walk(v, ("dst_base", "dst_out", "dst_in"), 1, limit)
        if v["dst"] == Dst.ACC:
            accesses.append(self._place(v, "dst_base"))
        else:
            accesses.append(Access(Mem.OUT, begin, end, True))
