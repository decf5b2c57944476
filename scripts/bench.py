"""Measure what the project promises: cycles on RTL, speeds, the language; with the bounds and others' figures.

In: examples/models. Out: a table, docs/results/performance.json, docs/performance.md. About a quarter of an hour; with
parts named only these are measured, and the page keeps the others.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bench_host
import bench_layers  # first: it puts examples on the path
import bench_native
import bench_overlap
import bench_page
import bench_passes
import bench_recurrent
import bench_speed
import bench_text
from bench_rows import Row, body_row, judge, layer_rows, network_rows, stored_rows, text_rows, transformer_rows

from examples.models import NETWORKS, TRANSFORMERS, Example, find
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.errors import RelayHwError

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs" / "results" / "performance.json"
PAGE = ROOT / "docs" / "performance.md"
AREA = ROOT / "build" / "area.json"
MEMORY = "standard"
# A word of a language model is bound by bytes of weights: it is measured with few of them, too, and so is a prompt.
PROMPT, DECODER, NARROW = "llama_prefill", "llama_decode", "w4g32a8"


def say(message: str) -> None:
    """One line of progress."""
    print(message, file=sys.stderr, flush=True)


def measure_layers(found: dict[str, Any]) -> list[Row]:
    """ResNet-18's convolutions one by one, confirmed on RTL."""
    config = load_config("default")
    found["layers"] = []
    for work in bench_layers.RESNET18:
        say(f"layer {work.name}")
        found["layers"].append(bench_layers.measure_workload(work, config, MEMORY, rtl=True))
    return layer_rows(found["layers"])


def measured(examples: Sequence[Example], samples: int) -> list[dict[str, Any]]:
    """Each network on `default`, calibrated on so many samples, confirmed on RTL."""
    setting = bench_layers.Setting(load_config("default"), MEMORY, rtl=True)
    found: list[dict[str, Any]] = []
    for example in examples:
        say(f"network {example.name}")
        found.append(bench_layers.measure_network(example.name, setting, samples))
    return found


def measure_networks(found: dict[str, Any]) -> list[Row]:
    """Networks of examples/models, confirmed on RTL."""
    found["networks"] = measured(NETWORKS, 1)
    say("network resnet8, resident weights")
    rows = [*network_rows(found["networks"]), *bench_speed.resident_rows()]
    say("an LSTM, a TreeLSTM")
    return [*rows, *bench_recurrent.lstm_rows(), *bench_recurrent.tree_rows()]


def measure_transformers(found: dict[str, Any]) -> list[Row]:
    """Transformers of examples/models, confirmed on RTL."""
    found["transformers"] = measured(TRANSFORMERS, 8)
    setting = bench_layers.Setting(load_config("default"), MEMORY, NARROW, rtl=True)
    narrow: dict[str, dict[str, Any]] = {}
    for name in (PROMPT, DECODER):
        say(f"network {name}, {NARROW}")
        narrow[name] = {**bench_layers.measure_network(name, setting, 8), "name": f"{name} {NARROW}"}
    rows = transformer_rows([*found["transformers"], narrow[PROMPT]])
    rows += [body_row(narrow[PROMPT], setting.config), *transformer_rows([narrow[DECODER]])]
    found["transformers"] += narrow.values()
    return [*rows, *stored_rows(narrow[DECODER], find(DECODER).model(None, 0), setting.config)]


def measure_speeds(found: dict[str, Any]) -> list[Row]:
    """Compiler and simulators."""
    say("speeds")
    return [*bench_speed.speed_rows(), bench_speed.import_row()]


def measure_host(found: dict[str, Any]) -> list[Row]:
    """What TVM compiles for the host, beside onnxruntime; host and accelerator at the same time."""
    say("host")
    return [*bench_host.rows(), *bench_overlap.rows()]


def measure_control(found: dict[str, Any]) -> list[Row]:
    """Control flow as native code, beside numpy."""
    say("control flow")
    return bench_native.rows()


def measure_language(found: dict[str, Any]) -> list[Row]:
    """Relay text and passes."""
    say("language")
    found["text"] = bench_text.measure()
    found["passes"] = bench_passes.measure()
    return [*text_rows(found["text"]), *bench_passes.rows(found["passes"])]


MEASURES: dict[str, Callable[[dict[str, Any]], list[Row]]] = {
    "layers": measure_layers,
    "networks": measure_networks,
    "transformers": measure_transformers,
    "speeds": measure_speeds,
    "host": measure_host,
    "control": measure_control,
    "language": measure_language,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write. 1 when a bound is missed, 2 for what cannot be measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(MEASURES)} (default: all)")
    args = parser.parse_args(arguments)
    unknown = [part for part in args.parts if part not in MEASURES]
    if unknown:
        parser.error(f"part must be one of {', '.join(MEASURES)}, not {unknown[0]}")
    found: dict[str, Any] = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    rows: list[Row] = []
    try:
        for part in args.parts or MEASURES:
            found[part] = {}
            measured = MEASURES[part](found[part])
            found[part]["rows"] = [row.as_dict() for row in measured]
            rows += measured
    except (RelayHwError, AccelError) as error:
        print(f"bench: error: {error}", file=sys.stderr)
        return 2
    status = judge(rows)
    found["area"] = json.loads(AREA.read_text()) if AREA.exists() else found.get("area", {})
    found |= {"machine": platform.processor() or platform.machine(), "python": platform.python_version()}
    OUTPUT.write_text(json.dumps(bench_page.kept(found), indent=1) + "\n")
    print(f"\nwritten to {OUTPUT.relative_to(ROOT)}")
    if all(part in found for part in MEASURES):
        PAGE.write_text(bench_page.page(found))
        print(f"and {PAGE.relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
