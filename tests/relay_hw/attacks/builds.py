"""Attacks by builds: a library for the host that is another than the one that was built.

In: a folder. Out: `run` on a build there, with and without trust.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tests.relay_hw.attacks.table import Attack, Deed

# Loaded, it makes a file: were it ever loaded, this would not be a library, and be an error of another kind.
_EXCHANGED = b"\x7fELF of somebody else"
_LIBRARY = "host.so"


@cache
def _build() -> Path:
    """A small build without code."""
    from relay_hw.runtime.compile import compile_model
    from relay_hw.runtime.models import load_model
    from tests.relay_hw.small_models import images, save_plain

    folder = Path(mkdtemp(prefix="attacks-"))
    model = load_model(save_plain(folder / "net.onnx"))
    compiled = compile_model(
        model.mod, model.params, "tiny", calibration={"image": images(2, 1)}, host_target="numpy", name="plain"
    )
    compiled.save(folder / "build")
    return folder / "build"


def _exchanged(fits: bool, *words: str) -> Attack:
    """`fits`: whether the manifest was written anew for the other library."""

    def make(folder: Path) -> Deed:
        from relay_hw.cli.data import save_npz
        from tests.relay_hw.small_models import images

        build = Path(shutil.copytree(_build(), folder / "build"))
        save_npz(folder / "data.npz", {"image": images(1, 1)})
        row = json.loads((build / "manifest.json").read_bytes())
        (build / _LIBRARY).write_bytes(_EXCHANGED)
        content = _EXCHANGED if fits else b"what was built"
        row["files"][_LIBRARY] = hashlib.sha256(content).hexdigest()
        row["library"] = {"file": _LIBRARY, "target": "llvm", "cpu": "", "functions": ["host_0"]}
        del row["sha256"]
        text = json.dumps(row, sort_keys=True, separators=(",", ":")).encode()
        (build / "manifest.json").write_text(json.dumps(row | {"sha256": hashlib.sha256(text).hexdigest()}))
        return ["run", str(build), "--input", str(folder / "data.npz"), *words]

    how = "with a manifest that fits" if fits else "under the old manifest"
    return Attack(f"a library for the host, exchanged {how}{', trusted' if words else ''}", make)


ATTACKS = (_exchanged(False), _exchanged(False, "--trust"), _exchanged(True))
