"""Tests vta_stop: each report has its edge, code and instruction index; several at once, aborts, late reports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from random import Random

import cocotb

from relay_hw.accel.isa.spec import FaultCode
from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step


@dataclass(frozen=True)
class Report:
    """An input that reports: `word` of the input `index` names the instruction `before` cycles ahead of the report."""

    name: str
    bit: int
    code: FaultCode
    index: str
    word: int = 0
    before: int = 0
    delay: int = 0  # cycles between the report and that whose edge stops the core


REPORTS = (
    Report("dispatch", 0, FaultCode.ILLEGAL_FIELD, "dispatch_index", delay=1),
    Report("watchdog", 0, FaultCode.WATCHDOG, "dispatch_index", delay=1),
    Report("fetch", 0, FaultCode.AXI_READ, "fetch_index"),
    Report("fetch", 1, FaultCode.DRAM_RANGE, "fetch_index", 1),
    Report("load", 0, FaultCode.AXI_READ, "load_index"),
    Report("load", 1, FaultCode.DRAM_RANGE, "load_index", 1),
    Report("store_range", 0, FaultCode.DRAM_RANGE, "store_range_index"),
    Report("compute", 0, FaultCode.SRAM_RANGE, "compute_index"),
    Report("output", 0, FaultCode.SRAM_RANGE, "read_index", 1, delay=1),
    Report("clash_write", 0, FaultCode.ACC_BANK, "done_index", 1, delay=2),
    Report("clash_write", 1, FaultCode.ACC_BANK, "done_index", 2, delay=2),
    Report("clash_write", 2, FaultCode.ACC_BANK, "done_index", 0, before=1, delay=2),
    Report("store_error", 0, FaultCode.AXI_WRITE, "done_index", 3, delay=2),
    *(Report("overflow", unit, FaultCode.TOKEN_OVERFLOW, "done_index", unit, before=2) for unit in range(4)),
)
ROW_REPORTS = (
    Report("row", 0, FaultCode.SRAM_RANGE, "read_index", 2, delay=1),
    Report("clash_write", 3, FaultCode.ACC_BANK, "done_index", 4, delay=2),
    Report("overflow", 4, FaultCode.TOKEN_OVERFLOW, "done_index", 4, before=2),
)
WORDS = {"dispatch_index": 1, "fetch_index": 2, "load_index": 2, "store_range_index": 1, "compute_index": 1}
WORDS |= {"read_index": 3, "done_index": 5}
BITS = (
    "watchdog",
    "overflow_soon",
    *dict.fromkeys(report.name for report in REPORTS if report.name != "watchdog"),
    "row",
)


def reports_of(dut: Dut) -> tuple[Report, ...]:
    """Reports that the module takes: without a row unit there are none of its."""
    return REPORTS + (ROW_REPORTS if parameter(dut, "ROW") else ())


def found(dut: Dut) -> int:
    """Edges from a fault's stop to its code and index: one for each of its sources, and one more."""
    return 16 if parameter(dut, "ROW") else 14


def all_stopped(dut: Dut) -> int:
    return 0b111111 if parameter(dut, "ROW") else 0b11111


async def begin(dut: Dut) -> None:
    quiet = dict.fromkeys((*(f"{name}_i" for name in (*BITS, *WORDS)), "clash_read_i", "abort_soon_i"), 0)
    await start(dut, **quiet, run_i=1, dispatch_code_i=FaultCode.ILLEGAL_FIELD)


async def told(dut: Dut, random: Random, reports: dict[Report, int]) -> tuple[int, int]:
    """Code and index of the fault that `reports`, each with an index, raise at one edge; all other words are random."""
    last = 3  # the cycle whose edge stops the core
    for cycle in range(last + 1):
        assert not get(dut.fault_stop_o) and not get(dut.stop_o)
        for name, count in WORDS.items():
            words = [random.getrandbits(32) for _ in range(count)]
            for report, index in reports.items():
                if report.index == name and cycle == last - report.delay - report.before:
                    words[report.word] = index
            getattr(dut, f"{name}_i").value = sum(word << 32 * k for k, word in enumerate(words))
        for name in BITS:
            on = [report for report in reports if report.name == name and cycle == last - report.delay]
            getattr(dut, f"{name}_i").value = sum(1 << report.bit for report in on)
        await settle()
        late = [report for report in reports if report.delay == 2 and last - 2 < cycle]
        over = [report for report in reports if report.name == "overflow" and cycle == last]
        assert get(dut.due_o) == bool(late or over)
        await step(dut)
    for name in BITS:
        getattr(dut, f"{name}_i").value = 0
    for _ in range(found(dut)):
        assert get(dut.fault_stop_o) and get(dut.stop_o) == all_stopped(dut) and not get(dut.fault_o)
        await step(dut)
    assert get(dut.fault_o)
    return get(dut.fault_code_o), get(dut.fault_index_o)


@cocotb.test()
async def every_report_has_its_code_and_index(dut: Dut) -> None:
    random = rng()
    for report in reports_of(dut):
        await begin(dut)
        index = random.getrandbits(32)
        assert await told(dut, random, {report: index}) == (report.code, index), report


@cocotb.test()
async def the_smallest_of_an_edge_counts(dut: Dut) -> None:
    random = rng()
    for _ in range(60):
        # Sources that share a word report one at a time.
        chosen: dict[tuple[str, int], Report] = {}
        for report in random.sample(reports_of(dut), 5):
            chosen.setdefault((report.index, report.word), report)
        indices = random.sample(range(1 << 16), len(chosen))
        reports = dict(zip(chosen.values(), indices, strict=True))
        first = min(reports, key=lambda report: reports[report])
        await begin(dut)
        assert await told(dut, random, reports) == (first.code, reports[first])


@cocotb.test()
async def a_read_of_one_bank_names_the_earlier_of_two(dut: Dut) -> None:
    users = range(3 if parameter(dut, "ROW") else 2)
    for one, other in permutations(users, 2):
        await begin(dut)
        # The third, which meets nobody, is earlier still.
        words = [7 if user == one else 9 if user == other else 3 for user in range(3)]
        dut.clash_read_i.value = 1 << one | 1 << other
        dut.read_index_i.value = sum(word << 32 * user for user, word in enumerate(words))
        await step(dut)
        dut.clash_read_i.value = dut.read_index_i.value = 0
        assert not get(dut.fault_stop_o)
        for _ in range(found(dut) + 1):
            await step(dut)
        assert get(dut.fault_o) and (get(dut.fault_code_o), get(dut.fault_index_o)) == (FaultCode.ACC_BANK, 7)


@cocotb.test()
async def an_abort_stops_without_a_fault(dut: Dut) -> None:
    await begin(dut)
    for abort in (1, 1, 0, 0):
        dut.abort_soon_i.value = abort
        await step(dut)
        assert get(dut.stop_o) == (all_stopped(dut) if abort else 0)
        assert not get(dut.fault_stop_o) and not get(dut.fault_o)


@cocotb.test()
async def a_token_that_may_be_too_many_is_waited_for(dut: Dut) -> None:
    await begin(dut)
    for soon in (0, 1, 0):
        dut.overflow_soon_i.value = soon
        await settle()
        assert get(dut.due_o) == soon
        await step(dut)
    assert not get(dut.fault_stop_o)


@cocotb.test()
async def a_write_of_load_that_clashes_is_not_hidden_by_the_next_ones_tokens(dut: Dut) -> None:
    random = rng()
    clash = next(report for report in REPORTS if report.name == "clash_write" and report.bit == 2)
    tokens = next(report for report in REPORTS if report.name == "overflow" and report.bit == 0)
    await begin(dut)
    assert await told(dut, random, {clash: 4, tokens: 5}) == (FaultCode.ACC_BANK, 4)
