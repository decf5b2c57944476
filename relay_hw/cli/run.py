"""Commands that run a build: run, profile, verify.

In: parsed arguments. Out: exit status; results through the console.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relay_hw.cli.arguments import runnable_build
from relay_hw.cli.console import Console
from relay_hw.cli.data import accuracy, save_npz, save_text
from relay_hw.cli.speed import speed_lines, speed_of
from relay_hw.errors import InputError
from relay_hw.runtime.archive import Archive
from relay_hw.support.quote import line

if TYPE_CHECKING:
    from relay_hw.runtime.artifact import Artifact
    from relay_hw.target.base import Session


def run_command(args: Namespace, console: Console) -> int:
    """Run a build on samples."""
    from relay_hw.quantize.finite import nan_outputs
    from relay_hw.report import speed_json
    from relay_hw.runtime.execute import Executor
    from relay_hw.runtime.feed import check_feeds, read_steps
    from relay_hw.runtime.labels import LABELS
    from relay_hw.runtime.machine import machine_name
    from relay_hw.runtime.opened import usual_chunk, usual_device
    from relay_hw.runtime.ports import input_complaints

    console.started("reading the build")
    artifact = runnable_build(args)
    feeds = check_feeds(args.feed, artifact.manifest)
    # The samples of a batch may come one by one: how many are needed is known once they are read.
    data = Archive(args.input, "input data", args.samples if artifact.manifest.batch == 1 else None)
    inputs = artifact.manifest.inputs
    given, _ = read_steps(artifact.manifest, data, feeds, args.samples)
    warnings = input_complaints([row for row in inputs if row.name not in feeds], data, args.samples)
    args.device = args.device or usual_device(artifact)
    console.started(f"opening the {args.device} device")
    session = _opened(args, artifact, console)
    try:
        chunk = args.chunk or (1 if feeds else usual_chunk(artifact, args.device))
        result = Executor(artifact, session).run(data, args.samples, console, chunk=chunk, feeds=feeds)
    finally:
        session.close()
    if args.output:
        save_npz(args.output, _arrays(result.outputs))
    if args.trace:
        from relay_hw.runtime.run_trace import run_timeline

        save_text(args.trace, json.dumps(run_timeline(result)))
    labels = data.get(LABELS) if LABELS not in [row.name for row in inputs] else None
    score, doubtful = accuracy(result.outputs, labels, given, result.samples, artifact.manifest.batch)
    # Inputs that look wrong explain a low accuracy.
    warnings += [doubtful] if doubtful and not (warnings and score is not None) else []
    if args.samples is not None and args.samples > given:
        warnings.append(f"--samples is {args.samples:,}, but the data have only {given:,}")
    warnings += nan_outputs(result.outputs)
    speed = speed_of(args, artifact, console, data)
    for text in warnings:
        console.warning(text)
    row: dict[str, Any] = {
        "device": args.device,
        "samples": result.samples,
        "seconds": result.seconds,
        "chunk": result.chunk,
        "feeds": dict(feeds),
        "cycles": result.cycles,
        "chunk_cycles": result.chunk_cycles if result.chunk > 1 else None,
        "launches": result.chunk_launches,
        "resident_cycles": result.resident_cycles,
        "resident_launches": len(result.residents),
        "simulated_cycles_per_second": result.simulated_cycles_per_second,
        "host_seconds": result.host_seconds,
        "machine": machine_name(),
        "speed": speed_json(speed),
        "outputs": {name: _described(value) for name, value in result.outputs.items()},
        "segments": [asdict(segment) for segment in result.segments],
        "warnings": warnings,
    }
    if score is not None:
        row["accuracy"] = score
    console.result(row, "\n".join([_run_text(args, console, result, score), *speed_lines(speed, console)]))
    return 0


def _run_text(args: Namespace, console: Console, result: Any, score: float | None) -> str:
    from relay_hw.report import segment_table
    from relay_hw.runtime.machine import machine_name

    lines = [f"{result.samples} sample(s) on the {args.device} device in {result.seconds:.2f} s"]
    if result.chunk_cycles:
        turn = "an inference" if result.chunk == 1 else f"a chunk of up to {result.chunk} samples, region by region"
        launches, cycles = _span(result.chunk_launches), _span(result.chunk_cycles)
        speed = f"{result.simulated_cycles_per_second:,.0f} simulated cycles/s"
        lines.append(f"{cycles} cycles {turn}, in {launches} launch(es), {speed}")
    if result.residents:
        spent = f", {result.resident_cycles:,} cycles" if result.resident_cycles is not None else ""
        lines.append(f"{len(result.residents)} launch(es), once, to load resident weights{spent}")
    lines.append(f"{1000 * result.host_seconds:,.3f} ms a sample on the host, {line(machine_name())}")
    lines += [f"output {line(output)} is input {line(name)} of the next sample" for output, name in args.feed]
    lines += ["", segment_table(result.segments, console.width), ""]
    for name, value in result.outputs.items():
        shown = _described(value)
        lines.append(f"output {line(name)}: {shown['dtype']}{shown['shape']}")
    if score is not None:
        lines.append(f"accuracy {100 * score:.2f}%")
    if args.output:
        lines.append(f"written to {line(args.output)}")
    if args.trace:
        lines.append(f"timeline: {line(args.trace)}")
    return "\n".join(lines)


def profile_command(args: Namespace, console: Console) -> int:
    """Measure cycles, utilisation and bytes by layer, and rewrite the report in the build folder."""
    from relay_hw.report import layer_table, placement, profile_json, report_files, segment_table, summary
    from relay_hw.runtime.execute import Executor
    from relay_hw.runtime.folder import replace_files
    from relay_hw.runtime.host_time import measure_host
    from relay_hw.runtime.profile import profile
    from relay_hw.runtime.trace import timeline
    from relay_hw.target.accel.devices import close_device, open_device

    artifact = runnable_build(args)
    console.started(f"opening the {args.device} device")
    data = Archive(args.input, "input data") if args.input else None
    options = _options(args, artifact, console, timing_only=data is None)
    device = open_device(args.device, _config(args, artifact), options)
    try:
        result = Executor(artifact, device).run(data, 1, console) if data is not None else None
        report = profile(artifact, device, args.device, options.memory, console, result and result.calls)
        report = replace(report, segments=result.segments if result else ())
    finally:
        close_device(device)
    console.started("timing the host")
    host = measure_host(artifact, data)
    report = replace(report, host=host, speed=speed_of(args, artifact, console, data, host))
    try:
        replace_files(artifact.path, report_files(report))
        where = f"report: {line(artifact.path / 'report.html')}"
    except OSError as error:
        where = f"report not written: {line(artifact.path)} must be writable: {line(error.strerror)}"
    lines = [layer_table(report, console.width), ""]
    lines += [segment_table(report.segments, console.width), ""] if report.segments else []
    lines += [summary(report), *filter(None, [placement(report)]), where]
    lines += [] if report.host else ["host time unknown: random samples could not be run; give a sample with --input"]
    lines += speed_lines(report.speed, console)
    if args.trace:
        console.started("timing every instruction")
        save_text(args.trace, json.dumps(timeline(artifact, options.memory)))
        lines.append(f"timeline: {line(args.trace)}")
    console.result(profile_json(report), "\n".join(lines))
    return 0


def verify_command(args: Namespace, console: Console) -> int:
    """Check every hash, then compare a device with the reference semantics on random samples, byte by byte."""
    from relay_hw.runtime.execute import Executor
    from relay_hw.runtime.opened import usual_device
    from relay_hw.runtime.ports import random_samples
    from relay_hw.tensorize.certificate import summary

    artifact = runnable_build(args)
    rows = artifact.manifest.inputs
    inputs = random_samples(rows, args.samples, args.seed, artifact.has_control_flow)
    console.started("computing the reference")
    want = Executor(artifact, None).run(inputs, progress=console, keep_regions=True)
    args.device = args.device or usual_device(artifact)
    session = _opened(args, artifact, console)
    try:
        got = Executor(artifact, session).run(inputs, progress=console, keep_regions=True)
    finally:
        session.close()
    problem = _first_difference(got.regions, want.regions)
    row = {
        "build": str(args.build),
        "device": args.device,
        "samples": args.samples,
        "regions": len(want.regions),
        "ok": problem is None,
        "problem": problem,
        "proofs": [asdict(proof) for proof in artifact.manifest.proofs],
    }
    found = f"{len(want.regions)} region(s) bit-exact on {args.samples:d} sample(s)"
    text = f"files match their hashes; {found}" if problem is None else problem
    console.result(row, f"{line(args.build)}: {text}\n{line(summary(artifact.manifest.proofs))}")
    return 0 if problem is None else 1


def _first_difference(got: Any, want: Any) -> str | None:
    for name, arrays in want.items():
        for k, (left, right) in enumerate(zip(got[name], arrays, strict=True)):
            if not np.array_equal(left, right):
                where = tuple(int(i) for i in np.argwhere(left != right)[0])
                return (
                    f"output {k} of @{line(name)} must be {right[where]} at {where}, not {left[where]} "
                    f"({int((left != right).sum())} of {right.size} differ)"
                )
    return None


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _described(value: Any) -> dict[str, Any]:
    """The shape and type of an output: a tensor, or a list of values that do not form one tensor."""
    if isinstance(value, list):
        return {"shape": [len(value)], "dtype": "values"}
    return {"shape": list(value.shape), "dtype": str(value.dtype)}


def _arrays(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs as arrays: a list of tensors becomes `name_0`, `name_1`, ... Raises InputError for other values."""
    found: dict[str, Any] = {}
    for name, value in outputs.items():
        if not isinstance(value, list):
            found[name] = value
            continue
        for place, one in enumerate(value):
            if not isinstance(one, np.ndarray):
                raise InputError(
                    f"output {name} must consist of tensors to be written to a file, not of {type(one).__name__}"
                )
            found[f"{name}_{place}"] = one
    return found


def _config(args: Namespace, artifact: Any) -> Any:
    """The configuration asked for. Refuses one that the build's programs cannot run on before its device is built."""
    from relay_hw.accel.isa.config import load_config

    config = load_config(args.config) if args.config else artifact.config
    for program in artifact.programs.values():
        program.check_config(config)
    return config


def _opened(args: Namespace, artifact: Artifact, console: Console) -> Session:
    """Open the device that was asked for, with the build's programs."""
    from relay_hw.runtime.opened import open_session
    from relay_hw.target.accel.devices import DeviceOptions

    asked = {"config": getattr(args, "config", None), "board": args.board}
    if artifact.manifest.config is not None:
        if asked["config"]:
            _config(args, artifact)
        return open_session(artifact, args.device, _options(args, artifact, console))
    for what, given in asked.items():
        if given:
            raise InputError(f"--{what} must be left out for a build for target {artifact.manifest.target}")
    memory = args.memory or DeviceOptions().memory
    options = DeviceOptions(memory, getattr(args, "waves", None), console, False, args.port, args.soc)
    return open_session(artifact, args.device, options)


def _options(args: Namespace, artifact: Artifact, console: Console, timing_only: bool = False) -> Any:
    from relay_hw.runtime.told import told_memory
    from relay_hw.target.accel.devices import DeviceOptions

    waves = getattr(args, "waves", None)
    memory, warning = told_memory(artifact.manifest, args.memory, args.board)
    if warning:
        console.warning(warning)
    return DeviceOptions(memory, waves, console, timing_only, args.port, args.soc)
