"""`relay-hw why`: where cycles are lost, what would change that, what stays on the host.

In: parsed arguments. Out: exit status; text or JSON through the console.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from relay_hw.cli.console import Console


def why_command(args: Namespace, console: Console) -> int:
    """Print the causes of lost cycles, the effect of changed hardware, and why operators stay on the host."""
    from relay_hw.accel.sim.dram_timing import memory_model
    from relay_hw.runtime.artifact import load_artifact
    from relay_hw.runtime.told import told_memory
    from relay_hw.runtime.why import explain
    from relay_hw.target.accel.changes import read_change

    artifact = load_artifact(args.build)
    name, warning = told_memory(artifact.manifest, args.memory, args.board)
    if warning:
        console.warning(warning)
    memory = memory_model(name)
    changes = [read_change(text, artifact.config, memory) for text in args.change] or None
    found = explain(artifact, name, changes, console)
    layers = artifact.manifest.layers
    host = [row for row in layers if row.where == "host"]
    rows = [
        {"name": r.name, "operator": r.operator, "function": r.function, "macs": r.macs, "reason": r.reason}
        for r in host
    ]
    row = {"host": rows, "accel": len(layers) - len(host), **_explanation_json(found)}
    console.result(row, found.to_text(console.width))
    return 0


def _explanation_json(found: Any) -> dict[str, Any]:
    from relay_hw.report import traffic_json

    return {
        "cycles": found.cycles,
        "launches": found.report.launches,
        "utilisation": found.report.utilisation,
        "all_macs": found.report.all_macs,
        "accel_mac_share": found.report.accel_share,
        "bytes": traffic_json(found.report.traffic),
        "memory": found.report.memory_model,
        "losses": [
            {"cause": loss.cause, "cycles": loss.cycles, "layers": dict(loss.layers), "parts": dict(loss.parts)}
            for loss in found.losses
        ],
        "changes": [
            {
                "change": outcome.change.text,
                "sizes": dict(outcome.change.sizes),
                "memory": dict(outcome.change.memory),
                "causes": list(outcome.change.causes),
                "recompiled": outcome.change.recompiles,
                "cycles": outcome.cycles,
                "reason": outcome.reason,
                "effect": found.sentence(outcome),
                "more_by_cause": found.effect(outcome),
                "bytes": traffic_json(outcome.spent.traffic) if outcome.spent is not None else None,
            }
            for outcome in found.outcomes
        ],
        "bounds": [{"bound": bound.text, "cycles": bound.cycles} for bound in found.bounds],
    }
