"""TVM's `relay.analysis`."""

from relay_hw.analysis import *  # noqa: F403
from relay_hw.analysis import __all__  # noqa: F401
