"""onnx's own node tests through the importer and a runner: passed, refused with the reason, or wrong.

In: the tests that package onnx ships. Out: a table, docs/onnx.md (`--write`), and 1 as status if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from enum import Enum
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import conformance_page

from relay_hw.errors import RelayHwError

ROOT = Path(__file__).resolve().parents[1]
Runner = Callable[[Any, Mapping[str, Any]], Sequence[Any]]


class State(str, Enum):
    """What came of a test."""

    PASSED = "passed"
    REFUSED = "refused"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One test: the operator that it is about, its opset, and why it did not pass."""

    name: str
    operator: str
    opset: int
    state: State
    reason: str = ""


def load_tests() -> list[Any]:
    """The node tests of package onnx but for those of expanded functions."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in load_model_tests(kind="node") if "_expanded" not in case.name]


def interpreter(model: Any, inputs: Mapping[str, Any]) -> Sequence[Any]:
    """The outputs of the reference interpreter."""
    from relay_hw.interp import evaluate

    return as_outputs(model, evaluate(model, inputs))


def host(kind: str) -> Runner:
    """A runner of whole programs compiled for host `kind`."""

    def run(model: Any, inputs: Mapping[str, Any]) -> Sequence[Any]:
        import relay_hw as relay

        evaluator = relay.create_executor("vm", mod=model, target=kind).evaluate()
        return as_outputs(model, evaluator(**inputs))

    return run


def as_outputs(model: Any, value: Any) -> Sequence[Any]:
    """One value an output."""
    return list(value) if len(model.attrs["output_names"]) > 1 else [value]


def subject(case: Any) -> tuple[str, int]:
    """The operator that a test is named after, and the opset of its domain."""
    opsets = {item.domain: item.version for item in case.model.opset_import}
    nodes = case.model.graph.node
    helpers = ("Constant", "Identity", "SequenceConstruct", "Cast", "Optional")
    node = next((node for node in nodes if node.op_type not in helpers), nodes[-1])
    label = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    return label, opsets.get(node.domain, 1)


def run_case(case: Any, runner: Runner) -> Outcome:
    """Import, run and compare one test."""
    from relay_hw.frontend import from_onnx

    operator, opset = subject(case)
    names = [item.name for item in case.model.graph.input]
    try:
        module, _ = from_onnx(case.model, shape=open_shapes(case), freeze_params=True)
    except RelayHwError as error:
        return Outcome(case.name, operator, opset, State.REFUSED, _short(error))
    except Exception as error:  # whatever is no refusal is a defect
        return Outcome(case.name, operator, opset, State.WRONG, f"import: {type(error).__name__}: {error}")
    for inputs, wanted in case.data_sets:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                types = [param.type for param in module["main"].params]
                given = (as_value(as_array(value), ty) for value, ty in zip(inputs, types, strict=False))
                found = runner(module, dict(zip(names, given, strict=False)))
        except Exception as error:
            return Outcome(case.name, operator, opset, State.WRONG, f"run: {type(error).__name__}: {error}")
        problem = difference(found, wanted, case.rtol, case.atol)
        if problem:
            return Outcome(case.name, operator, opset, State.WRONG, problem)
    return Outcome(case.name, operator, opset, State.PASSED)


def open_shapes(case: Any) -> dict[str, tuple[int | None, ...]]:
    """Shapes of the data for tensors whose declared shape is open, ranks for sequences that declare none."""
    found: dict[str, tuple[int | None, ...]] = {}
    for item, value in zip(case.model.graph.input, case.data_sets[0][0], strict=False):
        dims = item.type.tensor_type.shape.dim
        is_open = item.type.HasField("tensor_type") and any(not dim.HasField("dim_value") for dim in dims)
        if is_open and isinstance(value, np.ndarray):
            found[item.name] = value.shape
        part = item.type.sequence_type.elem_type.tensor_type
        if item.type.HasField("sequence_type") and not part.HasField("shape") and value:
            found[item.name] = (None,) * np.ndim(value[0])
    return found


def as_array(value: Any) -> Any:
    """Tests of casts give protobufs."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def as_value(value: Any, ty: Any) -> Any:
    """A Python list as a Relay list, a value or nothing as an option, where the parameter is one."""
    from relay_hw.interp.values import ConstructorValue
    from relay_hw.prelude import list_value, load_library

    kind = getattr(getattr(ty, "func", None), "name", "")
    if kind == "List":
        return list_value([as_value(item, ty.args[0]) for item in value])
    if kind == "Option":
        some, none = load_library("prelude").types["Option"].constructors
        return ConstructorValue(none) if value is None else ConstructorValue(some, (as_value(value, ty.args[0]),))
    return value


def _short(error: RelayHwError) -> str:
    """A refusal's reason without the model's name and the list's head."""
    text = str(error)
    return text.split(": ", 2)[-1] if "every node of" in text else text


def difference(found: Sequence[Any], wanted: Sequence[Any], rtol: float, atol: float) -> str:
    """What is wrong with the results, or nothing."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs, not {len(wanted)}"
    return next((text for pair in zip(found, wanted, strict=True) if (text := _one(*pair, rtol, atol))), "")


def _one(got: Any, want: Any, rtol: float, atol: float) -> str:
    want = as_array(want)
    if isinstance(want, (list, tuple)):
        parts = as_list(got)
        if parts is None or len(parts) != len(want):
            return f"a sequence of {len(want)} expected, not {got}"
        return difference(parts, want, rtol, atol)
    if want is None:
        return "" if as_list(got) == [] else f"nothing expected, not {got}"
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"type {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "biu" or want.dtype.kind not in "fcV":
        same = got == want
        return "" if np.all(same) else f"{np.size(same) - int(np.sum(same))} of {want.size} elements differ"
    with np.errstate(all="ignore"):
        wide = [part if part.dtype.kind == "c" else part.astype(np.float64) for part in (got, want)]
        close = np.isclose(*wide, rtol=rtol, atol=atol, equal_nan=True)
    return "" if np.all(close) else f"{np.sum(~close)} of {want.size} elements differ"


def as_list(value: Any) -> list[Any] | None:
    """The elements of a Relay list or optional value; None for anything else."""
    if isinstance(value, (list, tuple)):
        return list(value)
    found: list[Any] = []
    while hasattr(value, "constructor"):
        fields = list(value.fields)
        if not fields:
            return found
        if len(fields) == 1:
            return as_list(fields[0]) if hasattr(fields[0], "constructor") else fields
        found.append(fields[0])
        value = fields[1]
    return None


def report(outcomes: Sequence[Outcome], seconds: float) -> str:
    """A line for each operator that has tests which did not pass, and the sums."""
    lines: list[str] = []
    for outcome in outcomes:
        if outcome.state is not State.PASSED:
            lines.append(f"{outcome.state.value:8} {outcome.name}: {outcome.reason[:200]}")
    sums = Counter(outcome.state for outcome in outcomes)
    counts = ", ".join(f"{sums[state]} {state.value}" for state in State)
    return "\n".join([*lines, f"{len(outcomes)} tests in {seconds:.0f} s: {counts}"])


_TESTS: list[Any] = []


def _start(only: str) -> None:
    _TESTS[:] = [case for case in load_tests() if only in case.name]


def _run_number(number: int, host_kind: str) -> Outcome:
    return run_case(_TESTS[number], runner_of(host_kind))


def runner_of(kind: str) -> Runner:
    """The runner of a word of the command line."""
    return interpreter if kind == "interpreter" else host(kind)


def run_all(only: str, kind: str, jobs: int) -> list[Outcome]:
    """The outcomes of the tests whose name holds `only`, in their order."""
    _start(only)
    if jobs == 1:
        return [run_case(case, runner_of(kind)) for case in _TESTS]
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start, (only,)) as pool:
        numbers = range(len(_TESTS))
        return list(pool.map(_run_number, numbers, [kind] * len(numbers), chunksize=8))


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="interpreter", help="interpreter (default), or a host to compile for: llvm")
    parser.add_argument("--only", default="", help="tests whose name holds this")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--write", action="store_true", help="write docs/onnx.md")
    parser.add_argument("--check", action="store_true", help="fail if docs/onnx.md is not what would be written")
    parser.add_argument("--json", type=Path, help="write the outcomes here")
    args = parser.parse_args(arguments)
    start = time.monotonic()
    outcomes = run_all(args.only, args.host, args.jobs)
    print(report(outcomes, time.monotonic() - start))
    if args.json:
        args.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    status = 1 if any(outcome.state is State.WRONG for outcome in outcomes) else 0
    if args.write or args.check:
        status |= conformance_page.renew(ROOT / "docs" / "onnx.md", outcomes, write=args.write)
    return status


if __name__ == "__main__":
    sys.exit(main())
