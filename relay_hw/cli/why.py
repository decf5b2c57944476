"""`relay-hw why`: where cycles are lost, what would change that, what stays on the host.

In: parsed arguments. Out: exit status; text or JSON through the console.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from relay_hw.cli.console import Console


def why_command(args: Namespace, console: Console) -> int:
    """Causes of lost cycles with counterfactuals, and every operator that stays on the host with the reason."""
    from accel.sim.memory import memory_model
    from relay_hw.runtime.artifact import load_artifact
    from relay_hw.runtime.changes import read_change
    from relay_hw.runtime.why import explain

    artifact = load_artifact(args.build)
    memory = memory_model(args.memory)
    changes = [read_change(text, artifact.config, memory) for text in args.change] or None
    found = explain(artifact, args.memory, changes, console.step)
    layers = artifact.manifest.layers
    host = [row for row in layers if row.where == "host"]
    rows = [
        {"name": r.name, "operator": r.operator, "function": r.function, "macs": r.macs, "reason": r.reason}
        for r in host
    ]
    row = {"host": rows, "accel": len(layers) - len(host), **_explanation_json(found)}
    console.result(row, "\n\n".join([*_explanation_text(found), _host_text(rows)]))
    return 0


def _explanation_json(found: Any) -> dict[str, Any]:
    return {
        "cycles": found.cycles,
        "utilisation": found.report.utilisation,
        "all_macs": found.report.all_macs,
        "accel_mac_share": found.report.accel_share,
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
            }
            for outcome in found.outcomes
        ],
        "bounds": [{"bound": bound.text, "cycles": bound.cycles} for bound in found.bounds],
    }


def _explanation_text(found: Any) -> list[str]:
    from relay_hw.report import mac_text, percent, placement

    report, cycles = found.report, found.cycles
    head = (
        f"{report.model} on {report.config}, {report.memory_model} memory: {cycles:,} cycles, "
        f"{percent(report.utilisation)} of the array; {mac_text(report)}"
    )
    head = "\n".join(filter(None, [head, placement(report)]))
    return [head, _loss_table(found), _change_table(found), _bound_table(found)] if cycles else [head]


def _loss_table(found: Any) -> str:
    from relay_hw.report import percent, table
    from relay_hw.runtime.why import cause_text

    rows: list[tuple[str, ...]] = []
    for loss in found.losses:
        best = found.remedy(loss.cause)
        helps = f"{best.change.text}: {best.cycles - found.cycles:+,}" if best is not None else ""
        layers = ", ".join(f"{name} {cycles:,}" for name, cycles in loss.layers)
        share = percent(loss.cycles / found.cycles)
        rows.append((loss.cause, f"{loss.cycles:,}", share, cause_text(loss), layers, helps))
    header = ("lost to", "cycles", "share", "what happened", "most of it in", "helps most")
    return table(header, rows, frozenset({"cycles", "share"}))


def _change_table(found: Any) -> str:
    from relay_hw.report import number, percent, table

    rows: list[tuple[str, ...]] = []
    for outcome in sorted(found.outcomes, key=lambda o: o.cycles if o.cycles is not None else 1 << 62):
        if outcome.cycles is None:
            rows.append((outcome.change.text, "-", "-", "-", f"not possible: {outcome.reason}"))
            continue
        less = outcome.cycles - found.cycles
        how = "compiled anew" if outcome.change.recompiles else "the same program"
        rows.append((outcome.change.text, number(outcome.cycles), f"{less:+,}", percent(less / found.cycles), how))
    return table(("with", "cycles", "less", "share", "how"), rows, frozenset({"cycles", "less", "share"}))


def _bound_table(found: Any) -> str:
    from relay_hw.report import number, percent, table

    rows = [(b.text, number(b.cycles), percent(b.cycles / found.cycles)) for b in found.bounds]
    return table(("bound: no launch is shorter where", "cycles", "share"), rows, frozenset({"cycles", "share"}))


def _host_text(rows: list[dict[str, str]]) -> str:
    from relay_hw.report import table

    header = ("operator", "name", "why it stays on the host")
    return table(header, [(r["operator"], r["name"], r["reason"]) for r in rows])
