"""A `Progress` that writes down what it is told."""

from __future__ import annotations

from relay_hw.support.progress import IDLE, Progress, ProgressStep, Steps


def told(lines: list[str]) -> Progress:
    """Adds the text of every step to `lines`, whenever it changes."""

    def note(step: ProgressStep) -> None:
        if step is not IDLE:
            lines.append(step.text)

    return Steps(note)
