"""Runs a program: instructions go to three queues, whose modules wait for one another by tokens.

In: words in DRAM order, a state. Out: the state, and counts of what was done. Raises SimulationError where nothing can
go on, naming what each module waits for.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import assert_never

from relay_hw.vta.geometry import Buffer
from relay_hw.vta.isa import Alu, Finish, Flags, Gemm, Insn, Memory, Op, Queue, Words, decode, queue_of, show
from relay_hw.vta.sim.arith import alu, gemm
from relay_hw.vta.sim.choices import Choices
from relay_hw.vta.sim.memory import load, store
from relay_hw.vta.sim.state import SimulationError, State

# Instructions that a queue holds before fetching waits.
QUEUE_DEPTH: Final = 512
# A queue of tokens, by giver and taker.
Link = tuple[Queue, Queue]


def links(queue: Queue, flags: Flags) -> tuple[list[Link], list[Link]]:
    """Where an instruction takes tokens from, and where it gives them to. Raises SimulationError at the ends."""
    takes = [(Queue(queue + step), queue) for step, flag in _steps(queue, flags.pop_prev, flags.pop_next) if flag]
    gives = [(queue, Queue(queue + step)) for step, flag in _steps(queue, flags.push_prev, flags.push_next) if flag]
    return takes, gives


def _steps(queue: Queue, prev: bool, following: bool) -> tuple[tuple[int, bool], ...]:
    if (prev and queue is Queue.LOAD) or (following and queue is Queue.STORE):
        raise SimulationError(f"the flags of the {queue.name.lower()} module must be those of a neighbour that it has")
    return ((-1, prev), (1, following))


def run(words: Words, state: State, choices: Choices) -> Mapping[str, int]:
    """Run a program to its FINISH."""
    program = decode(words, state.geometry)
    if not program or not isinstance(program[-1], Finish) or any(isinstance(one, Finish) for one in program[:-1]):
        raise SimulationError("a program must end in its one FINISH")
    counts: Counter[str] = Counter(instructions=len(program))
    if choices.in_order:
        for insn in program:
            execute(state, insn, choices, counts)
        return counts
    _Modules(program, choices).run(state, counts)
    return counts


class _Modules:
    """Three queues and four links."""

    def __init__(self, program: Sequence[Insn], choices: Choices) -> None:
        self._rest = deque(program)
        self._queues: dict[Queue, deque[Insn]] = {queue: deque() for queue in Queue}
        self._tokens: Counter[Link] = Counter()
        self._choices = choices

    def run(self, state: State, counts: Counter[str]) -> None:
        """Give each module its turn until FINISH."""
        while True:
            self._fetch()
            moved = False
            for queue in self._choices.first:
                while self._queues[queue] and self._may(queue):
                    insn, moved = self._step(queue, state, counts), True
                    if isinstance(insn, Finish):
                        return self._end()
            if not moved:
                raise SimulationError(f"the program must go on: {self._waits()}")

    def _fetch(self) -> None:
        while self._rest and len(self._queues[queue_of(self._rest[0])]) < QUEUE_DEPTH:
            insn = self._rest.popleft()
            self._queues[queue_of(insn)].append(insn)

    def _may(self, queue: Queue) -> bool:
        takes, gives = links(queue, self._queues[queue][0].flags)
        full = not self._choices.loses_tokens
        waits = full and any(self._tokens[link] >= self._choices.most_tokens for link in gives)
        return not waits and all(self._tokens[link] for link in takes)

    def _step(self, queue: Queue, state: State, counts: Counter[str]) -> Insn:
        insn = self._queues[queue].popleft()
        takes, gives = links(queue, insn.flags)
        self._tokens.subtract(takes)
        execute(state, insn, self._choices, counts)
        for link in gives:
            self._tokens[link] = min(self._tokens[link] + 1, self._choices.most_tokens)
        return insn

    def _end(self) -> None:
        """What FINISH leaves behind would be there when the next program begins."""
        left = sum(map(len, self._queues.values())) + len(self._rest)
        if left or any(self._tokens.values()):
            tokens = sum(self._tokens.values())
            raise SimulationError(f"FINISH must leave nothing behind, not {left} instructions and {tokens} tokens")

    def _waits(self) -> str:
        fronts = [f"{queue.name.lower()} at {show(items[0])}" for queue, items in self._queues.items() if items]
        return "; ".join(fronts) or "there is no FINISH"


def execute(state: State, insn: Insn, choices: Choices, counts: Counter[str]) -> None:
    """The effect of one instruction."""
    counts[f"{insn.op.name.lower()}_instructions"] += 1
    match insn:
        case Memory(op=Op.STORE):
            store(state, insn, choices)
            counts["store_bytes"] += insn.y_size * insn.x_size * state.geometry.entry_bytes(Buffer.OUT)
        case Memory():
            load(state, insn, choices)
            entry = state.geometry.entry_bytes(insn.memory_type)
            rows = 1 if insn.memory_type is Buffer.UOP else insn.y_size
            counts[f"{insn.memory_type.name.lower()}_bytes"] += rows * insn.x_size * entry
        case Gemm():
            gemm(state, insn)
            counts["reset_uops" if insn.reset else "gemm_uops"] += uop_count(insn)
        case Alu():
            alu(state, insn, choices)
            counts["alu_uops"] += uop_count(insn)
        case Finish():
            pass
        case _:
            assert_never(insn)


def uop_count(insn: Gemm | Alu) -> int:
    """Micro-ops that an instruction executes."""
    loops = insn.loops
    return max(loops.uop_end - loops.uop_bgn, 0) * loops.iter_out * loops.iter_in
