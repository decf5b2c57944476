"""ResNet-18 with seeded weights on VTA: C2 to C11 on the device, equal to the interpreter (`make test-vta`)."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from examples.models import find
from examples.models.builder import INPUT, images
from relay_hw.interp import evaluate
from relay_hw.runtime import CompileOptions, Executor, compile_model, load_model
from relay_hw.runtime.opened import open_session
from relay_hw.vta import make
from relay_hw.vta.isa import decode, encode
from relay_hw.vta.program import read_program
from relay_hw.vta.session import BASE
from relay_hw.vta.sim.checker import check
from relay_hw.vta.sim.state import Dram, new_state

# Convolutions of VTA's own list: 3x3 and 1x1, all but the first one of the network.
ON_DEVICE = 19


@pytest.mark.long
@pytest.mark.parametrize("config", ["pynq", "de10nano", "pynq_4x8"])
def test_resnet18(config: str, tmp_path: Path) -> None:
    path = tmp_path / "resnet18.onnx"
    path.write_bytes(find("resnet18").model(seed=0).SerializeToString(deterministic=True))
    data = {INPUT: images((3, 224, 224), 2, 0)[:, None]}
    begin = time.perf_counter()
    options = CompileOptions(target=make(config), host_target="numpy", strategy="int8-pow2")
    imported = load_model(path)
    model = compile_model(imported.mod, options, params=imported.params, calibration=data)
    compiled = time.perf_counter()
    rows = [row for row in model.layers if row.where == "vta"]
    first = make(config).geometry.block == 8
    assert [row.operator for row in rows].count("vta.conv2d") == ON_DEVICE + first
    assert [row.operator for row in rows].count("vta.add") == 8
    on_host = [row for row in model.layers if row.operator == "nn.conv2d"]
    lanes = make(config).geometry.block
    reason = f"3 channels of data would use 3 of {lanes} lanes: such first layers are the host's"
    assert [row.reason for row in on_host] == [reason] * (lanes == 16)
    artifact = model.save(tmp_path / "build")
    one = {INPUT: data[INPUT][:1]}
    started = time.perf_counter()
    found = Executor(artifact, open_session(artifact)).run(one)
    ran = time.perf_counter()
    want = np.asarray(evaluate(model.stages["quantized"], {INPUT: one[INPUT][0]}))
    (name,) = found.outputs
    np.testing.assert_array_equal(found.outputs[name].reshape(want.shape), want)
    counted = 0
    for image in artifact.images.values():
        program = read_program(image)
        geometry, addresses = program.head.geometry, program.addresses(BASE)
        np.testing.assert_array_equal(encode(decode(program.words, geometry), geometry), program.words)
        check(program.placed(addresses), new_state(geometry, Dram(program.image(addresses), BASE)))
        counted += len(program.words)
    checked = time.perf_counter() - ran
    print(
        f"\n{config}: {counted:,} instructions, {sum(row.macs for row in rows):,} MACs on the device, "
        f"{compiled - begin:.0f} s to compile, {ran - started:.1f} s to simulate, {checked:.0f} s to check"
    )
