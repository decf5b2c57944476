"""vta_fault: the first fault stays; of several in a cycle, that with the smallest index, then the first source."""

from __future__ import annotations

import cocotb

from accel.sim.bench.common import Dut, get, parameter, rng, start, step


@cocotb.test()
async def keeps_the_first_and_smallest(dut: Dut) -> None:
    random, n = rng(), parameter(dut, "SOURCES")
    for _ in range(150):
        await start(dut, run_i=0, valid_i=0, code_i=0, index_i=0)
        kept: tuple[int, int] | None = None
        for _ in range(8):
            run, valid = random.random() < 0.7, [random.random() < 0.3 for _ in range(n)]
            codes = [random.randrange(1, 256) for _ in range(n)]
            indices = [random.choice((0, 3, 5, 0xFFFFFFFF)) for _ in range(n)]
            dut.run_i.value = run
            dut.valid_i.value = sum(bit << k for k, bit in enumerate(valid))
            dut.code_i.value = sum(code << (8 * k) for k, code in enumerate(codes))
            dut.index_i.value = sum(index << (32 * k) for k, index in enumerate(indices))
            await step(dut)
            raised = [(indices[k], k) for k in range(n) if valid[k]]
            if run and raised and kept is None:
                index, source = min(raised)
                kept = (codes[source], index)
            if kept is not None and run and raised:
                dut.run_i.value = 0
            assert get(dut.fault_o) == (kept is not None)
            if kept is not None:
                assert (get(dut.code_o), get(dut.index_o)) == kept
                break
