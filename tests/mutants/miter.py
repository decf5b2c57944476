"""Two circuits side by side as one that says whether their outputs differ: And-inverter graphs in the AIGER format.

In: what yosys writes of two forms of a module, as text with a map of names. Out: a binary file with one output, which
is high in a cycle in which an output of the two differs, if all that is assumed of the first held until then.

The first cycle, in which a module is reset (`rst_ni` is low), does not count. Both get the same inputs. Registers begin
with what yosys says, or with anything; those of both that have a name in common begin alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

# In front of the name of an output of the first circuit that says when the one with the rest of its name counts.
COUNTS = "counts_"
# A signal's name and the number of its bit.
Bit = tuple[str, int]
# What is low in the first cycle of every run.
RESET: Bit = ("rst_ni", 0)


@dataclass(frozen=True, slots=True)
class Register:
    """What it holds, what it takes over, with what it begins (its own literal: with anything), and its names."""

    here: int
    follows: int
    begins: int
    names: frozenset[Bit]


@dataclass(frozen=True, slots=True)
class Circuit:
    """Literals of a file: twice a node, one more where it is inverted."""

    inputs: dict[Bit, int]
    outputs: dict[Bit, int]
    registers: tuple[Register, ...]
    ands: tuple[tuple[int, int, int], ...]
    assumed: tuple[int, ...]


def read_circuit(graph: Path, names: Path) -> Circuit:
    """A circuit out of a file and its map; outputs that are inputs have no name there. Raises ValueError."""
    lines = graph.read_text().splitlines()
    head = [*map(int, lines[0].split()[1:]), 0, 0][:7]
    rows = iter([tuple(map(int, line.split())) for line in lines[1 : 1 + sum(head[1:])]])
    inputs, latches, outputs, ands, bad, assumed = (
        [next(rows) for _ in range(length)] for length in (*head[1:4], 0, *head[5:7])
    )
    ands = [next(rows) for _ in range(head[4])]
    if bad or any(len(row) > 2 and row[2] == 1 for row in latches):
        raise ValueError("a circuit must have no assertions, nor registers that begin with 1")
    of: dict[str, dict[int, list[Bit]]] = {"input": {}, "output": {}, "latch": {}}
    for line in names.read_text().splitlines():
        kind, at, bit, name = line.split(maxsplit=3)
        of[kind].setdefault(int(at), []).append((name, int(bit)))
    unnamed = (("", number) for number in count())
    return Circuit(
        {of["input"][at][0]: row[0] for at, row in enumerate(inputs)},
        {name: row[0] for at, row in enumerate(outputs) for name in of["output"].get(at) or [next(unnamed)]},
        tuple(
            Register(row[0], row[1], row[2] if len(row) > 2 else 0, frozenset(of["latch"].get(at, ())))
            for at, row in enumerate(latches)
        ),
        tuple(sorted((row[0], row[1], row[2]) for row in ands)),
        tuple(row[0] for row in assumed),
    )


@dataclass(slots=True)
class _Graph:
    """A graph that grows; equal nodes are one."""

    inputs: list[int] = field(default_factory=list)
    registers: list[tuple[int, int]] = field(default_factory=list)
    ands: dict[tuple[int, int], int] = field(default_factory=dict)
    size: int = 1

    def node(self) -> int:
        self.size += 1
        return 2 * (self.size - 1)

    def both(self, a: int, b: int) -> int:
        a, b = min(a, b), max(a, b)
        if a == 0 or a == b ^ 1:
            return 0
        if a in (1, b):
            return b
        if (a, b) not in self.ands:
            self.ands[a, b] = self.node()
        return self.ands[a, b]

    def either(self, a: int, b: int) -> int:
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differ(self, a: int, b: int) -> int:
        return self.either(self.both(a, b ^ 1), self.both(a ^ 1, b))

    def binary(self, output: int) -> bytes:
        """The graph as a file: inputs come first, then registers, then what is computed."""
        order = [*self.inputs, *(here for here, _ in self.registers), *self.ands.values()]
        new = {0: 0} | {old: 2 * at for at, old in enumerate(order, 1)}
        lines = [f"aig {len(order)} {len(self.inputs)} {len(self.registers)} 1 {len(self.ands)}"]
        lines += [str(new[follows & ~1] ^ follows & 1) for _, follows in self.registers]
        data = bytearray("\n".join([*lines, str(new[output & ~1] ^ output & 1), ""]).encode())
        for (a, b), here in self.ands.items():
            low, high = sorted((new[a & ~1] ^ a & 1, new[b & ~1] ^ b & 1))
            for number in (new[here] - high, high - low):
                data.extend(_packed(number))
        return bytes(data)


def _packed(number: int) -> Iterator[int]:
    while number > 127:
        yield number & 127 | 128
        number >>= 7
    yield number


class _Side:
    """One of the circuits in the graph: where its literals are there."""

    def __init__(self, graph: _Graph, circuit: Circuit, ports: dict[Bit, int]) -> None:
        self._graph, self._circuit = graph, circuit
        self._of = {0: 0} | {literal: ports[name] for name, literal in circuit.inputs.items()}
        self._here: list[int] = []

    def add(self, runs: int, begins: Callable[[Register], int]) -> None:
        """Its nodes. `runs` is low in the first cycle, `begins` what a register holds then if that is anything."""
        graph = self._graph
        for register in self._circuit.registers:
            here = graph.node()
            self._here.append(here)
            if register.begins == register.here:
                here = graph.either(graph.both(runs, here), graph.both(runs ^ 1, begins(register)))
            self._of[register.here] = here
        for node, a, b in self._circuit.ands:
            self._of[node] = graph.both(self.at(a), self.at(b))
        follows = (self.at(register.follows) for register in self._circuit.registers)
        graph.registers += zip(self._here, follows, strict=True)

    def at(self, literal: int) -> int:
        """Where a literal of the circuit is in the graph."""
        return self._of[literal & ~1] ^ literal & 1


def miter(first: Circuit, second: Circuit) -> bytes:
    """One circuit of two whose outputs have the same names. Raises ValueError."""
    compared = {name for name in first.outputs if not name[0].startswith(COUNTS)}
    if compared != second.outputs.keys():
        raise ValueError("both circuits must have the same outputs")
    graph = _Graph()
    runs = graph.node()
    graph.registers.append((runs, 1))
    inputs = {name: graph.node() for name in first.inputs | second.inputs}
    # Not as an assumption, which does not tell what the registers are from the second cycle on.
    ports = {name: graph.both(runs, node) if name == RESET else node for name, node in inputs.items()}
    named = {name: register for register in first.registers for name in register.names}
    free: dict[Register, int] = {}

    def begins(register: Register) -> int:
        twin = next((named[name] for name in sorted(register.names) if name in named), register)
        if twin not in free:
            free[twin] = graph.node()
        return free[twin]

    sides = [_Side(graph, circuit, ports) for circuit in (first, second)]
    for side in sides:
        side.add(runs, begins)
    graph.inputs += [*inputs.values(), *free.values()]
    one, other = sides
    wrong, holds = 0, 1
    for name, literal in second.outputs.items():
        differs = graph.differ(one.at(first.outputs[name]), other.at(literal))
        counts = one.at(first.outputs.get((COUNTS + name[0], 0), 1))
        wrong = graph.either(wrong, graph.both(differs, counts))
    for literal in first.assumed:
        holds = graph.both(holds, one.at(literal))
    failed = graph.node()
    holds = graph.both(holds, failed ^ 1)
    graph.registers.append((failed, holds ^ 1))
    return graph.binary(graph.both(graph.both(wrong, holds), runs))
