"""Seeded random legal programs for testing devices against one another.

In: a configuration, a seed, a number of instructions. Out: a Program that uses every instruction, keeps to all rules of
ISA.md and gives the same bytes for every timing: whatever two units could race for is ordered by tokens.
"""

from __future__ import annotations

import random

from relay_hw.accel.isa.alu import ALU_OPS, AluOp
from relay_hw.accel.isa.config import EXPONENTIALS, TAPS, AccelConfig
from relay_hw.accel.isa.ordering import Access
from relay_hw.accel.isa.program import Program, Section, WindowPlan, align
from relay_hw.accel.isa.randframe import DRAM, UOP_DST, ProgramFrame
from relay_hw.accel.isa.rules import dram_extent, row_coefficients
from relay_hw.accel.isa.spec import TWO_OPERANDS, Dst, Form, GemmMode, Mem, Nibble, Op, RowKind
from relay_hw.accel.isa.state import element_bytes

Pads = tuple[int, int, int, int]
_PADS = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")


def random_program(config: AccelConfig, seed: int, size: int) -> Program:
    """About `size` random instructions between a prologue that fills the scratchpads and an epilogue that stores them.

    Sections of kind output hold all results.
    """
    return _Generator(config, random.Random(f"{seed}/{size}/{config.hash32}")).program(size)


class _Generator(ProgramFrame):
    def __init__(self, config: AccelConfig, rng: random.Random) -> None:
        super().__init__(config, rng)
        # Entries of INP that writes may choose from.
        self.inp_room = (0, self.entries[Mem.INP])

    def program(self, size: int) -> Program:
        self.prologue()
        kinds = [self._load, self._gather, self._gemm, self._alu, self._requant, self._store, self._race, self._row]
        weights = [12, 8, 16, 10, 12, 8, 1, 8 if self.config.cof_depth else 0]
        for kind in self.rng.choices(kinds, weights=weights, k=size):
            kind()
        self.epilogue()
        self.builder.add(Op.FINISH, {}, [])
        return Program.build(self.config, self.builder.instructions(), WindowPlan(self.sections))

    def _race(self) -> None:
        """REQUANTs into one half of INP among LOADs and GATHERs into the other: nothing orders them but hardware."""
        c = self.config
        middle = c.line_entries * (self.entries[Mem.INP] // c.line_entries // 2)
        halves = [(0, middle), (middle, self.entries[Mem.INP])]
        self.rng.shuffle(halves)
        for _ in range(self.rng.randrange(2, 5)):
            self.inp_room = halves[0]
            self._requant(Dst.INP)
            self.inp_room = halves[1]
            self.rng.choice([lambda: self._load(Mem.INP), self._load_planes, self._gather])()
        self.inp_room = (0, self.entries[Mem.INP])

    def _load(self, mem: Mem | None = None) -> None:
        c, rng = self.config, self.rng
        if mem is None:
            mems = [Mem.INP, Mem.INP, Mem.WGT, Mem.WGT, Mem.ACC, Mem.ACC, Mem.UOP, Mem.PRM, Mem.TAB, Mem.COF]
            mem = rng.choice([mem for mem in mems if mem is Mem.ACC or self.entries[mem]])
        if mem is Mem.INP and rng.randrange(2):
            self._load_planes()
            return
        if mem is Mem.WGT and c.factor_granules and rng.randrange(2):
            self._load_factored()
            return
        widening = {Mem.ACC: 4, Mem.WGT: 2}
        expand = rng.randrange(2) if mem in widening else 0
        names = {Mem.INP: ["input", "middle"], Mem.ACC: ["input", "middle"], Mem.WGT: ["weights", "input"]}
        names |= {Mem.UOP: ["uops"], Mem.PRM: ["prm"], Mem.TAB: ["tables"], Mem.COF: ["coefficients", "input"]}
        section = self.find(rng.choice(names[mem]))
        begin, end = 0, self.bank_entries if mem is Mem.ACC else self.entries[mem]
        pads = mem is not Mem.UOP or rng.randrange(2) == 0
        if mem is Mem.ACC:
            begin = rng.randrange(c.acc_banks) * c.acc_bank_depth
            end += begin
        elif mem is Mem.INP:
            begin, end = self.inp_room
        elif mem is Mem.UOP and pads:
            # Padding makes micro-ops of zeros, whose mask of taps is illegal: max takes the others.
            begin = end // 2
        widen = widening[mem] if expand else 1
        shape = self._shape((end - begin) * element_bytes(c, mem) // (c.granule_bytes * widen), pads)
        if shape is None:
            return
        padding, z, y, x = shape
        size = (padding[0] + y + padding[1]) * (padding[2] + x + padding[3]) * z * c.granule_bytes * widen
        step = max(1, c.bus_bytes * widen // element_bytes(c, mem))
        taken = -(-size // element_bytes(c, mem))
        sram = begin + rng.randrange((end - begin - taken) // step + 1) * step
        values, source = self._dram(section, z, y, x, False)
        values |= {"mem": mem, "expand": expand, "sram": sram, **dict(zip(_PADS, padding, strict=True))}
        # Padding must not make a micro-op that points outside.
        values["pad_value"] = 0 if mem is Mem.UOP else rng.randrange(-128, 128)
        self.builder.add(Op.LOAD, values, [source, self.scratch(mem, sram, taken)])

    def _load_planes(self) -> None:
        """LOAD with pitch: planes apart, touching or overlapping, with padding."""
        c, rng = self.config, self.rng
        begin, end = (entry // c.line_entries for entry in self.inp_room)
        for _ in range(50):
            planes, pitch = rng.choice([1, 2, 2, 3, 4]), rng.choice([1, 1, 2, rng.randrange(1, 6)])
            y, x = rng.randrange(1, 5), rng.randrange(1, 5)
            pads: Pads = tuple(rng.choice([0, 0, 1, 2]) for _ in range(4))  # pyright: ignore[reportAssignmentType]
            taken = TAPS * pitch * (planes - 1) + (pads[0] + y + pads[1]) * (pads[2] + x + pads[3])
            if taken <= end - begin:
                break
        else:
            return
        line = begin + rng.randrange(end - begin - taken + 1)
        z = planes * c.line_bytes // c.granule_bytes
        values, source = self._dram(self.find(rng.choice(["input", "middle"])), z, y, x, False)
        values |= {"mem": Mem.INP, "sram": line * c.line_entries, "pitch": pitch, "pad_value": rng.randrange(-128, 128)}
        values |= dict(zip(_PADS, pads, strict=True))
        target = Access(Mem.INP, line * c.line_entries, (line + taken) * c.line_entries, True)
        self.builder.add(Op.LOAD, values, [source, target])

    def _load_factored(self) -> None:
        """LOAD of weights behind factors: blocks that are whole or not."""
        c, rng = self.config, self.rng
        section, entries = self.find(rng.choice(["weights", "input"])), self.entries[Mem.WGT]
        block, granules = c.factor_granules, section.size // c.granule_bytes
        most = min(granules - -(-granules // (block + 1)), entries * c.wgt_bytes // (2 * c.granule_bytes))
        if most < 1:
            return
        z = rng.choice([most, min(most, block), min(most, block + 1), rng.randrange(1, most + 1)])
        taken = -(-2 * z * c.granule_bytes // c.wgt_bytes)
        sram = rng.randrange(entries - taken + 1)
        values, _ = self._dram(section, z + -(-z // block), 1, 1, False)
        values |= {"z": z, "mem": Mem.WGT, "expand": 1, "pitch": 1, "sram": sram, "pad_value": rng.randrange(-128, 128)}
        source = Access(DRAM, values["dram"], values["dram"] + dram_extent(c, Op.LOAD, values), False)
        self.builder.add(Op.LOAD, values, [source, self.scratch(Mem.WGT, sram, taken)])

    def _gather(self) -> None:
        """Windows of some rows of a section into a few vectors; now and then all of them lie beside the row."""
        c, rng = self.config, self.rng
        section = self.find(rng.choice(["input", "middle"]))
        beat = max(1, c.bus_bytes // c.inp_bytes)
        begin, end = self.inp_room
        pitch = beat * rng.choice([1, 1, 2, 3])
        room = (end - begin) // pitch
        if not room:
            return
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
        sram = begin + rng.randrange((end - begin - taken) // beat + 1) * beat
        values = {"dram": first, "y": y, "x": x, "y_stride": stride, "row_bytes": row, "run": run, "pitch": pitch}
        values |= {"sram": sram, "lane": rng.randrange(size - run + 1), "x_step": rng.choice([1, 2, 3, 6, 255])}
        values |= {"left": rng.choice([0, 0, rng.randrange(-40, 40), 4000]), "pad_value": rng.randrange(-128, 128)}
        values |= {"y_pad_0": pads[0], "y_pad_1": pads[1]}
        source = Access(DRAM, first, first + span, False)
        self.builder.add(Op.GATHER, values, [source, self.scratch(Mem.INP, sram, taken)])

    def _shape(self, room: int, pads: bool) -> tuple[Pads, int, int, int] | None:
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
        return values, Access(DRAM, first, first + span * c.granule_bytes, writes)

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
        values, target = self._dram(self.find("middle"), z, y, x, True)
        values |= {"mem": Mem.OUT, "sram": sram}
        self.builder.add(Op.STORE, values, [target, Access(Mem.OUT, sram, sram + taken, False)])

    def _walk(
        self, v: dict[str, int], keys: tuple[str, str, str], reach: int, limit: int, unit: int = 1
    ) -> tuple[int, int]:
        """Choose base and steps, multiples of `unit`, so that base + trips + [0, reach) stays in [0, limit).

        Returns the interval. Steps of inner and outer loop that were chosen before stay.
        """
        base, outer, inner = keys
        for attempt in range(40):
            if attempt == 39:
                v[outer] = v[inner] = 0
            elif outer not in v or attempt:
                steps = [0, 1, 1, 2, 3, -1, -2, v["iter_in"]]
                v[outer], v[inner] = (unit * self.rng.choice(steps) for _ in range(2))
            corners = [o * v[outer] + i * v[inner] for o in (0, v["iter_out"] - 1) for i in (0, v["iter_in"] - 1)]
            low, high = -min(corners), limit - reach - max(corners)
            if low <= high:
                v[base] = unit * self.rng.randint(low // unit, high // unit)
                v[outer], v[inner] = v[outer] & 0xFFFF, v[inner] & 0xFFFF
                return v[base] + min(corners), v[base] + max(corners) + reach
        raise AssertionError("a walk without steps always fits")

    def _loops(self) -> dict[str, int]:
        rng = self.rng
        return {"iter_out": rng.randrange(1, 4), "iter_in": rng.choice([1, 2, 4, rng.randrange(1, 9)])}

    def _uop_range(self, v: dict[str, int], longest: int, entries: int) -> Access:
        count = self.rng.randrange(1, longest + 1)
        v["uop_begin"] = self.rng.randrange(entries - count + 1)
        v["uop_end"] = v["uop_begin"] + count
        return Access(Mem.UOP, v["uop_begin"], v["uop_end"], False)

    def _gemm(self) -> None:
        c, rng = self.config, self.rng
        v = self._loops()
        last, entries = self.sources[-1], self.entries[Mem.INP]
        reach, parts = last + (TAPS - 1) * c.line_parts + c.block_parts, entries * c.entry_parts
        mode = rng.choice(list(GemmMode)) if reach <= parts else GemmMode.MATMUL
        v |= {"overwrite": rng.randrange(2), "mode": mode}
        uops = self.entries[Mem.UOP]
        accesses = [self._uop_range(v, 12, uops // 2 if mode is GemmMode.MAX else uops)]
        self._walk(v, ("acc_base", "acc_out", "acc_in"), UOP_DST, self.bank_entries)
        accesses.append(self._place(v, "acc_base"))
        keys = ("inp_base", "inp_out", "inp_in")
        if mode in (GemmMode.MATMUL, GemmMode.ENTRY):
            inp = self._walk(v, keys, last + (c.operand_entries if mode is GemmMode.MATMUL else 1), entries)
        else:
            begin, end = self._walk(v, keys, reach, parts, c.block_parts)
            inp = (begin // c.entry_parts, -(-end // c.entry_parts))
        accesses.append(Access(Mem.INP, *inp, False))
        if mode is not GemmMode.MAX:
            v["nibble"] = rng.choice(list(Nibble)) if c.wgt_bits == 4 else Nibble.WHOLE
            groups = c.tap_groups if mode is GemmMode.TAPS else 1
            limit = self.entries[Mem.WGT] * groups
            begin, end = self._walk(v, ("wgt_base", "wgt_out", "wgt_in"), self.weights[-1] + 1, limit)
            accesses.append(Access(Mem.WGT, begin // groups, -(-end // groups), False))
        self.builder.add(Op.GEMM, v, accesses)

    def _place(self, v: dict[str, int], base: str, bank: int | None = None) -> Access:
        """Move an index that was chosen inside one bank's working entries to a bank."""
        bank = self.rng.randrange(self.config.acc_banks) if bank is None else bank
        v[base] += bank * self.config.acc_bank_depth
        return self.bank(bank)

    def _alu(self) -> None:
        rng = self.rng
        v = self._loops()
        op = rng.choice(list(AluOp))
        v |= {"alu_op": op, "use_imm": 1 if ALU_OPS[op].needs_imm else rng.randrange(2), "rounding": rng.randrange(4)}
        v["imm"] = rng.choice([rng.randrange(-40, 40), rng.randrange(-(1 << 31), 1 << 31)])
        accesses = [self._uop_range(v, 6, self.entries[Mem.UOP])]
        self._walk(v, ("dst_base", "dst_out", "dst_in"), UOP_DST, self.bank_entries)
        accesses.append(self._place(v, "dst_base"))
        self._walk(v, ("src_base", "src_out", "src_in"), self.sources[-1] + 1, self.bank_entries)
        source = self._place(v, "src_base")
        self.builder.add(Op.ALU, v, accesses if v["use_imm"] else [*accesses, source])

    def _requant(self, dst: Dst | None = None) -> None:
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
        if form in TWO_OPERANDS:
            v["still"] = rng.randrange(2)
            # A step of one in the outer loop, or the same steps as y, anywhere that keeps them inside.
            first, reach = (0, v["iter_out"]) if v["still"] else (v["acc_base"] - low, high - low)
            v["res_base"] = first + rng.randrange(self.bank_entries - reach + 1)
            accesses.append(self._place(v, "res_base", bank if c.acc_banks < 3 else None))
        accesses.append(self._place(v, "acc_base", bank))
        if c.tables and rng.randrange(3) == 0:
            v["table"] = rng.randrange(1, c.tables + 1)
            accesses.append(self.whole(Mem.TAB, False))
        v["dst"] = rng.choice([Dst.OUT, Dst.OUT, Dst.INP, Dst.ACC]) if dst is None else dst
        accesses.append(self._requant_target(v))
        self.builder.add(Op.REQUANT, v, accesses)

    def _requant_target(self, v: dict[str, int]) -> Access:
        """OUT, INP or any bank: an entry may be written here and read by a later vector of the same instruction."""
        keys = ("dst_base", "dst_out", "dst_in")
        if v["dst"] == Dst.ACC:
            self._walk(v, keys, 1, self.bank_entries)
            return self._place(v, "dst_base")
        if v["dst"] == Dst.OUT:
            return Access(Mem.OUT, *self._walk(v, keys, 1, self.entries[Mem.OUT]), True)
        c, (first, last) = self.config, self.inp_room
        begin, end = self._walk(v, keys, c.block_parts, (last - first) * c.entry_parts, c.block_parts)
        v["dst_base"] += first * c.entry_parts
        return Access(Mem.INP, first + begin // c.entry_parts, first - (-end // c.entry_parts), True)

    def _row(self) -> None:
        """Rows behind one another, interleaved or with gaps, first to last or back."""
        c, rng = self.config, self.rng
        bank, room = rng.randrange(c.acc_banks), self.bank_entries
        count = rng.choice([1, 1, 2, rng.randrange(1, room + 1)])
        rows = rng.randrange(1, min(room // count, 6) + 1)
        gap = rng.randrange(1, max(1, room // (rows * count)) + 1)
        # Steps of a row and of an entry: rows that lie one behind the other, or entry by entry in turn.
        steps = [gap * count, gap] if rng.randrange(2) else [gap, gap * rows]
        trips = [rows, count]
        base = rng.randrange(room - (steps[0] * (rows - 1) + steps[1] * (count - 1)))
        for side in range(2):
            if rng.randrange(3) == 0:
                base, steps[side] = base + steps[side] * (trips[side] - 1), -steps[side]
        kind = rng.choice(list(RowKind))
        columns = count * c.block_out - rng.choice([0, 0, rng.randrange(c.block_out)])
        v = {"kind": kind, "rows": rows, "columns": columns, "acc_base": base + bank * c.acc_bank_depth}
        v |= {"row_step": steps[0] & 0xFFFF, "entry_step": steps[1] & 0xFFFF}
        if kind is RowKind.SOFTMAX and c.cof_depth > EXPONENTIALS:
            v["bounded"] = rng.randrange(2)
        v["cof_base"] = rng.randrange(c.cof_depth - row_coefficients(c, v) + 1)
        v |= {"zero_point": rng.choice([0, rng.randrange(-128, 128)]), "inp_zero": rng.randrange(-128, 128)}
        if kind is RowKind.SOFTMAX:
            v |= {
                "visible": rng.choice([0xFFFF, columns, rng.randrange(columns + 1)]),
                "visible_step": rng.randrange(2),
            }
            v |= {"shift": rng.choice([7, 8, rng.randrange(-15, 16)]), "multiplier": rng.randrange(1 << 16)}
        else:
            v |= {"shift": rng.choice([12, 14, 16, 18, rng.randrange(41)])}
            v |= {"epsilon_low": rng.choice([0, rng.randrange(1 << 32)]), "epsilon_high": rng.choice([0, 0, 1, 65535])}
        self.builder.add(Op.ROW, v, [self.bank(bank), self.whole(Mem.COF, False)])
