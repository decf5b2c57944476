"""The order in which the steps of all layers are written into the program.

In: steps layer by layer. Out: step numbers. Steps of neighbouring layers alternate where their weights fit together,
so that a layer starts on the rows that are ready while the one before it still computes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accel.isa.config import AccelConfig
from accel.isa.spec import Mem, Op
from tensorize.access import Space, touches
from tensorize.cost import STEP_CYCLES, output_interval
from tensorize.geometry import LATENCY
from tensorize.nest import Command, Key, Step, transfer_beats


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes [begin, end) of a tensor."""

    key: Key
    begin: int
    end: int

    def meets(self, other: Span) -> bool:
        """True where both have a byte in common."""
        return self.key == other.key and self.begin < other.end and other.begin < self.end


@dataclass(frozen=True, slots=True)
class Work:
    """Estimated cycles of one step on each unit, and the tensor bytes that it reads and writes."""

    compute: int
    output: int
    load: int
    store: int
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]


def work_of(step: Step, config: AccelConfig) -> Work:
    """Cycles and tensor ranges of a step; loads of constants are left out."""
    loads = [load for buffer in step.buffers for load in buffer.loads]
    cycles = {op: sum(command_cycles(c, config) for c in step.commands if c.op is op) for op in Op}
    return Work(
        compute=cycles[Op.GEMM] + cycles[Op.ALU],
        output=cycles[Op.REQUANT],
        load=sum(command_cycles(load, config) for load in loads),
        store=cycles[Op.STORE],
        reads=_spans(loads, config),
        writes=_spans([c for c in step.commands if c.op is Op.STORE], config),
    )


def command_cycles(command: Command, config: AccelConfig) -> int:
    """Cycles of a command whose unit never waits."""
    v = command.values
    match command.op:
        case Op.LOAD | Op.STORE:
            return transfer_beats(config, v)
        case Op.GEMM:
            return v["iter_out"] * v["iter_in"] * _uops(command)
        case Op.ALU:
            return v["iter_out"] * v["iter_in"] * _uops(command) * (1 if v.get("use_imm") else 2)
        case Op.REQUANT:
            return v["iter_out"] * v["iter_in"] * output_interval(config)
        case Op.FINISH:
            return 0


def _uops(command: Command) -> int:
    if command.uops:
        return len(command.uops)
    return command.refs["uop_end"].offset - command.refs["uop_begin"].offset


def _spans(commands: Sequence[Command], config: AccelConfig) -> tuple[Span, ...]:
    spans: list[Span] = []
    for command in commands:
        ref = command.refs["dram"]
        for touch in touches(command, config):
            if touch.space is Space.DRAM:
                spans.append(Span(ref.key, ref.offset + touch.begin, ref.offset + touch.end))
    return tuple(spans)


def sequential_order(steps: Sequence[Step]) -> tuple[int, ...]:
    """Layer after layer."""
    return tuple(range(len(steps)))


def interleaved_order(steps: Sequence[Step], config: AccelConfig) -> tuple[int, ...]:
    """List scheduling on estimated times: the step that can start first, and of those the deepest layer's."""
    planner = _Planner(steps, config)
    result: list[int] = []
    for group in layer_groups(steps, config):
        waiting = {layer: [n for n, step in enumerate(steps) if step.layer == layer] for layer in group}
        while any(waiting.values()):
            choices = [(planner.start(numbers[0]), -layer) for layer, numbers in waiting.items() if numbers]
            ready = [(start, layer) for start, layer in choices if start is not None]
            _, negative = min(ready)
            number = waiting[-negative].pop(0)
            planner.place(number)
            result.append(number)
    return tuple(result)


def layer_groups(steps: Sequence[Step], config: AccelConfig) -> tuple[tuple[int, ...], ...]:
    """Neighbouring layers whose constants fit the memories at the same time, leaving half for those that follow."""
    layers = sorted({step.layer for step in steps})
    sizes = {layer: _constants(steps, layer) for layer in layers}
    depths = {Mem.WGT: config.wgt_depth, Mem.PRM: config.prm_depth, Mem.UOP: config.uop_depth}
    if all(sum(sizes[layer][mem] for layer in layers) <= depth for mem, depth in depths.items()):
        return (tuple(layers),)
    groups: list[list[int]] = []
    for layer in layers:
        together = [*groups[-1], layer] if groups else []
        fits = all(sum(sizes[n][mem] for n in together) <= depth // 2 for mem, depth in depths.items())
        if together and fits:
            groups[-1].append(layer)
        else:
            groups.append([layer])
    return tuple(tuple(group) for group in groups)


def _constants(steps: Sequence[Step], layer: int) -> dict[Mem, int]:
    """Entries of each memory that the layer's constants take together."""
    sizes: dict[Key, tuple[Mem, int]] = {}
    for step in steps:
        if step.layer == layer:
            sizes |= {b.key: (b.mem, b.entries) for b in step.buffers if b.data is not None}
    return {mem: sum(size for m, size in sizes.values() if m is mem) for mem in Mem}


class _Planner:
    """Clocks of the units while steps are placed one after the other."""

    def __init__(self, steps: Sequence[Step], config: AccelConfig) -> None:
        self._work = [work_of(step, config) for step in steps]
        self._producers = [self._find_producers(number) for number in range(len(steps))]
        self._stored: dict[int, int] = {}
        self._load = self._compute = self._output = self._store = 0

    def _find_producers(self, number: int) -> tuple[int, ...]:
        reads = self._work[number].reads
        return tuple(
            other
            for other in range(number)
            if any(write.meets(read) for write in self._work[other].writes for read in reads)
        )

    def _ready(self, number: int) -> int | None:
        """When the step's input has arrived, or None while a step that writes it is not placed."""
        if any(other not in self._stored for other in self._producers[number]):
            return None
        stored = max((self._stored[other] for other in self._producers[number]), default=0)
        return max(self._load, stored) + LATENCY + self._work[number].load

    def start(self, number: int) -> int | None:
        """When the step could start to compute."""
        ready = self._ready(number)
        return None if ready is None else max(self._compute, ready)

    def place(self, number: int) -> None:
        """Append the step to the plan."""
        work, ready = self._work[number], self._ready(number)
        assert ready is not None
        start = max(self._compute, ready)
        # LOAD is in order: it stands still until the rows that this step reads are stored.
        self._load = ready - LATENCY
        self._compute = start + work.compute + STEP_CYCLES // 2
        self._output = max(self._output, self._compute) + work.output
        self._store = max(self._store, self._output) + work.store
        self._stored[number] = self._store + LATENCY
