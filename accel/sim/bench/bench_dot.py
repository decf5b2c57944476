"""Tests vta_dot: sums of products four edges later, with corners, held while stages are not enabled; taps; halves."""

from __future__ import annotations

import cocotb

from relay_hw.accel.sim.bench.common import Dut, get, parameter, rng, signed, start, step

INPUTS = (
    "en_i",
    "zero_i",
    "taps_i",
    "group_i",
    "rotate_i",
    "wgt_i",
    "first_i",
    "max_i",
    "inp_i",
    "multiples_i",
    "tap_i",
    "low_1_i",
    "high_3_i",
)


def packed(values: list[int], bits: int = 8) -> int:
    """Numbers of `bits` bits side by side, the first one lowest."""
    return sum((value & ((1 << bits) - 1)) << bits * place for place, value in enumerate(values))


def drive(dut: Dut, nibble: int) -> None:
    """What the weights are taken for: whole ones, low or high halves."""
    dut.low_1_i.value, dut.high_3_i.value = nibble == 1, nibble == 2


def multiples(inputs: list[int], nibble: int) -> int:
    """What vta_multiples makes of the inputs."""
    low = nibble == 1
    each = [packed([3 * x, 2 * x if low else -2 * x, 3 * x if low else -x], 10) for x in inputs]
    return packed(each, 30)


def meaning(weights: list[int], nibble: int) -> list[int]:
    return [(w, w & 15, 16 * w)[nibble] for w in weights]


@cocotb.test()
async def computes_taps_and_maxima(dut: Dut) -> None:
    random, n = rng(), parameter(dut, "BLOCK_IN")
    width = 16 + (n - 1).bit_length()
    await start(dut, **dict.fromkeys(INPUTS, 0))
    bits = parameter(dut, "WGT_BITS")
    top = 1 << bits - 1
    pick = lambda: random.choice((-128, 127, random.randrange(-128, 128)))  # noqa: E731
    weight = lambda: random.choice((-top, top - 1, random.randrange(-top, top)))  # noqa: E731
    for _ in range(400):
        is_max, rotate, group = random.random() < 0.5, random.randrange(4), random.randrange(n // 4)
        nibble = random.randrange(3) if bits == 4 and not is_max else 0
        drive(dut, nibble)
        taps, weights = [pick() for _ in range(4)], [weight() for _ in range(n)]
        # Weights come a cycle before the taps.
        dut.group_i.value, dut.rotate_i.value = (0, 0) if is_max else (group, rotate)
        dut.wgt_i.value = packed(weights, bits)
        await step(dut)
        dut.wgt_i.value, dut.group_i.value = random.getrandbits(bits * n), random.randrange(n // 4)
        dut.en_i.value, dut.zero_i.value, dut.taps_i.value = 1, is_max, not is_max
        # Tap t lies in byte (t + rotate) % 4, as the memories deliver it.
        turned = packed([taps[(place - rotate) % 4] for place in range(4)])
        dut.tap_i.value, dut.max_i.value, dut.first_i.value = turned, is_max, random.getrandbits(32)
        await step(dut)
        dut.en_i.value, dut.max_i.value, dut.tap_i.value = 0, not is_max, random.getrandbits(32)
        inputs = [pick() for _ in range(n)]
        dut.inp_i.value, dut.multiples_i.value = packed(inputs), multiples(inputs, nibble)
        for _ in range(3):
            await step(dut)
        own = meaning(weights[4 * group : 4 * group + 4], nibble)
        expected = sum(x * w for x, w in zip(taps, own, strict=True))
        if is_max:
            expected = max(taps)
        assert signed(get(dut.sum_o), width) == expected


@cocotb.test()
async def computes_dot_products(dut: Dut) -> None:
    random, n, bits = rng(), parameter(dut, "BLOCK_IN"), parameter(dut, "WGT_BITS")
    width, top = 16 + (n - 1).bit_length(), 1 << bits - 1
    await start(dut, **dict.fromkeys(INPUTS, 0))
    pick = lambda: random.choice((-128, 127, random.randrange(-128, 128)))  # noqa: E731
    weight = lambda: random.choice((-top, top - 1, -1, random.randrange(-top, top)))  # noqa: E731
    for nibble in range(3 if bits == 4 else 1):
        drive(dut, nibble)
        corners = [([x] * n, [w] * n) for x in (-128, 127) for w in (-top, top - 1, -1)]
        pairs = corners + [([pick() for _ in range(n)], [weight() for _ in range(n)]) for _ in range(300)]
        pipeline: list[tuple[list[int], list[int]] | None] = [None] * 4
        coming: tuple[list[int], list[int]] | None = None
        results = 0
        while pairs or coming or any(pipeline):
            new, coming = coming, pairs.pop(0) if pairs and random.random() < 0.7 else None
            # As for a slot of the ALU: the products are 0.
            zero = new is not None and random.random() < 0.1
            # Weights come first; the first inputs enter the operand register; the others are registered outside.
            dut.en_i.value = new is not None
            dut.zero_i.value = zero
            dut.wgt_i.value = packed(coming[1], bits) if coming else random.getrandbits(bits * n)
            dut.first_i.value = packed(new[0][:4]) if new else random.getrandbits(32)
            inputs = pipeline[0][0] if pipeline[0] else [pick() for _ in range(n)]
            dut.inp_i.value, dut.multiples_i.value = packed(inputs), multiples(inputs, nibble)
            await step(dut)
            if new and zero:
                new = (new[0], [0] * n)
            pipeline = [new, *pipeline[:3]]
            if pipeline[3]:
                inputs, weights = pipeline[3]
                expected = sum(a * b for a, b in zip(inputs, meaning(weights, nibble), strict=True))
                assert signed(get(dut.sum_o), width) == expected
                results += 1
        assert results == 306
