"""Settings of all tests: hypothesis without time limits; on a continuous-integration machine with the same examples
every time, so that a merge is never refused by chance."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
