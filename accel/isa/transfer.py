"""Semantics of LOAD, STORE and GATHER: strided copies between the DRAM window and a scratchpad.

Faults are found before anything moves: field rules first, then the scratchpad's range, then the window's.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from relay_hw.accel.isa.config import TAPS
from relay_hw.accel.isa.errors import Fault, FaultCode
from relay_hw.accel.isa.loops import Values
from relay_hw.accel.isa.nibbles import scale_weights, widen_weights
from relay_hw.accel.isa.rules import (
    check_instruction,
    dram_granules,
    gather_fetch_bytes,
    gather_rows,
    has_factors,
    load_widening,
    plane_lines,
    transfer_begin,
    transfer_shape,
)
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.state import AccelState

Bytes: TypeAlias = NDArray[np.uint8]


def load(state: AccelState, v: Values, index: int) -> None:
    """DRAM to scratchpad, padding around the rows and runs, wider numbers with `expand`, planes with `pitch`."""
    check_instruction(state.config, Op.LOAD, v, index)
    rows, runs, run = transfer_shape(state.config, v)
    if has_factors(v):
        _multiplied(state, v, index)
        return
    source = _dram(state, v, index, run).view(np.int8)
    target = _scratch(state, v, 0 if v["pitch"] else rows * runs * run * load_widening(v))
    if v["pitch"] or (v["expand"] and v["mem"] == Mem.WGT):
        image = np.full((rows, runs, run), v["pad_value"], np.int8)
        image[v["y_pad_0"] : v["y_pad_0"] + v["y"], v["x_pad_0"] : v["x_pad_0"] + v["x"]] = source
        if v["pitch"]:
            _to_planes(state, v, image)
        else:
            target[...] = widen_weights(image.view(np.uint8).reshape(-1), state.config.wgt_bits)
        return
    image = target.view(np.int32 if v["expand"] else np.int8).reshape(rows, runs, run)
    if (rows, runs) != (v["y"], v["x"]):
        image[...] = v["pad_value"]
    image[v["y_pad_0"] : v["y_pad_0"] + v["y"], v["x_pad_0"] : v["x_pad_0"] + v["x"]] = source


def store(state: AccelState, v: Values, index: int) -> None:
    """Scratchpad OUT to DRAM, runs in order."""
    check_instruction(state.config, Op.STORE, v, index)
    rows, runs, run = transfer_shape(state.config, v)
    source = _scratch(state, v, rows * runs * run).reshape(rows, runs, run)
    target = _dram(state, v, index, run)
    if _runs_are_apart(v, run):
        target[...] = source
        return
    for y in range(v["y"]):
        for x in range(v["x"]):
            target[y, x] = source[y, x]


def gather(state: AccelState, v: Values, index: int) -> None:
    """Windows of the rows of an image to parts of INP vectors; bytes outside the image are padding."""
    check_instruction(state.config, Op.GATHER, v, index)
    config, rows, inside = state.config, gather_rows(v), v["row_bytes"]
    source = _dram(state, {**v, "x": 1, "x_stride": 0}, index, gather_fetch_bytes(config, v))[:, 0, :inside]
    byte = np.arange(v["x"])[:, None] * v["x_step"] - v["left"] + np.arange(v["run"])
    windows = np.full((rows, v["x"], v["run"]), v["pad_value"] & 0xFF, np.uint8)
    taken = source[:, np.clip(byte, 0, inside - 1)]
    windows[v["y_pad_0"] : v["y_pad_0"] + v["y"]] = np.where(
        (byte >= 0) & (byte < inside), taken, np.uint8(v["pad_value"] & 0xFF)
    )
    vectors = state.inp[v["sram"] : v["sram"] + rows * v["x"] * v["pitch"]].view(np.uint8)
    vectors.reshape(rows, v["x"], -1)[:, :, v["lane"] : v["lane"] + v["run"]] = windows


def _multiplied(state: AccelState, v: Values, index: int) -> None:
    """One run of weights, a granule of factors in front of each `factor_granules` of them."""
    config = state.config
    count = dram_granules(config, v)
    source = _dram(state, v, index, count * config.granule_bytes).reshape(count, config.granule_bytes)
    leads = np.arange(count) % (config.factor_granules + 1) == 0
    weights = widen_weights(source[~leads].reshape(-1), config.wgt_bits)
    factors = source[leads].reshape(-1)
    target = _scratch(state, v, weights.size)
    target[...] = scale_weights(weights, factors, config.inp_lanes, config.wgt_bits)


def _to_planes(state: AccelState, v: Values, image: NDArray[np.int8]) -> None:
    """Line k of run n goes to line base + 4 pitch k + n; where planes overlap, the line written last stays."""
    config = state.config
    runs, planes = plane_lines(config, v)
    lines = state.inp.reshape(-1, config.line_bytes)
    base, step = v["sram"] // config.line_entries, TAPS * v["pitch"]
    source = image.reshape(runs, planes, config.line_bytes)
    if step >= runs or planes == 1:
        for plane in range(planes):
            lines[base + step * plane : base + step * plane + runs] = source[:, plane]
        return
    for run in range(runs):
        lines[base + run : base + run + step * planes : step][:planes] = source[run]


def _scratch(state: AccelState, v: Values, size: int) -> Bytes:
    """View of the scratchpad bytes that the transfer touches."""
    begin = transfer_begin(state.config, v)
    return state.scratch[Mem(v["mem"])][begin : begin + size]


def _dram(state: AccelState, v: Values, index: int, run: int) -> Bytes:
    """uint8 [y, x, run] view of the window. Raises Fault where a run leaves it."""
    end = v["dram"] + (v["y"] - 1) * v["y_stride"] + (v["x"] - 1) * v["x_stride"] + run
    if end > state.dram.size:
        raise Fault(FaultCode.DRAM_RANGE, index, f"byte {end - 1} is outside {state.dram.size}")
    return as_strided(state.dram[v["dram"] :], (v["y"], v["x"], run), (v["y_stride"], v["x_stride"], 1))


def _runs_are_apart(v: Values, run: int) -> bool:
    """True when strides alone prove that no two runs overlap."""
    extent = run
    for count, stride in sorted(((v["x"], v["x_stride"]), (v["y"], v["y_stride"])), key=lambda loop: loop[1]):
        if count > 1 and stride < extent:
            return False
        extent += (count - 1) * stride
    return True
