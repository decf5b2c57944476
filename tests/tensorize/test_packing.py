"""What stays of several regions: within the memories, with room for what streams, and what saves most first."""

from __future__ import annotations

from types import SimpleNamespace

import hypothesis.strategies as st
from hypothesis import given

from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.isa.state import element_bytes
from relay_hw.accel.isa.stream import decode_instructions
from relay_hw.target.accel.residency import NO_LOADS, Footprints
from relay_hw.target.accel.steady import steady
from relay_hw.tensorize import Plan
from relay_hw.tensorize.commands import Buffer
from relay_hw.tensorize.emit.draft import Draft
from relay_hw.tensorize.packing import _filled, _Part, packings  # pyright: ignore[reportPrivateUsage]
from relay_hw.tensorize.refine import Refiner
from relay_hw.tensorize.schedule.resident import constant_depths, entries_of, total_entries
from relay_hw.tensorize.tiles.tile_cost import Constants
from tests.targets import target_for

DEFAULT = target_for("default")
MEMS = (Mem.WGT, Mem.UOP, Mem.PRM)


@st.composite
def networks(draw: st.DrawFn) -> dict[str, tuple[Buffer, ...]]:
    """Constant buffers of some regions."""
    found: dict[str, tuple[Buffer, ...]] = {}
    for name in "abcde"[: draw(st.integers(1, 5))]:
        sizes = draw(st.lists(st.tuples(st.sampled_from(MEMS), st.integers(1, 400)), max_size=9))
        found[name] = tuple(
            Buffer((name, k), mem, min(size, constant_depths(DEFAULT)[mem]), data=b"")
            for k, (mem, size) in enumerate(sizes)
        )
    return found


@given(networks(), st.integers(1, 4), st.permutations("abcde"))
def test_what_stays_leaves_room_for_what_streams(
    constants: dict[str, tuple[Buffer, ...]], times: int, order: list[str]
) -> None:
    parts = [_Part(name, constants[name], 1.0) for name in order if name in constants]
    kept = _filled(parts, constants, DEFAULT, times)
    everything = [buffer for own in constants.values() for buffer in own]
    stays = [buffer for own in kept.values() for buffer in own]
    wanted, total = total_entries(everything, DEFAULT), total_entries(stays, DEFAULT)
    for mem, depth in constant_depths(DEFAULT).items():
        if wanted[mem] <= depth:
            assert total[mem] == wanted[mem]
        else:
            most = max(entries_of(buffer, DEFAULT) for buffer in everything if buffer.mem is mem)
            assert total[mem] <= max(0, depth - times * most)
    for name, own in kept.items():
        for mem in MEMS:
            before = [buffer for buffer in constants[name] if buffer.mem is mem]
            mine = [buffer for buffer in own if buffer.mem is mem]
            assert mine == before[: len(mine)]


def test_the_part_that_saves_most_for_its_size_goes_first() -> None:
    own = {name: tuple(Buffer((name, k), Mem.WGT, 200, data=b"") for k in range(4)) for name in "ab"}
    kept = _filled([_Part("b", own["b"], 2.0), _Part("a", own["a"], 1.0)], own, DEFAULT, 1)
    assert {name: len(buffers) for name, buffers in kept.items()} == {"a": 0, "b": 4}


def touched(draft: Draft, resident: bool) -> dict[Mem, set[int]]:
    """Entries of the memories of constants that a stream of a draft loads."""
    found = {mem: set[int]() for mem in MEMS}
    for op, values in draft.resident if resident else draft.instructions:
        if op is Op.LOAD and values["mem"] in found:
            mem = Mem(values["mem"])
            size = values["z"] * values["y"] * values["x"] * DEFAULT.granule_bytes
            found[mem] |= set(range(values["sram"], values["sram"] - (-size // element_bytes(DEFAULT, mem))))
    return found


def test_regions_leave_what_stays_of_others_alone(kit: SimpleNamespace) -> None:
    """Three dense layers whose weights are one and a half times the memory, and one that is launched ten times."""
    plans: dict[str, Plan] = {}
    for number, (inputs, units) in enumerate([(512, 256), (256, 512), (512, 256), (256, 128)]):
        build = kit.Regions(number, DEFAULT)
        name = f"accel_{number}"
        plans[name] = Plan(build.function(build.dense(build.input(inputs), units)), DEFAULT, name)
    launches = {"accel_0": 1, "accel_1": 1, "accel_2": 1, "accel_3": 10}
    found = list(packings(plans, launches, DEFAULT))
    assert found
    for drafts in found:
        kept = [touched(draft, resident=True) for draft in drafts.values()]
        for mem in MEMS:
            everything = {entry for own in kept for entry in own[mem]}
            for draft in drafts.values():
                assert not touched(draft, resident=False)[mem] & everything
        assert not touched(drafts["accel_3"], resident=False)[Mem.WGT], "what is launched most stays whole"
        total = sum(draft.cycles * launches[name] for name, draft in drafts.items())
        assert total < sum(plan.plain.cycles * launches[name] for name, plan in plans.items())
        programs = [plans[name].segment(draft).program for name, draft in drafts.items()]
        assert all(decode_instructions(program.resident.data or b"") for program in programs if program.resident)
        footprints = Footprints(DEFAULT)
        loads = [footprints.of(program).resident or NO_LOADS for program in programs]
        assert not any(one.spoils(other) for one in loads for other in loads)


def test_regions_with_equal_constants_have_them_in_one_place(kit: SimpleNamespace) -> None:
    """Forms of a fragment: the same weights for 1, 8 and 24 rows."""
    plans: dict[str, Plan] = {}
    for rows in (1, 8, 24):
        build = kit.Regions(3, DEFAULT)
        function = build.function(build.rows(build.tensor(rows, 128), 256))
        plans[f"accel_{rows}"] = Plan(function, DEFAULT, f"accel_{rows}", choose=Refiner(Constants.SHARED))
    (drafts,) = packings(plans, dict.fromkeys(plans, 1), DEFAULT)
    kept = [touched(draft, resident=True) for draft in drafts.values()]
    for mem in (Mem.WGT, Mem.PRM):
        assert kept[0][mem] and kept[0][mem] == kept[1][mem] == kept[2][mem]
    footprints = Footprints(DEFAULT)
    programs = {name: plans[name].segment(draft).program for name, draft in drafts.items()}
    state = steady(footprints, programs, (*programs, *programs))
    assert not any(state.reloads) and not any(footprints.of(one).code.entries.size for one in programs.values())
