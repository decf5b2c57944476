"""`relay-hw why`: where cycles are lost, what would change that, what stays on the host.

In: parsed arguments. Out: exit status; text or JSON through the console.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from relay_hw.cli.console import Console
from relay_hw.support.quote import line

# A change that costs more than this share of the cycles gets a sentence that explains it.
COSTLY = 0.01


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
    console.result(row, "\n\n".join([*_explanation_text(found, console.width), *_host_text(found, console.width)]))
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


def _explanation_text(found: Any, width: int | None) -> list[str]:
    from relay_hw.report import mac_text, percent, placement

    report, cycles = found.report, found.cycles
    what = f"{line(report.model)} on {line(report.config)}, {line(report.memory_model)} memory"
    speed = f"{cycles:,} cycles an inference in {report.launches} launches, {percent(report.utilisation)} of the array"
    head = "\n".join(filter(None, [f"{what}: {speed}; {mac_text(report)}", placement(report)]))
    if not cycles:
        return [head]
    changes = [_change_table(found, width), _change_sentences(found)]
    return [head, _loss_table(found, width), *filter(None, changes), _bound_table(found, width)]


def _loss_table(found: Any, width: int | None) -> str:
    from relay_hw.report import percent, table
    from relay_hw.runtime.why import cause_text

    rows: list[tuple[str, ...]] = []
    for loss in found.losses:
        layers = ", ".join(f"{line(name)} {cycles:,}" for name, cycles in loss.layers)
        rows.append((loss.cause, f"{loss.cycles:,}", percent(loss.cycles / found.cycles), cause_text(loss), layers))
    header = ("lost to", "cycles", "share", "what happened", "most of it in")
    return table(header, rows, frozenset({"cycles", "share"}), width)


def _change_table(found: Any, width: int | None) -> str:
    """Changes that make a difference, best first, with the cycles gained or lost by cause."""
    from relay_hw.report import number, percent, table
    from relay_hw.runtime.effects import cause_text

    rows: list[tuple[str, ...]] = []
    for outcome in sorted(found.outcomes, key=lambda o: o.cycles if o.cycles is not None else 1 << 62):
        if outcome.cycles is None or outcome.cycles == found.cycles:
            continue
        more = outcome.cycles - found.cycles
        how = "recompiled" if outcome.change.recompiles else "same program"
        what = cause_text(found.spent, outcome.spent)
        rows.append(
            (outcome.change.text, number(outcome.cycles), f"{more:+,}", percent(more / found.cycles), what, how)
        )
    header = ("with", "cycles", "more", "share", "of which", "how")
    return table(header, rows, frozenset({"cycles", "more", "share"}), width, ("how",)) if rows else ""


def _change_sentences(found: Any) -> str:
    """Why changes make it worse, which make no difference, and which are impossible."""
    costly = [o for o in found.outcomes if o.cycles is not None and o.cycles > (1 + COSTLY) * found.cycles]
    none = [o.change.text for o in found.outcomes if o.cycles == found.cycles]
    lines = [line(found.sentence(o)) for o in sorted(costly, key=lambda o: o.cycles)]
    lines += [f"no difference: {', '.join(map(line, none))}"] if none else []
    return "\n".join([*lines, *(line(found.sentence(o)) for o in found.outcomes if o.cycles is None)])


def _bound_table(found: Any, width: int | None) -> str:
    from relay_hw.report import number, percent, table

    rows = [(b.text, number(b.cycles), percent(b.cycles / found.cycles)) for b in found.bounds]
    header = ("lower bound if", "cycles", "share")
    return table(header, rows, frozenset({"cycles", "share"}), width)


def _host_text(found: Any, width: int | None) -> list[str]:
    from relay_hw.report import host_table

    host = [row for row in found.report.layers if not row.on_accelerator]
    return [host_table(host, width)] if host else []
