"""`relay-hw compare`: compare quantization strategies of one network.

In: parsed arguments. Out: exit status; a table, and `report.html`, `report.csv`, `report.json` in a folder.
"""

from __future__ import annotations

from argparse import Namespace

from relay_hw.cli.arguments import model_options
from relay_hw.cli.console import Console
from relay_hw.runtime.archive import Archive
from relay_hw.support.quote import line


def compare_command(args: Namespace, console: Console) -> int:
    """Quantize a model by each strategy, compare it with float, measure it on simulated hardware, write the report."""
    from relay_hw.compare import CompareOptions, compare
    from relay_hw.compare.store import Store
    from relay_hw.runtime.models import load_model
    from relay_hw.sweep.workers import check_processes, default_processes

    console.started("importing")
    data = Archive(args.data, "test data")
    calibration = Archive(args.calibration, "calibration data") if args.calibration else None
    check_processes(args.processes)
    layers = [name for text in args.layers for name in text.split(",")] or None
    report = Store(args.output)
    model = load_model(args.model, samples={**data, **(calibration or {})}, **model_options(args))
    options = CompareOptions(
        strategies=[name for names in args.strategies for name in names],
        mixed=args.mixed,
        images=args.images,
        unlabelled=args.unlabelled,
        output=args.name,
        configs=args.config,
        board=args.board,
        targets=args.target,
        area=args.area,
        engine=args.engine,
        processes=args.processes or default_processes(),
        scheduler=args.scheduler,
        work=args.output / "work",
        name=model.name,
    )
    found = compare(
        model.mod,
        data,
        options,
        calibration=calibration,
        params=model.params,
        progress=console,
    )
    for name, content in found.files(report.folder, layers).items():
        report.put(report.folder / name, content)
    for text in found.warnings:
        console.warning(text)
    row = found.to_json() | {"report": str(args.output / "report.html")}
    console.result(row, f"{found.to_text(console.width)}\nreport: {line(args.output / 'report.html')}")
    return 0
