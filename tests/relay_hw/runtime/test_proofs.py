"""Builds are proved unless that is left out; a defect of the compiler is found before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.errors import TensorizeError
from relay_hw.ir.expr import Constant, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.tensorize.certificate import Certificate, LayerProof, summary
from relay_hw.tensorize.layout import Records
from relay_hw.tensorize.lower import conv
from relay_hw.tensorize.stages import Requantize

OPTIONS = CompileOptions(config="tiny", host_target="numpy")


def compiled(options: CompileOptions = OPTIONS) -> CompiledModel:
    """Two dense layers."""
    rng = np.random.default_rng(0)
    x = Var("x", TensorType((1, 12), "float32"))
    first, second = (Constant(rng.normal(size=size).astype(np.float32)) for size in ((9, 12), (7, 9)))
    body = op.nn.dense(op.nn.relu(op.nn.dense(x, first)), second)
    data = {"x": rng.normal(size=(6, 12)).astype(np.float32)}
    return compile_model(IRModule({"main": Function([x], body)}), options, calibration=data)


def test_a_build_keeps_its_certificate(tmp_path: Path) -> None:
    built = compiled()
    (segment,) = built.segments.values()
    proof = segment.certificate
    assert proof is not None
    assert (proof.name, proof.output_bytes, proof.overflows) == ("accel_0", 7, ())
    assert [layer.values for layer in proof.layers] == [9, 7]
    built.save(tmp_path / "build")
    assert load_artifact(tmp_path / "build").manifest.proofs == (proof,)


def test_a_build_without_the_proof_has_none() -> None:
    built = compiled(replace(OPTIONS, validate=False))
    assert [segment.certificate for segment in built.segments.values()] == [None]


def test_a_defect_of_the_compiler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Biases of a lowering that are one too large."""
    right = conv.requantize_records

    def wrong(stage: Requantize, blocks: int, config: AccelConfig) -> Records:
        return right(replace(stage, bias=stage.bias + 1), blocks, config)

    monkeypatch.setattr(conv, "requantize_records", wrong)
    assert compiled(replace(OPTIONS, validate=False)).segments
    sentence = "accel_0 must compute what its function says: no instruction computes element .* of layer 0:.*, .*: the "
    with pytest.raises(TensorizeError, match=f"{sentence}products are right, bias or zero points are not"):
        compiled()


def test_what_is_said_of_proofs() -> None:
    layers = (LayerProof("a", 10, 20), LayerProof("b", 1000, 24))
    proof = Certificate("accel_0", 5, 1000, layers)
    told = "proved when compiled: 2 layer(s) of 1 region(s), 1,000 output bytes; every sum fits 24 of 32 bits"
    assert summary([proof]) == told
    wide = replace(proof, layers=(*layers, LayerProof("c", 7, 33)))
    assert summary([wide]).endswith("; sums of c may leave 32 bits")
    assert summary([]) == "no program was proved to compute what the network says"
