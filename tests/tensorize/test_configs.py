"""Sizes come from the configuration alone: random configurations compile a region right, or refuse a layer."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.errors import ConfigError
from relay_hw.errors import TensorizeError
from relay_hw.tensorize import why_not
from relay_hw.tensorize.target import Target
from tests.targets import target_for


def powers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from([1 << n for n in range(low.bit_length() - 1, high.bit_length())])


SIZES = {
    "block_in": powers(4, 64),
    "block_out": powers(4, 64),
    "inp_depth": powers(256, 4096),
    "wgt_depth": powers(256, 2048),
    "acc_depth": powers(128, 2048),
    "acc_banks": powers(1, 16),
    "out_depth": powers(128, 2048),
    "uop_depth": powers(64, 2048),
    "prm_depth": powers(8, 64),
    "axi_data_bits": powers(64, 256),
    "burst_beats": powers(1, 64),
    "queue_depth": powers(2, 16),
}


CASES = given(
    sizes=st.fixed_dictionaries(SIZES),
    seed=st.integers(0, 1 << 16),
    half=st.booleans(),
    bits=st.sampled_from((0, 2, 4, 8)),
)
QUIET = [HealthCheck.function_scoped_fixture]


@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
@CASES
def test_any_configuration(kit: SimpleNamespace, sizes: dict[str, int], seed: int, half: bool, bits: int) -> None:
    check(kit, sizes, seed, half, bits)


@pytest.mark.long
@settings(max_examples=400, deadline=None, suppress_health_check=QUIET)
@CASES
def test_many_configurations(kit: SimpleNamespace, sizes: dict[str, int], seed: int, half: bool, bits: int) -> None:
    check(kit, sizes, seed, half, bits)


def check(kit: SimpleNamespace, sizes: dict[str, int], seed: int, half: bool, bits: int) -> None:
    """All kinds of layers on 7 x 6 pixels; a layer may be refused, but never compiled wrong.

    `half`: 4-bit multipliers, whose operands are two lines; `bits` 0: weights with factors.
    """
    if half:
        line = max(16, sizes["block_out"], sizes["axi_data_bits"] // 8)
        sizes = {**sizes, "wgt_bits": 4, "block_in": 2 * line}
    try:
        config = replace(target_for("default"), name="random", out_lanes=min(4, sizes["block_out"]), **sizes)
    except ConfigError:
        return
    build = kit.Regions(seed, config, bits)
    build.factored = not bits
    x = build.input(21, 7, 6)
    values = [x]
    for layer in (
        lambda y: build.conv(y, 9, padding=(1, 1, 1, 1)),
        lambda y: build.conv(y, build.shape(y)[1], padding=(1, 1, 1, 1), residual=y),
        lambda y: build.add(y, y),
        lambda y: build.conv(y, 30, (1, 1), (2, 2)),
        lambda y: build.max_pool(y, (2, 2), (1, 2)),
        lambda y: build.sum_pool(y, (2, 1)),
        lambda y: build.dense(y, 19),
    ):
        call = layer(values[-1])
        if why_not(call.op, config) is None:
            values.append(call)
    if len(values) > 1:
        kit.compare(build.function(values[-1]), config, seed, order=seed)


@pytest.mark.parametrize("banks", [1, 2, 16])
def test_any_number_of_banks(kit: SimpleNamespace, banks: int) -> None:
    config = replace(target_for("default"), acc_banks=banks)
    build = kit.Regions(banks, config)
    x = build.input(16, 14, 14)
    y = build.conv(x, 16, padding=(1, 1, 1, 1), residual=x)
    kit.compare(build.function(build.add(build.conv(y, 16, (1, 1)), y)), config, order=banks)


def test_small_memories_refuse_with_a_reason(kit: SimpleNamespace) -> None:
    """A window whose micro-ops cannot be held is refused before it is compiled."""
    config: Target = replace(target_for("tiny"), uop_depth=8)
    build = kit.Regions(1, config)
    call = build.conv(build.input(4, 9, 9), 4, (5, 5))
    reason = why_not(call.op, config)
    assert reason is not None and reason.startswith("convolution must have a tile that fits configuration tiny")
    with pytest.raises(TensorizeError, match="convolution must have a tile that fits"):
        kit.compare(build.function(call), config)
    assert asdict(config)["uop_depth"] == 8
