"""Parameter records that are alike for all outputs of a layer: one is loaded, by every kind of layer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from relay_hw.tensorize.target import Target
from tests.targets import target_for


def test_layers_with_one_record(kit: SimpleNamespace, config: Target) -> None:
    """Of every kind; channels that do not fill blocks, tiles of several blocks, sums and gates behind."""
    build = kit.Regions(31, config)
    build.alike = True
    y = build.conv(build.input(9, 12, 10), 70, padding=(1, 1, 1, 1))
    y = build.conv(y, 70, padding=(1, 1, 1, 1), residual=y)
    y = build.conv(y, 70, padding=(1, 1, 1, 1), groups=70)
    y = build.sum_pool(build.conv_transpose(y, 34), (2, 2))
    kit.compare(build.function(build.dense(y, 90)), config)


@pytest.mark.parametrize("name", ["default", "wide"])
def test_rows_with_one_record(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    build = kit.Regions(32, config)
    build.alike = True
    y = build.rows(build.tensor(70, config.channel_align), 5 * config.channel_align)
    kit.compare(build.function(build.rows(y, 3 * config.channel_align)), config)


@pytest.mark.parametrize("alike, count", [(True, 1), (False, 40)])
def test_a_layer_loads_what_differs(kit: SimpleNamespace, alike: bool, count: int) -> None:
    """640 outputs in blocks of 16."""
    config = target_for("default")
    build = kit.Regions(33, config)
    build.alike = alike
    segment = kit.compare(build.function(build.dense(build.input(32), 640)), config)
    (stored,) = (section.size for section in segment.program.sections if section.name == "constants")
    assert stored == count * config.prm_bytes
