"""TVM's `relay.dataflow_pattern`."""

from relay_hw.dataflow_pattern import *  # noqa: F403
from relay_hw.dataflow_pattern import __all__  # noqa: F401
