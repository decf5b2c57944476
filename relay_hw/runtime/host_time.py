"""Measures the host's part of an inference on this machine, in seconds.

In: a build and data, or none. Out: `HostTime`: seconds of one sample outside the accelerator, where and on what data.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.errors import RelayHwError
from relay_hw.report import HostTime
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.machine import machine_name
from relay_hw.runtime.ports import random_samples

# Runs of one sample of which the shortest counts; no other one begins after so long.
RUNS, PATIENCE_SECONDS = 10, 1.0


def measure_host(artifact: Artifact, data: Mapping[str, Any] | None = None) -> HostTime | None:
    """Time the host's part on the first sample of `data`, else on a random one; None if none can be run.

    The accelerator's part comes from the functional simulator. The first run, which loads and allocates, does not
    count; of those after it the shortest does, since whatever else the machine does only adds.
    """
    what = "a random sample" if data is None else "the first sample"
    executor = Executor(artifact, FunctionalDevice(artifact.config))
    try:
        given = random_samples(artifact.manifest.inputs, 1, 0, artifact.has_control_flow) if data is None else data
        executor.run(given, 1)
        end = time.perf_counter() + PATIENCE_SECONDS
        shortest = executor.run(given, 1).host_seconds
        for _ in range(RUNS - 1):
            if time.perf_counter() > end:
                break
            shortest = min(shortest, executor.run(given, 1).host_seconds)
        return HostTime(shortest, machine_name(), what)
    except (RelayHwError, AccelError):
        return None
