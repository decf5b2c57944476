"""What scripts/scaling.py reads: texts, documents, files and builds of any size, each with its reader."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from relay_hw.accel.fpga.soc_map import MemorySetup, SetupStep, SocMap, load_map
from relay_hw.accel.isa.asm import assemble
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program, Section, SectionKind, TensorSlot, WindowPlan
from relay_hw.accel.isa.spec import Op
from relay_hw.errors import RelayHwError
from relay_hw.quantize.strategy_file import load_strategy
from relay_hw.runtime.archive import Archive
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.documents import parse_json
from relay_hw.text import (
    load_json,
    load_param_dict,
    parse,
    parse_tolerant,
    print_module,
    save_json,
    save_param_dict,
)
from relay_hw.text.tvm.writer import save_tvm_json
from scripts import scaling_onnx
from tests.relay_hw.small_models import images, save_plain

# 4 MB and 64 MB, and what stands around so many parts.
TEXT: Final = 5 << 20
BINARY: Final = 68 << 20
VERSION: Final = '#[version = "0.0.5"]\n'
Made = Any


@dataclass(frozen=True, slots=True)
class Case:
    """`make(n)`: an input of n parts; `read`: reads it; `most`: bytes of the largest."""

    make: Callable[[int], Made]
    read: Callable[[Made], object]
    most: int


def main_of(body: str, params: str = "%x: int32") -> str:
    """A module of one function."""
    return f"{VERSION}def @main({params}) {{\n{body}\n}}\n"


def _joined(n: int, form: str, start: str = "") -> str:
    """`start`, and `form` with each number from 1 to `n` and the one before."""
    return start + "".join(form.format(k, k - 1) for k in range(1, n + 1))


def _parsed(make: Callable[[int], str]) -> Callable[[int], Made]:
    return lambda n: parse(make(n))


def _chain(text: str) -> Callable[[int], str]:
    return lambda n: main_of("%x" + text * n)


def _tolerant(text: str) -> object:
    """Signs and reads are of the tolerant parser alone."""
    return parse_tolerant(text)


def _refused(text: str) -> object:
    """A text that is too deep in a place where depth has a limit, or that is no program."""
    try:
        return parse(text)
    except RelayHwError as error:
        return error


def _unary(word: str) -> Callable[[int], str]:
    return lambda n: main_of(word * n + "%x" + ")" * n)


TEXTS: Final[Mapping[str, tuple[Callable[[int], str], Callable[[str], object]]]] = {
    **{f"chain of {symbol}": (_chain(f" {symbol} %x"), parse) for symbol in ("+", "-", "*", "/")},
    "chain of tight -": (lambda n: main_of("1" + "-1" * n), _refused),
    "signs before a number": (lambda n: main_of("-" * n + "1"), _refused),
    "signs before a name": (lambda n: main_of("-" * n + "%x"), _tolerant),
    "signs with spaces": (lambda n: main_of("- " * n + "%x"), _tolerant),
    "reads before a name": (lambda n: main_of("!" * n + "%x", "%x"), _tolerant),
    "calls in calls": (_unary("negative("), parse),
    "parentheses": (_unary("("), parse),
    "open parentheses": (lambda n: main_of("(" * n), _refused),
    "open brackets": (lambda n: main_of("[" * n), _refused),
    "open blocks": (lambda n: main_of("{" * n), _refused),
    "nested lists": (lambda n: main_of("[" * n + "1" + "]" * n), _refused),
    "tuple": (lambda n: main_of("(" + "%x, " * n + ")"), parse),
    "tuples in tuples": (lambda n: main_of("(" * n + "%x" + ",)" * n), _refused),
    "projections": (lambda n: main_of("%x" + ".0" * n, "%x"), _refused),
    "graph variables": (
        lambda n: main_of("%0 = %x;\n" + "".join(f"%{k + 1} = add(%{k}, %x);\n" for k in range(n)) + f"%{n}"),
        parse,
    ),
    "lets": (
        lambda n: main_of(_joined(n, "let %v{0} = add(%v{1}, %x);\n", "let %v0 = %x;\n") + f"%v{n}"),
        parse,
    ),
    "lets of one name": (lambda n: main_of("let %v = %x;\n" * n + "%v"), parse),
    "items": (lambda n: main_of("%x;\n" * n + "%x"), parse),
    "ifs in ifs": (lambda n: main_of("if (True) { " * n + "%x" + " } else { %x }" * n), parse),
    "functions": (
        lambda n: _joined(n, "def @f{0}(%x: int32) {{ @f{1}(%x) }}\n", VERSION + "def @f0(%x: int32) { %x }\n"),
        parse,
    ),
    "functions in functions": (lambda n: main_of("fn () { " * n + "%x" + " }" * n), _refused),
    "parameters": (lambda n: main_of("%x", ", ".join(["%x: int32", *(f"%p{k}: int32" for k in range(n))])), parse),
    "arguments": (lambda n: main_of("add(" + "%x, " * n + "%x)"), _refused),
    "unknown names": (lambda n: main_of("\n".join(f"let %v{k} = %x;" for k in range(n)) + "\n%w"), _refused),
    "types": (lambda n: _joined(n, "type T{0} {{ C{0}(int32) }}\n", VERSION) + "def @main() { 1 }", parse),
    "constructors": (lambda n: _joined(n, "C{0}, ", VERSION + "type T { ") + "C0 }\ndef @main() { C0 }", parse),
    "arms": (
        lambda n: VERSION + "type T { A, B }\ndef @main(%x: T) { match (%x) { " + "A => 1, " * n + "B => 2 } }",
        parse,
    ),
    "constructors and arms": (
        lambda n: VERSION + "type T { " + ", ".join(f"C{k}" for k in range(n)) + " }\ndef @main(%x: T) { match (%x) { "
        + "".join(f"C{k} => {k}, " for k in range(n)) + "} }",
        parse,
    ),
    "type parameters": (lambda n: _joined(n, "A{0}, ", VERSION + "def @main[") + "A0](%x: A0) { %x }", parse),
    "tuple types": (lambda n: main_of("%x", f"%x: ({'int32, ' * n})"), _refused),
    "shapes": (lambda n: main_of("%x", f"%x: Tensor[({'1, ' * n}), int32]"), _refused),
    "sums of dimensions": (lambda n: main_of("%x", f"%x: Tensor[({' + '.join(['n', 'm'] * n)}), int32]"), _refused),
    "many dimensions": (lambda n: main_of("%x", f"%x: Tensor[({_joined(n, 'n{0} + ')}1), int32]"), _refused),
    "products of dimensions": (lambda n: main_of("%x", f"%x: Tensor[({' * '.join(['n'] * n)}), int32]"), _refused),
    "attribute lists": (lambda n: main_of(f"reshape(%x, newshape=[{'1, ' * n}])"), _refused),
    "comments": (lambda n: main_of("/* " + "x" * n + " */ %x"), parse),
    "comments in comments": (lambda n: main_of("/*" * n + "*/" * n + "%x"), parse),
    "open comments": (lambda n: main_of("/*" * n), _refused),
    "line comments": (lambda n: main_of("// x\n" * n + "%x"), parse),
    "spaces": (lambda n: main_of(" " * n + "%x"), parse),
    "a string": (lambda n: main_of(f'annotation.compiler_begin(%x, compiler="{"x" * n}")'), parse),
    "open string": (lambda n: main_of('"' + "x" * n), _refused),
    "a long name": (lambda n: main_of("%" + "x" * n), _refused),
    "a dotted name": (lambda n: main_of("a." * n), _refused),
    "a dotted local": (lambda n: main_of("%a" + ".b" * n), _refused),
    "a slashed name": (lambda n: main_of("%a" + "/b" * n), _refused),
    "numbers with dots": (lambda n: main_of("%a" + ".1" * n + ".x"), _refused),
    "digits": (lambda n: main_of("1" * n), _refused),
    "digits and signs": (lambda n: main_of("1e" + "+-" * n), _refused),
    "constants": (lambda n: main_of("(" + "".join(f"{k}, " for k in range(n)) + ")"), parse),
    "a tensor": (lambda n: main_of("[" + "1, " * n + "1]"), parse),
    "undefined globals": (lambda n: main_of("(" + "".join(f"@f{k}, " for k in range(n)) + ")"), _refused),
    "references": (lambda n: main_of("ref(" * n + "%x" + ")" * n), _refused),
    "metadata": (
        lambda n: main_of("%x") + "#[metadata]\n" + json.dumps(
            {"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["IntImm"], "data": [2]},
             {"type_key": "Array", "data": list(range(3, n + 3))},
             *({"type_key": "IntImm", "attrs": {"value": str(k), "dtype": "int64"}} for k in range(n))]}),
        parse,
    ),
}  # fmt: skip


def _dataflow(n: int) -> Any:
    return parse(TEXTS["graph variables"][0](n))


def _asm(line: str) -> Callable[[int], str]:
    return lambda n: f".config tiny\n.section data input 0 {1 << 24}\n" + line * n + "finish\n"


DOCUMENTS: Final[Mapping[str, tuple[Callable[[int], str], Callable[[str], object]]]] = {
    "own JSON": (lambda n: save_json(_dataflow(n)), load_json),
    "own JSON, lets": (lambda n: save_json(parse(TEXTS["lets"][0](n))), load_json),
    "TVM's JSON": (lambda n: save_tvm_json(_dataflow(n)), load_json),
    "TVM's JSON, lets": (lambda n: save_tvm_json(parse(TEXTS["lets"][0](n))), load_json),
    "JSON, lists": (lambda n: json.dumps([[k] for k in range(n)]), parse_json),
    "asm, instructions": (_asm("gemm iter_out=3 wait=s1,s2\n"), assemble),
    "asm, data": (_asm(".data i8 1 2 3\n"), assemble),
    "asm, one line of data": (lambda n: _asm(".data i32 " + "7 " * n + "\n")(1), assemble),
    "asm, hex": (lambda n: _asm(".data hex " + "0f" * n + "\n")(1), assemble),
    "asm, uops": (_asm(".uop dst=1 src=2\n"), assemble),
    "asm, words": (_asm(".word 1\n"), assemble),
    "asm, comments": (_asm("; nothing\n"), assemble),
    "asm, sections": (
        lambda n: ".config tiny\n" + "".join(f".section s{k} input {32 * k} 32\n" for k in range(n)) + "finish\n",
        assemble,
    ),
    "asm, tensors": (
        lambda n: _asm("")(0) + "".join(f".tensor t{k} data {k} int8 1 flat\n" for k in range(n)),
        assemble,
    ),
    "asm, sections and tensors": (
        lambda n: (
            ".config tiny\n"
            + "".join(f".section s{k} input {32 * k} 32\n.tensor t{k} s{k} 0 int8 1 flat\n" for k in range(n))
            + "finish\n"
        ),
        assemble,
    ),
    "asm, regions": (lambda n: _asm("")(0) + "".join(f".region r{k} 0 1\n" for k in range(n)), assemble),
    "asm, a number": (lambda n: _asm(f".word {'1' * n}\n")(1), lambda text: _quiet(assemble, text)),
}


def _quiet(read: Callable[[Any], object], made: Any) -> object:
    """Read what may be refused."""
    try:
        return read(made)
    except (RelayHwError, AccelError) as error:
        return error


def in_file(name: str, read: Callable[[Path], object]) -> Callable[[Any], object]:
    """A reader of files as one of their contents."""

    def run(data: Any) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
            return _quiet(read, path)

    return run


def _map(n: int) -> str:
    steps = (SetupStep("init", tuple((k, k) for k in range(n)), 1),)
    return SocMap("b", "tiny", 1, 1, 1, 1, setup=MemorySetup(0, 1, steps)).to_json()


def _steps(n: int) -> str:
    steps = tuple(SetupStep(f"step {k}", ((k, k),), 1) for k in range(n))
    return SocMap("b", "tiny", 1, 1, 1, 1, setup=MemorySetup(0, 1, steps)).to_json()


FILES: Final[Mapping[str, tuple[Callable[[int], str], Callable[[Any], object]]]] = {
    "soc.json, words": (_map, in_file("soc.json", load_map)),
    "soc.json, steps": (_steps, in_file("soc.json", load_map)),
    "config, a key": (lambda n: json.dumps({"x" * n: 1}), in_file("c.json", load_config)),
    "config, keys": (lambda n: json.dumps({f"x{k}": 1 for k in range(n)}), in_file("c.json", load_config)),
    "TOML, layers": (
        lambda n: "".join(f'[[layer]]\nlayer = "conv{k}"\nweight_bits = 4\n' for k in range(n)),
        in_file("s.toml", load_strategy),
    ),
    "TOML, keys": (lambda n: "".join(f"k{k} = 1\n" for k in range(n)), in_file("s.toml", load_strategy)),
    "TOML, dotted keys": (lambda n: ".".join(["a"] * n) + " = 1\n", in_file("s.toml", load_strategy)),
    "TOML, dotted keys again": (
        lambda n: "".join(f"{'.'.join(['a'] * 50)}.b{k} = 1\n" for k in range(n)), in_file("s.toml", load_strategy)
    ),
    "TOML, tables": (lambda n: "".join(f"[t{k}]\n" for k in range(n)), in_file("s.toml", load_strategy)),
    "TOML, long tables": (lambda n: _joined(n, f"[{'a.' * 40}t{{0}}]\n"), in_file("s.toml", load_strategy)),
    "TOML, array": (lambda n: f"mixed_bits = [{'4, ' * n}]\n", in_file("s.toml", load_strategy)),
    "TOML, arrays in arrays": (lambda n: f"mixed_bits = {'[' * n}{']' * n}\n", in_file("s.toml", load_strategy)),
    "TOML, inline tables": (lambda n: f"x = {'{a=' * n}1{'}' * n}\n", in_file("s.toml", load_strategy)),
    "TOML, string": (lambda n: f'summary = "{"x" * n}"\n', in_file("s.toml", load_strategy)),
    "TOML, long string": (lambda n: "summary = '''" + "x\n" * n + "'''\n", in_file("s.toml", load_strategy)),
    "TOML, escapes": (lambda n: 'summary = "' + "\\n" * n + '"\n', in_file("s.toml", load_strategy)),
    "TOML, number": (lambda n: f"seed = {'1' * n}\n", in_file("s.toml", load_strategy)),
    "TOML, comments": (lambda n: "# x\n" * n, in_file("s.toml", load_strategy)),
}  # fmt: skip


# Binary formats: n counts KiB, or small parts


def _params(n: int) -> bytes:
    return save_param_dict({"w": np.zeros(n * 1024, np.int8)})


def _many_params(n: int) -> bytes:
    return save_param_dict({f"p{k}": np.zeros(16, np.int8) for k in range(n)})


def _program(n: int) -> bytes:
    section = Section("weights", SectionKind.WEIGHTS, 0, n * 1024, bytes(n * 1024))
    return Program.build(load_config("tiny"), [(Op.FINISH, {})], WindowPlan([section])).to_bytes()


def _program_code(n: int) -> bytes:
    return Program.build(load_config("tiny"), [(Op.FINISH, {})] * n).to_bytes()


def _program_parts(n: int) -> bytes:
    sections = [Section(f"s{k}", SectionKind.WEIGHTS, 32 * k, 32, bytes(32)) for k in range(n)]
    tensors = [TensorSlot(f"t{k}", f"s{k}", 0, (32,), "int8") for k in range(n)]
    return Program.build(load_config("tiny"), [(Op.FINISH, {})], WindowPlan(sections, tensors)).to_bytes()


def _npz(arrays: Mapping[str, Any]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _npz_many(n: int) -> bytes:
    return _npz({f"a{k}": np.zeros(4, np.int8) for k in range(n)})


def _read_all(path: Path) -> object:
    return dict(Archive(path, "data"))


_BUILD: dict[str, bytes] = {}


def _build_files() -> dict[str, bytes]:
    if not _BUILD:
        with tempfile.TemporaryDirectory() as place:
            model = load_model(save_plain(Path(place) / "plain.onnx"))
            data = {"image": images(8, 99)}
            compiled = compile_model(
                model.mod,
                CompileOptions(config="tiny", host_target="numpy", name="plain"),
                params=model.params,
                calibration=data,
            )
            compiled.save(Path(place) / "build")
            _BUILD.update({path.name: path.read_bytes() for path in (Path(place) / "build").iterdir()})
    return dict(_BUILD)


def _signed(files: dict[str, bytes], row: dict[str, Any]) -> dict[str, bytes]:
    row.pop("sha256", None)
    text = json.dumps(row, sort_keys=True, separators=(",", ":")).encode()
    return files | {"manifest.json": json.dumps(row | {"sha256": hashlib.sha256(text).hexdigest()}).encode()}


def _weights(n: int) -> dict[str, bytes]:
    """A build whose constants take n KiB."""
    files = _build_files()
    row = json.loads(files["manifest.json"])
    files["weights.bin"] += bytes(n * 1024)
    row["files"]["weights.bin"] = hashlib.sha256(files["weights.bin"]).hexdigest()
    return _signed(files, row)


def _layers(n: int) -> dict[str, bytes]:
    """A build of many layers, host functions and constants."""
    files = _build_files()
    row = json.loads(files["manifest.json"])
    row["layers"] = row["layers"] * n
    name, function = next(iter(row["functions"].items()))
    row["functions"] |= {f"{name}_{k}": function for k in range(n)}
    return _signed(files, row)


def _read_build(files: dict[str, bytes]) -> object:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "build"
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        found = load_artifact(folder)
        shutil.rmtree(folder)
    return found


BYTES: Final[Mapping[str, tuple[Callable[[int], Any], Callable[[Any], object]]]] = {
    ".params, one array": (_params, load_param_dict),
    ".params, many": (_many_params, load_param_dict),
    "program.bin, data": (_program, Program.from_bytes),
    "program.bin, code": (_program_code, lambda data: Program.from_bytes(data).instructions),
    "program.bin, sections": (_program_parts, Program.from_bytes),
    "npz, one array": (lambda n: _npz({"a": np.zeros(n * 1024, np.int8)}), in_file("a.npz", _read_all)),
    "npz, many": (_npz_many, in_file("a.npz", _read_all)),
    "build, constants": (_weights, _read_build),
    "build, layers": (_layers, _read_build),
    "onnx, chain": (scaling_onnx.chain, in_file("m.onnx", scaling_onnx.read)),
    "onnx, comb": (scaling_onnx.comb, in_file("m.onnx", scaling_onnx.read)),
    "onnx, weights": (scaling_onnx.weights, in_file("m.onnx", scaling_onnx.read)),
}

_PRINTED: Final = ("graph variables", "lets", "calls in calls", "tuple", "functions")
CASES: Final[Mapping[str, Case]] = MappingProxyType(
    {name: Case(make, read, TEXT) for name, (make, read) in {**TEXTS, **DOCUMENTS, **FILES}.items()}
    | {f"print, {name}": Case(_parsed(TEXTS[name][0]), print_module, TEXT) for name in _PRINTED}
    | {name: Case(make, read, BINARY) for name, (make, read) in BYTES.items()}
)
