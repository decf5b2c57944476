"""Exported models with control flow: loops, recursion over data, launches inside of them, without Python."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.backend.native import compile_native
from relay_hw.errors import EvalError, UnsupportedError
from relay_hw.interp import ConstructorValue
from relay_hw.prelude import list_value
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.deploy import export_c, value_bytes
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.watch import quantizations
from relay_hw.target.accel.devices import open_device
from tests.relay_hw.runtime.test_deploy import CC, ROOT, build, build_for_aarch64, device_command, needs_aarch64, run

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler on PATH")
ON_HOST = CompileOptions(strategy="float", accelerate=False, host_target="numpy")


def host_build(tmp_path: Path, text: str) -> Artifact:
    return compile_model(relay.fromtext(HEADER + text), ON_HOST).save(tmp_path / "build")


def exported(tmp_path: Path, artifact: Artifact) -> Path:
    export_c(artifact, tmp_path / "c")
    build(tmp_path / "c")
    return tmp_path / "c"


def example(name: str, tmp_path: Path) -> tuple[Artifact, dict[str, Any]]:
    """A recurrent example with random weights, quantized for the accelerator, and three samples."""
    mod = relay.fromtext((ROOT / "examples" / "relay" / f"{name}.relay").read_text())
    rng = np.random.default_rng(0)
    shapes = {
        p.name_hint: ty.static_shape for p in mod["main"].params if hasattr(ty := p.type_annotation, "static_shape")
    }
    data: dict[str, Any] = {"x": rng.normal(size=(3, *shapes.pop("x"))).astype("float32")} if "x" in shapes else {}
    weights = {
        key: (rng.uniform(-1, 1, shape) / math.sqrt(shape[-1])).astype("float32") for key, shape in shapes.items()
    }
    if not data:
        leaf, node = mod.types["Tree"].constructors

        def tree(leaves: int) -> ConstructorValue:
            if leaves == 1:
                return ConstructorValue(leaf, (rng.normal(size=(1, 32)).astype("float32"),))
            left = int(rng.integers(1, leaves))
            return ConstructorValue(node, (tree(left), tree(leaves - left)))

        data = {"tree": [tree(leaves) for leaves in (1, 4, 7)]}
    model = compile_model(mod, CompileOptions(host_target="numpy", name=name), params=weights, calibration=data)
    return model.save(tmp_path / "build"), data


def sample_bytes(artifact: Artifact, value: Any) -> bytes:
    """A sample as the program reads it from a file."""
    return value_bytes(artifact, value) if isinstance(value, ConstructorValue) else value.tobytes()


def native_results(artifact: Artifact, samples: Any) -> list[tuple[np.ndarray, ...]]:
    """What native code in this process gives, with the regions on the functional simulator."""
    regions = {row.name for row in artifact.manifest.regions}
    functions = {"main": artifact.main, **{n: f for n, f in artifact.functions.items() if n not in regions}}
    module = compile_native(functions, {}, labels=quantizations(functions, artifact.manifest.layers))
    session = Executor(artifact, open_device("functional", artifact.config)).session
    assert session is not None

    def launch(name: str, args: list[Any]) -> Any:
        session.settle(name)
        return next(iter(session.run(name, [args])))[0]

    found = [module.call("main", [sample], launch) for sample in samples]
    return [value if isinstance(value, tuple) else (value,) for value in found]


@pytest.mark.parametrize("name", ["lstm", "treelstm"])
def test_recurrent_networks_with_their_layers_on_a_device(name: str, tmp_path: Path) -> None:
    """Bytes are those of native code in Python, and the numbers those of `relay-hw run`."""
    artifact, data = example(name, tmp_path)
    folder = exported(tmp_path, artifact)
    (samples,) = data.values()
    (tmp_path / "in.bin").write_bytes(b"".join(sample_bytes(artifact, one) for one in samples))
    outputs = artifact.manifest.outputs
    files = [tmp_path / f"out{k}.bin" for k in range(len(outputs))]
    done = run(folder, tmp_path / "in.bin", *files)
    assert (done.returncode, done.stderr) == (0, "")
    want = native_results(artifact, samples)
    result = Executor(artifact, open_device("functional", artifact.config)).run(data)
    for k, (row, file) in enumerate(zip(outputs, files, strict=True)):
        assert file.read_bytes() == b"".join(values[k].tobytes() for values in want)
        have = np.frombuffer(file.read_bytes(), "float32")
        np.testing.assert_allclose(have, np.asarray(result.outputs[row.name]).reshape(-1), rtol=1e-4, atol=1e-5)
    if name == "lstm":
        samples[1, 3, 0, 5] = np.nan
        samples.tofile(tmp_path / "in.bin")
        done = run(folder, tmp_path / "in.bin", *files)
        told = "error: sample 1: input x must hold finite numbers, not NaN (index (3, 0, 5))\n"
        assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.long
@needs_aarch64
@pytest.mark.parametrize("name", ["lstm", "treelstm"])
def test_the_bytes_are_those_of_another_processor(name: str, tmp_path: Path) -> None:
    """The same C for aarch64, under qemu-user, with another C library and another compiler."""
    artifact, data = example(name, tmp_path)
    folder = exported(tmp_path, artifact)
    (samples,) = data.values()
    (tmp_path / "in.bin").write_bytes(b"".join(sample_bytes(artifact, one) for one in samples))
    outputs = range(len(artifact.manifest.outputs))
    ours, theirs = ([tmp_path / f"{who}{k}.bin" for k in outputs] for who in ("ours", "theirs"))
    assert run(folder, tmp_path / "in.bin", *ours).returncode == 0
    words = [
        *build_for_aarch64(folder, tmp_path / "other"),
        "--device",
        device_command(folder),
        "--folder",
        str(folder),
    ]
    done = subprocess.run([*words, *map(str, (tmp_path / "in.bin", *theirs))], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.read_bytes() for file in theirs] == [file.read_bytes() for file in ours]


def test_recursion_over_data(tmp_path: Path) -> None:
    """Deeper than one stack; damaged files and files of other values are refused."""
    artifact = host_build(tmp_path, (
        "def @total(%l: List[int32]) -> int32 { match (%l) { Cons(%h, %t) => { %h + @total(%t) }, Nil => { 0 } } }"
        "def @main(%l: List[int32], %x: Tensor[(3), int8]) -> (int32, Tensor[(3), int8]) {"
        " let %n = @total(%l); (%n, if (%n > 10) { %x + %x } else { %x }) }"
    ))  # fmt: skip
    folder = exported(tmp_path, artifact)
    lists = [list(range(100_000)), [], [3, 4]]
    whole = [value_bytes(artifact, list_value([np.int32(item) for item in items])) for items in lists]
    files = [tmp_path / name for name in ("l.bin", "x.bin", "n.bin", "y.bin")]
    files[0].write_bytes(b"".join(whole))
    np.arange(9, dtype="int8").tofile(files[1])
    done = run(folder, *files, command="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert np.fromfile(files[2], "int32").tolist() == [
        sum(items) - 2**32 if items[2:] else sum(items) for items in lists
    ]
    assert np.fromfile(files[3], "int8").tolist() == [0, 2, 4, 3, 4, 5, 6, 7, 8]
    words = np.frombuffer(whole[2], "int64")
    for place, value in ((2, 0), (1, 7), (len(words) - 2, 9), (len(words) - 1, 5)):
        damaged = words.copy()
        damaged[place] = value
        files[0].write_bytes(damaged.tobytes())
        np.arange(3, dtype="int8").tofile(files[1])
        done = run(folder, *files, command="true")
        assert done.returncode == 2 and done.stderr.startswith("error: sample 0: ")
    files[0].write_bytes(whole[2][:-8])
    done = run(folder, *files, command="true")
    assert done.stderr == "error: inputs must hold the same number of whole samples\n"
    with pytest.raises(EvalError, match="data must be of constructors that the program knows, not Some of Option"):
        some = relay.fromtext(HEADER + "type Option[A] { Some(A), None, }\n").types["Option"].constructors[0]
        value_bytes(artifact, ConstructorValue(some, (np.int32(1),)))


def test_failures_are_sentences(tmp_path: Path) -> None:
    artifact = host_build(tmp_path, "def @main(%a: int32, %b: int32) -> int32 { if (%b > 9) { %b } else { %a / %b } }")
    folder = exported(tmp_path, artifact)
    files = [tmp_path / name for name in ("a.bin", "b.bin", "out.bin")]
    np.array([7, 7], "int32").tofile(files[0])
    np.array([2, 0], "int32").tofile(files[1])
    done = run(folder, *files, command="true")
    assert done.stderr == "error: sample 1: the divisor of divide must not be 0 in integers\n"


@pytest.mark.parametrize(("text", "told"), [
    ("def @main(%x: Tensor[(4), float32], %c: bool) { if (%c) { argsort(%x) } else { argsort(cumsum(%x)) } }",
     "operators must have a C form to be exported, not argsort, cumsum"),
    ("def @main(%x: (int32, int32), %c: bool) -> int32 { if (%c) { %x.0 } else { %x.1 } }",
     "an input must be a tensor of known shape or of a data type to be exported, not"),
    ("def @main(%x: int32, %c: bool) -> List[int32] { if (%c) { Cons(%x, Nil) } else { Nil } }",
     "an output must be a tensor of known shape to be exported, not List"),
])  # fmt: skip
def test_refusals(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=told):
        export_c(host_build(tmp_path, text), tmp_path / "c")
