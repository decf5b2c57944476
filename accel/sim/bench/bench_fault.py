"""Tests vta_fault: the first fault stays; of several in a cycle the one of smallest index, then the first source."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, settle, start, step


@cocotb.test()
async def keeps_the_first_and_smallest(dut: Dut) -> None:
    random, sources = rng(), parameter(dut, "SOURCES")
    for _ in range(150):
        await start(dut, run_i=0, valid_i=0, code_i=0, index_i=0)
        kept: tuple[int, int] | None = None
        since = 0
        for _ in range(12 + sources):
            run, valid = random.random() < 0.7, [random.random() < 0.1 for _ in range(sources)]
            codes = [random.randrange(1, 256) for _ in valid]
            indices = [random.choice((0, 3, 5, 7, 0xFFFFFFFF)) for _ in valid]
            # Nothing runs once the core was stopped, but its units may go on reporting.
            dut.run_i.value = run = run and kept is None
            dut.valid_i.value = sum(bit << k for k, bit in enumerate(valid))
            dut.code_i.value = sum(code << (8 * k) for k, code in enumerate(codes))
            dut.index_i.value = sum(index << (32 * k) for k, index in enumerate(indices))
            await settle()
            assert get(dut.stop_soon_o) == (kept is not None or (run and any(valid)))
            await step(dut)
            raised = [(indices[k], k) for k in range(len(valid)) if valid[k]]
            since += kept is not None
            if run and raised:
                index, source = min(raised)
                kept = (codes[source], index)
            assert get(dut.stop_o) == (kept is not None)
            assert get(dut.fault_o) == (since > sources)
            if since > sources:
                assert (get(dut.code_o), get(dut.index_o)) == kept
