"""Names from strangers reach other languages through support/quote.py alone, terminals through one function alone.

Pages are written by templates, which test_templates.py reads.
"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.house.foreign import House, foreign_text, number_names
from tests.house.sources import ROOT, calls_of, tree_of

SOURCES = {
    str(path.relative_to(ROOT)): path.read_text()
    for top in ("relay_hw", "tensorize", "accel")
    for path in sorted((ROOT / top).rglob("*.py"))
}
# By language: what writes it, and functions of others whose results are text of it. What is called a number gives the
# text of one in every language.
NUMBERS = {"number", "percent", "interval", "share", "decibels"}
TEXT = {"table", "some", "mac_text", "losses"}
# By file, expressions that are no stranger's, with the reason.
WRITERS: dict[str, dict[str, str]] = {
    "relay_hw/runtime/deploy/source.py": {
        "'\\n'.join([*model_head(artifact), *parts])": "lines of C, checked where they are made",
        "rows.batch": "a number",
        "name": "a word of _batch, _tables and _tensors",
        "short": "a word of _batch",
        "kind": "a word of _batch",
        "name.removesuffix('s')": "a word of _batch, in a sentence",
        "row.name": "in a sentence, or quoted by finite_check",
        "k": "a number",
        "tensor.constant": "an offset",
        "plan.offsets[tensor.root]": "an offset",
        "place": "an offset or a word of _tables",
        "section.size": "a number",
    },
    "relay_hw/runtime/deploy/operators.py": {
        "scales": "an address made by keep",
        "zeros": "an address made by keep",
        "out": "one of QUANTIZED",
        "source": "one of QUANTIZED, or int32",
        "logarithm": "a number",
        "size": "a number",
        "np.dtype(ty.dtype).itemsize": "a number",
    },
    "relay_hw/runtime/deploy/steps.py": {
        "name": "quoted by finite_check",
        "program": "a number",
        "step.kernel": "host_k and a number, as backend/tvm/c_kernels.py names kernels",
    },
    "relay_hw/text/highlight.py": {"colour.value": "one of Colour"},
    "relay_hw/report/text.py": {"cause": "one of Cause"},
    "relay_hw/report/table.py": {"', '.join(left_out)": "columns of the writers"},
    "relay_hw/compare/table.py": {
        "row.engine": "notes are quoted by those who show them",
        "row.note": "notes are quoted by those who show them",
    },
    "relay_hw/cli/build.py": {"artifact.launches": "a number"},
    "relay_hw/cli/run.py": {
        "result.chunk": "a number",
        "args.device": "one of DEVICES",
        "name": "a key of the file of outputs",
        "left[where]": "a number",
        "right[where]": "a number",
        "right.size": "a number",
    },
    "relay_hw/cli/compare.py": {"found.to_text(console.width)": "lines of compare/table.py"},
    "relay_hw/cli/doctor.py": {"', '.join(missing)": "words of find_tools", "version": "a cell of a table"},
    "relay_hw/cli/fpga.py": {
        "soc.design.name": "a part or board, and the checked name of a configuration",
        "toolchain(soc.design.part).suffix": "one of two",
        "json.dumps(report, indent=2, sort_keys=True)": "JSON",
        "json.dumps(row, indent=2)": "JSON",
        "json.dumps(estimated, indent=2, sort_keys=True)": "JSON",
        "name": "a word, padded",
        "platform.machine()": "in JSON",
        "platform.system()": "in JSON",
    },
    "relay_hw/cli/inspect.py": {
        "text": "lines of the disassembler",
        "row['version']": "a number",
        "f['lsb']": "a number",
        "doc": "of the instruction set",
        "name": "of the instruction set",
        "field['doc']": "of the instruction set",
        "value": "a number",
    },
    "relay_hw/cli/language.py": {
        "param.name_hint": "in a sentence",
        "param.type": "in a sentence",
    },
    "relay_hw/cli/values.py": {"index": "a number", "what": "in a sentence"},
    "relay_hw/runtime/explanation.py": {
        "report.launches": "a number",
        "outcome.change.text": "sentences are quoted by those who show them",
        "outcome.reason": "sentences are quoted by those who show them",
        "why": "sentences are quoted by those who show them",
        "self.report.model": "in a short text of an object",
        "name": "of a scratchpad or queue",
    },
    "relay_hw/runtime/deploy/control.py": {
        "'\\n'.join([*parts, '', native, *_start(plan), '', *_run(artifact, plan)])": "lines of C",
        "entry": "a number",
        "row.name": "quoted by finite_check",
    },
    "relay_hw/backend/native/c_code.py": {
        "'\\n'.join(lines)": "lines of the writer",
        "', '.join(items) or '0'": "numbers and quoted names",
        "head": "of a table of the writer",
        "local.number": "a number",
        "number": "a number",
        "self._function.number": "a number",
        "function.number": "a number",
        "prefix": "a word of the writer",
        "index": "a number",
        "text": "an expression of the writer",
        "line": "a line of the writer",
        "step": "a number",
    },
    "accel/fpga/part_top.py": {"key": "a parameter of vta_top", "value": "a number"},
    "accel/fpga/vendor/ip.py": {"key": "a parameter of vta_top", "value": "a number"},
    "accel/fpga/vendor/project.py": {
        "path.name": "a file of accel/rtl",
        "json.dumps(_board(target), indent=2, sort_keys=True)": "JSON",
        "name": "a word of the writer",
        "bits": "a number",
        "direction.capitalize()": "a port of vta_top",
        "role": "a port of vta_top",
        "target.form.value.capitalize()": "one of Form",
        "steps": "fixed text",
    },
}
# What looks like another language and holds no name of a stranger, with the reason.
NOT_FOREIGN = {
    "accel/fpga/flow.py": "names of files and cells of accel/rtl",
    "accel/fpga/synth.py": "names of files and cells of accel/rtl",
    "accel/fpga/sim/activity.py": "names of ports of accel/rtl",
    "accel/fpga/sim/board.py": "names of files that Verilator writes",
    "accel/fpga/sim/netlist.py": "names of cells of accel/rtl",
    "accel/fpga/sim/soc.py": "numbers",
    "accel/fpga/vendor/estimate.py": "names of files and cells of accel/rtl",
    "accel/sim/verilator.py": "names of files that Verilator writes",
    "relay_hw/backend/native/library.py": "names of files of its own",
    "relay_hw/backend/tvm/c_kernels.py": "TVM writes the C; kernels have numbers",
    "relay_hw/text/printer.py": "Relay text: text/names.py makes every name readable by the lexer",
}
LOOKS = re.compile(
    r"<(?:td|tr|th|p|b|h[1-3]|g|svg|span|rect|div)\b|#include|/\* |\bendmodule\b|set_property|read_verilog"
    r"|static const "
)
# Where text may be printed.
PRINTERS = {
    "relay_hw/cli/console.py",
    "accel/sim/pipe.py",
    "accel/isa/gen_docs.py",
    "accel/isa/gen_timing.py",
    "accel/isa/gen_verilog.py",
    "accel/fpga/vendor/serve.py",
    "relay_hw/compat/tvm/transform.py",
    "relay_hw/op/annotation.py",
}


@cache
def trees() -> dict[str, ast.Module]:
    """All sources, read when the first test asks: every process that collects tests imports this file."""
    return {path: tree_of(ROOT / path) for path in SOURCES}


@cache
def fixed() -> set[str]:
    return number_names(list(trees().values()))


@cache
def quotes() -> set[str]:
    return {node.name for node in trees()["relay_hw/support/quote.py"].body if isinstance(node, ast.FunctionDef)}


def house(path: str) -> House:
    others = TEXT if "/cli/" in path or path.endswith(("text.py", "table.py", "explanation.py")) else set[str]()
    return House(quotes(), NUMBERS | others, fixed())


@pytest.mark.parametrize("path", WRITERS)
def test_a_writer_quotes_whatever_is_not_its_own(path: str) -> None:
    found = foreign_text(SOURCES[path], house(path))
    assert [text for text in found if text not in WRITERS[path]] == []
    assert sorted(WRITERS[path].keys() - set(found)) == [], "no longer needed"


def looks_foreign(tree: ast.AST) -> bool:
    """Whether a module holds text of another language, its docstrings aside."""
    docs = {id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and node.body
            and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return any(id(node) not in docs and LOOKS.search(node.value) for node in texts)


def test_every_writer_is_known() -> None:
    looking = {path for path, tree in trees().items() if looks_foreign(tree)}
    assert looking - WRITERS.keys() - NOT_FOREIGN.keys() == set()
    assert NOT_FOREIGN.keys() - looking == set(), "no longer needed"


def called_by(tree: ast.AST) -> set[str]:
    return {name for name, _ in calls_of(tree)}


def test_rules_of_languages_are_in_one_file() -> None:
    rules = {"escape", "html.escape", "_html.escape", "shlex.quote", "quoteattr", "saxutils.escape"}
    assert [path for path, tree in trees().items() if called_by(tree) & rules] == ["relay_hw/support/quote.py"]


def test_text_is_printed_in_few_places() -> None:
    prints = {"print", "sys.stdout.write", "sys.stderr.write", "traceback.print_exc", "warnings.warn"}
    assert {path for path, tree in trees().items() if called_by(tree) & prints} == PRINTERS


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(name: str) -> str:\n    return f'<td>{name}</td>'", ["name"]),
        ("def f(name: str) -> str:\n    return f'<td>{html(name)}</td>'", []),
        ("def f(name: str) -> str:\n    return '<td>' + name", ["name"]),
        ("def f(name: str) -> str:\n    return '<td>%s' % name", ["name"]),
        ("def f(name: str) -> str:\n    return '<td>{}'.format(name)", ["name"]),
        ("def f(count: int) -> str:\n    return f'<td>{count}</td>'", []),
        ("def f(row: Row) -> str:\n    text = row.name.upper()\n    return f'<td>{text}</td>'", ["text"]),
        ("def f(row: Row) -> str:\n    text = html(row.name)\n    return f'<td>{text}</td>'", []),
        ("def f(rows: list[Row]) -> str:\n    return ''.join(f'<td>{row.name}' for row in rows)", ["row.name"]),
        ("def f(row: Row) -> str:\n    return f'{row.cycles:,} {row.name:>8}'", ["row.name"]),
        ("def f(row: Row) -> str:\n    raise InputError(f'{row.name} must be')", []),
        ("def f(names: list[str]) -> str:\n    return f\"{', '.join(names)}\"", ["', '.join(names)"]),
        ("def f(names: list[str]) -> str:\n    return f\"{', '.join(map(html, names))}\"", []),
        ("def f(names: list[str]) -> str:\n    return ''.join(f'{k}{name}' for k, name in enumerate(names))", ["name"]),
    ],
)
def test_what_is_found(text: str, found: list[str]) -> None:
    assert foreign_text(text, House({"html"}, set(), set())) == found


def test_a_new_writer_is_found() -> None:
    assert looks_foreign(ast.parse("def f(name):\n    return f'<td>{name}</td>'"))
    assert looks_foreign(ast.parse("X = '#include <stdio.h>'"))
    assert not looks_foreign(ast.parse('"""Writes <td>."""'))
