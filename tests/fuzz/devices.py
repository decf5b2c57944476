"""Entry points of the accelerator: assembly, programs, build folders, soc.json, settings as TOML and JSON.

In: small programs and one small build. Out: entries. Hashes of changed files are made right again: they are no secret.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from relay_hw.accel.fpga.soc_map import MemorySetup, SetupStep, SocMap, load_map
from relay_hw.accel.isa.asm import assemble_file
from relay_hw.accel.isa.config import CONFIG_DIR, load_config
from relay_hw.accel.isa.container import PREFIX_BYTES
from relay_hw.accel.isa.disasm import disassemble
from relay_hw.accel.isa.program import Program
from relay_hw.accel.isa.randprog import random_program
from relay_hw.quantize.recipes import strategy_names
from relay_hw.quantize.strategy_file import find_strategy, load_strategy, strategy_from, strategy_values
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.devices import open_device
from tests.fuzz import mutate
from tests.fuzz.judge import Entry, Outcome, Wrong
from tests.relay_hw.small_models import images, save_plain

ROOT: Final = Path(__file__).parents[2]


# Assembly and programs


@cache
def _programs() -> tuple[Program, ...]:
    return tuple(random_program(load_config(name), seed, 8) for seed, name in enumerate(("tiny", "default", "ecp5")))


@cache
def _assembly() -> tuple[str, ...]:
    files = sorted((ROOT / "tests" / "accel" / "isa" / "programs").glob("*.asm"))
    return (*(path.read_text() for path in files[::5]), *map(disassemble, _programs()))


_ASM_WORDS: Final = (
    *[
        ".config",
        ".window",
        ".section",
        ".uop",
        ".prm",
        ".data",
        ".tensor",
        ".region",
        ".word",
        "load",
        "store",
        "gemm",
        "alu",
        "requant",
        "gather",
        "finish",
    ],
    *[
        "hex",
        "zero",
        "random",
        "i8",
        "i64",
        "program",
        "resident",
        "scratch",
        "input",
        "s0",
        "s15",
        "wait=s1",
        "set=s2",
        "lanes=65536",
        "size=99999999999",
        "=",
    ],
)


def _make_assembly(rng: Random) -> bytes:
    return mutate.text_of(rng, _assembly(), _ASM_WORDS)


def _take_assembly(data: bytes, folder: Path) -> Outcome | None:
    path = folder / "in.asm"
    path.write_bytes(data)
    _check_program(assemble_file(path), folder)
    return None


def _check_program(program: Program, folder: Path) -> None:
    """What is written of a program must read as the same one, and as text if its instructions are legal."""
    if Program.from_bytes(program.to_bytes()) != program:
        raise Wrong("the written program reads as another one")
    path = folder / "again.asm"
    path.write_text(disassemble(program))
    if assemble_file(path).to_bytes() != program.to_bytes():
        raise Wrong("the program's assembly reads as another one")


def _make_program(rng: Random) -> bytes:
    data = rng.choice(_programs()).to_bytes()
    if rng.random() < 0.2:
        return mutate.bytes_of(rng, [data])
    size = int.from_bytes(data[20:24], "little")
    header, payload = data[PREFIX_BYTES : PREFIX_BYTES + size], data[PREFIX_BYTES + size :]
    if rng.random() < 0.7:
        header = mutate.tree_of(rng, [json.loads(header)])
    else:
        payload = mutate.bytes_of(rng, [payload])
    numbers = data[8:20] + len(header).to_bytes(4, "little")
    return data[:8] + numbers + hashlib.sha256(numbers + header + payload).digest() + header + payload


def _take_program(data: bytes, folder: Path) -> Outcome | None:
    path = folder / "in.bin"
    path.write_bytes(data)
    _check_program(Program.load(path), folder)
    return None


# Builds


@cache
def _build() -> dict[str, bytes]:
    """The files of a small build."""
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
        return {path.name: path.read_bytes() for path in sorted((Path(place) / "build").iterdir())}


def _hashed(row: Any) -> Any:
    """A manifest with the hash that it must have."""
    if not isinstance(row, dict):
        return row
    rest = {key: value for key, value in row.items() if key != "sha256"}
    return rest | {
        "sha256": hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    }


def _make_build(rng: Random) -> bytes:
    """A manifest, or all of a build with one other file changed, as JSON of its changed files."""
    files = _build()
    row = json.loads(files["manifest.json"])
    if rng.random() < 0.8:
        return json.dumps({"manifest.json": mutate.tree_of(rng, [row], _hashed).hex()}).encode()
    name = rng.choice([name for name in row["files"] if name != "manifest.json"])
    data = _make_program(rng) if name == "program.bin" else mutate.bytes_of(rng, [files[name]])
    row["files"][name] = hashlib.sha256(data).hexdigest()
    return json.dumps({name: data.hex(), "manifest.json": json.dumps(_hashed(row)).encode().hex()}).encode()


def _take_build(data: bytes, folder: Path) -> Outcome | None:
    build = folder / "build"
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir()
    changed = {name: bytes.fromhex(text) for name, text in json.loads(data).items()}
    for name, content in (_build() | changed).items():
        (build / name).write_bytes(content)
    artifact = load_artifact(build)
    for stage in artifact.manifest.stages:
        artifact.stage_text(stage)
    if artifact.manifest.batch < 0 or artifact.manifest.is_quantized not in (True, False):
        raise Wrong("a manifest that was accepted must be usable")
    if artifact.launches is not None and artifact.launches < 0:
        raise Wrong("launches must be at least 0")
    if artifact.manifest.config == load_config("tiny"):
        for device in (None, open_device("functional", artifact.config)):
            Executor(artifact, device).run({"image": images(1, 7)})
    return None


# Settings


@cache
def _maps() -> tuple[Any, ...]:
    steps = (SetupStep("reset", ((0xF000_0000, 1), (0xF000_0004, 2)), 100), SetupStep("mode", (), 0))
    plain = SocMap("ulx3s-85f", "ecp5", 0x1234, 50_000_000, 1 << 25, 1_000_000, address="/dev/ttyUSB0")
    given = SocMap("none", "tiny", 0, 25_000_000, 8192, 115_200, setup=MemorySetup(0x4000_0000, 1, steps))
    return tuple(json.loads(row.to_json()) for row in (plain, given))


def _make_map(rng: Random) -> bytes:
    return mutate.tree_of(rng, _maps())


def _take_map(data: bytes, folder: Path) -> Outcome | None:
    path = folder / "soc.json"
    path.write_bytes(data)
    found = load_map(path)
    path.write_text(found.to_json())
    if load_map(path) != found:
        raise Wrong("the written map reads as another one")
    return None


@cache
def _strategies() -> tuple[str, ...]:
    def toml(table: dict[str, Any]) -> str:
        layers = table.pop("layer", [])
        lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        for layer in layers:
            lines += ["[[layer]]", *(f"{key} = {json.dumps(value)}" for key, value in layer.items())]
        return "\n".join(lines)

    layers = 'base = "int8"\n[[layer]]\nlayer = "conv*"\nweight_bits = 4\n[[layer]]\nlayer = "fc"\nquantized = false\n'
    return (layers, *(toml(strategy_values(find_strategy(name))) for name in strategy_names()))


_TOML_WORDS: Final = (
    *[
        "base",
        "layer",
        "weight_bits",
        "activation_bits",
        "mixed_bits",
        "rounding",
        "percentile",
        "true",
        "false",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "[",
        "]",
    ],
    *[
        "[[layer]]",
        "{a=1}",
        "a.b.c",
        "1979-05-27",
        "0o7",
        "0xffff",
        "1_000",
        "'''",
        '"""',
        "candidates",
        "budget",
        "steps",
        "seed",
        "summary",
        "name",
    ],
)


def _make_setting(rng: Random) -> bytes:
    """A strategy, or a configuration, which begins with a brace."""
    if rng.random() < 0.6:
        return mutate.text_of(rng, _strategies(), _TOML_WORDS)
    return mutate.tree_of(rng, [json.loads(path.read_text()) for path in sorted(CONFIG_DIR.glob("*.json"))])


def _take_setting(data: bytes, folder: Path) -> Outcome | None:
    if data[:1] == b"{":
        (folder / "config.json").write_bytes(data)
        assert load_config(folder / "config.json").hash32 >= 0
        return None
    (folder / "strategy.toml").write_bytes(data)
    found = load_strategy(folder / "strategy.toml")
    if strategy_from(strategy_values(found), "again", found.name) != found:
        raise Wrong("the written strategy reads as another one")
    return None


def _entry(
    name: str, make: Callable[[Random], bytes], take: Callable[[bytes, Path], Outcome | None], place: str
) -> Entry:
    suffix = {"asm": ".asm", "program": ".bin", "settings": ".toml"}.get(name, ".json")
    return Entry(name, 10_000, suffix, make, take, place)


ENTRIES: Final = (
    _entry("asm", _make_assembly, _take_assembly, r"in\.asm:\d+: "),
    _entry("program", _make_program, _take_program, r"in\.bin"),
    _entry("manifest", _make_build, _take_build, r"build"),
    _entry("soc", _make_map, _take_map, r"soc\.json"),
    _entry("settings", _make_setting, _take_setting, r"config\.json|configuration config|strategy\.toml"),
)
