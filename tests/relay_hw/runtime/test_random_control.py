"""Random programs with layers inside loops, branches, closures and lists: devices have the interpreter's values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.runtime import CompileOptions, Executor, compile_model, open_device
from relay_hw.transform import InferType
from tests.relay_hw.random_control import inputs, random_program
from tests.relay_hw.transform.reference import plain


@pytest.mark.parametrize("seed", range(14))
def test_random_programs_have_the_interpreters_value(seed: int, tmp_path: Path) -> None:
    mod = InferType()(random_program(seed))
    model = compile_model(mod, CompileOptions(host_target="numpy"), calibration=inputs(6, seed))
    artifact = model.save(tmp_path / "build")
    data = inputs(4, seed + 1000)
    samples = {"x": data["x"].reshape(-1, *model.inputs[0].shape), "k": data["k"]}
    exact = relay.create_executor("debug", model.stages["quantized"]).evaluate()
    want = [plain(exact(data["x"][k : k + 1], data["k"][k])) for k in range(4)]
    device = "cycle" if seed % 6 == 0 else "functional"
    result = Executor(artifact, open_device(device, artifact.config)).run(samples)
    assert [plain(result.outputs["output"][k : k + 1]) for k in range(4)] == want
    vm = relay.create_executor("vm", model.stages["quantized"]).evaluate()
    assert [plain(vm(data["x"][k : k + 1], data["k"][k])) for k in range(4)] == want
    one = relay.runtime.Module(artifact).run(x=data["x"][:1], k=data["k"][0])
    assert plain(one) == want[0]


def test_the_programs_use_the_accelerator() -> None:
    """Else the tests above would show little."""
    launches = 0
    for seed in range(6):
        model = compile_model(random_program(seed), CompileOptions(host_target="numpy"), calibration=inputs(6, seed))
        launches += len(model.segments)
    assert launches > 12


def test_fragments_keep_the_float_semantics() -> None:
    for seed in range(40, 50):
        mod = InferType()(random_program(seed))
        data = inputs(3, seed)
        want = relay.create_executor("debug", mod).evaluate()
        have = relay.build(mod, "numpy")
        for k in range(3):
            args = (data["x"][k : k + 1], data["k"][k])
            np.testing.assert_allclose(have.run(x=args[0], k=args[1]), want(*args), rtol=2e-5, atol=2e-6)
