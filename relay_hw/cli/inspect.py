"""Commands that print models, programs and the instruction set: check, show, disasm, isa.

In: parsed arguments. Out: exit status; text or JSON through the console.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from relay_hw.cli.arguments import model_options
from relay_hw.cli.console import Console
from relay_hw.errors import InputError, ParseError, TypeCheckError, UnsupportedError, WellFormedError
from relay_hw.ir.module import IRModule
from relay_hw.support.names import one_of
from relay_hw.support.quote import line


def check_command(args: Namespace, console: Console) -> int:
    """Parse and type-check a model; print the typed module, or the problem and where it is."""
    from relay_hw.runtime.models import load_model
    from relay_hw.text import print_module

    try:
        mod = (
            repaired(args.file, console)
            if args.tolerant
            else load_model(args.file, args.libraries, **model_options(args)).mod
        )
        text = print_module(_typed(mod), show_types=True)
    except (ParseError, TypeCheckError, WellFormedError, UnsupportedError) as error:
        place = {} if error.span is None else {"line": error.span.line, "column": error.span.column}
        if console.as_json:
            row = {"ok": False, "file": str(args.file), "problem": str(error), "source": error.detail}
            console.result(row | place, "")
        else:
            console.error(str(error))
            console.source(error.detail)
        return 1
    console.result({"ok": True, "file": str(args.file), "text": text}, text)
    return 0


def repaired(path: Path, console: Console) -> IRModule:
    """Read a file with the tolerant parser, and print what it repaired. Raises ParseError, InputError."""
    from relay_hw.runtime.models import read_text
    from relay_hw.text import parse_tolerant

    found = parse_tolerant(read_text(path), str(path))
    for note in found.notes:
        console.note(str(note))
    return found.mod


def _typed(mod: Any) -> Any:
    from relay_hw.transform.infer_type import InferType

    return InferType()(mod)


def show_command(args: Namespace, console: Console) -> int:
    """Print the module of a stage of a build, or of a model file."""
    path = Path(args.what)
    if path.suffix and path.is_file():
        from relay_hw.runtime.models import load_model
        from relay_hw.text import print_module

        stage, text = "file", print_module(_typed(load_model(path, **model_options(args)).mod))
    else:
        from relay_hw.runtime.artifact import load_artifact

        stage, text = args.stage, load_artifact(path).stage_text(args.stage)
    console.result({"stage": stage, "text": text}, text)
    return 0


def disasm_command(args: Namespace, console: Console) -> int:
    """Print the programs of a build, or a program file, as assembly."""
    from relay_hw.accel.isa.disasm import disassemble
    from relay_hw.accel.isa.program import Program

    path = Path(args.what)
    if path.is_file():
        programs = {path.stem: Program.load(path)}
    else:
        from relay_hw.runtime.artifact import load_artifact

        artifact = load_artifact(path)
        artifact.manifest.check_accel()
        programs = dict(artifact.programs)
    if args.function is not None:
        if args.function not in programs:
            raise InputError(one_of("function", programs, args.function))
        programs = {args.function: programs[args.function]}
    texts = {name: disassemble(program) for name, program in programs.items()}
    console.result({"programs": texts}, "\n".join(f"; program {line(name)}\n{text}" for name, text in texts.items()))
    return 0


def isa_command(args: Namespace, console: Console) -> int:
    """Print the instruction set: fields of instructions, micro-ops and records; registers."""
    from relay_hw.accel.isa import registers, spec

    layouts = {row.name: row.layout for row in spec.INSTRUCTIONS}
    layouts |= {record.name: record for record in (spec.UOP, spec.PRM, spec.TAB, spec.COF)}
    if args.name is not None and args.name not in layouts:
        raise InputError(one_of("instruction", layouts, args.name))
    chosen = {name: layout for name, layout in layouts.items() if args.name in (None, name)}
    row: dict[str, Any] = {
        "version": spec.ISA_VERSION,
        "layouts": {name: [_field(field) for field in layout.fields] for name, layout in chosen.items()},
    }
    if args.name is None:
        row["registers"] = [
            {"name": r.name, "offset": r.offset, "access": r.access, "doc": r.doc} for r in registers.REGISTERS
        ]
    console.result(row, _isa_text(row, spec.BY_NAME, console.width))
    return 0


def _field(field: Any) -> dict[str, Any]:
    values = {item.name.lower(): int(item) for item in field.enum} if field.enum is not None else None
    return {"name": field.name, "lsb": field.lo, "bits": field.width, "doc": field.doc, "values": values}


def _isa_text(row: dict[str, Any], rows_by_name: Any, width: int | None) -> str:
    from relay_hw.report import table

    blocks = [f"instruction set, version {row['version']}"]
    for name, fields in row["layouts"].items():
        doc = rows_by_name[name].doc if name in rows_by_name else ""
        cells = [(f["name"], f"{f['lsb'] + f['bits'] - 1}:{f['lsb']}", _meaning(f)) for f in fields]
        blocks.append(f"{name}  {doc}".rstrip() + "\n" + table(("field", "bits", "meaning"), cells, width=width))
    if "registers" in row:
        cells = [(f"{r['offset']:#04x}", r["access"], r["name"], r["doc"]) for r in row["registers"]]
        blocks.append("registers\n" + table(("offset", "access", "name", "meaning"), cells, width=width))
    return "\n\n".join(blocks)


def _meaning(field: dict[str, Any]) -> str:
    if not field["values"]:
        return field["doc"]
    return f"{field['doc']}: " + ", ".join(f"{value} {name}" for name, value in field["values"].items())
