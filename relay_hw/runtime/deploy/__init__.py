"""Exports builds as C source that runs without Python; the user supplies a few functions for the device.

In: an `Artifact`. Out: a folder with generated C, the C runtime (`c/`), programs, constants and a Makefile.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from relay_hw.errors import InputError
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.deploy.control import RUNTIME as NATIVE_RUNTIME
from relay_hw.runtime.deploy.control import control_source, has_control_flow, plan_control, value_bytes
from relay_hw.runtime.deploy.source import model_header, model_source
from relay_hw.runtime.deploy.steps import plan_steps
from relay_hw.support import durable

__all__ = ["export_c", "value_bytes"]

RUNTIME = ("relay_hw.h", "relay_hw.c", "main.c", "Makefile")
MODEL = "model.c"
# Files of any export; other files in the folder are left alone.
_OURS = re.compile(
    r"(relay_hw|native|numbers|stream)\.h|relay_hw\.c|main\.c|Makefile|model\.[ch]|host\.c|host_weights\.bin|config\.json|program.*\.bin"
)


def export_c(artifact: Artifact, folder: Path) -> tuple[str, ...]:
    """Write the C form of a build to `folder`, a new one or an older export; returns the names of its files.

    Raises UnsupportedError for operators without a C form, all in one message; InputError for a folder that cannot be
    written.
    """
    contents = {name: (files("relay_hw.runtime.deploy") / "c" / name).read_bytes() for name in RUNTIME}
    contents |= {row.program: (artifact.path / row.program).read_bytes() for row in artifact.manifest.regions}
    contents["config.json"] = (json.dumps(asdict(artifact.config), indent=1) + "\n").encode()
    contents |= _controlled(artifact) if has_control_flow(artifact) else _straight(artifact)
    _write(folder, contents)
    return tuple(sorted(contents))


def _straight(artifact: Artifact) -> dict[str, bytes]:
    """The files of a model that is a list of steps."""
    plan = plan_steps(artifact)
    weights = bytes(plan.pool)
    source = model_source(artifact, plan, hashlib.sha256(weights).digest()).encode()
    header = model_header(artifact, len(plan.inputs), len(plan.outputs)).encode()
    host = {} if plan.host is None else {"host.c": plan.host.source.encode()}
    return {"host_weights.bin": weights, "model.h": header, MODEL: source, **host}


def _controlled(artifact: Artifact) -> dict[str, bytes]:
    """The files of a model with control flow."""
    plan = plan_control(artifact)
    source = control_source(artifact, plan, hashlib.sha256(plan.constants).digest()).encode()
    header = model_header(artifact, len(plan.inputs), len(plan.outputs)).encode()
    runtime = {name: (files("relay_hw.backend.native") / "c" / name).read_bytes() for name in NATIVE_RUNTIME}
    return {"host_weights.bin": plan.constants, "model.h": header, MODEL: source, **runtime}


def _is_ours(name: str) -> bool:
    return _OURS.fullmatch(name) is not None


def _write(folder: Path, contents: dict[str, bytes]) -> None:
    durable.recover(folder)
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MODEL).is_file())):
        raise InputError(f"export folder {folder} must be a new folder or an older export, not something else")
    try:
        with durable.new_folder(folder, _is_ours) as work:
            for name, data in contents.items():
                (work / name).write_bytes(data)
    except OSError as error:
        raise InputError(f"export folder {folder} must be writable: {error.strerror}") from None
