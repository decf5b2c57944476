"""Entry points of the language: Relay text, our own JSON, TVM's JSON, TVM's parameter files.

In: programs by chance and the examples. Out: entries. What is accepted must read back as it was written.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from relay_hw.errors import RelayHwError
from relay_hw.ir.module import IRModule
from relay_hw.op import OPS
from relay_hw.runtime.models import load_model
from relay_hw.text import load_json, load_param_dict, parse, print_module, save_json, save_param_dict
from relay_hw.text.tvm.writer import save_tvm_json
from tests.fuzz import mutate
from tests.fuzz.grammar import program
from tests.fuzz.judge import Entry, Outcome, Wrong
from tests.relay_hw.programs import random_module

ROOT: Final = Path(__file__).parents[2]
_PROGRAMS: Final = 24


@cache
def modules() -> tuple[IRModule, ...]:
    """Programs of every kind of node."""
    return tuple(random_module(seed, depth=3) for seed in range(_PROGRAMS))


@cache
def texts() -> tuple[str, ...]:
    """The examples, and programs by chance."""
    examples = sorted((ROOT / "examples" / "relay").glob("*.relay"))
    return (*(path.read_text() for path in examples), *map(print_module, modules()))


@cache
def words() -> tuple[str, ...]:
    """What the language knows, and some of its operators."""
    names = [op.name for op in OPS][::8]
    kept = "def fn let if else match type extern ref ref_read ref_write free_var Tensor float32 int8 where meta ? ..."
    return (
        *kept.split(),
        *names,
        "%x",
        "%0",
        "@main",
        "/*",
        "*/",
        "//",
        "#[metadata]",
        "meta[relay.Constant][0]",
        ".0",
    )


def _make_text(rng: Random) -> bytes:
    if rng.random() < 0.4:
        made = program(rng)
        return made.encode() if rng.random() < 0.5 else mutate.text_of(rng, [made], words())
    if rng.random() < 0.1:
        return mutate.bytes_of(rng, [text.encode() for text in texts()])
    return mutate.text_of(rng, texts(), words())


def _take_text(data: bytes, folder: Path) -> Outcome | None:
    path = folder / "in.relay"
    path.write_bytes(data)
    mod = load_model(path).mod
    written = print_module(mod)
    try:
        again = print_module(parse(written))
    except RelayHwError as error:
        raise Wrong(f"the printed program must be read again: {error}") from None
    if again != written:
        raise Wrong("the printed program reads as another one")
    return None


@cache
def _own() -> tuple[Any, ...]:
    return tuple(json.loads(save_json(mod)) for mod in modules())


@cache
def _tvm() -> tuple[Any, ...]:
    return tuple(json.loads(save_tvm_json(mod)) for mod in modules())


def _make_own(rng: Random) -> bytes:
    return mutate.tree_of(rng, _own())


def _make_tvm(rng: Random) -> bytes:
    return mutate.tree_of(rng, _tvm())


def _take_json(data: bytes, folder: Path) -> Outcome | None:
    path = folder / "in.json"
    path.write_bytes(data)
    mod = load_model(path).mod
    written = save_json(mod)
    try:
        again = save_json(load_json(written))
    except RelayHwError as error:
        raise Wrong(f"the written document must be read again: {error}") from None
    if again != written:
        raise Wrong("the written document reads as another program")
    return None


@cache
def _params() -> tuple[bytes, ...]:
    rng = np.random.default_rng(0)
    arrays = {"w": rng.normal(size=(4, 3)).astype(np.float32), "b": np.arange(5, dtype=np.int8), "": np.array(True)}
    narrow = {f"p{k}": np.zeros((k, 2), dtype) for k, dtype in enumerate(("float16", "int64", "uint8", "float64"))}
    return tuple(save_param_dict(params) for params in (arrays, narrow, {}))


def _make_params(rng: Random) -> bytes:
    return mutate.bytes_of(rng, _params())


def _take_params(data: bytes, folder: Path) -> Outcome | None:
    found = load_param_dict(data)
    again = load_param_dict(save_param_dict(found))
    if list(found) != list(again) or any(found[name].tobytes() != again[name].tobytes() for name in found):
        raise Wrong("the written parameters read as others")
    return None


ENTRIES: Final = (
    Entry("text", 2_000, ".relay", _make_text, _take_text, r"in\.relay(:\d+:\d+:| must be a readable text file)"),
    Entry("json", 2_000, ".json", _make_own, _take_json, r"in\.json"),
    Entry("tvm-json", 2_000, ".json", _make_tvm, _take_json, r"in\.json"),
    Entry("params", 10_000, ".params", _make_params, _take_params, r"parameter"),
)
