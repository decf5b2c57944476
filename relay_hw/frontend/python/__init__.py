"""Translates decorated Python functions to Relay, and differentiates, trains and exports them.

`from relay_hw.frontend.python import relay, relay_model, Tensor, Float, Model` gives the names of the MAPL paper's
figure 4; see examples/figure4.py.
"""

from relay_hw.frontend.python.annotations import Bool, Float, Float64, Int, Model, Tensor
from relay_hw.frontend.python.functions import ExportedModel, RelayFunction, RelayModel
from relay_hw.frontend.python.namespace import relay, relay_model

__all__ = [
    "Bool",
    "ExportedModel",
    "Float",
    "Float64",
    "Int",
    "Model",
    "RelayFunction",
    "RelayModel",
    "Tensor",
    "relay",
    "relay_model",
]
