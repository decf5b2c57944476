"""Mistakes of a scheduler in compiled programs: all that change what a program does are refused before anything runs.

What neither the check nor the proof refuses is proven to have no effect by both of them: every output byte is the same
term, in every order of the units that the tokens leave. That it runs as before is seen as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from relay_hw.accel.isa.fields import Field, Layout
from relay_hw.accel.isa.spec import INSTRUCTIONS, PRM, UOP
from tests.schedule_mutants.judge import Refusal, Verdict, difference_of, judge
from tests.schedule_mutants.mutations import Kind, Mutant, field_mutant, mutant, targets
from tests.schedule_mutants.subjects import REGIONS, Subject, subject

ROOT = Path(__file__).parents[2]
# Mutants that change what a program does.
COUNT = 1000
SAMPLE = ("residual on tiny", "image on ecp5", "depthwise on w4")
# Draws until a program has a place for a mutant.
_TRIES = 300


def judged(subjects: list[Subject], rng: Random, rounds: int) -> Iterator[tuple[Mutant, Verdict]]:
    """In each round a mutant of every field, and as many of all other kinds together."""
    fields = list(targets())
    others = [kind for kind in Kind if kind not in (Kind.FIELD, Kind.RECORD)]
    for _ in range(rounds):
        for number, (layout, field) in enumerate(fields):
            for kind in (None, others[number % len(others)]):
                found = _drawn(subjects, rng, kind, layout, field)
                if found is not None:
                    own, changed = found
                    yield changed, judge(own, changed.segment)


def _drawn(
    subjects: list[Subject], rng: Random, kind: Kind | None, layout: Layout, field: Field
) -> tuple[Subject, Mutant] | None:
    for _ in range(_TRIES):
        own = rng.choice(subjects)
        made = field_mutant(own.segment, layout, field, rng) if kind is None else mutant(kind, own.segment, rng)
        if made is not None:
            return own, made
    return None


def test_sound_programs_run_as_the_interpreter() -> None:
    """Whatever lies where they must not look."""
    for name in SAMPLE:
        own = subject(name)
        assert difference_of(own, own.segment) == ""


def test_a_sample_of_mutants() -> None:
    """Each is refused, or runs as before; most change something."""
    subjects = [subject(name) for name in SAMPLE]
    found = [(one, verdict) for (one, verdict), _ in zip(judged(subjects, Random(1), 1), range(80), strict=False)]
    assert [f"{one.what}: {verdict.difference}" for one, verdict in found if verdict.is_missed] == []
    assert sum(bool(verdict.difference) for _, verdict in found) > 40
    assert {verdict.refusal for _, verdict in found} == {*Refusal}


def test_every_field_of_the_tables_is_changed_somewhere() -> None:
    """An instruction that is new needs a region that uses it; its fields then have mutants."""
    subjects = [subject(name) for name in REGIONS]
    rng = Random(0)
    for layout, field in targets():
        assert _drawn(subjects, rng, None, layout, field) is not None, f"no region uses {layout.name}.{field.name}"
    assert len(list(targets())) == sum(len(row.fields) for row in (*(one.layout for one in INSTRUCTIONS), UOP, PRM))


def test_the_page_says_how_many() -> None:
    page = (ROOT / "docs" / "verification.md").read_text()
    assert f"{COUNT:,} mistakes of a scheduler" in page and "`make test-schedule-mutants`" in page


@pytest.mark.long
def test_no_mutant_that_changes_something_is_missed() -> None:
    subjects = [subject(name) for name in REGIONS]
    fates: Counter[tuple[Kind, Refusal, bool]] = Counter()
    fields: Counter[tuple[str, str]] = Counter()
    missed: list[str] = []
    for one, verdict in judged(subjects, Random(2026), rounds=20):
        fates[one.kind, verdict.refusal, bool(verdict.difference)] += 1
        fields.update([one.field] if one.field else [])
        missed += [f"{one.what}: {verdict.difference}"] if verdict.is_missed else []
        changing = sum(count for (_, _, differs), count in fates.items() if differs)
        if changing >= COUNT and len(fields) == len(list(targets())):
            break
    print(table(fates))
    assert missed == []
    assert changing >= COUNT and {*fields} == {(layout.name, field.name) for layout, field in targets()}
    assert {kind for kind, _, _ in fates} == {*Kind}


def table(fates: Counter[tuple[Kind, Refusal, bool]]) -> str:
    """Of each kind: refused by whom, and what is proven to change nothing."""
    lines = [f"{'check':>7}{'proof':>7}{'unseen':>7}{'proven':>7}{'missed':>7}"]
    for kind in (*Kind, None):
        own = Counter[str]()
        for (other, refusal, differs), count in fates.items():
            if kind in (other, None):
                own[_column(refusal, differs)] += count
        counts = (own[name] for name in ("check", "proof", "unseen", "proven", "missed"))
        lines.append("".join(f"{count:7,}" for count in counts) + f"  {kind.value if kind else 'all'}")
    return "\n".join(lines)


def _column(refusal: Refusal, differs: bool) -> str:
    """ "unseen": refused, but in no order that was tried a result is other than before."""
    if refusal is Refusal.NEITHER:
        return "missed" if differs else "proven"
    return refusal.value if differs else "unseen"
