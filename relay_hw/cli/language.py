"""Commands on Relay programs: eval, convert.

In: parsed arguments. Out: exit status; values and files.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relay_hw.cli.arguments import model_options
from relay_hw.cli.console import Console
from relay_hw.cli.data import save_npz, save_text
from relay_hw.cli.inspect import repaired
from relay_hw.cli.values import plain_value, read_argument, value_text
from relay_hw.errors import InputError, TypeCheckError
from relay_hw.interp.evaluate import Interpreter
from relay_hw.interp.values import Value, show
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.runtime.archive import Archive
from relay_hw.runtime.given import RELAY_SUFFIXES
from relay_hw.support.names import one_of
from relay_hw.support.quote import line


def eval_command(args: Namespace, console: Console) -> int:
    """Evaluate a function on arguments from the command line and from a file."""
    interpreter, given = prepared(args)
    console.started("evaluating")
    value = interpreter.call_global(args.entry, given)
    if args.output is not None:
        save_npz(args.output, _outputs(value))
    ty = str(interpreter.mod[args.entry].func_type.ret_type)
    text = value_text(value)
    console.result({"entry": args.entry, "type": ty, "text": text, "value": plain_value(value)}, text)
    return 0


def prepared(args: Namespace) -> tuple[Interpreter, Mapping[str, Value]]:
    """The model of a command in an interpreter, and the arguments of its entry."""
    from relay_hw.runtime.models import load_model

    model = load_model(args.file, args.libraries, **model_options(args))
    interpreter = Interpreter(model.mod)
    functions = interpreter.mod.functions
    if args.entry not in functions:
        raise InputError(one_of("entry", functions, args.entry))
    function = functions[args.entry]
    given = dict(model.params) if args.entry == "main" else {}
    if args.input is not None:
        given |= Archive(args.input, "input")
    given |= _positional(function, args.arguments, given, interpreter)
    return interpreter, _checked(function, given, args.entry)


def _positional(
    function: Function, texts: Sequence[str], given: Mapping[str, Any], interpreter: Interpreter
) -> dict[str, Value]:
    """The command line's arguments, for the parameters that have no value yet, in order."""
    names = [param.name_hint for param in function.params]
    if len(set(names)) != len(names):
        raise InputError(f"parameters must have different names, not {', '.join(names)}")
    free = [param for param in function.params if param.name_hint not in given]
    if len(texts) > len(free):
        raise InputError(f"arguments must be at most {len(free)}, not {len(texts)}")
    return {
        param.name_hint: read_argument(text, param.type, f"argument {param.name_hint}", interpreter)
        for param, text in zip(free, texts, strict=False)
    }


def _checked(function: Function, given: Mapping[str, Value], entry: str) -> Mapping[str, Value]:
    missing = [param for param in function.params if param.name_hint not in given]
    if missing:
        listed = ", ".join(f"{param.name_hint}: {param.type}" for param in missing)
        raise InputError(f"@{entry} must have arguments for {listed}")
    return given


def _outputs(value: Value) -> dict[str, np.ndarray]:
    """Tensors by name: `output`, or `output_0`, `output_1`, ... of a tuple. Raises InputError."""
    parts = {f"output_{i}": part for i, part in enumerate(value)} if isinstance(value, tuple) else {"output": value}
    for part in parts.values():
        if not isinstance(part, np.ndarray):
            raise InputError(f"result must be a tensor or a tuple of tensors to be written to a file, not {show(part)}")
    return parts


def convert_command(args: Namespace, console: Console) -> int:
    """Write a model as Relay text or JSON; ONNX parameters become constants."""
    from relay_hw.build_module import bind_params_by_name
    from relay_hw.runtime.models import load_model
    from relay_hw.transform.infer_type import InferType
    from relay_hw.transform.passes import get_pass

    path = Path(args.output)
    steps = [get_pass(name) for name in args.passes]
    if path.suffix not in RELAY_SUFFIXES:
        raise InputError(f"output {path} must be a .relay or .json file, not {path.suffix or 'a file without suffix'}")
    if args.tolerant:
        mod = repaired(Path(args.model), console)
    else:
        model = load_model(args.model, args.libraries, **model_options(args))
        mod = model.mod
        if model.params:
            mod = mod.with_functions({"main": bind_params_by_name(mod["main"], model.params)})
    try:
        mod = InferType()(mod)
        for step in steps:
            mod = step(mod)
    except TypeCheckError as error:
        # Text may lack types; a reader can add them by hand.
        if not args.tolerant or path.suffix == ".json":
            raise
        console.note(str(error))
    save_text(path, _written(mod, path.suffix))
    row = {"output": str(path), "functions": len(mod.functions), "types": len(mod.types)}
    console.result(row, f"{line(path)}: {len(mod.functions)} function(s), {len(mod.types)} data type(s)")
    return 0


def _written(mod: IRModule, suffix: str) -> str:
    from relay_hw.text import print_module, save_json

    return save_json(mod) if suffix == ".json" else print_module(mod)
