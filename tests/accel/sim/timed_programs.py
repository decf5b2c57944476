"""Random programs that stress timing: bursts of every shape, padding, queues that fill, tokens, holds between units.

They are legal on every configuration and never meet in an accumulator bank: COMPUTE keeps to the first quarter of the
accumulator, ROW to the second, OUTPUT to the third, LOAD to the fourth. Of COMPUTE and ROW only one is in a program
where they share a bank, and of OUTPUT and LOAD only one writes. One bank is that of COMPUTE or ROW or of the other two.
ROW reads what coefficients LOAD is about to write. Micro-ops are alike, whatever the data are, and so legal
in every mode of GEMM: the mask of MAX is one tap, the weights are of entry 1 at most.
"""

from __future__ import annotations

import numpy as np

from relay_hw.accel.isa.config import EXPONENTIALS, ROW_QUARTERS, SEMAPHORES, TAPS, UOP_BYTES, AccelConfig
from relay_hw.accel.isa.program import Program, Section, SectionKind, WindowPlan
from relay_hw.accel.isa.records import encode_uops
from relay_hw.accel.isa.rules import row_coefficients
from relay_hw.accel.isa.spec import Dst, GemmMode, Mem, Op, RowKind, Unit
from relay_hw.accel.isa.stream import Instr

# Windows regions: what LOAD reads, what STORE writes, micro-ops, program.
REGION = 1 << 16
UOPS = 2 * REGION
CODE = 3 * REGION
WINDOW = 4 * REGION
# Micro-ops that instructions use, and the semaphore by which COMPUTE waits until they are there.
USED_UOPS = 20
READY = 15


class ProgramMaker:
    """One random program from a generator. `shared`: several units may wait for one semaphore, so it may deadlock."""

    def __init__(self, config: AccelConfig, rng: np.random.Generator, shared: bool = False) -> None:
        self._config = config
        self._rng = rng
        self._shared = shared
        self._tokens = [0] * SEMAPHORES
        self._writers = {Unit.LOAD, Unit.OUTPUT}
        if config.acc_banks < 4:
            self._writers.remove(Unit(self._one_of(Unit.LOAD, Unit.OUTPUT)))
        self._units = [unit for unit in Unit if config.cof_depth or unit is not Unit.ROW]
        if config.acc_banks < 4 and config.cof_depth:
            self._units.remove(Unit(self._one_of(Unit.COMPUTE, Unit.ROW)))
        if config.acc_banks == 1:
            first = Unit.COMPUTE if Unit.COMPUTE in self._units else Unit.ROW
            self._units.remove(Unit(self._one_of(first, Unit.OUTPUT)))
            if Unit.OUTPUT not in self._units:
                self._writers.clear()
        self._waiter = [self._one_of(*self._units) for _ in range(SEMAPHORES)]

    def program(self, instructions: int) -> Program:
        """`instructions` random ones and FINISH, at a random offset."""
        makers = {
            Unit.LOAD: self._load,
            Unit.COMPUTE: self._compute,
            Unit.OUTPUT: self._output,
            Unit.STORE: self._store,
            Unit.ROW: self._row,
        }
        granules = -(-USED_UOPS * UOP_BYTES // self._config.granule_bytes)
        listed: list[Instr] = [(Op.LOAD, {"mem": Mem.UOP, "dram": UOPS, "z": granules, "set": 1 << READY})]
        waiting = 1 << READY
        for _ in range(instructions):
            unit = Unit(self._one_of(*self._units))
            op, values = makers[unit]()
            tokens = self._dependencies(unit)
            if unit is Unit.COMPUTE:
                tokens["wait"] |= waiting
                waiting = 0
            listed.append((op, {**values, **tokens}))
        listed.append((Op.FINISH, {}))
        offset = CODE + 32 * self._number(0, 64)
        data = encode_uops(np.zeros(REGION // UOP_BYTES, np.int64), 0, 1).tobytes()
        uops = Section("uops", SectionKind.UOPS, UOPS, REGION, data)
        return Program.build(self._config, listed, WindowPlan([uops], window_bytes=WINDOW, program_offset=offset))

    def _number(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))

    def _one_of(self, *choices: int) -> int:
        return choices[self._number(0, len(choices) - 1)]

    def _chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def _dependencies(self, unit: int) -> dict[str, int]:
        """Take only tokens that instructions before give, so that program order always makes progress."""
        wait = give = 0
        for s in range(READY):
            mine = self._waiter[s] == unit or (self._shared and self._chance(0.5))
            if self._tokens[s] and mine and self._chance(0.6):
                wait |= 1 << s
                self._tokens[s] -= 1
        for s in range(READY):
            if self._tokens[s] < 100 and self._chance(0.12):
                give |= 1 << s
                self._tokens[s] += 1
        return {"wait": wait, "set": give}

    def _rectangle(self, granules: int, padding: bool) -> dict[str, int]:
        """Counts and strides of a transfer whose image has at most `granules` and whose source fits a region."""
        granule = self._config.granule_bytes
        while True:
            z = self._number(1, self._one_of(1, 4, 40, 300))
            y, x = (self._number(1, self._one_of(1, 3, 12)) for _ in range(2))
            y0, y1, x0, x1 = ((self._number(0, 3) if padding and self._chance(0.3) else 0) for _ in range(4))
            x_stride = z * granule if self._chance(0.5) else granule * self._number(0, 2 * z)
            y_stride = x_stride * x if self._chance(0.4) else granule * self._number(0, 60)
            size = (y - 1) * y_stride + (x - 1) * x_stride + z * granule
            if z * (x0 + x + x1) * (y0 + y + y1) <= granules and size <= REGION:
                break
        values = {"z": z, "y": y, "x": x, "y_stride": y_stride, "x_stride": x_stride}
        if padding:
            values |= {"y_pad_0": y0, "y_pad_1": y1, "x_pad_0": x0, "x_pad_1": x1, "pad_value": self._number(-128, 127)}
        return values | {"dram": granule * self._number(0, (REGION - size) // granule)}

    def _load(self) -> Instr:
        if self._chance(0.35):
            return self._gather()
        c = self._config
        mem = Mem(self._one_of(Mem.INP, Mem.INP, Mem.WGT, Mem.ACC, Mem.UOP, Mem.PRM, *[Mem.COF] * bool(c.cof_depth)))
        if mem is Mem.ACC and Unit.LOAD not in self._writers:
            mem = Mem.WGT
        if mem is Mem.INP and self._chance(0.3):
            return self._planes()
        if mem is Mem.WGT and c.factor_granules and self._chance(0.3):
            return self._factored()
        expand = int(mem is Mem.ACC and self._chance(0.5))
        sizes = {
            Mem.INP: c.inp_depth * c.inp_bytes,
            Mem.WGT: c.wgt_depth * c.wgt_bytes,
            Mem.ACC: c.acc_depth // 4 * c.acc_bytes // (4 if expand else 1),
            Mem.UOP: c.uop_depth * UOP_BYTES,
            Mem.PRM: c.prm_depth * c.prm_bytes,
            Mem.COF: c.cof_depth * c.cof_bytes,
        }
        values = self._rectangle(sizes[mem] // c.granule_bytes, padding=mem is not Mem.UOP)
        if mem is Mem.UOP:
            values |= {"dram": values["dram"] + UOPS}
        sram = c.acc_depth // 4 * 3 if mem is Mem.ACC else 0
        return Op.LOAD, {**values, "mem": mem, "expand": expand, "sram": sram}

    def _factored(self) -> Instr:
        """A LOAD of weights behind factors."""
        c = self._config
        most = min(c.wgt_depth * c.wgt_bytes // (2 * c.granule_bytes), REGION // c.granule_bytes * 3 // 4)
        z = self._number(1, min(most, self._one_of(1, 4, 40, 300)))
        size = (z + -(-z // c.factor_granules)) * c.granule_bytes
        values = {"z": z, "y": 1, "x": 1, "dram": c.granule_bytes * self._number(0, (REGION - size) // c.granule_bytes)}
        return Op.LOAD, {**values, "mem": Mem.WGT, "expand": 1, "pitch": 1}

    def _planes(self) -> Instr:
        """A LOAD with pitch: whole lines, planes that may overlap."""
        c = self._config
        line = c.line_bytes // c.granule_bytes
        while True:
            values = self._rectangle(c.inp_depth * c.inp_bytes // c.granule_bytes, padding=True)
            z = values["z"]
            runs = (values["y_pad_0"] + values["y"] + values["y_pad_1"]) * (
                values["x_pad_0"] + values["x"] + values["x_pad_1"]
            )
            pitch = self._number(1, max(1, c.inp_lines // TAPS // max(1, z // line)))
            if not z % line and TAPS * pitch * (z // line - 1) + runs <= c.inp_lines:
                return Op.LOAD, {**values, "mem": Mem.INP, "pitch": pitch}

    def _gather(self) -> Instr:
        c = self._config
        granule, beat = c.granule_bytes, max(1, c.bus_bytes // c.inp_bytes)
        while True:
            pitch = beat * self._number(1, 4)
            size = pitch * c.inp_bytes
            y, x = self._number(1, self._one_of(1, 5, 20)), self._number(1, self._one_of(1, 4, 30))
            y0, y1 = ((self._number(0, 3) if self._chance(0.3) else 0) for _ in range(2))
            row = self._number(1, self._one_of(8, 100, 700, 4096))
            stride = granule * (-(-row // granule) if self._chance(0.4) else self._number(0, 260))
            span = (y - 1) * stride + -(-row // granule) * granule
            if (y0 + y + y1) * x * pitch <= c.inp_depth and span <= REGION:
                break
        run = self._number(1, size)
        values = {"y": y, "x": x, "y_pad_0": y0, "y_pad_1": y1, "row_bytes": row, "y_stride": stride, "pitch": pitch}
        values |= {"run": run, "lane": self._number(0, size - run), "x_step": self._number(0, 20)}
        values |= {"left": self._number(-20, 20), "pad_value": self._number(-128, 127)}
        return Op.GATHER, {**values, "dram": granule * self._number(0, (REGION - span) // granule)}

    def _store(self) -> Instr:
        c = self._config
        values = self._rectangle(c.out_depth * c.out_bytes // c.granule_bytes, padding=False)
        return Op.STORE, {**values, "mem": Mem.OUT, "dram": values["dram"] + REGION}

    def _compute(self) -> Instr:
        begin = self._number(0, USED_UOPS - 10)
        loops = {"iter_out": self._number(1, 4), "iter_in": self._number(1, self._one_of(1, 4, 30))}
        values = {**loops, "uop_begin": begin, "uop_end": begin + self._number(1, 10)}
        if self._chance(0.5):
            mode = self._one_of(*GemmMode)
            return Op.GEMM, {**values, "acc_in": 1, "overwrite": self._number(0, 1), "mode": mode}
        return Op.ALU, {**values, "alu_op": self._number(0, 5), "use_imm": self._number(0, 1), "dst_in": 1}

    def _output(self) -> Instr:
        c = self._config
        base = c.acc_depth // 4 * 2
        dst = Dst(self._one_of(*Dst))
        if dst is Dst.ACC and Unit.OUTPUT not in self._writers:
            dst = Dst.OUT
        # Entries of INP come in parts of a vector.
        part = c.block_parts if dst is Dst.INP else 1
        values = {key: self._number(0, 2) for key in ("form", "acc_in", "acc_out")}
        values |= {key: part * self._number(0, 2) for key in ("dst_in", "dst_out")}
        values |= {"iter_out": self._number(1, 4), "iter_in": self._number(1, 8), "dst": dst}
        if dst is not Dst.ACC and self._chance(0.3):
            # Long enough for LOAD to meet it.
            values |= {"iter_in": self._number(8, 200), "acc_in": 0, "dst_in": 0}
        values |= {"acc_base": base + self._number(0, 4), "res_base": base + self._number(0, 6)}
        values |= {"dst_base": (base if dst is Dst.ACC else 0) + part * self._number(0, 6)}
        return Op.REQUANT, values | {"clip_lo": -5, "clip_hi": 100}

    def _row(self) -> Instr:
        c = self._config
        count = self._number(1, self._one_of(1, 8, min(40, c.acc_depth // 4, c.cof_depth // ROW_QUARTERS)))
        rows = self._number(1, min(self._one_of(1, 2, 6), c.acc_depth // 4 // count))
        kind = RowKind(self._one_of(*RowKind))
        values = {"kind": kind, "rows": rows, "columns": count * c.block_out - self._number(0, c.block_out - 1)}
        # Rows behind one another, or entry by entry in turn.
        steps = (count, 1) if self._chance(0.5) else (1, rows)
        values |= {"acc_base": c.acc_depth // 4, "row_step": steps[0], "entry_step": steps[1]}
        values |= {
            "visible": self._number(0, values["columns"]),
            "visible_step": self._number(0, 1),
            "multiplier": 40000,
        }
        if kind is RowKind.SOFTMAX and c.cof_depth > EXPONENTIALS:
            values["bounded"] = self._number(0, 1)
        values |= {"shift": self._number(0, 15), "cof_base": self._number(0, c.cof_depth - row_coefficients(c, values))}
        return Op.ROW, values


def timed_program(config: AccelConfig, seed: int) -> Program:
    """The program of a seed; every fourth shares semaphores between waiting units."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, (10, 40, 150)[seed % 3]))
    return ProgramMaker(config, rng, shared=seed % 4 == 3).program(length)
