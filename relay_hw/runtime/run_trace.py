"""Writes when host functions and launches of a run took place in Chrome's trace format, for Perfetto.

In: a `Result`. Out: JSON-able events in microseconds, a row for each place where something ran.
"""

from __future__ import annotations

from typing import Any

from relay_hw.runtime.result import Result
from relay_hw.runtime.trace import box, named


def run_timeline(result: Result) -> dict[str, Any]:
    """Events of a run, from its start; two rows show what ran at the same time."""
    places = list(dict.fromkeys(span.where for span in result.spans))
    events = [named("thread_name", 0, row, place) for row, place in enumerate(places)]
    for span in result.spans:
        time = (1e6 * span.begin, 1e6 * span.end)
        events.append(box((0, places.index(span.where)), span.function, span.where, time, {"sample": span.sample}))
    return {"displayTimeUnit": "ms", "traceEvents": events}
