"""Reads untrusted models in a separate process. In: a model file. Out: its module and weights, or one error.

The process has a bound on its memory and on its time, and what it hands back are our own JSON and arrays, read like
any other file: whatever a model does to its reader, nothing but these comes back.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from relay_hw import errors
from relay_hw.errors import InputError, RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.limits import Limits, OnnxOptions, changed
from relay_hw.span import Span
from relay_hw.support.child import bound, bound_memory, end_child, start_child
from relay_hw.support.documents import DocumentError, parse_json

_MODULE, _PARAMS, _FAILURE = "module.json", "weights.params", "failure.json"
_KINDS: Final = {
    kind.__name__: kind
    for kind in (
        *(errors.ParseError, errors.TypeCheckError, errors.WellFormedError, errors.UnsupportedError),
        *(errors.EvalError, errors.InputError),
    )
}
_READERS: Final = ("onnx", "onnx.checker", "onnx.inliner", "onnx.numpy_helper")
# A sentence and a place.
_MOST_FAILURE_BYTES: Final = 1 << 20
_GRACE_SECONDS: Final = 1.0
# Isolated, so that nothing from the untrusted model's folder is imported; has the import path of this process.
_START: Final = "import sys; sys.path[:] = sys.argv[1:]; from relay_hw.runtime.untrusted import main; sys.exit(main())"


def read_apart(
    path: Path, shapes: Mapping[str, Sequence[int]] | None, options: OnnxOptions
) -> tuple[IRModule, Mapping[str, Any]]:
    """Read the model file `path` in a separate process: module and parameters. `shapes`: of inputs by name.

    Raises what `load_model` does, and InputError where the process that reads dies, hangs or grows.
    """
    with tempfile.TemporaryDirectory(prefix="relay-hw-") as folder:
        limits = options.limits
        request = {"path": str(path.absolute()), "out": folder, "shapes": shapes, "options": asdict(options)}
        reason = run_apart([sys.executable, "-I", "-c", _START, *sys.path], json.dumps(request), limits)
        failure = _failure(Path(folder) / _FAILURE)
        if failure is not None:
            raise failure
        if reason:
            raise InputError(f"{path} must be a model that can be imported: {reason}")
        return _result(Path(folder), path)


def run_apart(command: Sequence[str], given: str, limits: Limits) -> str:
    """Run a reader process; returns why it failed, or an empty string."""
    quiet = subprocess.DEVNULL
    with start_child(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet) as process:
        try:
            process.communicate(given, timeout=limits.seconds)
        except subprocess.TimeoutExpired:
            return f"the reader took more than {limits.seconds} s; --limit seconds=NUMBER raises this"
        except BrokenPipeError:
            process.wait(_GRACE_SECONDS)
        finally:
            end_child(process)
    status = process.returncode
    number = -status if status < 0 else status - 128 if status > 128 else 0
    if number == signal.SIGXCPU:
        return f"the reader was killed after {limits.seconds} s of CPU time; --limit seconds=NUMBER raises this"
    if number:
        return f"the reader was killed by signal {number}"
    return f"the reader ended with status {status}" if status else ""


def _failure(path: Path) -> RelayHwError | None:
    """The error that the reader found in the model."""
    try:
        with path.open("rb") as file:
            said = file.read(_MOST_FAILURE_BYTES)
        if not said:
            # The reader ended before it could say anything.
            return None
        row = parse_json(said)
        kind, message, place = _KINDS[row["kind"]], row["message"], row["span"]
        span = None if place is None else Span(str(place[0]), *map(int, place[1:]))
    except FileNotFoundError:
        return None
    except (DocumentError, LookupError, TypeError, ValueError):
        return InputError("the reader of a model must say what is wrong as JSON, not otherwise")
    return kind(str(message), span)


def _result(folder: Path, path: Path) -> tuple[IRModule, Mapping[str, Any]]:
    from relay_hw.text import load_json, load_param_dict

    try:
        text, params = (folder / _MODULE).read_text(), (folder / _PARAMS).read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a model that can be imported: the reader wrote no result ({error})") from None
    return load_json(text, str(path)), load_param_dict(params)


def main() -> int:
    """The reader process: takes a request on standard input, writes files into a folder."""
    request = parse_json(sys.stdin.read())
    asked = request["options"]
    folder, limits = Path(request["out"]), changed(asked.pop("limits"))
    from relay_hw.frontend import from_onnx
    from relay_hw.text import save_json, save_param_dict

    # Bounds are those of the model, not of the libraries that reading it loads.
    for name in _READERS:
        import_module(name)
    restrict(limits)
    try:
        options = OnnxOptions(limits=limits, **asked)
        mod, params = from_onnx(request["path"], shape=request["shapes"], options=options)
        (folder / _MODULE).write_text(save_json(mod))
        (folder / _PARAMS).write_bytes(save_param_dict(params))
    except RelayHwError as error:
        _refuse(folder, error)
    except MemoryError:
        most = f"{limits.memory_bytes:,} bytes; --limit memory_bytes=NUMBER raises this"
        _refuse(folder, InputError(f"{request['path']} must be readable with at most {most}"))
    return 0


def _refuse(folder: Path, error: RelayHwError) -> None:
    span = error.span
    place = None if span is None else [span.source, span.line, span.column, span.end_line, span.end_column]
    row = {"kind": type(error).__name__, "message": error.message, "span": place}
    (folder / _FAILURE).write_text(json.dumps(row))


def restrict(limits: Limits) -> None:
    """Limit the memory and CPU time of this process from now on."""
    import resource

    bound_memory(limits.memory_bytes)
    bound(resource.RLIMIT_CPU, int(time.process_time()) + limits.seconds)
    bound(resource.RLIMIT_CORE, 0)
