"""TVM's `relay.transform`: the passes, and the infrastructure beside them."""

from relay_hw.transform import *  # noqa: F403
from relay_hw.transform import __all__  # noqa: F401
