"""Writes a flat ECP5 netlist as the tables of words that `switching/netlist_model.h` reads.

In: a module of yosys's JSON. Out: `Tables`. Cells and settings that the model does not know are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from relay_hw.accel.fpga.parts import BLOCK_RAM, MULTIPLIER, FlowError

Cell = Mapping[str, Any]
Bit = int | str

LUT, CARRY, LUT_MEMORY, FLIP_FLOP = "LUT4", "CCU2C", "TRELLIS_DPR16X4", "TRELLIS_FF"
# In the order of their tables; the first four compute, and the model knows them by their place.
KINDS: Final = (LUT, CARRY, LUT_MEMORY, MULTIPLIER, FLIP_FLOP, BLOCK_RAM)
_COMPUTING: Final = 4
# Nets beside those of the netlist: always 0, always 1, what nobody reads.
_LOW, _HIGH, _SINK = 0, 1, 2
_CLOCK_PINS: Final = ("CLK", "WCK", "CLKA", "CLKB", "CLK0", "CLK1", "CLK2", "CLK3")
_MODES: Final = {"NORMAL": 0, "WRITETHROUGH": 1, "READBEFOREWRITE": 2}
_PAIRED: Final = 36
PORTS: Final = "AB"


@dataclass(frozen=True, slots=True)
class Tables:
    """A netlist as words for the simulator.

    `words`: the netlist; `nets`: its nets in the model's order, from the fourth on; `inputs` and `outputs`: by port
    the places of its bits; `cells`: by kind, in the order of their tables.
    """

    words: tuple[int, ...]
    nets: tuple[int, ...]
    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    cells: Mapping[str, tuple[Cell, ...]]

    @property
    def first(self) -> int:
        """Place of the first net of the netlist."""
        return _SINK + 1


def tables(module: Mapping[str, Any]) -> Tables:
    """The tables of a module. Raises FlowError for what the model does not know."""
    cells: dict[str, list[Cell]] = {kind: [] for kind in KINDS}
    for name, cell in module["cells"].items():
        if cell["type"] in cells:
            cells[cell["type"]].append(cell)
        elif not cell["type"].startswith("$"):
            raise FlowError(f"cell {name} must be one of {', '.join(KINDS)}, not {cell['type']}")
    _check_clock(cells)
    bits = sorted({bit for bit in _bits(module, cells) if isinstance(bit, int)})
    place = {bit: k for k, bit in enumerate(bits, _SINK + 1)}
    words = [len(bits) + _SINK + 1]
    for kind in KINDS:
        words.append(len(cells[kind]))
        for cell in cells[kind]:
            words += _WRITERS[kind](_Pins(cell, place))
    order = _order(cells)
    ports = {way: _ports(module, way, place) for way in ("input", "output")}
    return Tables(
        words=(*words, len(order), *order),
        nets=tuple(bits),
        inputs=ports["input"],
        outputs=ports["output"],
        cells={kind: tuple(found) for kind, found in cells.items()},
    )


def clock_pins(cell: Cell) -> Iterator[Bit]:
    """Nets at the pins of a cell that a clock drives."""
    for pin in _CLOCK_PINS:
        for bit in cell["connections"].get(pin, ()):
            if isinstance(bit, int):
                yield bit


@dataclass(frozen=True, slots=True)
class _Pins:
    """A cell with the places of nets in the model."""

    source: Cell
    place: Mapping[int, int]

    def read(self, *names: str) -> list[int]:
        """Places of nets that the cell reads; what nobody drives is 0."""
        return [self._read(bit) for name in names for bit in self.source["connections"].get(name, ["0"])]

    def driven(self, *names: str) -> list[int]:
        """Places of nets that the cell drives."""
        bits = (bit for name in names for bit in self.source["connections"].get(name, ["x"]))
        return [self.place[bit] if isinstance(bit, int) else _SINK for bit in bits]

    def setting(self, name: str, usual: str) -> str:
        """A parameter as text."""
        return str(self.source["parameters"].get(name, usual)).strip()

    def number(self, name: str) -> int:
        """A parameter of bits; those that do not matter are 0."""
        return int(self.setting(name, "0").replace("x", "0") or "0", 2)

    def expect(self, name: str, *allowed: str) -> str:
        """A parameter that must be one of these, the first where it is not given. Raises FlowError."""
        found = self.setting(name, allowed[0])
        if found not in allowed:
            raise FlowError(f"{self.source['type']} {name} must be {' or '.join(allowed)}, not {found}")
        return found

    def _read(self, bit: Bit) -> int:
        return self.place[bit] if isinstance(bit, int) else _HIGH if bit == "1" else _LOW


def _lut(pins: _Pins) -> list[int]:
    return [*pins.read(*"ABCD"), *pins.driven("Z"), pins.number("INIT")]


def _carry(pins: _Pins) -> list[int]:
    inputs = pins.read("CIN", *(f"{name}{k}" for k in range(2) for name in "ABCD"))
    alone = [int(pins.expect(f"INJECT1_{k}", "YES", "NO") == "YES") for k in range(2)]
    return [*inputs, *pins.driven("S0", "S1", "COUT"), pins.number("INIT0"), pins.number("INIT1"), *alone]


def _lut_memory(pins: _Pins) -> list[int]:
    pins.expect("WCKMUX", "WCK")
    if pins.number("INITVAL"):
        raise FlowError(f"{LUT_MEMORY} INITVAL must be 0, not other words")
    inverted = int(pins.expect("WREMUX", "WRE", "INV") == "INV")
    return [*pins.read("WAD", "DI", "WRE", "RAD"), *pins.driven("DO"), inverted]


def _multiplier(pins: _Pins) -> list[int]:
    for name in ("REG_PIPELINE_CLK", "REG_OUTPUT_CLK"):
        pins.expect(name, "NONE")
    pins.expect("RESETMODE", "SYNC")
    words: list[int] = []
    for operand in "AB":
        has_register = pins.setting(f"REG_INPUT{operand}_CLK", "NONE") != "NONE"
        control = [pins.setting(f"REG_INPUT{operand}_{what}", f"{what}0") for what in ("CE", "RST")]
        words += pins.read(*(f"{operand}{k}" for k in range(18)), *control)
        words += [int(has_register), int(pins.read(f"SIGNED{operand}") == [_HIGH])]
    return [*words, *pins.driven(*(f"P{k}" for k in range(36)))]


def _flip_flop(pins: _Pins) -> list[int]:
    pins.expect("CLKMUX", "CLK")
    mode = pins.expect("SRMODE", "LSR_OVER_CE", "CE_OVER_LSR", "ASYNC")
    enable = pins.expect("CEMUX", "1", "CE", "INV", "0")
    inverts = pins.expect("LSRMUX", "LSR", "INV") == "INV"
    (reset,) = pins.read("LSR")
    if mode == "ASYNC" and reset != (_HIGH if inverts else _LOW):
        raise FlowError(f"{FLIP_FLOP} SRMODE must be LSR_OVER_CE or CE_OVER_LSR where it has a reset, not ASYNC")
    (enabled,) = pins.read("CE") if enable in ("CE", "INV") else [int(enable)]
    flags = (enable == "INV", inverts, mode == "CE_OVER_LSR", pins.setting("REGSET", "RESET") == "SET")
    return [*pins.read("DI"), enabled, reset, *pins.driven("Q"), sum(flag << k for k, flag in enumerate(flags))]


def _ram(pins: _Pins) -> list[int]:
    for port in PORTS:
        pins.expect(f"REGMODE_{port}", "NOREG")
        pins.expect(f"CSDECODE_{port}", "0b000")
        pins.expect(f"CLK{port}MUX", f"CLK{port}")
        if pins.setting("RESETMODE", "SYNC") == "ASYNC" and pins.read(f"RST{port}") != [_LOW]:
            raise FlowError(f"{BLOCK_RAM} RESETMODE must be SYNC where a port has a reset, not ASYNC")
    if any(pins.number(name) for name in pins.source["parameters"] if name.startswith("INITVAL")):
        raise FlowError(f"{BLOCK_RAM} INITVAL must be 0, not other words")
    return [word for port in PORTS for word in _ram_port(pins, port)]


def _ram_port(pins: _Pins, port: str) -> list[int]:
    """A port; the two of a memory of 36 bits share their pins, the first writes and the second reads."""
    paired = pins.number("DATA_WIDTH_B") == _PAIRED
    outputs = [f"DO{way}{k}" for way in (PORTS if paired else port) for k in range(18)]
    inputs = [f"DI{way}{k}" for way in (PORTS if paired else port) for k in range(18)]
    driven = pins.driven(*outputs) if port == "B" or not paired else []
    width, mode = pins.number(f"DATA_WIDTH_{port}"), pins.setting(f"WRITEMODE_{port}", "NORMAL")
    is_read = any(net != _SINK for net in driven[:width])
    write = [_LOW] if paired and port == "B" else pins.read(f"WE{port}")
    return [
        *(width, int(bool(driven)), int(is_read), _MODES[mode]),
        *(*pins.read(f"CE{port}"), *write, *pins.read(f"RST{port}")),
        *pins.read(*(f"AD{port}{k}" for k in range(14))),
        *_padded(pins.read(*inputs), _LOW),
        *_padded(driven, _SINK),
    ]


def _padded(nets: list[int], empty: int) -> list[int]:
    return nets + [empty] * (_PAIRED - len(nets))


_WRITERS: Final[Mapping[str, Callable[[_Pins], list[int]]]] = {
    LUT: _lut,
    CARRY: _carry,
    LUT_MEMORY: _lut_memory,
    MULTIPLIER: _multiplier,
    FLIP_FLOP: _flip_flop,
    BLOCK_RAM: _ram,
}


def _check_clock(cells: Mapping[str, Sequence[Cell]]) -> None:
    clocks = {bit for found in cells.values() for cell in found for bit in clock_pins(cell)}
    if len(clocks) > 1:
        raise FlowError(f"a netlist must have one clock to be counted, not {len(clocks)}")


def _bits(module: Mapping[str, Any], cells: Mapping[str, Sequence[Cell]]) -> Iterator[Bit]:
    for port in module["ports"].values():
        yield from port["bits"]
    for found in cells.values():
        for cell in found:
            for bits in cell["connections"].values():
                yield from bits


def _ports(module: Mapping[str, Any], way: str, place: Mapping[int, int]) -> dict[str, tuple[int, ...]]:
    fixed = {"0": _LOW, "1": _HIGH, "x": _LOW}
    return {
        name: tuple(place[bit] if isinstance(bit, int) else fixed[bit] for bit in port["bits"])
        for name, port in module["ports"].items()
        if port["direction"] == way
    }


def _order(cells: Mapping[str, Sequence[Cell]]) -> list[int]:
    """Cells that compute, each behind those that it reads, those of a kind side by side. Raises FlowError for loops."""
    places = [(kind, k) for kind in KINDS[:_COMPUTING] for k in range(len(cells[kind]))]
    drivers: dict[Bit, int] = {
        bit: number
        for number, (kind, k) in enumerate(places)
        for pin, bits in cells[kind][k]["connections"].items()
        if cells[kind][k]["port_directions"][pin] == "output"
        for bit in bits
        if isinstance(bit, int)
    }
    reads = {number: _read_at_once(cells[kind][k], drivers) for number, (kind, k) in enumerate(places)}
    sorter = TopologicalSorter(reads)
    try:
        sorter.prepare()
    except CycleError:
        raise FlowError("a netlist must have registers in each of its loops, not LUTs alone") from None
    order: list[int] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += [KINDS.index(places[number][0]) << 28 | places[number][1] for number in ready]
        sorter.done(*ready)
    return order


def _read_at_once(cell: Cell, drivers: Mapping[Bit, int]) -> set[int]:
    """Cells whose outputs decide those of a cell before the next edge."""
    return {
        drivers[bit]
        for pin, bits in cell["connections"].items()
        if cell["port_directions"][pin] != "output" and _is_at_once(cell, pin)
        for bit in bits
        if bit in drivers
    }


def _is_at_once(cell: Cell, pin: str) -> bool:
    if cell["type"] == LUT_MEMORY:
        return pin == "RAD"
    if cell["type"] == MULTIPLIER and pin[0] in PORTS and pin[1:].isdigit():
        return str(cell["parameters"].get(f"REG_INPUT{pin[0]}_CLK", "NONE")).strip() == "NONE"
    return cell["type"] in (LUT, CARRY)
