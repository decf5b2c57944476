"""Attacks by files that are no ONNX: arrays, JSON, TOML, Relay text, parameters, programs, builds."""

from __future__ import annotations

import io
import json
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tests.relay_hw.attacks.table import Attack, Deed

HEAD = '#[version = "0.0.5"]\n'


class _Evil:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self._path, "w")


def _text(name: str, suffix: str, text: str, command: str = "check") -> Attack:
    def make(folder: Path) -> Deed:
        path = folder / f"given{suffix}"
        path.write_text(text)
        return [command, str(path)]

    return Attack(name, make)


def _npy(shape: str, data: bytes = b"", dtype: str = "'<f4'") -> bytes:
    """An array file whose head says what it likes."""
    head = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


def _arrays(name: str, members: Mapping[str, bytes], twice: str = "") -> Attack:
    """An .npz as the arguments of a function of one tensor."""

    def make(folder: Path) -> Deed:
        (folder / "f.relay").write_text(HEAD + "def @main(%x: Tensor[(2), float32]) { %x }\n")
        with zipfile.ZipFile(folder / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in members.items():
                archive.writestr(member, data)
            if twice:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # zipfile's, of the name
                    archive.writestr(twice, members[twice])
        return ["eval", str(folder / "f.relay"), "--input", str(folder / "x.npz")]

    return Attack(name, make)


def _pickled(folder: Path) -> Deed:
    (folder / "f.relay").write_text(HEAD + "def @main(%x: Tensor[(2), float32]) { %x }\n")
    buffer = io.BytesIO()
    np.save(buffer, np.array([_Evil(folder / "ran")], object), allow_pickle=True)
    with zipfile.ZipFile(folder / "x.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue())
    return ["eval", str(folder / "f.relay"), "--input", str(folder / "x.npz")]


def _overlapping(folder: Path) -> Deed:
    """Two arrays, the second of which lies inside the first's bytes."""
    made = _arrays("", {}).make(folder)
    array = _npy("(2,)", bytes(8))
    with zipfile.ZipFile(folder / "x.npz", "w") as archive:
        archive.writestr("x.npy", array)
        archive.writestr("y.npy", array)
        first, second = archive.infolist()
        first.compress_size = first.file_size = second.header_offset + 30
    return made


def _only_pickle(folder: Path) -> Deed:
    (folder / "f.relay").write_text(HEAD + "def @main(%x: Tensor[(2), float32]) { %x }\n")
    (folder / "x.npz").write_bytes(pickle.dumps(_Evil(folder / "ran")))
    return ["eval", str(folder / "f.relay"), "--input", str(folder / "x.npz")]


def _not_a_zip(folder: Path) -> Deed:
    words = _pickled(folder)
    path = folder / "x.npz"
    path.write_bytes(path.read_bytes()[:-30])
    return words


def _config(folder: Path) -> Deed:
    (folder / "c.json").write_text("[" * 100_000)
    return ["compile", str(folder / "no.onnx"), "-o", str(folder / "out"), "--config", str(folder / "c.json")]


def _device_for(name: str, suffix: str, words: Callable[[str], list[str]]) -> Attack:
    """A file that is a device without end."""

    def make(folder: Path) -> Deed:
        path = folder / f"given{suffix}"
        path.symlink_to("/dev/zero")
        return words(str(path))

    return Attack(f"{name} that is a device", make)


def _pipe_for(name: str, suffix: str, words: Callable[[str], list[str]]) -> Attack:
    """A file that somebody would wait for."""

    def make(folder: Path) -> Deed:
        path = folder / f"given{suffix}"
        os.mkfifo(path)
        return words(str(path))

    return Attack(f"{name} that is a pipe without writer", make)


def _sparse(name: str, suffix: str, words: Callable[[str], list[str]], bits: int = 40) -> Attack:
    def make(folder: Path) -> Deed:
        path = folder / f"given{suffix}"
        with path.open("wb") as file:
            file.truncate(1 << bits)  # takes no room
        return words(str(path))

    return Attack(f"{name} of 2^{bits} bytes that are not there", make)


def _compiled_with(*words: str) -> Callable[[str], list[str]]:
    return lambda path: ["compile", "no.onnx", "-o", "out", *words, path]


def _map_of(make: Callable[[Path], object]) -> Callable[[Path], Deed]:
    """The memory map of a board."""

    def deed(folder: Path) -> Deed:
        from relay_hw.accel.fpga.soc_map import load_map

        make(folder / "soc.json")
        return lambda: load_map(folder)

    return deed


def _strategy(name: str, text: str) -> Attack:
    def make(folder: Path) -> Deed:
        (folder / "s.toml").write_text(text)
        return ["compile", str(folder / "no.onnx"), "-o", str(folder / "out"), "--quantize", str(folder / "s.toml")]

    return Attack(name, make)


def _build(name: str, manifest: str) -> Attack:
    def make(folder: Path) -> Deed:
        (folder / "build").mkdir()
        (folder / "build" / "manifest.json").write_text(manifest)
        return ["show", str(folder / "build")]

    return Attack(name, make)


def _program(name: str, data: bytes) -> Attack:
    def make(folder: Path) -> Deed:
        (folder / "program.bin").write_bytes(data)
        return ["disasm", str(folder / "program.bin")]

    return Attack(name, make)


def _assembly(name: str, body: str, config: str = "tiny") -> Attack:
    def make(folder: Path) -> Deed:
        from relay_hw.accel.isa.asm import assemble_file

        (folder / "given.asm").write_text(f".config {config}\n{body}\n")
        return lambda: assemble_file(folder / "given.asm")

    return Attack(name, make)


def _params(data: bytes) -> Deed:
    from relay_hw.text import load_param_dict

    return lambda: load_param_dict(data)


_MARK = (0xF7E58D4F05049CB7).to_bytes(8, "little") + bytes(8)
_LONG = (1 << 60).to_bytes(8, "little")

ATTACKS = (
    _text("JSON: 100,000 lists inside of one another", ".json", "[" * 100_000),
    _text("JSON: an integer of a million digits", ".json", "1" * 1_000_000),
    _text("JSON: of another program", ".json", json.dumps({"nodes": [[0]] * 1000, "attrs": {}})),
    _text("JSON: a number without end", ".json", '{"format": 1e999}'),
    _text("Relay text: 5,000 parentheses", ".relay", HEAD + "def @main() { " + "(" * 5000),
    _text("Relay text: a chain of 4,000 signs", ".relay", HEAD + "def @main() { " + "-" * 4000 + " }"),
    _text("Relay text: an integer of 100,000 digits", ".relay", HEAD + "def @main() { " + "9" * 100_000 + " }"),
    _text("Relay text: a tensor of 2^66", ".relay", HEAD + "def @main(%x: Tensor[(99999999999999999999), int8]) {}"),
    _text("Relay text: NUL and controls", ".relay", HEAD + "def @main() { \0\x1b]0;x\x07 }"),
    _arrays("an array of 2^40 in 200 bytes", {"x.npy": _npy("(1099511627776,)")}),
    _arrays("an array of 2^66", {"x.npy": _npy("(8589934592, 8589934592)")}),
    _arrays("an array of negative size", {"x.npy": _npy("(-2,)", b"\0" * 8)}),
    _arrays("an array of 10,000 axes", {"x.npy": _npy("(" + "1," * 10_000 + ")", b"\0" * 4)}),
    _arrays("an array cut short", {"x.npy": _npy("(1000,)", b"\0" * 8)}),
    _arrays("an array of objects", {"x.npy": _npy("(2,)", b"\0" * 16, "'|O'")}),
    _arrays("an array whose head is code", {"x.npy": _npy("(__import__('os').getpid(),)")}),
    _arrays("an array whose head has 5,000 brackets", {"x.npy": _npy("(" * 5000)}),
    _arrays("an archive of 250 MB of zeros in 250 kB", {"x.npy": _npy("(62500000,)", bytes(250_000_000))}),
    _arrays("an archive of 60,000 arrays", {f"{k}.npy": _npy("(2,)", bytes(8)) for k in range(60_000)}),
    _arrays("an archive with paths to outside", {"../../x.npy": _npy("(2,)", bytes(8))}),
    Attack("CVE-2019-6446: an array of pickled objects", _pickled),
    Attack("CVE-2019-6446: a pickle for an archive", _only_pickle),
    Attack("an archive without its end", _not_a_zip),
    Attack("an archive whose arrays overlap", _overlapping),
    _arrays("an archive with an array twice", {"x.npy": _npy("(2,)", bytes(8))}, twice="x.npy"),
    Attack("a configuration of 100,000 lists", _config),
    _device_for("a configuration", ".json", _compiled_with("--config")),
    _pipe_for("a configuration", ".json", _compiled_with("--config")),
    _sparse("a configuration", ".json", _compiled_with("--config")),
    _device_for("a strategy", ".toml", _compiled_with("--quantize")),
    _pipe_for("a strategy", ".toml", _compiled_with("--quantize")),
    _sparse("a strategy", ".toml", _compiled_with("--quantize")),
    _sparse("a program", ".bin", lambda path: ["disasm", path]),
    _sparse("a network", ".onnx", lambda path: ["check", path], 30),
    _sparse("a program", ".bin", lambda path: ["disasm", path], 30),
    _sparse("Relay text", ".relay", lambda path: ["check", path]),
    _sparse("JSON", ".json", lambda path: ["check", path]),
    Attack("a map of a board that is a pipe without writer", _map_of(os.mkfifo)),
    Attack("a map of a board that is a device", _map_of(lambda path: path.symlink_to("/dev/zero"))),
    _strategy("TOML: 100,000 lists inside of one another", "a = " + "[" * 100_000),
    _strategy("TOML: 50,000 tables inside of one another", "[" + "a." * 50_000 + "a]\n"),
    _strategy("TOML: a key of 4,000 parts (8 kB)", "a" + ".a" * 4000 + " = 1\n"),
    _strategy("TOML: 5,000 keys of 400 parts", "".join(f"k{k}" + ".a" * 400 + " = 1\n" for k in range(5000))),
    _strategy("TOML: a hexadecimal integer of 100,000 digits", "a = 0x" + "f" * 100_000),
    _strategy("TOML: an integer of 100,000 digits", "a = " + "9" * 100_000),
    _build("a build whose manifest is 100,000 lists", "[" * 100_000),
    _build("a build whose manifest is a list", "[]"),
    _build("a build whose stages lie outside", json.dumps({"format": 1, "stages": {"partitioned": "../../secret"}})),
    _program("a program of noise", bytes(range(256)) * 64),
    _program("a program that is empty", b""),
    _assembly("assembly: random data of 256 MB in 90 bytes", ".section w constants 0 268435456\n.data random seed=1"),
    _assembly("assembly: a configuration that is another file", "finish", config="../../secret.json"),
    Attack("parameters: 2^60 names", lambda folder: _params(_MARK + _LONG)),
    Attack("parameters: a name of 2^60 letters", lambda folder: _params(_MARK + (1).to_bytes(8, "little") + _LONG)),
    *(
        _text(f"Relay text, {name}", ".relay", f"{HEAD}def @main(%x: Tensor[(4), float32]) {{\n{body}\n}}\n")
        for name, body in (
            ("a constant of 4 GB", "full(1f, shape=[1073741824])"),
            ("a constant beyond 64 bits", "zeros(shape=[1073741824, 1073741824, 1073741824], dtype=\"float32\")"),
            ("a result of 36 TB", "repeat(%x, repeats=9000000000000, axis=0)"),
            ("a result of 4 GB in a tuple", "split(tile(%x, reps=[1073741824]), indices_or_sections=2, axis=0)"),
            ("a name of 8 MB", "%" + "a" * 8_000_000),
            ("a name of 4 million parts", "%a" + "/a" * 4_000_000),
            ("many constants of a GB", "let %a = ones(shape=[268435456], dtype=\"float32\");\n" * 9 + "%a"),
        )
    ),
)  # fmt: skip
