"""A second, naive meaning of programs: pure Python integers, one lane at a time, bit positions written out by hand.

In: a configuration, instruction words and the window's bytes. Out: the window's bytes after the run, or a fault's name
and index. It shares nothing with `relay_hw.accel.isa.semantics` or the field table, so that each can catch the
other's mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_hw.accel.isa.config import AccelConfig
from tests.accel.isa.oracle_rows import SOFTMAX, RowFields, Seen, norm_row, softmax_row

LOAD, STORE, GEMM, ALU, REQUANT, FINISH, GATHER, ROW = 1, 2, 3, 4, 5, 6, 7, 8
UNIT = {LOAD: "load", GATHER: "load", STORE: "store", GEMM: "compute", ALU: "compute", REQUANT: "output", ROW: "row"}
INP, WGT, ACC, OUT, UOP, PRM, TAB, COF = range(8)
HALF_UP, HALF_EVEN, HALF_AWAY, FLOOR = range(4)


class OracleFault(Exception):
    def __init__(self, name: str, index: int) -> None:
        super().__init__(f"{name} at {index}")
        self.name = name
        self.index = index


class OracleDeadlock(Exception):
    pass


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def rounded(value: int, shift: int, rounding: int) -> int:
    """value / 2**shift as an exact fraction, rounded."""
    divisor = 1 << shift
    floor, rest = divmod(value, divisor)
    if rounding == FLOOR or 2 * rest < divisor:
        return floor
    if 2 * rest > divisor or rounding == HALF_UP:
        return floor + 1
    if rounding == HALF_EVEN:
        return floor + (floor & 1)
    return floor + 1 if value > 0 else floor


@dataclass
class Word:
    """One 256-bit instruction."""

    bits: int

    def at(self, word: int, lo: int = 0, width: int = 16) -> int:
        return (self.bits >> (32 * word + lo)) & ((1 << width) - 1)


class Oracle:
    """Runs a program on `window`, a bytearray that it changes in place."""

    def __init__(self, config: AccelConfig, window: bytearray) -> None:
        c = self.config = config
        self.window = window
        self.size = {
            INP: c.block_in * c.wgt_bits // 8,
            WGT: c.block_in * c.block_out * c.wgt_bits // 8,
            ACC: 4 * c.block_out,
            OUT: c.block_out,
            UOP: 8,
            PRM: 16 * c.block_out,
            TAB: 8,
            COF: 2 * c.block_out,
        }
        self.depth = {
            INP: c.inp_depth,
            WGT: c.wgt_depth,
            ACC: c.acc_depth,
            OUT: c.out_depth,
            UOP: c.uop_depth,
            PRM: c.prm_depth,
            TAB: 128 * c.tables,
            COF: c.cof_depth,
        }
        self.mem = {m: bytearray(self.size[m] * self.depth[m]) for m in self.size}
        self.bus = c.axi_data_bits // 8
        self.nibble = 0
        self.granule = max(16, self.bus)
        self.line = max(self.granule, self.size[INP], c.block_out)

    def run(self, offset: int, count: int) -> None:
        """Execute until FINISH: always the oldest instruction that may start. Units keep their own order.

        A queue holds `queue_depth` instructions; the first that does not fit holds up all behind it.
        """
        tokens = [0] * 16
        queues: dict[str, list[tuple[int, Word]]] = {unit: [] for unit in UNIT.values()}
        program: list[tuple[int, Word]] = []
        for index in range(count):
            word = Word(int.from_bytes(self.window[offset + 32 * index : offset + 32 * index + 32], "little"))
            if word.at(0, 0, 8) == FINISH:
                break
            program.append((index, word))
        while program or any(queues.values()):
            while program and len(queues[UNIT[program[0][1].at(0, 0, 8)]]) < self.config.queue_depth:
                queues[UNIT[program[0][1].at(0, 0, 8)]].append(program.pop(0))
            ready = [
                queue[0] + (queue,)
                for queue in queues.values()
                if queue and all(tokens[s] for s in range(16) if queue[0][1].at(1) >> s & 1)
            ]
            if not ready:
                raise OracleDeadlock
            index, word, queue = min(ready, key=lambda item: item[0])
            queue.pop(0)
            for s in range(16):
                tokens[s] -= word.at(1) >> s & 1
            self.execute(index, word)
            for s in range(16):
                tokens[s] += word.at(1, 16) >> s & 1
                if tokens[s] > 255:
                    raise OracleFault("TOKEN_OVERFLOW", index)

    def execute(self, index: int, word: Word) -> None:
        match word.at(0, 0, 8):
            case 1 | 2:
                self.transfer(index, word, word.at(0, 0, 8) == LOAD)
            case 3:
                self.gemm(index, word)
            case 4:
                self.alu(index, word)
            case 5:
                self.requant(index, word)
            case 7:
                self.gather(index, word)
            case 8:
                self.row(index, word, Seen())

    def entry(self, index: int, mem: int, number: int) -> int:
        """First byte of an entry."""
        if number >= self.depth[mem]:
            raise OracleFault("SRAM_RANGE", index)
        return number * self.size[mem]

    def lane(self, index: int, mem: int, number: int, lane: int, width: int) -> int:
        begin = self.entry(index, mem, number) + lane * width
        return int.from_bytes(self.mem[mem][begin : begin + width], "little", signed=True)

    def put(self, index: int, mem: int, number: int, values: list[int], width: int) -> None:
        begin = self.entry(index, mem, number)
        data = b"".join((v & ((1 << 8 * width) - 1)).to_bytes(width, "little") for v in values)
        self.mem[mem][begin : begin + len(data)] = data

    def transfer(self, index: int, w: Word, is_load: bool) -> None:
        mem, expand, pad, pitch = w.at(0, 8, 4), w.at(0, 12, 1), w.at(0, 13, 8), w.at(0, 21, 11)
        dram, sram, z, y, x = w.at(2, 0, 32), w.at(3), w.at(3, 16), w.at(4), w.at(4, 16)
        y_stride, x_stride = w.at(5, 0, 32), w.at(6, 0, 32)
        y0, y1, x0, x1 = (w.at(7, lo, 8) for lo in (0, 8, 16, 24)) if is_load else (0, 0, 0, 0)
        pitch = pitch if is_load else 0
        if (is_load and (mem == OUT or (expand and mem not in (ACC, WGT)))) or (not is_load and mem != OUT):
            raise OracleFault("ILLEGAL_FIELD", index)
        if dram % self.granule or y_stride % self.granule or x_stride % self.granule:
            raise OracleFault("ILLEGAL_FIELD", index)
        if pitch and mem == WGT:
            self.multiplied(index, w, expand == 1 and pitch == 1 and (y, x, y0, y1, x0, x1) == (1, 1, 0, 0, 0, 0))
            return
        widen = (2 if mem == WGT else 4) if is_load and expand else 1
        run = z * self.granule
        begin = sram * self.size[mem]
        if begin % (self.bus * widen):
            raise OracleFault("ILLEGAL_FIELD", index)
        if pitch:
            if mem != INP or run % self.line or begin % self.line:
                raise OracleFault("ILLEGAL_FIELD", index)
            planes, number = run // self.line, (y0 + y + y1) * (x0 + x + x1)
            if begin // self.line + 4 * pitch * (planes - 1) + number > len(self.mem[INP]) // self.line:
                raise OracleFault("SRAM_RANGE", index)
        elif begin + (y0 + y + y1) * (x0 + x + x1) * run * widen > len(self.mem[mem]):
            raise OracleFault("SRAM_RANGE", index)
        for row in range(-y0, y + y1):
            for column in range(-x0, x + x1):
                inside = 0 <= row < y and 0 <= column < x
                source = dram + row * y_stride + column * x_stride
                if inside and source + run > len(self.window):
                    raise OracleFault("DRAM_RANGE", index)
                if not is_load:
                    self.window[source : source + run] = self.mem[mem][begin : begin + run]
                    begin += run
                    continue
                data = self.window[source : source + run] if inside else bytes([pad]) * run
                if pitch:
                    for plane in range(run // self.line):
                        at = begin + 4 * pitch * plane * self.line
                        self.mem[INP][at : at + self.line] = data[plane * self.line : (plane + 1) * self.line]
                    begin += self.line
                    continue
                if expand and mem == WGT:
                    data = self.widened(data)
                elif expand:
                    data = b"".join(signed(b, 8).to_bytes(4, "little", signed=True) for b in data)
                self.mem[mem][begin : begin + len(data)] = data
                begin += len(data)

    def multiplied(self, index: int, w: Word, legal: bool) -> None:
        """A run of weights of half the bits, each times a factor; a granule of factors is for so many lanes."""
        bits, lanes = self.config.wgt_bits, self.config.block_in * self.config.wgt_bits // 8
        weights, each = 2 * 8 * self.granule // bits * w.at(3, 16), 2 * self.granule * lanes
        begin = w.at(3) * self.size[WGT]
        if not legal or self.size[WGT] < 2 * self.granule or begin % (2 * self.bus):
            raise OracleFault("ILLEGAL_FIELD", index)
        if begin + weights * bits // 8 > len(self.mem[WGT]):
            raise OracleFault("SRAM_RANGE", index)
        at, factors, number = w.at(2, 0, 32), [], 0
        for weight in range(weights):
            if weight % each == 0:
                factors = self.fields(index, at, self.granule, 4)
                at += self.granule
            if weight % (8 * self.granule * 2 // bits) == 0:
                values = self.fields(index, at, self.granule, bits // 2)
                at += self.granule
            product = signed(values.pop(0), bits // 2) * (1 + factors[weight % each // lanes])
            number |= (product & ((1 << bits) - 1)) << weight * bits
        self.mem[WGT][begin : begin + weights * bits // 8] = number.to_bytes(weights * bits // 8, "little")

    def fields(self, index: int, at: int, count: int, bits: int) -> list[int]:
        """Fields of `bits` bits of bytes of the window, the lowest first."""
        if at + count > len(self.window):
            raise OracleFault("DRAM_RANGE", index)
        number = int.from_bytes(self.window[at : at + count], "little")
        return [number >> place & ((1 << bits) - 1) for place in range(0, 8 * count, bits)]

    def widened(self, data: bytes | bytearray) -> bytes:
        """Weights of half the bits of those in WGT, with their signs."""
        bits = self.config.wgt_bits
        half = bits // 2
        number = int.from_bytes(data, "little")
        total = 0
        for place in range(8 * len(data) // half):
            total |= (signed(number >> place * half, half) & ((1 << bits) - 1)) << place * bits
        return total.to_bytes(2 * len(data), "little")

    def gather(self, index: int, w: Word) -> None:
        y0, pad, y1 = w.at(0, 8, 8), w.at(0, 16, 8), w.at(0, 24, 8)
        dram, sram, pitch, x_step = w.at(2, 0, 32), w.at(3), w.at(3, 16, 8), w.at(3, 24, 8)
        y, x, y_stride = w.at(4), w.at(4, 16), w.at(5, 0, 32)
        row_bytes, left, run, lane = w.at(6), signed(w.at(6, 16), 16), w.at(7), w.at(7, 16)
        vector = pitch * self.size[INP]
        begin = sram * self.size[INP]
        if dram % self.granule or y_stride % self.granule or begin % self.bus or vector % self.bus:
            raise OracleFault("ILLEGAL_FIELD", index)
        if row_bytes > 4096 or lane + run > vector:
            raise OracleFault("ILLEGAL_FIELD", index)
        if begin + (y0 + y + y1) * x * vector > len(self.mem[INP]):
            raise OracleFault("SRAM_RANGE", index)
        fetched = (row_bytes + self.granule - 1) // self.granule * self.granule
        for row in range(y):
            if dram + row * y_stride + fetched > len(self.window):
                raise OracleFault("DRAM_RANGE", index)
        for row in range(-y0, y + y1):
            for column in range(x):
                for number in range(run):
                    at = column * x_step - left + number
                    inside = 0 <= row < y and 0 <= at < row_bytes
                    byte = self.window[dram + row * y_stride + at] if inside else pad
                    self.mem[INP][begin + lane + number] = byte
                begin += vector

    def uops(self, index: int, w: Word) -> list[tuple[int, int, int, int]]:
        begin, end = w.at(3), w.at(3, 16)
        if not begin < end <= self.config.uop_depth:
            raise OracleFault("SRAM_RANGE", index)
        words = [int.from_bytes(self.mem[UOP][8 * n : 8 * n + 8], "little") for n in range(begin, end)]
        return [(u & 0xFFFF, u >> 16 & 0xFFFF, u >> 32 & 0xFFFF, u >> 48 & 1) for u in words]

    def gemm(self, index: int, w: Word) -> None:
        c = self.config
        overwrite, mode, nibble, wgt_base = w.at(0, 8, 1), w.at(0, 9, 2), w.at(0, 11, 2), w.at(0, 16)
        acc_base, inp_base = w.at(7), w.at(7, 16)
        if mode == 2 and (wgt_base or w.at(6, 0, 32) or nibble):
            raise OracleFault("ILLEGAL_FIELD", index)
        if nibble > (0 if c.wgt_bits == 8 else 2):
            raise OracleFault("ILLEGAL_FIELD", index)
        self.nibble = nibble
        for o in range(w.at(2)):
            for i in range(w.at(2, 16)):
                for dst, src, wgt, first in self.uops(index, w):
                    a = (acc_base + o * w.at(4) + i * w.at(4, 16) + dst) & 0xFFFF
                    n = (inp_base + o * w.at(5) + i * w.at(5, 16) + src) & 0xFFFF
                    k = (wgt_base + o * w.at(6) + i * w.at(6, 16) + wgt) & 0xFFFF
                    self.entry(index, ACC, a)
                    sums: list[int] = []
                    if mode in (1, 2):
                        old = None if overwrite and first else a
                        taps = self.taps(index, n, k) if mode == 1 else self.maxima(index, n, k)
                        for lane, value in enumerate(taps):
                            before = self.lane(index, ACC, a, lane, 4) if old is not None else None
                            if before is not None:
                                value = value + before if mode == 1 else max(value, before)
                            sums.append(value)
                        self.put(index, ACC, a, sums, 4)
                        continue
                    for lane in range(c.block_out):
                        total = 0 if overwrite and first else self.lane(index, ACC, a, lane, 4)
                        for j in range(c.block_in if mode == 0 else self.size[INP]):
                            x = self.lane(index, INP, n + j // self.size[INP], j % self.size[INP], 1)
                            total += x * self.weight(index, k, lane * c.block_in + j)
                        sums.append(total)
                    self.put(index, ACC, a, sums, 4)

    def weight(self, index: int, k: int, number: int) -> int:
        """Weight `number` of entry k: a byte, or half of one, the low half first."""
        if self.config.wgt_bits == 8:
            return self.lane(index, WGT, k, number, 1)
        half = self.mem[WGT][self.entry(index, WGT, k) + number // 2] >> 4 * (number % 2) & 15
        return (signed(half, 4), half, 16 * signed(half, 4))[self.nibble]

    def tap_byte(self, index: int, n: int, tap: int, lane: int) -> int:
        """Channel `lane` of the output block at INP part n, `tap` lines further on."""
        at = self.block_at(index, n) + tap * self.line + lane
        if at - at % self.line >= len(self.mem[INP]):
            raise OracleFault("SRAM_RANGE", index)
        return signed(self.mem[INP][at], 8)

    def block_at(self, index: int, n: int) -> int:
        """Byte of INP where the output block at part n begins; a part is an entry or, if that is less, a block."""
        begin = n * min(self.size[INP], self.config.block_out)
        if begin % self.config.block_out:
            raise OracleFault("SRAM_RANGE", index)
        return begin

    def taps(self, index: int, n: int, k: int) -> list[int]:
        groups = self.config.block_in // 4
        lanes: list[int] = []
        for lane in range(self.config.block_out):
            total = 0
            for tap in range(4):
                where = lane * self.config.block_in + 4 * (k % groups) + tap
                total += self.tap_byte(index, n, tap, lane) * self.weight(index, k // groups, where)
            lanes.append(total)
        return lanes

    def maxima(self, index: int, n: int, mask: int) -> list[int]:
        if not 1 <= mask <= 15:
            raise OracleFault("SRAM_RANGE", index)
        used = [tap for tap in range(4) if mask >> tap & 1]
        return [max(self.tap_byte(index, n, tap, lane) for tap in used) for lane in range(self.config.block_out)]

    def alu(self, index: int, w: Word) -> None:
        op, use_imm, rounding = w.at(0, 8, 4), w.at(0, 12, 1), w.at(0, 13, 2)
        imm, dst_base, src_base = signed(w.at(6, 0, 32), 32), w.at(7), w.at(7, 16)
        if op == 6 and not use_imm:
            raise OracleFault("ILLEGAL_FIELD", index)
        for o in range(w.at(2)):
            for i in range(w.at(2, 16)):
                for dst, src, _, _ in self.uops(index, w):
                    d = (dst_base + o * w.at(4) + i * w.at(4, 16) + dst) & 0xFFFF
                    s = (src_base + o * w.at(5) + i * w.at(5, 16) + src) & 0xFFFF
                    lanes: list[int] = []
                    for lane in range(self.config.block_out):
                        a = self.lane(index, ACC, d, lane, 4)
                        b = imm if use_imm else self.lane(index, ACC, s, lane, 4)
                        low, high = signed(b >> 16, 16), signed(b, 16)
                        match op:
                            case 0:
                                lanes.append(b)
                            case 1:
                                lanes.append(a + b)
                            case 2:
                                lanes.append(a * b)
                            case 3:
                                lanes.append(a if a < b else b)
                            case 4:
                                lanes.append(a if a > b else b)
                            case 5:
                                lanes.append(rounded(a, b & 31, rounding))
                            case _:
                                a = high if a > high else a
                                lanes.append(low if a < low else a)
                    self.put(index, ACC, d, lanes, 4)

    def requant(self, index: int, w: Word) -> None:
        low, high = signed(w.at(7, 0, 8), 8), signed(w.at(7, 8, 8), 8)
        still, table = w.at(0, 14, 1), w.at(7, 16, 8)
        if low > high or table > self.config.tables:
            raise OracleFault("ILLEGAL_FIELD", index)
        target = (OUT, ACC, INP)[w.at(0, 10, 2)]
        for o in range(w.at(2)):
            for i in range(w.at(2, 16)):
                step = o * w.at(5) + i * w.at(5, 16)
                y = (w.at(3) + step) & 0xFFFF
                r = (w.at(4) + (o if still else step)) & 0xFFFF
                d = (w.at(3, 16) + o * w.at(6) + i * w.at(6, 16)) & 0xFFFF
                p = (w.at(4, 16) + o * w.at(0, 24, 8)) & 0xFFFF
                lanes = [self.requant_lane(index, w, y, r, p, lane) for lane in range(self.config.block_out)]
                clipped = [low if v < low else high if v > high else v for v in lanes]
                if table:
                    clipped = [self.looked_up(table - 1, v + 128) for v in clipped]
                if target == INP:
                    self.put_block(index, d, clipped)
                else:
                    self.put(index, target, d, clipped, 4 if target == ACC else 1)

    def looked_up(self, table: int, place: int) -> int:
        """Two results lie in the first bytes of each record."""
        return signed(self.mem[TAB][8 * (128 * table + place // 2) + place % 2], 8)

    def put_block(self, index: int, n: int, lanes: list[int]) -> None:
        begin = self.block_at(index, n)
        if begin >= len(self.mem[INP]):
            raise OracleFault("SRAM_RANGE", index)
        self.mem[INP][begin : begin + len(lanes)] = bytes(lane & 0xFF for lane in lanes)

    def requant_lane(self, index: int, w: Word, y: int, r: int, p: int, lane: int) -> int:
        form, rounding, zero_point = w.at(0, 8, 2), w.at(0, 12, 2), signed(w.at(0, 16, 8), 8)
        value = self.lane(index, ACC, y, lane, 4)
        if form == 2:
            return signed(value + zero_point, 32)
        bits = self.config.multiplier_bits + 1
        begin = self.entry(index, PRM, p) + 16 * lane
        record = int.from_bytes(self.mem[PRM][begin : begin + 16], "little")
        bias, multiplier = signed(record, 32), signed(record >> 32, bits)
        shift = min(record >> 64 & 0xFF, 62)
        if form == 0:
            product = signed(value + bias, 32) * multiplier
        else:
            other = signed(self.lane(index, ACC, r, lane, 4) - signed(record >> 80, 8), 9)
            scaled = signed(value - signed(record >> 72, 8), 9) * multiplier
            product = scaled + other * signed(bias, bits) if form == 1 else signed(scaled, 32) * other
        return rounded(product, shift, rounding) + zero_point

    def row(self, index: int, w: Word, seen: Seen) -> None:
        lanes, kind, shift = self.config.block_out, w.at(0, 8, 2), signed(w.at(5, 24, 7), 7)
        rows, columns, cof_base = w.at(2), w.at(2, 16), w.at(3, 16)
        if not self.config.cof_depth:
            raise OracleFault("ILLEGAL_OPCODE", index)
        if not (-15 <= shift <= 15 if kind == SOFTMAX else 0 <= shift <= 40):
            raise OracleFault("ILLEGAL_FIELD", index)
        count = -(-columns // lanes)
        bounded = w.at(5, 17, 1)
        if cof_base + (256 + bounded if kind == SOFTMAX else 4 * count) > self.config.cof_depth:
            raise OracleFault("SRAM_RANGE", index)
        zero_point, inp_zero = signed(w.at(0, 16, 8), 8), signed(w.at(0, 24, 8), 8)
        epsilon = w.at(6, 0, 32) + (w.at(7) << 32)
        f = RowFields(kind, columns, zero_point, inp_zero, shift, epsilon, w.at(7, 16))
        places = [[(w.at(3) + r * w.at(4) + e * w.at(4, 16)) & 0xFFFF for e in range(count)] for r in range(rows)]
        for entries in places:
            for entry in entries:
                self.entry(index, ACC, entry)
        for r, entries in enumerate(places):
            elements = [signed(self.lane(index, ACC, entry, k, 4), 8) for entry in entries for k in range(lanes)]
            if kind == SOFTMAX:
                limit = w.at(5) + r * w.at(5, 16, 1)
                if bounded:
                    limit = min(limit, self.coefficient(cof_base + 256, 0)[0] & 0xFFFF)
                table = [[self.coefficient(cof_base + d, k)[0] & 0xFFFF for d in range(256)] for k in range(lanes // 4)]
                results = softmax_row(f, elements, table, limit, seen)
            else:
                at = [divmod(c, lanes // 4) for c in range(count * lanes)]
                gains, biases = zip(*(self.coefficient(cof_base + e, k) for e, k in at), strict=True)
                results = norm_row(f, elements, gains, biases, seen)
            for e, entry in enumerate(entries):
                self.put(index, ACC, entry, results[e * lanes : (e + 1) * lanes], 4)

    def coefficient(self, entry: int, lane: int) -> tuple[int, int]:
        """Gain and bias of a record."""
        begin = entry * self.size[COF] + 8 * lane
        record = int.from_bytes(self.mem[COF][begin : begin + 8], "little")
        return signed(record, 16), signed(record >> 32, 32)
