"""Commands that make a build folder or write it in another form: compile, export.

In: parsed arguments. Out: exit status; results through the console.
"""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from relay_hw.cli.arguments import model_options
from relay_hw.cli.console import Console
from relay_hw.cli.speed import speed_lines, speed_of
from relay_hw.errors import InputError
from relay_hw.runtime.archive import Archive
from relay_hw.support.quote import line, shell_word

if TYPE_CHECKING:
    from relay_hw.report import Report
    from relay_hw.runtime.artifact import Artifact


def compile_command(args: Namespace, console: Console) -> int:
    """Compile a model file to a build folder."""
    from relay_hw.backend.tvm.target import HostTarget, parse_host

    asked = args.host is not None or args.host_target is not None
    host = parse_host(args.host or HostTarget().kind, args.host_target) if asked else None
    from relay_hw.report import layer_table, mac_text, placement, speed_json, traffic_json
    from relay_hw.runtime.compile import compile_model
    from relay_hw.runtime.models import load_model
    from relay_hw.runtime.options import CompileOptions
    from relay_hw.runtime.static_report import static_report

    begin = time.perf_counter()
    console.started("importing")
    calibration = Archive(args.calibration, "calibration data") if args.calibration else None
    reading = model_options(args)
    model = load_model(args.model, samples=calibration, **reading)
    options = CompileOptions(
        target=args.target,
        config=args.config,
        memory=args.memory,
        board=args.board,
        accelerate=not args.no_accel,
        host_target=host,
        strategy=args.quantize or _usual_strategy(args),
        resident=args.resident,
        batch_calls=args.batch_calls,
        prefix_masks=tuple(args.prefix_mask),
        tune=args.tune,
        validate=not args.no_validate,
        limits=reading["options"].limits,
        name=model.name,
    )
    if args.machine:
        options = options.with_machines(dict(args.machine))
    compiled = compile_model(model.mod, options, params=model.params, calibration=calibration, progress=console)
    console.started("writing the build")
    artifact = compiled.save(args.output)
    report = replace(static_report(artifact.manifest), speed=speed_of(args, artifact, console))
    warnings = [*compiled.warnings, *filter(None, [placement(report)])]
    for text in warnings:
        console.warning(text)
    seconds = time.perf_counter() - begin
    row = {
        "build": str(args.output),
        "model": model.name,
        "config": report.config,
        "strategy": report.strategy,
        "macs": report.macs,
        "all_macs": report.all_macs,
        "accel_mac_share": report.accel_share,
        "bytes": traffic_json(report.traffic),
        "roofline_cycles": report.roofline_cycles,
        "regions": len(artifact.manifest.regions),
        "launches": artifact.launches,
        "cycles": report.cycles,
        "memory": report.memory_model,
        "speed": speed_json(report.speed),
        "seconds": seconds,
        "layers": [
            {"name": r.name, "operator": r.operator, "where": r.where, "reason": r.reason} for r in report.layers
        ],
        "kept_in_float": {one.layer: one.reason for one in compiled.kept},
        "warnings": warnings,
        "notes": list(compiled.notes),
    }
    lines = [
        layer_table(report, console.width),
        "",
        *(f"layer {line(one.layer)} kept in float: {line(one.reason)}" for one in compiled.kept),
        *map(line, compiled.notes),
        f"{line(args.output)}: {line(model.name)} for {line(report.config)}, {mac_text(report)}, "
        f"{_launches(artifact)}{_cycles(report)}, compiled in {seconds:.1f} s",
        *speed_lines(report.speed, console),
    ]
    console.result(row, "\n".join(lines))
    return 0


def _usual_strategy(args: Namespace) -> str:
    """The default strategy; float where nothing runs on the accelerator, which alone needs integers."""
    from relay_hw.quantize.recipes import FLOAT, strategy_names

    return FLOAT if args.no_accel and args.calibration is None else strategy_names()[0]


def _cycles(report: Report) -> str:
    """Cycles of one launch of each region."""
    if report.cycles is None:
        return ""
    return f", {report.cycles:,} cycles with {line(report.memory_model)} memory"


def _launches(artifact: Artifact) -> str:
    if artifact.launches is not None:
        return f"{artifact.launches} launch(es) a sample"
    count = len(artifact.manifest.regions)
    return f"{count} region(s) on the accelerator, launched as often as control flow requires"


def export_command(args: Namespace, console: Console) -> int:
    """Write a build as C source, or a project for vendor tools."""
    from relay_hw.runtime.artifact import load_artifact
    from relay_hw.runtime.deploy import export_c

    if args.form != "c":
        from relay_hw.cli.fpga import export_project

        return export_project(args, console)
    for name, given in {"board": args.board, "config": args.config, "clock": args.clock}.items():
        if given is not None:
            raise InputError(f"--{name} must come with --form vivado or quartus, not c")
    if args.estimate:
        raise InputError("--estimate must come with --form vivado or quartus, not c")
    if args.build is None:
        raise InputError("export to C must have a BUILD")

    console.started("reading the build")
    artifact = load_artifact(args.build)
    console.started("writing C")
    files = export_c(artifact, args.output)
    output = line(args.output)
    text = f"{output}: {', '.join(map(line, files))}; `make -C {shell_word(args.output)}` builds {output}/model"
    console.result({"output": str(args.output), "form": args.form, "files": list(files)}, text)
    return 0
