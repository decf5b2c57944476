"""The page docs/onnx.md. In: outcomes of onnx's node tests. Out: the page, written or compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HEAD = """\
# ONNX

`relay_hw.frontend.from_onnx(model, shape=None, dtype="float32", freeze_params=False)` reads a model of opset 7 to 28
and returns a typed Relay module and its parameters. Weights become parameters under their own names, or constants with
`freeze_params`; every expression carries the name of its node. An open batch dimension is 1 unless `shape` says
otherwise; shapes that depend on values become `?`. What cannot be imported is refused before any work, in one message
that names every such node with its operator, opset, reason and the nearest form that is supported; `relay-hw compile`
then exits with status 2.

How a model is read:

- **Operators that onnx defines by others** (Attention, RMSNormalization, RotaryEmbedding, the losses, ...) and that
  have no converter are written out by that definition; functions of the model itself are inlined.
- **Open sizes**: `shape={"x": (None, 3, None, None)}` keeps dimensions open. What a graph computes from `Shape` is
  followed as arithmetic on dimensions, so that all that does not depend on an open size stays known; the rest are
  `dyn.` operators with `?` in their types, which run on the host. Axes, sizes, pads, `k` and the like may be inputs.
- **Branches, loops, recurrent layers, sequences and optionals** become Relay's `if`, tail-recursive functions, lists
  and options ([control-flow.md](control-flow.md)); quantized operators become QNN ([prequantized.md](prequantized.md)).
- **Element types**: those of numpy, bfloat16, the four float8 types, float8_e8m0fnu, float4_e2m1fn, and integers of 4
  and 2 bits. Not words and not complex numbers.
- **Random operators** and training-mode Dropout are refused: give their numbers as inputs.
- Operators that Relay never had are `onnx.` operators with a type relation and a meaning in numpy.

Models of strangers:

- **Limits** (`relay_hw/limits.py`, `--limit NAME=NUMBER`, `OnnxOptions(limits=Limits(...))`) hold before memory or
  time is taken: bytes of the file, nodes with every function written out (a node of many inputs or with graphs counts
  more than once), nesting, names, elements of a tensor, bytes and steps of constants that are computed while the
  model is read, layers that `compile` makes programs for. What is more is refused with the limit's name.
- **Rules**: what onnx's checker refuses, with strict inference of shapes, is refused; the exceptions are listed in
  `relay_hw/frontend/onnx/valid.py`. Weights in other files are read only with `--external-data`, from regular files
  below the model's folder, with no link on the way and no second name. Constant scales of integers must be above 0
  and finite, which onnx leaves open.
- **`--untrusted`** reads the model in a process of its own, `memory_bytes` and `seconds` of the limits its bounds, and
  takes over our own JSON and arrays from it. Whatever the model does to its reader is one line and status 2.

The table below is what becomes of the node tests that package onnx ships (those of expanded functions left out), run
through importer and interpreter by `make conformance`, which also writes this page. A test passes when every output has
the type, the shape and, within the test's own tolerance, the values that onnx expects. An error at run time counts as
wrong.
"""


def page(outcomes: Sequence[Any]) -> str:
    """The whole page."""
    states = [outcome.state.value for outcome in outcomes]
    sums = ", ".join(f"{states.count(state)} {state}" for state in ("passed", "refused", "wrong"))
    rows: dict[str, list[Any]] = defaultdict(list)
    for outcome in outcomes:
        rows[outcome.operator].append(outcome)
    lines = [HEAD, f"**{len(outcomes)} tests: {sums}.**", ""]
    lines += ["| Operator | Tests | Passed | Refused | Wrong |", "|---|---|---|---|---|"]
    for operator, found in sorted(rows.items(), key=lambda row: ("." in row[0], row[0])):
        kinds = [outcome.state.value for outcome in found]
        counts = " | ".join(str(kinds.count(state)) for state in ("passed", "refused", "wrong"))
        lines.append(f"| {operator} | {len(found)} | {counts} |")
    lines += ["", "## Refused, with the reason", "", "| Test | Reason |", "|---|---|"]
    refused = [outcome for outcome in outcomes if outcome.state.value != "passed"]
    lines += [f"| {outcome.name} | {_cell(outcome.reason)} |" for outcome in refused]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def renew(path: Path, outcomes: Sequence[Any], write: bool) -> int:
    """Write the page, or return 1 if it is stale."""
    text = page(outcomes)
    if write:
        path.write_text(text)
        return 0
    fresh = path.is_file() and path.read_text() == text
    print(f"{path.name}: {'up to date' if fresh else 'stale'}")
    return 0 if fresh else 1
