"""Two builds side by side: every layer of both in one pair, sums of both reports, what changed."""

from __future__ import annotations

import json
from dataclasses import replace

from relay_hw.accel.sim.causes import Cause
from relay_hw.report import Difference, Network, Node, Report, diff
from tests.hostile import NAMES
from tests.relay_hw.report.test_report import CONV, HOST, NETWORK, POOL, REPORT

FASTER = replace(CONV, cycles=1_000, stalls={Cause.BUS: 100, Cause.LANES: 36}, reason="another tile")


def build(layers: tuple[object, ...], network: Network | None = NETWORK, **changes: object) -> Report:
    rows = tuple(layers)
    return replace(REPORT, layers=rows, network=network, cycles=sum(row.cycles or 0 for row in rows), **changes)  # type: ignore[arg-type, attr-defined]


A = build((CONV, POOL, HOST))
B = build((FASTER, POOL, HOST), strategy="w4a8")


def check_whole(found: Difference) -> None:
    """Each row of both is in one pair, and cycles add up by build and by cause."""
    assert [pair.left for pair in found.pairs if pair.left is not None] == list(range(len(found.left.layers)))
    assert sorted(pair.right for pair in found.pairs if pair.right is not None) == list(range(len(found.right.layers)))
    assert [sum(pair.cycles[k] for pair in found.pairs) for k in (0, 1)] == [*found.cycles]
    for pair in found.pairs:
        assert sum(pair.more.values()) == -pair.gained


def test_pairs_hold_every_layer_and_sums_are_those_of_both() -> None:
    found = diff(A, B)
    check_whole(found)
    assert len(found.matched) == 3 and found.pairs[0].gained == 728 and found.pairs[1].gained == 0
    # 864 products before, 864 now; 800 cycles of the bus before, 100 now; lanes are new, draining is gone.
    assert found.pairs[0].more == {Cause.LANES: 36, Cause.BUS: -700, Cause.DRAIN: -64}
    assert [(one.what, one.before, one.after) for one in found.settings] == [("strategy", "int8", "w4a8")]
    assert ("tile and why", "", "another tile") in [(c.what, c.before, c.after) for c in found.pairs[0].changes]


def test_layers_of_other_names_are_matched_by_their_sources() -> None:
    def named(name: str, *names: str) -> Network:
        return Network((Node(name, "accel.conv2d", "accel", (), 0, "1x8", "int8", names),))

    left = build((CONV,), named(CONV.name, "Conv_1", "Relu_1"))
    right = build((replace(FASTER, name="fused"),), named("fused", "Relu_1"))
    assert len(diff(left, right).matched) == 1
    other = build((replace(FASTER, name="fused", shape="1x2"),), named("fused", "Relu_9"))
    found = diff(left, other)
    check_whole(found)
    assert len(found.matched) == 0 and [(pair.left, pair.right) for pair in found.pairs] == [(None, 0), (0, None)]


def test_what_does_the_same_is_matched_in_order() -> None:
    rows = tuple(replace(CONV, name=f"left {k}") for k in range(3))
    others = tuple(replace(FASTER, name=f"right {k}") for k in range(2))
    found = diff(build(rows, None), build(others, None))
    check_whole(found)
    assert [(pair.left, pair.right) for pair in found.pairs] == [(0, 0), (1, 1), (2, None)]


def test_the_text_has_the_totals_of_both() -> None:
    text = diff(A, B).to_text()
    total = next(line for line in text.splitlines() if line.startswith("total"))
    assert total.split()[1:5] == ["1,824", "1,096", "-728", "-39.9%"]
    assert text.endswith("3 of 3 layers are in both builds; B takes 728 cycles (39.9%) less than A")
    assert "strategy: int8 -> w4a8" in text and "bus -700; drain -64; lanes +36" in text
    assert max(map(len, diff(A, B).to_text(80).splitlines())) <= 80


def test_the_object_for_programs() -> None:
    row = json.loads(json.dumps(diff(A, B).to_json()))
    assert (row["a"]["cycles"], row["b"]["cycles"], row["gained"], row["matched"]) == (1_824, 1_096, 728, 3)
    assert sum(pair["gained"] for pair in row["pairs"]) == 728
    assert row["pairs"][0]["a"]["cycles"] == 1_728 and row["pairs"][0]["more_by_cause"]["bus"] == -700


def test_pages_escape_names() -> None:
    for name in NAMES[::10]:
        rows = tuple(replace(row, name=name or "x") for row in (CONV, POOL, HOST))
        network = Network(tuple(replace(node, name=name or "x") for node in NETWORK.nodes))
        text = diff(build(rows, network, model=name), B).to_html()
        assert text.count("<script") == 3 == text.count("</script>"), name
        assert "<b>&" not in text and "onerror=" not in text.replace("onerror=&", "")
