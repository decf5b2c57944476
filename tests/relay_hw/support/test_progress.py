"""Progress: steps with and without parts, inside of one another, with labels; what is left."""

from __future__ import annotations

from relay_hw.cli.console import Console
from relay_hw.support.progress import IDLE, SILENT, Labelled, Progress, ProgressStep, Steps
from tests.told import told


def test_a_step_says_how_far_it_is() -> None:
    assert ProgressStep("importing").text == "importing" and ProgressStep("importing").share is None
    assert ProgressStep("running", 8, 2).text == "running: 2 of 8" and ProgressStep("running", 8, 2).share == 0.25
    assert ProgressStep("running", 8, 2, "@main").text == "running: 2 of 8, @main"
    assert ProgressStep("tuning", done=7).text == "tuning: 7" and ProgressStep("tuning", done=7).share is None
    assert ProgressStep("nothing to do", 0).share is None


def test_what_is_left_takes_as_long_as_what_is_done() -> None:
    assert ProgressStep("running", 8, 2).seconds_left(10.0) == 30.0
    assert ProgressStep("running", 8, 8).seconds_left(10.0) == 0.0
    assert (
        ProgressStep("running", 8).seconds_left(10.0) is None
        and ProgressStep("tuning", done=7).seconds_left(10.0) is None
    )


def test_a_step_in_a_step_does_not_lose_the_outer_one() -> None:
    lines: list[str] = []
    progress = told(lines)
    progress.started("running", 3)
    progress.advanced("running", 1)
    progress.started("sending", 100)
    progress.advanced("sending", 50)
    progress.done("sending")
    progress.advanced("running", 2, "@main")
    assert lines == ["running: 0 of 3", "running: 1 of 3", "sending: 0 of 100", "sending: 50 of 100",
                     "running: 2 of 3, @main"]  # fmt: skip


def test_nothing_is_shown_when_a_step_is_over() -> None:
    steps: list[ProgressStep] = []
    progress = Steps(steps.append)
    progress.started("building", 2)
    progress.done("building")
    assert steps[-1] is IDLE
    progress.advanced("building", 1)
    assert steps[-1] == ProgressStep("building", None, 1)


def test_labels_come_first() -> None:
    lines: list[str] = []
    progress = Labelled(told(lines), "seed 3")
    progress.started("place", 4)
    progress.advanced("place", 1)
    progress.done("place")
    assert lines == ["seed 3: place: 0 of 4", "seed 3: place: 1 of 4"]


def test_who_listens() -> None:
    listeners: list[Progress] = [SILENT, Console(as_json=False), Labelled(SILENT, "one")]
    for progress in listeners:
        progress.started("a", 1)
        progress.advanced("a", 1)
        progress.done("a")
