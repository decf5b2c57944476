"""Settings of all tests: hypothesis without time limits; on a continuous-integration machine with the same examples
every time, so that a merge is never refused by chance. Linear algebra on one thread: a worker for each core. What
Python compiles is kept, whatever the environment says: hundreds of processes of tests import the same modules."""

from __future__ import annotations

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded

from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False
settings.register_profile(
    "house", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
