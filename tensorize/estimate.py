"""How long a finished program takes, roughly: units as clocks, tokens as times, the standard memory model.

In: instructions with tokens in program order. Out: cycles. It ranks schedules; the cycle simulator knows the truth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accel.isa.config import INSTRUCTION_BYTES, SEMAPHORES, AccelConfig
from accel.isa.spec import BY_OP, Dst, Form, Mem, Op, Unit
from tensorize.cost import output_interval
from tensorize.geometry import LATENCY
from tensorize.nest import gather_beats, gather_cycles, image_beats

# Cycles from launch to the first dispatch beside the memory's latency, and from a command's start to its first effect.
_START = 13
_DECODE = 3
_DRAIN = {Unit.LOAD: 4, Unit.COMPUTE: 8, Unit.OUTPUT: 8, Unit.STORE: 4}

# Instructions before and behind a load whose results show how busy the write side of INP is meanwhile.
_NEAR = 24

# Instructions that the buffer of fetched ones holds, and those of one request.
_BUFFER, _GROUP = 32, 8

Values = Mapping[str, int]


@dataclass(slots=True)
class _Clocks:
    """When each unit can begin its next instruction, when its queue has room, and the times of waiting tokens."""

    free: dict[Unit, int] = field(default_factory=lambda: dict.fromkeys(Unit, 0))
    done: dict[Unit, int] = field(default_factory=lambda: dict.fromkeys(Unit, 0))
    starts: dict[Unit, deque[int]] = field(default_factory=lambda: {unit: deque[int]() for unit in Unit})
    tokens: list[deque[int]] = field(default_factory=lambda: [deque[int]() for _ in range(SEMAPHORES)])
    # When the last bursts are over, as many as may be in flight.
    flying: deque[int] = field(default_factory=deque[int])
    # Times at which instructions were asked for, group by group: they take the place of loads on the bus.
    asked: deque[int] = field(default_factory=deque[int])


def estimate_cycles(instructions: Sequence[tuple[Op, Values]], config: AccelConfig) -> int:
    """Cycles from launch to done. Instructions must be in an order that their tokens allow."""
    return max((end for _, end in timeline(instructions, config)), default=0) + _DRAIN[Unit.STORE]


def timeline(instructions: Sequence[tuple[Op, Values]], config: AccelConfig) -> list[tuple[int, int]]:
    """Estimated start and end of each instruction.

    A second pass knows when instructions are asked for, and how often loads into INP stand still while results are
    written there.
    """
    spans, asked = _pass(instructions, config, [0.0] * len(instructions), ())
    return _pass(instructions, config, _write_shares(instructions, spans), asked)[0]


def _write_shares(instructions: Sequence[tuple[Op, Values]], spans: Sequence[tuple[int, int]]) -> list[float]:
    """For each instruction the share of the cycles around it in which results are written to INP."""
    if not any(op is Op.REQUANT and v["dst"] == Dst.INP for op, v in instructions):
        return [0.0] * len(instructions)
    written = [0]
    for op, v in instructions:
        into = op is Op.REQUANT and v["dst"] == Dst.INP
        written.append(written[-1] + (v["iter_out"] * v["iter_in"] if into else 0))
    shares: list[float] = []
    for index in range(len(spans)):
        begin, end = max(index - _NEAR, 0), min(index + _NEAR, len(spans))
        first, last = min(span[0] for span in spans[begin:end]), max(span[1] for span in spans[begin:end])
        shares.append(min((written[end] - written[begin]) / max(last - first, 1), 0.9))
    return shares


def _pass(
    instructions: Sequence[tuple[Op, Values]], config: AccelConfig, shares: Sequence[float], asked: Iterable[int]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Spans, and the times at which groups of instructions are asked for."""
    clocks = _Clocks(asked=deque(asked))
    beats = INSTRUCTION_BYTES // config.bus_bytes
    dispatched = arrived = _START + LATENCY
    left: list[int] = []
    spans: list[tuple[int, int]] = []
    for index, (op, values) in enumerate(instructions):
        unit = BY_OP[op].unit
        if unit is None:
            break
        if index >= _BUFFER and index % _GROUP == 0:
            arrived = max(arrived, left[index - _BUFFER + _GROUP - 1] + LATENCY + _DECODE)
        arrived += beats
        starts = clocks.starts[unit]
        room = starts.popleft() if len(starts) >= config.queue_depth else 0
        dispatched = max(dispatched + 1, arrived, room)
        left.append(dispatched)
        spans.append(_run(clocks, unit, op, values, dispatched, shares[index], config))
    return spans, left[_GROUP - 1 : len(left) + _GROUP - _BUFFER : _GROUP]


def _run(
    clocks: _Clocks, unit: Unit, op: Op, v: Values, dispatched: int, share: float, config: AccelConfig
) -> tuple[int, int]:
    """`share`: of the cycles in which INP is written by the output stage."""
    start = max(dispatched + 1, clocks.free[unit])
    for semaphore in _bits(v.get("wait", 0)):
        start = max(start, clocks.tokens[semaphore].popleft() + 1)
    clocks.starts[unit].append(start)
    match op:
        case Op.LOAD:
            bursts, cycles = _transfer(v, config, config.read_outstanding)
            first = _first_beat(clocks, start, bursts, config)
            cycles += _padding(v, config)
            if v["mem"] == Mem.INP:
                cycles = round(cycles / (1 - share))
            end = max(first + cycles, clocks.done[unit] + 1)
            _fly(clocks, first, end, bursts, config)
        case Op.GATHER:
            fetched = gather_beats(config, v)[0] * config.bus_bytes
            row = {"z": fetched // config.granule_bytes, "y": v["y"], "x": 1, "y_stride": v["y_stride"], "x_stride": 0}
            bursts, arriving = _transfer(row, config, config.read_outstanding)
            first = _first_beat(clocks, start, bursts, config)
            end = first + max(arriving, round(gather_cycles(config, v) / (1 - share)))
            _fly(clocks, first, end, bursts, config)
        case Op.STORE:
            bursts, cycles = _transfer(v, config, config.write_outstanding)
            clocks.free[unit] = start + _DECODE + cycles
            alone = image_beats(config, v) if bursts <= config.write_outstanding else cycles
            end = start + _DECODE + alone + LATENCY + 2
        case _:
            clocks.free[unit] = start + _work(op, v, config)
            end = clocks.free[unit] + _DRAIN[unit]
    clocks.done[unit] = end
    for semaphore in _bits(v.get("set", 0)):
        clocks.tokens[semaphore].append(end)
    return start, end


def _first_beat(clocks: _Clocks, start: int, bursts: int, config: AccelConfig) -> int:
    """When a load's data can come; the unit is free once its last burst is accepted.

    Only so many bursts are in flight, and instructions that are asked for before come first on a busy bus.
    """
    before, limit = clocks.flying, config.read_outstanding
    wait = len(before) - limit
    accepted = max(start + 1, before[wait] + 1 if wait >= 0 else 0)
    last = wait + min(bursts, limit) - 1
    clocks.free[Unit.LOAD] = max(accepted + max(bursts, 2) - 1, before[last] + 1 if last >= 0 else 0)
    fetched = 0
    while clocks.asked and clocks.asked[0] <= clocks.free[Unit.LOAD]:
        clocks.asked.popleft()
        fetched += _GROUP * INSTRUCTION_BYTES // config.bus_bytes
    return max(accepted + LATENCY + _DECODE - 1, clocks.done[Unit.LOAD] + fetched)


def _fly(clocks: _Clocks, first: int, end: int, bursts: int, config: AccelConfig) -> None:
    """Note when the load's last bursts are over."""
    limit = config.read_outstanding
    for number in range(max(bursts - limit, 0), bursts):
        clocks.flying.append(first + (end - first) * (number + 1) // bursts)
    while len(clocks.flying) > limit:
        clocks.flying.popleft()


def _bits(mask: int) -> list[int]:
    return [number for number in range(SEMAPHORES) if mask >> number & 1]


def _work(op: Op, v: Values, config: AccelConfig) -> int:
    trips = v["iter_out"] * v["iter_in"]
    match op:
        case Op.GEMM:
            return trips * (v["uop_end"] - v["uop_begin"])
        case Op.ALU:
            return trips * (v["uop_end"] - v["uop_begin"]) * (1 if v.get("use_imm") else 2)
        case _:
            interval = output_interval(config)
            return trips * (max(2, 2 * interval) if v["form"] == Form.ADD else interval)


def _transfer(v: Values, config: AccelConfig, outstanding: int) -> tuple[int, int]:
    """Bursts and bus cycles; runs that follow each other without a gap make longer bursts."""
    run, rows, cols = v["z"] * config.granule_bytes, v["y"], v["x"]
    if cols == 1 or v["x_stride"] == run:
        run, cols = run * cols, 1
        if rows == 1 or v["y_stride"] == run:
            run, rows = run * rows, 1
    longest = config.burst_beats * config.bus_bytes
    bursts = rows * cols * -(-run // longest)
    beats = rows * cols * run // config.bus_bytes
    return bursts, max(beats, bursts * LATENCY // outstanding)


def _padding(v: Values, config: AccelConfig) -> int:
    rows = v.get("y_pad_0", 0) + v["y"] + v.get("y_pad_1", 0)
    cols = v.get("x_pad_0", 0) + v["x"] + v.get("x_pad_1", 0)
    return (rows * cols - v["y"] * v["x"]) * v["z"] * config.granule_bytes // config.bus_bytes
