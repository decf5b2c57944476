"""Measure RTL cycles per second, functional images per second, compile seconds, the cycles of the demo, Relay text.

In: examples/mnist_cnn.onnx and build/data. Out: a table, and build/bench.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_text
from demo import MODEL, ROOT, load_data, subset

from relay_hw.cli.console import Console
from relay_hw.errors import RelayHwError, UnsupportedError
from relay_hw.report import number, table
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.devices import DeviceOptions, close_device, open_device
from relay_hw.runtime.execute import Executor, Result
from relay_hw.runtime.models import load_model

OUTPUT = ROOT / "build" / "bench.json"
IMAGES = 50
REPEATS = 3


def best_run(artifact: Artifact, device_name: str, data: Any, console: Console) -> Result:
    """The fastest of some runs: other work on the machine only ever slows one down."""
    device = open_device(device_name, artifact.config, DeviceOptions(progress=console.note))
    try:
        executor = Executor(artifact, device)
        executor.run(data, limit=1)
        runs = [executor.run(data, progress=console.step) for _ in range(REPEATS)]
    finally:
        close_device(device)
    return min(runs, key=lambda run: run.seconds)


def measure(config: str, console: Console) -> dict[str, Any]:
    """All numbers. Those of the RTL are None where it cannot be simulated."""
    calibration, test = load_data()
    data = subset(test, IMAGES)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        model = load_model(MODEL)
        compiled = compile_model(model.mod, model.params, config, calibration=calibration, progress=console.step)
        artifact = compiled.save(Path(folder) / "build")
        seconds = time.perf_counter() - begin
        functional = best_run(artifact, "functional", data, console)
        try:
            rtl = best_run(artifact, "rtl", data, console)
        except UnsupportedError as error:
            console.note(str(error))
            rtl = None
    return {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "config": config,
        "images": IMAGES,
        "compile_seconds": round(seconds, 3),
        "functional_images_per_second": round(functional.samples / functional.seconds, 1),
        "rtl_cycles_per_second": round(rtl.simulated_cycles_per_second or 0) if rtl else None,
        "rtl_images_per_second": round(rtl.samples / rtl.seconds, 2) if rtl else None,
        "mnist_cycles": max(rtl.cycles or [0]) if rtl else None,
        **bench_text.measure(),
    }


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", default="default", help="accelerator configuration (default: default)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to write the JSON file")
    args = parser.parse_args()
    console = Console(as_json=False)
    try:
        with console.progress():
            row = measure(args.config, console)
    except RelayHwError as error:
        console.error(str(error))
        return 2
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(row, indent=1) + "\n")
    cells = [(name.replace("_", " "), number(v) if isinstance(v, int) else str(v or "-")) for name, v in row.items()]
    print(table(("what", "value"), cells, frozenset({"value"})))
    print(f"\nwritten to {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
