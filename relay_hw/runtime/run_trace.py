"""Writes when host functions and launches of a run took place in Chrome's trace format, for Perfetto.

In: a `Result`. Out: JSON-able events in microseconds, a row for each place where something ran.
"""

from __future__ import annotations

from typing import Any

from relay_hw.runtime.result import Result


def run_timeline(result: Result) -> dict[str, Any]:
    """Events of a run, from its start; two rows show what ran at the same time."""
    places = list(dict.fromkeys(span.where for span in result.spans))
    events: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": row, "args": {"name": place}}
        for row, place in enumerate(places)
    ]
    for span in result.spans:
        events.append(
            {
                "name": span.function,
                "cat": span.where,
                "ph": "X",
                "pid": 0,
                "tid": places.index(span.where),
                "ts": 1e6 * span.begin,
                "dur": 1e6 * (span.end - span.begin),
                "args": {"sample": span.sample},
            }
        )
    return {"displayTimeUnit": "ms", "traceEvents": events}
