"""Counterfactuals: each is what the Verilog built that way takes; losses add up; bounds are bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.models import find
from examples.models.builder import INPUT
from examples.models.builder import images as draw_images
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import ConfigError
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.dram_timing import MEMORY_MODELS
from relay_hw.accel.sim.rtl_device import RtlDevice
from relay_hw.errors import InputError
from relay_hw.frontend import from_onnx
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.explanation import Explanation, Outcome
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.why import LEAST, explain
from relay_hw.target.accel.changes import Change, read_change, usual_changes

Build = tuple[CompiledModel, Artifact]
STANDARD = MEMORY_MODELS["standard"]
# Changes of the memory alone need no other Verilog.
QUICK = [Change("half the latency", memory={"latency": 50}), Change("one read", memory={"read_outstanding": 1})]


def rtl_cycles(outcome: Outcome) -> int:
    """Cycles of all regions on the Verilog with the changed sizes and memory."""
    device = RtlDevice(outcome.config, outcome.memory)
    total = 0
    try:
        for program in outcome.programs.values():
            device.load(program)
            if program.resident is not None:
                device.launch(SectionKind.RESIDENT)
            total += device.launch().cycles or 0
    finally:
        device.close()
    return total


@pytest.fixture(scope="module")
def explained(plain: Build) -> Explanation:
    return explain(plain[1])


def test_changes_of_the_memory_are_what_the_verilog_takes(plain: Build) -> None:
    found = explain(plain[1], changes=QUICK)
    cycles = [outcome.cycles for outcome in found.outcomes]
    assert cycles == [rtl_cycles(outcome) for outcome in found.outcomes]
    assert cycles[0] is not None and cycles[1] is not None
    assert cycles[0] < found.cycles <= cycles[1]


@pytest.mark.long
def test_every_usual_change_is_what_the_verilog_built_that_way_takes(tmp_path: Path) -> None:
    """On a network that is larger than the scratchpads of `tiny`, so that most changes matter."""
    mod, params = from_onnx(find("resnet8").model())
    data = {INPUT: draw_images((3, 32, 32), 1, seed=1)}
    artifact = compile_model(mod, CompileOptions(config="tiny", name="resnet8"), params=params, calibration=data).save(
        tmp_path / "build"
    )
    found = explain(artifact, "narrow", usual_changes(artifact.config, MEMORY_MODELS["narrow"]))
    assert len(found.outcomes) >= 10
    for outcome in found.outcomes:
        assert outcome.cycles == rtl_cycles(outcome), outcome.change.text
        print(f"\n{outcome.change.text}: {outcome.cycles:,} cycles on the simulator and on the Verilog", end=" ")
    assert len({outcome.cycles for outcome in found.outcomes}) >= 8


def test_losses_add_up_and_the_largest_comes_first(explained: Explanation) -> None:
    losses = {loss.cause: loss.cycles for loss in explained.losses}
    assert losses == {cause: cycles for cause, cycles in explained.report.stalls.items() if cycles}
    assert list(losses.values()) == sorted(losses.values(), reverse=True)
    products = explained.cycles - sum(losses.values())
    assert products >= explained.report.macs // explained.report.macs_per_cycle
    for loss in explained.losses:
        assert 0 < sum(cycles for _, cycles in loss.layers) <= loss.cycles
        assert sum(loss.parts.values()) == (loss.cycles if loss.parts else 0)


def test_every_loss_that_counts_has_changes_that_may_help(explained: Explanation) -> None:
    causes = {cause for outcome in explained.outcomes for cause in outcome.change.causes}
    assert {loss.cause for loss in explained.losses if loss.cycles >= LEAST * explained.cycles} <= causes


def test_what_a_change_does_adds_up_by_cause(explained: Explanation) -> None:
    assert explained.spent.cycles == explained.cycles
    assert explained.spent.traffic == explained.report.traffic
    assert len({outcome.cycles for outcome in explained.outcomes}) > 2
    for outcome in explained.outcomes:
        assert outcome.cycles is not None
        assert sum(explained.effect(outcome).values()) == outcome.cycles - explained.cycles
        sentence = explained.sentence(outcome)
        assert sentence.startswith(outcome.change.text)
        more = outcome.cycles - explained.cycles
        assert (f"{'costs' if more > 0 else 'saves'} {abs(more):,} cycles" in sentence) == bool(more)


def test_a_change_that_makes_it_worse_says_why(plain: Build) -> None:
    """A bus of 32 bytes pads the channels of every layer to 32."""
    _, artifact = plain
    change = read_change("axi_data_bits=256", artifact.config, STANDARD)
    found = explain(artifact, changes=[change, read_change("axi_data_bits=256,latency=100", artifact.config, STANDARD)])
    worse, same = found.outcomes
    assert worse.cycles == same.cycles and worse.spent is not None and worse.cycles is not None
    assert worse.cycles > found.cycles and worse.spent.traffic.written == 2 * found.report.traffic.written
    text = found.sentence(worse)
    assert text.startswith(f"axi_data_bits=256 costs {worse.cycles - found.cycles:,} cycles (")
    assert "; channels are padded to multiples of 32, not 16; " in text
    largest = max(found.effect(worse).items(), key=lambda item: item[1])
    assert f"{largest[0]} {largest[1]:+,}" in text
    before, after = found.report.traffic.instructions, worse.spent.traffic.instructions
    assert (f"instructions {before:,} -> {after:,} bytes" in text) == (after > 1.2 * before)


def test_a_change_is_tried_once(plain: Build) -> None:
    _, artifact = plain
    texts = ["latency=50", "latency=50", "latency=50,queue_depth=16"]
    changes = [read_change(text, artifact.config, STANDARD) for text in texts]
    found = explain(artifact, changes=[*changes, Change("half the latency", memory={"latency": 50})])
    assert [outcome.change.text for outcome in found.outcomes] == [texts[0], texts[2]]


def test_bounds_hold(explained: Explanation) -> None:
    cycles = [bound.cycles for bound in explained.bounds]
    assert cycles == sorted(cycles, reverse=True) and len(cycles) == 6
    assert cycles[0] < explained.cycles and cycles[-1] > 0


def test_programs_are_compiled_anew_only_where_they_must_be(plain: Build) -> None:
    _, artifact = plain
    changes = [Change("queues", sizes={"queue_depth": 32}), Change("wgt", sizes={"wgt_depth": 2048})]
    same, anew = explain(artifact, changes=changes).outcomes
    program = artifact.programs["accel_0"]
    assert [change.recompiles for change in changes] == [False, True]
    assert same.programs["accel_0"].code == program.code
    assert same.programs["accel_0"].config_hash == same.config.hash32 != program.config_hash
    anew.programs["accel_0"].check_config(anew.config)
    assert anew.config.wgt_depth == 2048 and anew.cycles


def test_what_cannot_be_had_says_why(plain: Build) -> None:
    (outcome,) = explain(plain[1], changes=[Change("small", sizes={"acc_depth": 32, "wgt_depth": 8})]).outcomes
    assert outcome.cycles is None and "must" in outcome.reason and outcome.programs == {}


def test_usual_changes_are_hardware_that_could_be() -> None:
    for name in ("tiny", "default", "ecp5", "wide"):
        config = load_config(name)
        changes = usual_changes(config, STANDARD)
        assert len({change.text for change in changes}) == len(changes) >= 10
        for change in changes:
            assert bool(change.sizes) != bool(change.memory)
            again = read_change(change.asked, config, STANDARD)
            assert (again.sizes, again.memory) == (change.sizes, change.memory)
            assert change.config(config).hash32 != config.hash32 or change.memory_model(STANDARD) != STANDARD
    # A bus wider than an instruction does not exist.
    assert not any("axi_data_bits" in change.sizes for change in usual_changes(load_config("wide"), STANDARD))


def test_a_larger_scratchpad_helps_those_who_wait_for_its_loads() -> None:
    changes = {next(iter(c.sizes), ""): c for c in usual_changes(load_config("default"), STANDARD)}
    assert changes["wgt_depth"].may_help({"bus"}, {"wgt"}) and not changes["wgt_depth"].may_help({"bus"}, {"inp"})
    assert changes["wgt_depth"].may_help({"queue"}, set()) and not changes["inp_depth"].may_help({"queue"}, set())
    assert changes["axi_data_bits"].may_help({"bus"}, set()) and not changes["axi_data_bits"].may_help(
        {"output"}, set()
    )
    assert changes["out_depth"].may_help({"store"}, set())


def test_changes_are_read_from_text() -> None:
    tiny = load_config("tiny")
    change = read_change("axi_data_bits=128, latency=50,memory_reads=4", tiny, STANDARD)
    assert change.sizes == {"axi_data_bits": 128} and change.memory == {"latency": 50, "read_outstanding": 4}
    assert change.config(tiny).axi_data_bits == 128 and change.memory_model(STANDARD).latency == 50


BAD: Sequence[tuple[str, type[Exception], str]] = [
    ("bus=128", InputError, "a change must be one of acc_banks, .*, not bus"),
    ("latency", InputError, "change of latency must be an integer, not nothing"),
    ("latency=fast", InputError, "change of latency must be an integer, not fast"),
    ("latency=0", ConfigError, "latency must be from 1 to 65535, not 0"),
    ("wgt_depth=1000", ConfigError, "wgt_depth must be a power of two from 8 to 65536, not 1000"),
]


@pytest.mark.parametrize(("text", "error", "sentence"), BAD)
def test_bad_changes_are_refused(text: str, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        read_change(text, load_config("tiny"), STANDARD)


def test_a_board_memory_is_what_the_verilog_takes_and_bounds_hold_on_it(plain: Build) -> None:
    change = Change("half the latency", memory={"latency": 4})
    found = explain(plain[1], "ulx3s", [change])
    assert found.outcomes[0].cycles == rtl_cycles(found.outcomes[0])
    bounds = {bound.text: bound.cycles for bound in found.bounds}
    assert 0 < max(bounds.values()) <= found.cycles
    assert bounds["nothing but reads and writes on the memory chip"] > 0
    usual = usual_changes(plain[1].config, MEMORY_MODELS["ulx3s"])
    assert not any("in flight in the memory" in one.text for one in usual)
