"""vta_dot: sums of int8 products three edges later, with corners, held while the stages are not enabled; and taps."""

from __future__ import annotations

import cocotb

from accel.sim.bench.common import Dut, get, parameter, rng, signed, start, step

INPUTS = (
    "en_i",
    "taps_i",
    "group_i",
    "rotate_i",
    "wgt_i",
    "taps_1_i",
    "max_1_i",
    "mask_i",
    "inp_i",
    "tap_i",
    "max_2_i",
)


@cocotb.test()
async def computes_taps_and_maxima(dut: Dut) -> None:
    random, n = rng(), parameter(dut, "BLOCK_IN")
    width = 16 + (n - 1).bit_length()
    await start(dut, **dict.fromkeys(INPUTS, 0))
    pick = lambda: random.choice((-128, 127, random.randrange(-128, 128)))  # noqa: E731
    pack = lambda values: int.from_bytes(bytes(v & 0xFF for v in values), "little")  # noqa: E731
    for _ in range(400):
        is_max, rotate, group, mask = random.random() < 0.5, random.randrange(4), random.randrange(n // 4), 0
        taps, weights = [pick() for _ in range(4)], [pick() for _ in range(n)]
        dut.en_i.value, dut.taps_i.value, dut.group_i.value, dut.rotate_i.value = 1, not is_max, group, rotate
        dut.wgt_i.value = pack(weights)
        await step(dut)
        # Tap t lies in byte (t + rotate) % 4, as the memories deliver it.
        mask = random.randrange(1, 16)
        dut.en_i.value, dut.taps_1_i.value, dut.max_1_i.value, dut.mask_i.value = 2, not is_max, is_max, mask
        dut.tap_i.value = pack([taps[(place - rotate) % 4] for place in range(4)])
        dut.inp_i.value = random.getrandbits(8 * n)
        await step(dut)
        dut.en_i.value, dut.max_2_i.value, dut.tap_i.value = 4, is_max, random.getrandbits(32)
        await step(dut)
        expected = sum(x * w for x, w in zip(taps, weights[4 * group : 4 * group + 4], strict=True))
        if is_max:
            expected = max(taps[(place - rotate) % 4] for place in range(4) if mask >> place & 1)
        assert signed(get(dut.sum_o), width) == expected


@cocotb.test()
async def computes_dot_products(dut: Dut) -> None:
    random, n = rng(), parameter(dut, "BLOCK_IN")
    width = 16 + (n - 1).bit_length()
    await start(dut, **dict.fromkeys(INPUTS, 0))
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
