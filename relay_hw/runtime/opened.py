"""Opens the device of a build, for any target.

In: an artifact, the name of a device, options. Out: a `Session`.
"""

from __future__ import annotations

from dataclasses import fields

from relay_hw.errors import InputError
from relay_hw.runtime.artifact import Artifact
from relay_hw.target.accel.devices import DeviceOptions, find_device, open_device
from relay_hw.target.accel.session import AccelSession
from relay_hw.target.base import Session

# Options that mean nothing to a device are no reason to refuse it.
_HARMLESS = frozenset({"progress", "timing_only"})


def usual_device(artifact: Artifact) -> str:
    """The device that runs the build by default."""
    return artifact.target.devices[0]


def usual_chunk(artifact: Artifact, device: str) -> int:
    """The default number of samples to run through a region together."""
    return find_device(device).chunk if artifact.manifest.config is not None else 1


def open_session(artifact: Artifact, device: str | None = None, options: DeviceOptions | None = None) -> Session:
    """The device with the build's programs. Raises InputError, UnsupportedError, AccelError; ArtifactError for a
    program that the target does not take.
    """
    name = device or usual_device(artifact)
    rows = artifact.manifest
    if rows.config is not None:
        return AccelSession(rows.regions, artifact.programs, open_device(name, rows.config, options))
    usual = DeviceOptions()
    for field in fields(DeviceOptions):
        if field.name not in _HARMLESS and getattr(options or usual, field.name) != getattr(usual, field.name):
            raise InputError(f"--{field.name} must be left out for a build for target {rows.target}: only accel has it")
    for row in rows.regions:
        artifact.target.check(row, artifact.images[row.name])
    return artifact.target.open(name, rows.regions, artifact.images)
