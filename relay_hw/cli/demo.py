"""`relay-hw demo`: compile a handwritten-digit network and run it on the simulated Verilog, with packaged data only.

In: parsed arguments. Out: a folder with the network, its data and its build; scores; status 1 where a byte differs or a
bound is missed.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

import numpy as np

from relay_hw.cli.console import Console
from relay_hw.cli.data import save_npz
from relay_hw.demo.digits import MODEL, Digits, read_digits
from relay_hw.support import durable
from relay_hw.support.quote import line, shell_word


def demo_command(args: Namespace, console: Console) -> int:
    """Write the files, compile and run the network, print the scores."""
    from relay_hw.demo.walk import problems, show
    from relay_hw.report import layer_table

    console.started("reading the digits")
    calibration, every = read_digits()
    test = every.take(np.arange(min(args.images or len(every.labels), len(every.labels))))
    folder: Path = args.output
    _write_files(folder, calibration, every)
    shown = show(folder / "mnist", calibration, test, args.config, args.device, console)
    missed = problems(shown.scores, shown.result.cycles, len(test.labels) == len(every.labels))
    row = {
        "build": str(folder / "mnist"),
        "device": shown.device,
        **asdict(shown.scores),
        "cycles": shown.result.cycles,
        "compile_seconds": shown.seconds,
        "problems": missed,
    }
    facts = [f"{name}: {value}" for name, value in shown.facts.items()]
    ends = [f"report: {line(folder / 'mnist' / 'report.html')}", f"next: {_next(folder)}"]
    console.result(row, "\n".join([*facts, "", layer_table(shown.report, console.width), "", *ends]))
    for problem in missed:
        console.error(problem)
    return 1 if missed else 0


def _write_files(folder: Path, calibration: Digits, test: Digits) -> None:
    """Write the data and the model, for trying other commands."""
    save_npz(folder / "mnist_calibration.npz", calibration.arrays())
    save_npz(folder / "mnist_test.npz", test.arrays())
    durable.write_file(folder / MODEL.name, MODEL.read_bytes())


def _next(folder: Path) -> str:
    build, data = shell_word(folder / "mnist"), shell_word(folder / "mnist_test.npz")
    return f"relay-hw profile {build}; relay-hw why {build}; relay-hw run {build} --input {data}"
