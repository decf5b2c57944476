"""vta_dot: sums of int8 products three edges later, with corners, and held while the stages are not enabled."""

from __future__ import annotations

import cocotb

from accel.sim.bench.common import Dut, get, parameter, rng, signed, start, step


@cocotb.test()
async def computes_dot_products(dut: Dut) -> None:
    random, n = rng(), parameter(dut, "BLOCK_IN")
    width = 16 + (n - 1).bit_length()
    await start(dut, en_i=0, inp_i=0, wgt_i=0)
    pick = lambda: random.choice((-128, 127, random.randrange(-128, 128)))  # noqa: E731
    corners = [([-128] * n, [-128] * n), ([127] * n, [-128] * n), ([127] * n, [127] * n)]
    pairs = corners + [([pick() for _ in range(n)], [pick() for _ in range(n)]) for _ in range(300)]
    pipeline: list[tuple[list[int], list[int]] | None] = [None, None, None]
    pack = lambda values: int.from_bytes(bytes(v & 0xFF for v in values), "little")  # noqa: E731
    results = 0
    while pairs or any(pipeline):
        new = pairs.pop(0) if pairs and random.random() < 0.7 else None
        # Weights enter the operand register; the inputs come with the second stage, registered outside.
        dut.en_i.value = (new is not None) | (pipeline[0] is not None) << 1 | (pipeline[1] is not None) << 2
        dut.wgt_i.value = pack(new[1]) if new else random.getrandbits(8 * n)
        dut.inp_i.value = pack(pipeline[0][0]) if pipeline[0] else random.getrandbits(8 * n)
        await step(dut)
        pipeline = [new, pipeline[0], pipeline[1]]
        if pipeline[2]:
            expected = sum(a * b for a, b in zip(*pipeline[2], strict=True))
            assert signed(get(dut.sum_o), width) == expected
            results += 1
    assert results == 303
