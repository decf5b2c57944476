"""Tests vta_dma_walk against a plain enumeration of the bursts of a strided block."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step


def bursts(block: dict[str, int], bus: int, longest: int) -> Iterator[tuple[int, int]]:
    """(offset, beats) of each burst of a block: contiguous runs merged, cut at 4 KiB and at the longest burst."""
    dram, y, x, ys, xs, run = (block[name] for name in ("dram", "y", "x", "ys", "xs", "run"))
    if x == 1 or xs == run:
        run, x = run * x, 1
        if y == 1 or ys == run:
            run, y = run * y, 1
    for row in range(y):
        for column in range(x):
            begin = dram + row * ys + column * xs
            end = begin + run
            while begin < end:
                stop = min(end, (begin // 4096 + 1) * 4096, begin + longest * bus)
                yield begin, (stop - begin) // bus
                begin = stop


def random_block(random: Random, bus: int) -> dict[str, int]:
    granule = max(16, bus)
    z = random.choice((1, 1, 2, 3, 8, 40, 300))
    y, x = random.choice((1, 1, 2, 5)), random.choice((1, 1, 2, 7))
    run = z * granule
    xs = run if random.random() < 0.5 else granule * random.randrange(0, 60)
    ys = run * x if random.random() < 0.5 else granule * random.randrange(0, 300)
    return {"dram": granule * random.randrange(2000), "y": y, "x": x, "ys": ys, "xs": xs, "run": run}


def merged(block: dict[str, int]) -> tuple[bool, bool, int]:
    """Whether a row is one run and whether there is one row, after merging, and bytes of a run."""
    run, x, y = block["run"], block["x"], block["y"]
    x_one = x == 1 or block["xs"] == run
    if not x_one:
        return False, y == 1, run
    return (True, True, run * x * y) if y == 1 or block["ys"] == run * x else (True, False, run * x)


async def launch(dut: Dut, block: dict[str, int], bus: int) -> None:
    assert not get(dut.active_o)
    dut.dram_i.value, dut.y_i.value, dut.x_i.value = block["dram"], block["y"], block["x"]
    dut.y_stride_i.value, dut.x_stride_i.value = block["ys"], block["xs"]
    x_one, y_one, run = merged(block)
    dut.x_one_i.value, dut.y_one_i.value, dut.length_i.value = x_one, y_one, run // bus - 1
    dut.start_i.value = 1
    await step(dut)
    dut.start_i.value = 0


async def setup(dut: Dut, window: int) -> tuple[int, int]:
    zero = dict.fromkeys(("dram_i", "y_i", "x_i", "y_stride_i", "x_stride_i", "x_one_i", "y_one_i", "length_i"), 0)
    await start(dut, **zero, start_i=0, req_ready_i=0, window_bytes_i=window)
    return parameter(dut, "AXI_DATA_BITS") // 8, parameter(dut, "BURST_BEATS")


def request(dut: Dut) -> tuple[int, int]:
    return get(dut.req_offset_o), get(dut.req_len_o) + 1


@cocotb.test()
async def cuts_blocks_into_bursts(dut: Dut) -> None:
    random = rng()
    bus, longest = await setup(dut, 1 << 30)
    for _ in range(60):
        block = random_block(random, bus)
        expected = list(bursts(block, bus, longest))
        await launch(dut, block, bus)
        speed = random.choice((0.2, 0.7, 1.0))
        while expected:
            ready = random.random() < speed
            dut.req_ready_i.value = ready
            await settle()
            assert get(dut.req_valid_o), f"no request in {block}"
            assert request(dut) == expected[0], f"in {block}"
            assert get(dut.req_last_o) == (len(expected) == 1)
            assert get(dut.active_o)
            if ready:
                expected.pop(0)
            await step(dut)
        dut.req_ready_i.value = 0
        await settle()
        assert not get(dut.req_valid_o) and not get(dut.active_o)


@cocotb.test()
async def never_asks_outside_the_window(dut: Dut) -> None:
    random = rng()
    bus, longest = await setup(dut, 4096)
    outside = 0
    for _ in range(60):
        block = random_block(random, bus)
        block["dram"] %= 4096
        window = random.randrange(1, 6) * 1024
        dut.window_bytes_i.value = window
        expected = list(bursts(block, bus, longest))
        legal = [end for end, (begin, beats) in enumerate(expected) if begin + beats * bus > window]
        await launch(dut, block, bus)
        dut.req_ready_i.value = 1
        for begin, beats in expected[: legal[0]] if legal else expected:
            await settle()
            assert request(dut) == (begin, beats)
            await step(dut)
        for edge in range(10):  # neither the burst outside nor what follows it
            await settle()
            assert not get(dut.req_valid_o)
            assert get(dut.fault_o) == (bool(legal) and edge > 0)
            await step(dut)
        outside += bool(legal)
        dut.rst_ni.value = 0
        await step(dut)
        dut.rst_ni.value = 1
        await settle()
    assert outside > 5
