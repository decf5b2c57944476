"""The small parts of a comparison: samples, histograms, energy, work, plots, the work folder."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.accel.isa.config import load_config
from relay_hw.compare.data import read_samples
from relay_hw.compare.energy import FIGURES, SHARES, SRAM, access, estimate, registers
from relay_hw.compare.front import Point, staircase, unbeaten
from relay_hw.compare.histogram import BINS, Counter, Histogram
from relay_hw.compare.network_work import network_work, weight_bits
from relay_hw.compare.plots import Axes, nice_ticks, pareto_plot
from relay_hw.compare.ranges import ranges
from relay_hw.compare.store import Store, key_of, with_same_sources
from relay_hw.compare.stored import stored_bytes
from relay_hw.errors import InputError
from relay_hw.quantize import LayerChoice, Strategy, find_strategy
from relay_hw.report import short_names
from relay_hw.runtime.widths import no_gain
from relay_hw.text import parse
from relay_hw.transform.infer_type import InferType

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(8, 2, 3, 3), float32], %d: Tensor[(5, 8), float32]) {
  %0 = nn.conv2d(%x, %w, groups=2, channels=8, kernel_size=[3, 3], padding=[1, 1, 1, 1]);
  %1 = nn.global_avg_pool2d(%0);
  nn.dense(nn.batch_flatten(%1), %d, units=5)
}
"""
COUNTERS = (
    "GEMM_UOPS",
    "ALU_UOPS",
    "OUTPUT_VECTORS",
    "READ_BYTES",
    "WRITE_BYTES",
    "FETCH_BYTES",
    "LOAD_BUSY",
    "COMPUTE_BUSY",
    "OUTPUT_BUSY",
    "STORE_BUSY",
    "ROW_BUSY",
)


def module():
    return InferType()(parse(TEXT))


def params(*wanted: str):
    return [param for param in module()["main"].params if param.name_hint in wanted]


def test_samples_are_cut_to_launches() -> None:
    data = {"x": np.arange(3 * 144).reshape(3, 4, 6, 6), "labels": np.array([1, 2, 3], np.int32)}
    found = read_samples(params("x"), data, "test data", 2)
    assert found.inputs["x"].shape == (2, 1, 4, 6, 6) and found.inputs["x"].dtype == np.float32
    assert (found.count, found.launches) == (2, 2) and found.labels is not None and found.labels.tolist() == [1, 2]
    with_batch = {**data, "x": data["x"][:, None]}
    assert read_samples(params("x"), with_batch, "test data", 2).digest() == found.digest()
    assert read_samples(params("x"), data, "test data").digest() != found.digest()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": None}, r"test data must hold input x, not only labels"),
        ({"x": np.zeros((3, 4, 6))}, r"test data: input x must have the shape \(N, 4, 6, 6\), not \(3, 4, 6\)"),
        (
            {"x": np.zeros((0, 4, 6, 6)), "labels": np.zeros(0, int)},
            r"test data must hold at least 1 sample\(s\), not 0",
        ),
        ({"x": np.full((3, 4, 6, 6), "a")}, r"test data: input x must be float32, not <U1"),
        (
            {"x": np.full((3, 4, 6, 6), np.nan)},
            r"test data: input x must hold finite numbers, not NaN \(sample 0, index \(0, 0, 0\)\)",
        ),
        ({"labels": np.zeros(2, int)}, r"test data: labels must be 3 integers, one for each sample, not int64\[2\]"),
        ({"labels": np.zeros(3)}, r"test data: labels must be 3 integers, one for each sample, not float64\[3\]"),
        ({"targets": np.zeros(2)}, r"test data: targets must be 3 rows of numbers, one for each sample"),
    ],
)
def test_wrong_samples_are_refused(change: dict, sentence: str) -> None:
    data = {"x": np.zeros((3, 4, 6, 6)), "labels": np.zeros(3, int)} | change
    with pytest.raises(InputError, match=sentence):
        read_samples(params("x"), {k: v for k, v in data.items() if v is not None}, "test data")


@given(values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_histograms_hold_every_value_in_any_order(values: list[float], seed: int) -> None:
    one, other = Counter(), Counter()
    one.update(np.array(values))
    for value in np.random.default_rng(seed).permutation(np.array(values)):
        other.update(np.array([value]))
    found = one.result()
    assert sum(found.counts) == len(values) and 0 < len(found.counts) <= BINS
    assert found.low <= min(values) and max(values) <= found.high
    if min(map(abs, values)) > 0:  # a first tensor of zeros reaches less than one with values
        assert other.result() == found


def test_energy_of_the_sources_own_memories() -> None:
    for size, picojoules in SRAM:
        assert access(size, 8) == pytest.approx(picojoules)
    assert access(64 << 10, 64) == pytest.approx(8 * SRAM[0][1]), "eight memories of 8 KiB"
    assert all(figure.picojoules > 0 for figure in FIGURES)


@given(counts=st.lists(st.integers(0, 10**6), min_size=11, max_size=11), factor=st.integers(1, 9))
def test_energy_is_linear_in_counts(counts: list[int], factor: int) -> None:
    config = load_config("default")
    one = estimate(config, dict(zip(COUNTERS, counts, strict=True)), {8: 5}, {32: 7})
    many = estimate(
        config, dict(zip(COUNTERS, [factor * c for c in counts], strict=True)), {8: 5 * factor}, {32: 7 * factor}
    )
    assert many.total == pytest.approx(factor * one.total)


def test_energy_of_products_by_width() -> None:
    config, none = load_config("default"), dict.fromkeys(COUNTERS, 0)
    assert estimate(config, none, {8: 10**6}, {}).products == pytest.approx(0.3 * SHARES.products)
    assert estimate(config, none, {}, {32: 10**6}).host == pytest.approx(4.6)


def test_energy_of_registers_by_size_and_working_units() -> None:
    tiny, large, none = load_config("tiny"), load_config("default"), dict.fromkeys(COUNTERS, 0)
    assert registers(large) > 2 * registers(tiny)
    busy = estimate(tiny, {**none, "CYCLES": 5, "LOAD_BUSY": 10**6, "COMPUTE_BUSY": 10**6}, {}, {})
    assert busy.registers == busy.on_chip == busy.total == pytest.approx(2 * registers(tiny) * SHARES.registers)


def test_energy_of_rows_by_cycles_of_their_unit() -> None:
    none = dict.fromkeys(COUNTERS, 0)
    with_unit, without = (
        estimate(load_config(name), {**none, "ROW_BUSY": 10**6}, {}, {}) for name in ("default", "ecp5")
    )
    assert with_unit.output == pytest.approx(4 * (2 * 3.1 + 0.1) * SHARES.output)
    assert with_unit.scratchpads > 0 and without.output == 0


def test_work_counts_macs_and_weights() -> None:
    work = network_work(module())
    assert [layer.macs for layer in work.layers] == [8 * 36 * 2 * 9, 40]
    assert [layer.weights for layer in work.layers] == [144, 40]
    assert stored_bytes(module(), load_config("default")) == 4 * 184


def test_widths_of_weights() -> None:
    assert weight_bits(np.array([-8, 7], np.int8)) == 4
    assert weight_bits(np.array([-8, 8], np.int8)) == 8
    assert weight_bits(np.array([0], np.int16)) == 16
    assert weight_bits(np.zeros(3, np.float32)) == 32


@pytest.mark.parametrize(
    ("strategy", "on", "sentence"),
    [
        ("int8", "default tiny w4 ecp5w4 wide", ""),
        ("w4a8", "default ecp5 w4 ecp5w4 wide", ""),
        ("w4a8", "tiny", "4-bit weights as 8-bit ones"),
        ("w4a4", "default w4", "4-bit activations as 8-bit ones"),
        ("w4a4", "tiny", "4-bit weights as 8-bit ones, 4-bit activations as 8-bit ones"),
        ("w2a8-gptq", "w4 ecp5w4", ""),
        ("w2a8-gptq", "default ecp5", "2-bit weights as 4-bit ones"),
        ("w4g16a8-gptq", "default ecp5 ecp5x2", ""),
        ("w4g16a8-gptq", "w4 ecp5w4 wide tiny", "4-bit weights in groups of 16 as 8-bit ones"),
        ("w2g16a8-gptq", "w4 ecp5w4", ""),
        ("w2g16a8-gptq", "default ecp5 wide", "2-bit weights in groups of 16 as 4-bit ones"),
        ("mixed", "default w4", ""),
        ("mixed", "tiny", "4-bit weights as 8-bit ones"),
        (Strategy("w3", weight_bits=3), "default w4", "3-bit weights as 4-bit ones"),
        (Strategy("w6", weight_bits=6), "default w4", "6-bit weights as 8-bit ones"),
        (Strategy("l", layers=(LayerChoice("x", weight_bits=5),)), "default", "5-bit weights as 8-bit ones"),
    ],
)
def test_widths_that_are_held_in_wider_numbers_say_so(strategy: str | Strategy, on: str, sentence: str) -> None:
    found = {name: no_gain(find_strategy(strategy), load_config(name)) for name in on.split()}
    assert found == {name: f"no gain on {name}: {sentence}" if sentence else "" for name in on.split()}


POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12)


@given(places=POINTS)
def test_the_front_is_what_nobody_beats(places: list[tuple[int, int]]) -> None:
    points = [Point(f"p{n}", x, y) for n, (x, y) in enumerate(places)]
    front, steps = unbeaten(points), {(p.x, p.y) for p in staircase(points)}
    for point in points:
        beaten = any((a <= point.x and b >= point.y) and (a, b) != (point.x, point.y) for a, b in places)
        assert (point in front) == ((point.x, point.y) in steps) == (not beaten)


def test_as_dear_and_better_by_chance_is_no_better() -> None:
    first, second = Point("a", 5, 0.97, (0.95, 0.99)), Point("b", 5, 0.99, (0.98, 1.0))
    clearly, cheaper = Point("c", 5, 0.90, (0.88, 0.92)), Point("d", 4, 0.97, (0.95, 0.99))
    assert unbeaten([first, second, clearly]) == [first, second]
    assert unbeaten([first, second, cheaper]) == [second, cheaper], "as good for less beats"
    assert not replace(cheaper, is_partial=True).beats(first), "what leaves out a part beats nobody"


@given(places=POINTS)
def test_plots_hold_every_point_and_its_name(places: list[tuple[int, int]]) -> None:
    points = [Point(f"<{n}>", x, y, (y - 1, y + 1), key=(f"<{n}>", "")) for n, (x, y) in enumerate(places)]
    rows = {point.key: number for number, point in enumerate(points)}
    found = pareto_plot(points, Axes("x & y", "y", str, str), ("<0>", ""), rows)
    assert sorted(dot.row for dot in found.dots) == sorted(label.row for label in found.labels) == [*range(len(points))]
    area = found.area
    for dot in found.dots:
        name, interval = points[dot.row].name, dot.interval
        assert interval is not None and interval[0] > dot.y > interval[1], "better is up"
        assert dot.tip.startswith(f"{name}: ") and dot.radius == (6.5 if name == "<0>" else 4.5)
        assert area.left <= dot.x <= area.right and area.top <= dot.y <= area.bottom
    assert {label.text for label in found.labels} == {p.name + (" ★" if p.name == "<0>" else "") for p in points}
    assert [*found.steps] == sorted(found.steps, key=lambda at: (at[0], -at[1])), "dearer and better"


@given(low=st.floats(-1e9, 1e9), width=st.floats(1e-3, 1e9))
def test_ticks_lie_inside(low: float, width: float) -> None:
    high = low + width
    ticks = nice_ticks(low, high)
    slack = 1e-6 * (abs(low) + abs(high))
    assert len(ticks) <= 6 and all(low - slack <= tick <= high + slack for tick in ticks)


def test_histogram_pictures() -> None:
    clips = {"a": (-1.0, 1.0), "b": (-100.0, 100.0), "c": None}
    found = ranges(Histogram(-2.0, 2.0, (1, 4, 9, 0)), clips, "a")
    assert found is not None
    assert [(row.name, row.is_best, len(row.ends)) for row in found.rows] == [("a", True, 2), ("b", False, 0)]
    assert found.clips == found.rows[0].ends, "dashed where the best strategy's range ends"
    # Square roots: 1, 2 and 3 of 3 in height, then nothing.
    area, heights = found.area, [y for _, y in found.steps]
    assert [(area.bottom - y) / (area.bottom - area.top) for y in heights] == pytest.approx([1 / 3, 2 / 3, 1, 0])
    assert ranges(Histogram(0.0, 0.0, ()), clips, None) is None


def test_short_names_differ() -> None:
    names = ["a;b", "a;c", "x" * 60 + "1", "x" * 60 + "2", "plain"]
    found = short_names(names, 20)
    assert len(set(found.values())) == len(names) and found["plain"] == "plain"
    assert all(len(name) <= 23 for name in found.values())
    assert short_names(["model/a_long_block_1/Op;b", "model/a_long_block_2/Op"], 18) == {
        "model/a_long_block_1/Op;b": "…/Op",
        "model/a_long_block_2/Op": "…/Op #2",
    }
    assert short_names(["model/block_1/Op;b"], 12)["model/block_1/Op;b"] == "…/block_1/Op"


def test_the_store_gives_back_only_what_it_wrote(tmp_path: Path) -> None:
    store, key = Store(tmp_path / "work"), key_of("a", 1)
    assert store.read("row/1", key) is None
    store.write("row/1", key, {"x": [1.5, None]})
    assert store.read("row/1", key) == {"x": [1.5, None]}
    assert store.read("row/1", key_of("a", 2)) is None
    path = store.path("row/1", key, ".json")
    content = json.loads(path.read_text())
    content["content"]["x"][0] = 2.5
    path.write_text(json.dumps(content))
    assert store.read("row/1", key) is None, "changed content does not fit its hash"
    path.write_bytes(path.read_bytes()[:20])
    assert store.read("row/1", key) is None
    assert not list(store.folder.glob(".*")), "no temporary file stays"


def test_a_process_of_other_sources_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    there = pickle.loads(pickle.dumps(with_same_sources(int)))
    assert there() == 0
    monkeypatch.setattr("relay_hw.compare.store.sources", lambda: "other")
    with pytest.raises(InputError, match="a worker must have the relay_hw of this process, not another: "):
        there()


def test_arrays_in_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep_arrays("f", "k" * 64, {"test": np.arange(3)})
    found = store.read_arrays("f", "k" * 64)
    assert found is not None and found["test"].tolist() == [0, 1, 2]
    assert store.read_arrays("f", "k" * 16 + "l" * 48) is None
    path = store.path("f", "k" * 64, ".arrays")
    path.write_bytes(path.read_bytes()[:-1])
    assert store.read_arrays("f", "k" * 64) is None


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"work folder .* must be writable"):
        Store(tmp_path / "file" / "work")
