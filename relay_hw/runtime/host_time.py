"""The host's part of an inference in seconds, measured on this machine.

In: a build and data, or none. Out: `HostTime`: seconds of one sample outside the accelerator, where and on what data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accel.isa.errors import AccelError
from accel.sim.functional import FunctionalDevice
from relay_hw.errors import RelayHwError
from relay_hw.report import HostTime
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.machine import machine_name
from relay_hw.runtime.ports import random_samples


def measure_host(artifact: Artifact, data: Mapping[str, Any] | None = None) -> HostTime | None:
    """The host's time of the first sample of `data`, else of a random one; None where none can be run.

    The accelerator's part comes from the functional simulator. The second of two runs counts: the first one loads and
    allocates.
    """
    what = "a random sample" if data is None else "the first sample"
    executor = Executor(artifact, FunctionalDevice(artifact.config))
    try:
        given = random_samples(artifact.manifest.inputs, 1, 0, artifact.has_control_flow) if data is None else data
        executor.run(given, 1)
        return HostTime(executor.run(given, 1).host_seconds, machine_name(), what)
    except (RelayHwError, AccelError):
        return None
