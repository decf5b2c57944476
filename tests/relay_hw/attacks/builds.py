"""Attacks by builds: a library for the host that is another than the one that was built.

In: a folder. Out: `run` on a build there, with and without trust.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.relay_hw.attacks.table import Attack, Deed

# Loaded, it makes a file: were it ever loaded, this would not be a library, and be an error of another kind.
_EXCHANGED = b"\x7fELF of somebody else"
_LIBRARY = "host.so"


@cache
def _build() -> Path:
    """A small build without code."""
    from relay_hw.runtime.compile import compile_model
    from relay_hw.runtime.models import load_model
    from relay_hw.runtime.options import CompileOptions
    from tests.relay_hw.small_models import images, save_plain

    folder = Path(mkdtemp(prefix="attacks-"))
    model = load_model(save_plain(folder / "net.onnx"))
    compiled = compile_model(
        model.mod,
        CompileOptions(config="tiny", host_target="numpy", name="plain"),
        params=model.params,
        calibration={"image": images(2, 1)},
    )
    compiled.save(folder / "build")
    return folder / "build"


def _rewritten(folder: Path, change: Callable[[dict[str, Any]], object], *words: str) -> Deed:
    """`run` on a build whose manifest was changed, and whose hash made right again."""
    from relay_hw.cli.data import save_npz
    from tests.relay_hw.small_models import images

    build = Path(shutil.copytree(_build(), folder / "build"))
    save_npz(folder / "data.npz", {"image": images(1, 1)})
    row = json.loads((build / "manifest.json").read_bytes())
    del row["sha256"]
    change(row)
    text = json.dumps(row, sort_keys=True, separators=(",", ":")).encode()
    (build / "manifest.json").write_text(json.dumps(row | {"sha256": hashlib.sha256(text).hexdigest()}))
    return ["run", str(build), "--input", str(folder / "data.npz"), *words]


def _changed(name: str, change: Callable[[dict[str, Any]], object]) -> Attack:
    """A build with another host function, under a manifest whose hash fits."""
    return Attack(f"a build {name}", lambda folder: _rewritten(folder, change))


def _call(row: dict[str, Any]) -> dict[str, Any]:
    """The first operator call of a host function."""
    nodes = (node for function in row["functions"].values() for node in function["nodes"])
    return next(node for node in nodes if "call" in node)


def _exchanged(fits: bool, *words: str) -> Attack:
    """`fits`: whether the manifest was written anew for the other library."""

    def listed(row: dict[str, Any]) -> None:
        content = _EXCHANGED if fits else b"what was built"
        row["files"][_LIBRARY] = hashlib.sha256(content).hexdigest()
        row["libraries"] = [{"file": _LIBRARY, "target": "llvm", "cpu": "", "functions": ["host_0"]}]

    def make(folder: Path) -> Deed:
        deed = _rewritten(folder, listed, *words)
        (folder / "build" / _LIBRARY).write_bytes(_EXCHANGED)
        return deed

    how = "with a manifest that fits" if fits else "under the old manifest"
    return Attack(f"a library for the host, exchanged {how}{', trusted' if words else ''}", make)


_HUGE = {"dtype": "int8", "shape": [1 << 62]}

ATTACKS = (
    _exchanged(False),
    _exchanged(False, "--trust"),
    _exchanged(True),
    _changed("that calls without arguments", lambda row: _call(row).update(args=[])),
    _changed("whose arguments are text", lambda row: _call(row).update(args=["0"])),
    _changed(
        "whose calls return another type", lambda row: _call(row).update(type={"dtype": "int8", "shape": [1 << 62]})
    ),
    _changed("whose calls return no type", lambda row: _call(row).update(type={"dtype": "no", "shape": []})),
    _changed("whose calls have attributes of another kind", lambda row: _call(row).update(attrs={"axis": {}})),
    _changed("whose main calls a function that is not there", lambda row: row.update(functions={})),
)
