"""Static timing analysis of a placed netlist before routing: delays of wires are estimated by their length.

In: a `Placed`. Out: arcs from driver to user, and the longest path through each of them.

One clock. Delays are nanoseconds that nextpnr reports for an ECP5 of speed grade 6, a wire's grows with the tiles that
it spans. Clocks take none, nor do wires that have but one way: in a carry chain, from a LUT to its own flip-flop, of a
memory's write side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from relay_hw.accel.fpga.place.placed import FLIP_FLOP, Net, Pin, Placed

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# ns of a wire and of each tile that it spans, less for those beyond the first NEAR of a direction: what a quarter of
# the 21,000 wires from flip-flops of a routed `ecp5` keep to, so what a wire takes that is routed with care.
WIRE: Final = 0.47
TILE: Final = 0.13
FAR_TILE: Final = 0.067
NEAR: Final = 5
# Tiles of the largest part, both ways.
SPAN: Final = 160
SETUP: Final = 0.2
_CLOCK_TO_Q: Final = 0.525
_THROUGH_LUT: Final = 0.236
_TO_CARRY: Final = 0.45
_CARRY: Final = 0.07
_FROM_CARRY: Final = 0.44
_BLOCK_RAM: Final = 5.6
_BLOCK_RAM_REGISTER: Final = 0.9
_MULTIPLIER: Final = 3.9
_MULTIPLIER_REGISTER: Final = 4.5
_PAD: Final = 0.6
_ELSE: Final = 0.2

_CLOCK_SOURCES: Final = ("DCCA", "EHXPLLL")
_WRITES: Final = ("WCK", "WRE", "WD", "WAD0", "WAD1", "WAD2", "WAD3")
# Of a choice between LUTs, whose output is OFX.
_CHOICE: Final = ("M", "F1", "FXA", "FXB")


def wire_delay(columns: int, rows: int) -> float:
    """Estimated delay of a wire in nanoseconds."""
    return WIRE + sum(TILE * min(span, NEAR) + FAR_TILE * max(span - NEAR, 0) for span in (columns, rows))


WIRE_DELAYS: Final = np.array([[wire_delay(columns, rows) for rows in range(SPAN)] for columns in range(SPAN)])


@dataclass(frozen=True, slots=True)
class Arcs:
    """Ways of a signal from a net's driver over a wire to a user and through it, one of each array's elements for one.

    `net`: whose wire; `leads`: the net that the user drives with it, -1 where the path ends; `delay`: of the user, or
    its setup; `start`, `end`: cells; `one_way`: the wire takes no time. `begins`: by net, when it arrives if it depends
    on no other, else 0. `levels`: arcs that lead on, by the depth of the net that they lead to.
    """

    net: Places
    leads: Places
    delay: Floats
    start: Places
    end: Places
    one_way: npt.NDArray[np.bool_]
    begins: Floats
    levels: tuple[Places, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """By net: `arrival` at its driver. By arc: `wire`, `beyond` it to the path's end, longest `path` through it. ns."""

    arrival: Floats
    wire: Floats
    beyond: Floats
    path: Floats


def read_arcs(placed: Placed) -> Arcs:
    """All arcs of a netlist, but those of clocks and constants."""
    nets = [net for net in placed.nets if _has_a_path(placed, net)]
    number = {(net.driver.cell, net.driver.port): place for place, net in enumerate(nets)}
    outputs: dict[int, list[str]] = {}
    for net in nets:
        outputs.setdefault(net.driver.cell, []).append(net.driver.port)
    rows: list[tuple[int, int, float, int, int, bool]] = []
    for place, net in enumerate(nets):
        start = net.driver.cell
        for user in net.users:
            one_way = placed.is_one_way(net.driver, user)
            if _ends(placed, user):
                rows.append((place, -1, SETUP, start, user.cell, one_way))
            for port in outputs.get(user.cell, ()):
                if _begins(placed, user.cell) is None and (through := _through(placed, user, port)) is not None:
                    rows.append((place, number[user.cell, port], through, start, user.cell, one_way))
    net, leads, delay, start, end, one_way = zip(*rows, strict=True) if rows else ((),) * 6
    begins = np.array([_begins(placed, net.driver.cell) or 0.0 for net in nets])
    whence, whither = np.array(net, dtype=np.int64), np.array(leads, dtype=np.int64)
    return Arcs(
        whence,
        whither,
        np.array(delay, dtype=np.float64),
        np.array(start, dtype=np.int64),
        np.array(end, dtype=np.int64),
        np.array(one_way, dtype=np.bool_),
        begins,
        _levels(len(nets), whence, whither),
    )


def analysed(arcs: Arcs, placed: Placed) -> Analysis:
    """Arrival at every driver, and the longest path through every arc."""
    x, y = np.array(placed.x), np.array(placed.y)
    columns, rows = np.abs(x[arcs.start] - x[arcs.end]), np.abs(y[arcs.start] - y[arcs.end])
    wire = np.where(arcs.one_way, 0.0, WIRE_DELAYS[columns, rows])
    step = wire + arcs.delay
    arrival = arcs.begins.copy()
    for chosen in arcs.levels:
        np.maximum.at(arrival, arcs.leads[chosen], arrival[arcs.net[chosen]] + step[chosen])
    rest = np.zeros(len(arrival))
    ends = np.flatnonzero(arcs.leads < 0)
    np.maximum.at(rest, arcs.net[ends], step[ends])
    for chosen in reversed(arcs.levels):
        np.maximum.at(rest, arcs.net[chosen], step[chosen] + rest[arcs.leads[chosen]])
    beyond = arcs.delay + np.where(arcs.leads < 0, 0.0, rest[arcs.leads])
    return Analysis(arrival, wire, beyond, arrival[arcs.net] + wire + beyond)


def _has_a_path(placed: Placed, net: Net) -> bool:
    """Whether a net is neither a clock nor a constant."""
    if placed.kind(net.driver.cell) in _CLOCK_SOURCES or placed.names[net.driver.cell].startswith("$PACKER"):
        return False
    return not any(user.port == "CLK" and placed.kind(user.cell) == FLIP_FLOP for user in net.users)


def _begins(placed: Placed, cell: int) -> float | None:
    """When what a cell drives arrives, if a clock decides that."""
    parameters = placed.cells[cell]["parameters"]
    match placed.kind(cell):
        case "TRELLIS_FF":
            return _CLOCK_TO_Q
        case "DP16KD":
            return _BLOCK_RAM_REGISTER if parameters.get("REGMODE_B") == "OUTREG" else _BLOCK_RAM
        case "MULT18X18D" if _is_registered(placed, cell):
            return _MULTIPLIER_REGISTER
        case "IOLOGIC" | "TRELLIS_IO":
            return _PAD
        case _:
            return None


def _is_registered(placed: Placed, multiplier: int) -> bool:
    return placed.cells[multiplier]["parameters"].get("REG_INPUTA_CLK", "NONE") != "NONE"


def _ends(placed: Placed, pin: Pin) -> bool:
    """Whether a signal at a pin waits there for a clock."""
    match placed.kind(pin.cell):
        case "TRELLIS_FF":
            return pin.port in ("DI", "M", "CE", "LSR")
        case "DP16KD":
            return not pin.port.startswith("CLK")
        case "MULT18X18D":
            return _is_registered(placed, pin.cell) and not pin.port.startswith("CLK")
        case "TRELLIS_COMB":
            return pin.port == "WRE"
        case "TRELLIS_RAMW":
            return True
        case "IOLOGIC":
            return pin.port.startswith("TXDATA")
        case _:
            return False


def _through(placed: Placed, pin: Pin, output: str) -> float | None:
    """From a pin to an output of its cell; None where the output does not depend on it."""
    match placed.kind(pin.cell):
        case "TRELLIS_COMB" if pin.port in _WRITES or (output != "OFX" and pin.port in _CHOICE):
            return None
        case "TRELLIS_COMB" if output == "FCO":
            return _CARRY if pin.port == "FCI" else _TO_CARRY
        case "TRELLIS_COMB":
            return _FROM_CARRY if pin.port == "FCI" else _THROUGH_LUT
        case "MULT18X18D":
            return None if pin.port.startswith(("CLK", "CE", "RST")) else _MULTIPLIER
        case "TRELLIS_RAMW":
            return 0.0
        case _:
            return _ELSE


def _levels(nets: int, net: Places, leads: Places) -> tuple[Places, ...]:
    """Arcs that lead on, by the depth of the net that they lead to. Arcs of a loop of gates are left out."""
    inner = np.flatnonzero(leads >= 0)
    waiting = np.bincount(leads[inner], minlength=nets)
    order = inner[np.argsort(net[inner], kind="stable")]
    first = np.searchsorted(net[order], np.arange(nets + 1))
    depth = np.zeros(nets, dtype=np.int64)
    done = np.zeros(nets, dtype=np.bool_)
    ready = np.flatnonzero(waiting == 0)
    level = 0
    while len(ready):
        depth[ready] = level
        done[ready] = True
        onward = np.concatenate([leads[order[first[place] : first[place + 1]]] for place in ready.tolist()])
        np.subtract.at(waiting, onward, 1)
        ready = np.unique(onward[waiting[onward] == 0]) if len(onward) else onward
        level += 1
    inner = inner[done[leads[inner]]]
    by_depth = depth[leads[inner]]
    return tuple(inner[by_depth == level] for level in range(1, level))
