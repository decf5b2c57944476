"""Random networks of all that the accelerator runs, on drawn hardware: interpreter, simulators and Verilog agree.

A network that fails is made small and printed; kept as a file of `found`, it is judged again by every run of the suite.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from relay_hw.accel.sim.device import Bytes
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.target.accel.composites import COMPOSITES
from relay_hw.target.accel.move_groups import MOVES
from relay_hw.target.accel.pair_groups import NAME
from tests.networks import judge as judge_module
from tests.networks.draw import draw
from tests.networks.judge import Judged, compiled_of, judge
from tests.networks.recipe import Kind, Recipe, read
from tests.networks.reduce import reduced
from tests.networks.shapes import shapes

# The networks that run everywhere; those that are compiled alone, so that the proofs of twice as many are seen.
MANY, COMPILED, A_CHUNK = 500, 1000, 25
# Simplification writes both as a reshape before anything is quantized.
NEVER_LEFT = {"expand_dims", "squeeze"}


def judged(recipe: Recipe, verilog: bool) -> Judged:
    """What ran where. A failure says how to try the smallest network that fails alike."""
    try:
        return judge(recipe, verilog)
    except Exception as error:
        sort = _sort(error)
        small = reduced(recipe, lambda one: _failure(one, verilog) == sort)
        raise AssertionError(
            f"{error}\n\nseed {recipe.seed}, made small: keep it in tests/networks/found\n{small}"
        ) from error


def _failure(recipe: Recipe, verilog: bool) -> str | None:
    try:
        judge(recipe, verilog)
    except Exception as error:
        return _sort(error)
    return None


def _sort(error: Exception) -> str:
    """What a failure has in common with that of a smaller network: its type and the first word of its sentence."""
    return f"{type(error).__name__} {str(error).split(' ')[0]}"


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    judged(draw(seed), verilog=False)


def test_random_networks_in_verilog() -> None:
    plain = [recipe for recipe in map(draw, range(60)) if recipe.base == "tiny" and not recipe.changes]
    assert sum(judged(recipe, verilog=True).in_verilog for recipe in plain[:3]) >= 2


def test_what_was_found_stays_mended() -> None:
    for path in sorted((Path(__file__).parent / "found").glob("*.txt")):
        print(path.stem)
        judge(read(path.read_text()), verilog=True)


SEEN: Counter[str] = Counter()
PROVED: Counter[str] = Counter()


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, MANY, A_CHUNK))
def test_many_networks(first: int) -> None:
    for seed in range(first, first + A_CHUNK):
        found = judged(draw(seed), verilog=True)
        SEEN.update([*found.composites, *found.operators, *["in Verilog"] * found.in_verilog])


@pytest.mark.long
@pytest.mark.parametrize("first", range(MANY, COMPILED, A_CHUNK))
def test_more_networks_are_proved(first: int) -> None:
    """A network that compiles is proved with it: the proof raises no alarm about programs that are right."""
    for seed in range(first, first + A_CHUNK):
        segments = compiled_of(draw(seed)).segments
        assert all(segment.certificate for segment in segments.values())
        PROVED.update(segments=len(segments), networks=1)
    print(f" {PROVED['segments']} programs of {PROVED['networks']} networks proved", end="")


@pytest.mark.long
def test_every_operator_was_drawn() -> None:
    """After `test_many_networks`: what composites are made of ran on the device."""
    names = {name for one in COMPOSITES for name in (one.name, one.anchor, *one.before, *one.after)}
    print("\n", ", ".join(f"{name} {count}" for name, count in SEEN.most_common()))
    assert {*names, "accel.move", NAME, *MOVES} - NEVER_LEFT <= {*SEEN}
    assert SEEN["in Verilog"] >= MANY // 10


def test_recipes_print_as_what_they_are_read_from() -> None:
    for seed in range(200):
        recipe = draw(seed)
        assert read(f"# seed {seed}\n{recipe}") == recipe
        assert {*shapes(recipe)} == {"x", *(layer.name for layer in recipe.layers)}


def test_every_kind_is_drawn() -> None:
    assert {layer.kind for seed in range(200) for layer in draw(seed).layers} == {*Kind}


def test_a_failing_network_is_made_small() -> None:
    """A made-up mistake of max pools whose results are added to something: two layers show it."""

    def fails(recipe: Recipe) -> bool:
        pools = {layer.name for layer in recipe.layers if layer.kind is Kind.MAX_POOL}
        return any(layer.kind is Kind.ADD and pools & {*layer.inputs} for layer in recipe.layers)

    failing = [recipe for recipe in map(draw, range(400)) if fails(recipe) and len(recipe.layers) > 4]
    assert len(failing) >= 3
    for recipe in failing[:3]:
        small = reduced(recipe, fails)
        assert [layer.kind for layer in small.layers] == [Kind.MAX_POOL, Kind.ADD]
        assert small.shape == (1, 1, 1, 1) and not small.changes and len(small.results) == 1


def test_a_wrong_network_is_told_with_its_smallest_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that gives every byte with another low bit: one layer of one channel shows it."""

    class Wrong(FunctionalDevice):
        def read(self, offset: int, size: int) -> Bytes:
            return super().read(offset, size) ^ 1

    monkeypatch.setattr(judge_module, "FunctionalDevice", Wrong)
    seed = next(n for n in range(100) if len(draw(n).layers) == 3)
    with pytest.raises(
        AssertionError, match=r"functional: result 0 of accel_0 has .* other than the interpreter's"
    ) as told:
        judged(draw(seed), verilog=False)
    text = str(told.value)
    assert f"seed {seed}, made small: keep it in tests/networks/found" in text
    small = read(text[text.index("\nseed", text.index("made small")) + 1 :])
    assert len(small.layers) == 1 and len(small.results) == 1 and small.strategy == "int8"
