"""Every example network on every configuration is proved, or its layers are refused by name: `make test-proofs`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pytest

from examples.models import NETWORKS, Example, find
from examples.models.builder import INPUT, images
from relay_hw.accel.isa.config import config_names
from relay_hw.frontend import from_onnx
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.partition import HOST

# Pixels of a side; other inputs than square images keep their size.
SIZE = 32
CALIBRATION = 2
PAIRS = [(example.name, config) for example in NETWORKS for config in config_names()]


@lru_cache(maxsize=1)
def _network(name: str) -> Callable[[str], CompiledModel]:
    """Compiles the network for a configuration."""
    example = find(name)
    model = example.model(SIZE if _is_square(example) else None)
    mod, params = from_onnx(model)
    shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
    data = {INPUT: images(shape, CALIBRATION, seed=1)}

    def compiled(config: str) -> CompiledModel:
        options = CompileOptions(config=config, host_target="numpy")
        return compile_model(mod, options, params=params, calibration=data)

    return compiled


def _is_square(example: Example) -> bool:
    return example.input.endswith(f"x{example.size}x{example.size}")


def judge(name: str, config: str) -> str:
    """What was proved; every layer with products is in a proof, or its reason is told."""
    compiled = _network(name)(config)
    proofs = [segment.certificate for segment in compiled.segments.values()]
    assert all(proof is not None and proof.output_bytes for proof in proofs)
    proved = sum(len(proof.layers) for proof in proofs if proof is not None)
    inside = [row for row in compiled.layers if row.where != HOST]
    refused = [row for row in compiled.layers if row.where == HOST and row.macs]
    assert proved >= len(inside) and all(row.reason for row in refused)
    assert inside or refused
    bits = max((layer.sum_bits for proof in proofs if proof is not None for layer in proof.layers), default=0)
    return f"{proved} layers proved, sums of {bits} bits" + "".join(f"; {row.name}: {row.reason}" for row in refused)


def test_a_network_is_proved_on_the_smallest_configuration() -> None:
    assert judge("resnet8", "tiny").startswith("11 layers proved, ")


@pytest.mark.long
@pytest.mark.parametrize(("name", "config"), PAIRS)
def test_every_network_on_every_configuration(name: str, config: str) -> None:
    print(f"\n{name} on {config}: {judge(name, config)}")
