"""The fixed parts of random programs: sections, a prologue that fills the scratchpads, an epilogue that stores them.

In: a configuration and a random number generator. Out: instructions in a `TokenBuilder`, sections of the window.
"""

from __future__ import annotations

import random

from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.asm import random_bytes
from relay_hw.accel.isa.config import TABLE_RECORD_BYTES, TAPS, AccelConfig
from relay_hw.accel.isa.ordering import Access, TokenBuilder
from relay_hw.accel.isa.program import Section, SectionKind, align
from relay_hw.accel.isa.records import encode_cof, encode_prm, encode_uops
from relay_hw.accel.isa.spec import Form, GemmMode, Mem, Op, Rounding
from relay_hw.accel.isa.state import depth, element_bytes

# Destinations of random micro-ops lie below this.
UOP_DST = 3
UOPS = 64
DRAM = "dram"
# Micro-ops of the epilogue: all zero, and one tap that overwrites.
_ZERO_UOP, _MOVE_UOP = 0, 1


class ProgramFrame:
    """State of a random program in the making. Only the first `entries` of a scratchpad are used, so that uses meet."""

    def __init__(self, config: AccelConfig, rng: random.Random) -> None:
        self.config = config
        self.rng = rng
        self.builder = TokenBuilder()
        smallest = {Mem.INP: 24 * config.line_entries, Mem.WGT: 8, Mem.OUT: 32, Mem.UOP: UOPS, Mem.PRM: 4}
        self.entries = {
            mem: min(depth(config, mem), max(least, 512 // element_bytes(config, mem)))
            for mem, least in smallest.items()
        }
        self.entries[Mem.TAB], self.entries[Mem.COF] = config.tab_depth, config.cof_depth
        self.bank_entries = min(config.acc_bank_depth, max(16, 512 // config.acc_bytes))
        # Micro-ops fit every mode: sources start output blocks, weights are masks of taps too.
        self.sources = range(0, 8, config.block_parts)
        self.weights = range(1, min(1 << TAPS, self.entries[Mem.WGT]))
        self.sections: list[Section] = []
        self._lay_out()

    def prologue(self) -> None:
        """Fill what is used of every scratchpad."""
        c = self.config
        filled = ((Mem.UOP, "uops"), (Mem.PRM, "prm"), (Mem.WGT, "weights"), (Mem.INP, "input"), (Mem.TAB, "tables"))
        for mem, name in (*filled, (Mem.COF, "coefficients")):
            if self.entries[mem]:
                self._load_all(mem, 0, self.entries[mem], self.find(name).offset)
        for bank in range(c.acc_banks):
            size = self.bank_entries * c.acc_bytes
            self._load_all(Mem.ACC, bank * c.acc_bank_depth, self.bank_entries, self.find("input").offset + bank * size)
        for begin in range(0, self.entries[Mem.OUT], self.bank_entries):
            count = min(self.bank_entries, self.entries[Mem.OUT] - begin)
            self._pass(0, count, begin)

    def epilogue(self) -> None:
        """Store every bank twice, saturated and its low bytes; then the input."""
        moves = self.find("moves")
        loaded = self.config.granule_bytes // 8
        values = {"mem": Mem.UOP, "dram": moves.offset, "z": 1}
        self.builder.add(Op.LOAD, values, [self.scratch(Mem.UOP, 0, loaded), self._dram_of("moves")])
        target = self.find("result").offset
        for low in (False, True):
            for bank in range(self.config.acc_banks):
                if low:
                    self._keep_low_bytes(bank)
                self._pass(bank * self.config.acc_bank_depth, self.bank_entries, 0)
                target = self._store_out(target)
        self._store_inp()

    def find(self, name: str) -> Section:
        """Section of a name."""
        return next(section for section in self.sections if section.name == name)

    def bank(self, bank: int) -> Access:
        """A whole accumulator bank."""
        size = self.config.acc_bank_depth
        return Access(Mem.ACC, bank * size, (bank + 1) * size, True, exclusive=True)

    def scratch(self, mem: Mem, begin: int, entries: int) -> Access:
        """Entries that an instruction writes."""
        if mem is Mem.ACC:
            return self.bank(begin // self.config.acc_bank_depth)
        if mem in (Mem.TAB, Mem.COF):
            return self.whole(mem, True)
        return Access(mem, begin, begin + entries, True)

    def whole(self, mem: Mem, writes: bool) -> Access:
        """All tables, or all coefficients: none is read while any of them is written."""
        return Access(mem, 0, self.entries[mem], writes)

    def _lay_out(self) -> None:
        c, rng = self.config, self.rng
        n = self.entries[Mem.UOP]
        uops = encode_uops(
            [rng.randrange(UOP_DST) for _ in range(n)],
            [rng.choice(self.sources) for _ in range(n)],
            [rng.choice(self.weights) for _ in range(n)],
            [rng.randrange(2) for _ in range(n)],
        )
        moves = encode_uops(0, 0, [0, 1, 0, 0], [0, 1, 0, 0])
        weights = self.entries[Mem.WGT] * c.wgt_bytes
        inp = self.entries[Mem.INP] * c.inp_bytes
        data = max(inp, c.acc_banks * self.bank_entries * c.acc_bytes, 2048)
        prm = self._parameters()
        self._section("uops", SectionKind.UOPS, len(uops), uops.tobytes())
        self._section("moves", SectionKind.UOPS, len(moves), moves.tobytes())
        self._section("prm", SectionKind.CONSTANTS, len(prm), prm)
        self._section("weights", SectionKind.WEIGHTS, weights, random_bytes(rng.randrange(1 << 30), weights))
        tables = max(2048, c.tab_depth * TABLE_RECORD_BYTES)
        self._section("tables", SectionKind.CONSTANTS, tables, random_bytes(rng.randrange(1 << 30), tables))
        coefficients = self._coefficients()
        self._section("coefficients", SectionKind.CONSTANTS, len(coefficients), coefficients)
        self._section("input", SectionKind.INPUT, data, random_bytes(rng.randrange(1 << 30), data))
        self._section("middle", SectionKind.OUTPUT, 2048, None)
        self._section("result", SectionKind.OUTPUT, 2 * c.acc_banks * self._bank_out_bytes(), None)
        self._section("inp", SectionKind.OUTPUT, len(self._inp_chunks()) * self._bank_out_bytes(), None)

    def _parameters(self) -> bytes:
        c, rng = self.config, self.rng
        lanes = self.entries[Mem.PRM] * c.block_out
        bound = 1 << c.multiplier_bits
        return encode_prm(
            [rng.choice([rng.randrange(-1000, 1000), rng.randrange(-(1 << 31), 1 << 31)]) for _ in range(lanes)],
            [rng.choice([1, -1, rng.randrange(-bound, bound), bound - 1, -bound]) for _ in range(lanes)],
            [rng.choice([0, 1, rng.randrange(c.multiplier_bits), rng.randrange(63)]) for _ in range(lanes)],
            [rng.randrange(-128, 128) for _ in range(lanes)],
            [rng.randrange(-128, 128) for _ in range(lanes)],
            c.multiplier_bits,
        ).tobytes()

    def _coefficients(self) -> bytes:
        """Gains and biases of any size; a softmax reads them as exponentials."""
        rng, records = self.rng, max(self.config.cof_depth * self.config.row_lanes, 4)
        gains = [rng.choice([rng.randrange(-(1 << 15), 1 << 15), rng.randrange(2000)]) for _ in range(records)]
        biases = [rng.choice([0, rng.randrange(-(1 << 31), 1 << 31), rng.randrange(1 << 16)]) for _ in range(records)]
        return encode_cof(gains, biases).tobytes()

    def _section(self, name: str, kind: SectionKind, size: int, data: bytes | None) -> None:
        begin = self.sections[-1].end if self.sections else 0
        size = align(size, 32)
        stored = None if data is None else data.ljust(size, b"\0")
        self.sections.append(Section(name, kind, align(begin, 32), size, stored))

    def _bank_out_bytes(self) -> int:
        """Bytes of one bank's working entries as int8."""
        return align(self.bank_entries * self.config.out_bytes, self.config.granule_bytes)

    def _load_all(self, mem: Mem, begin: int, entries: int, dram: int) -> None:
        size = entries * element_bytes(self.config, mem)
        values = {"mem": mem, "dram": dram, "sram": begin, "z": size // self.config.granule_bytes}
        self.builder.add(Op.LOAD, values, [Access(DRAM, dram, dram + size, False), self.scratch(mem, begin, entries)])

    def _keep_low_bytes(self, bank: int) -> None:
        for op, imm in ((AluOp.MUL, 1 << 24), (AluOp.SHR, 24)):
            values = {"alu_op": op, "use_imm": 1, "imm": imm, "rounding": Rounding.FLOOR}
            values |= {"uop_begin": _ZERO_UOP, "uop_end": _ZERO_UOP + 1}
            values |= {"iter_in": self.bank_entries, "dst_in": 1, "dst_base": bank * self.config.acc_bank_depth}
            uop = Access(Mem.UOP, _ZERO_UOP, _ZERO_UOP + 1, False)
            self.builder.add(Op.ALU, values, [self.bank(bank), uop])

    def _pass(self, acc: int, count: int, out: int) -> None:
        values = {"form": Form.PASS, "clip_lo": -128, "clip_hi": 127, "iter_in": count, "acc_in": 1, "dst_in": 1}
        values |= {"acc_base": acc, "dst_base": out}
        bank = self.bank(acc // self.config.acc_bank_depth)
        self.builder.add(Op.REQUANT, values, [bank, Access(Mem.OUT, out, out + count, True)])

    def _store_out(self, target: int) -> int:
        """Store as much of OUT as a bank fills; returns the next offset."""
        size = self._bank_out_bytes()
        values = {"mem": Mem.OUT, "dram": target, "z": size // self.config.granule_bytes}
        reads = Access(Mem.OUT, 0, size // self.config.out_bytes, False)
        self.builder.add(Op.STORE, values, [reads, Access(DRAM, target, target + size, True)])
        return target + size

    def _inp_chunks(self) -> list[tuple[int, int]]:
        """First part and output blocks of what one pass of the epilogue takes from the input."""
        c = self.config
        step, parts = self.bank_entries * c.block_parts, self.entries[Mem.INP] * c.entry_parts
        return [(begin, min(step, parts - begin) // c.block_parts) for begin in range(0, parts, step)]

    def _store_inp(self) -> None:
        c, target = self.config, self.find("inp").offset
        for begin, count in self._inp_chunks():
            values = {"mode": GemmMode.MAX, "overwrite": 1, "uop_begin": _MOVE_UOP, "uop_end": _MOVE_UOP + 1}
            values |= {"iter_in": count, "acc_in": 1, "inp_in": c.block_parts, "inp_base": begin}
            uop = Access(Mem.UOP, _MOVE_UOP, _MOVE_UOP + 1, False)
            end = begin + count * c.block_parts
            inp = Access(Mem.INP, begin // c.entry_parts, -(-end // c.entry_parts), False)
            self.builder.add(Op.GEMM, values, [uop, inp, self.bank(0)])
            self._pass(0, count, 0)
            target = self._store_out(target)

    def _dram_of(self, name: str) -> Access:
        section = self.find(name)
        return Access(DRAM, section.offset, section.end, False)
