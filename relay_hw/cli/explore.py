"""`relay-hw explore`: compile one network for many accelerators and compare them.

In: parsed arguments. Out: exit status; a table, and `explore.html`, `explore.csv`, `explore.json` in a folder; with
`--apply` a configuration file.
"""

from __future__ import annotations

import json
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from relay_hw.cli.arguments import model_options
from relay_hw.cli.console import Console
from relay_hw.errors import InputError
from relay_hw.runtime.archive import Archive
from relay_hw.support.quote import line, shell_word

# Fields of a point that its configuration file and its compile command are made from.
_READ: Final = ("point", "config", "reason", "strategy", "memory", "resident")
# Between two versions of the page while a search runs.
_PAGE_SECONDS: Final = 5.0


def explore_command(args: Namespace, console: Console) -> int:
    """Compile a model for the points of a design space and write the report, or the configuration of one point."""
    from relay_hw.compare.store import Store

    report = Store(args.output)
    if args.model is None:
        if args.apply is None:
            raise InputError("explore must have a MODEL, or --apply with the folder of a finished exploration")
        return _applied(args, console, report, _read(args.output))
    found = _explored(args, console, report)
    row = found.to_json()
    if args.apply is not None:
        return _applied(args, console, report, row)
    where = args.output / "explore.html"
    console.result(row | {"report": str(where)}, f"{found.to_text(console.width)}\nreport: {line(where)}")
    return 0


def _explored(args: Namespace, console: Console, report: Any) -> Any:
    from relay_hw.explore import ExploreOptions, Space, explore
    from relay_hw.runtime.models import load_model
    from relay_hw.sweep.workers import check_processes, default_processes

    console.started("importing")
    calibration = Archive(args.calibration, "calibration data") if args.calibration else None
    data = Archive(args.data, "test data") if args.data else None
    check_processes(args.processes)
    model = load_model(args.model, samples={**(data or {}), **(calibration or {})}, **model_options(args))
    options = ExploreOptions(
        space=Space(tuple(args.axis)) if args.axis else None,
        config=args.config,
        strategy=args.quantize,
        memory=args.memory,
        board=args.board,
        part=args.part,
        clock_mhz=args.clock,
        output=args.name,
        images=args.images,
        name=model.name,
        objectives=args.objectives,
        search=args.search,
        points=args.points,
        seed=args.seed,
        skips=not args.all,
        processes=args.processes or default_processes(),
        scheduler=args.scheduler,
        work=args.output / "work",
    )
    found = explore(
        model.mod,
        options,
        calibration=calibration,
        data=data,
        params=model.params,
        progress=console,
        watch=_Pages(report),
    )
    for name, content in found.files().items():
        report.put(report.folder / name, content)
    return found


class _Pages:
    """Rewrites the page while a search runs, at most every few seconds."""

    def __init__(self, report: Any) -> None:
        self._report, self._next = report, 0.0

    def __call__(self, found: Any) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _PAGE_SECONDS
            self._report.put(self._report.folder / "explore.html", found.to_html().encode())


def _read(folder: Path) -> dict[str, Any]:
    """Read the `explore.json` of a folder. Raises InputError."""
    from relay_hw.support import durable
    from relay_hw.support.documents import DocumentError, parse_json

    path = folder / "explore.json"
    try:
        found = parse_json(durable.read_given(path))
        points = {row["point"]: {key: row[key] for key in _READ} for row in found["points"]}
    except (OSError, DocumentError, KeyError, TypeError):
        raise InputError(f"{path} must be a file that explore wrote: give a MODEL to make it") from None
    return {"points": list(points.values())}


def _applied(args: Namespace, console: Console, report: Any, found: dict[str, Any]) -> int:
    """Write the configuration file of a point, and say how to use it."""
    from relay_hw.accel.isa.config import config_from_dict

    rows = {row["point"]: row for row in found["points"]}
    row = rows.get(args.apply)
    if row is None:
        raise InputError(f"point must be one of the {len(rows):,} measured ones, not {args.apply}")
    if row["config"] is None:
        raise InputError(f"point {args.apply} must be a legal configuration: {row['reason']}")
    config_from_dict(row["config"], f"point-{args.apply}")
    path = report.folder / f"point-{args.apply}.json"
    report.put(path, (json.dumps(row["config"], indent=2, sort_keys=True) + "\n").encode())
    model = shell_word(args.model) if args.model is not None else "MODEL"
    options = [f"--config {shell_word(path)}", f"--quantize {shell_word(row['strategy'])}"]
    options += [f"--memory {shell_word(row['memory'])}"] if row["memory"] != "standard" else []
    options += ["--resident off"] if row["resident"] == "off" else []
    options += [f"--calibration {shell_word(args.calibration)}"] if args.calibration else []
    command = f"relay-hw compile {model} {' '.join(options)} -o BUILD"
    console.result(row | {"file": str(path), "command": command}, f"written to {line(path)}; {command}")
    return 0
