"""Exported models: C built by the system's compiler gives the bytes that `relay-hw run` gives; errors are sentences."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.cli.main import main
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import Call, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op.qnn_scale import QuantizeAttrs, quantize_value
from relay_hw.op.softmax import softmax_value
from relay_hw.quantize.finite import check_value
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.deploy import export_c
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.devices import open_device
from tests.needs import needs_tvm

ROOT = Path(__file__).parents[3]
CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
RUNTIME = files("relay_hw.runtime.deploy") / "c"
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler on PATH")
STRICT = ["-std=c99", "-fwrapv", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def build(folder: Path) -> Path:
    """The exported model, compiled without a warning."""
    assert CC is not None
    sources = sorted(map(str, folder.glob("*.c")))
    done = subprocess.run(
        [CC, "-O1", *STRICT, *sources, "-o", str(folder / "model"), "-lm", "-lpthread"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "model"


def device_command(folder: Path, device: str = "functional") -> str:
    return f"PYTHONPATH={ROOT} {sys.executable} -m relay_hw.accel.sim.pipe {folder / 'config.json'} {device}"


def run(folder: Path, *paths: Path, command: str | None = None) -> subprocess.CompletedProcess[str]:
    device = ["--device", device_command(folder) if command is None else command]
    arguments = [str(folder / "model"), *device, "--folder", str(folder), *map(str, paths)]
    return subprocess.run(arguments, capture_output=True, text=True)


def export(tmp_path: Path, build_folder: Path) -> Path:
    folder = tmp_path / "export"
    export_c(load_artifact(build_folder), folder)
    build(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    digits = np.random.default_rng(0).uniform(0, 1, (6, 1, 28, 28)).astype(np.float32)
    np.savez(path, input=digits)
    digits.tofile(path.with_suffix(".bin"))
    return path


def digits_build(folder: Path, data: Path, *options: str) -> Path:
    model = ROOT / "examples" / "mnist_cnn.onnx"
    assert main(["compile", str(model), "-o", str(folder), "--calibration", str(data), *options]) == 0
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    return digits_build(tmp_path_factory.mktemp("digits") / "build", data)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, digits: Path) -> Path:
    return export(tmp_path_factory.mktemp("exported"), digits)


def expected(build_folder: Path, data: Path) -> bytes:
    artifact = load_artifact(build_folder)
    device = open_device("functional", artifact.config)
    result = Executor(artifact, device).run(dict(np.load(data)))
    return b"".join(array.tobytes() for array in result.outputs.values())


def test_digits_on_a_simulated_device(exported: Path, digits: Path, data: Path, tmp_path: Path) -> None:
    done = run(exported, data.with_suffix(".bin"), tmp_path / "out.bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "6 sample(s), 0 cycles\n"
    assert (tmp_path / "out.bin").read_bytes() == expected(digits, data)


def test_cycles_are_those_of_the_simulator(exported: Path, digits: Path, data: Path, tmp_path: Path) -> None:
    done = run(exported, data.with_suffix(".bin"), tmp_path / "out.bin", command=device_command(exported, "cycle"))
    artifact = load_artifact(digits)
    result = Executor(artifact, open_device("cycle", artifact.config)).run(dict(np.load(data)))
    assert done.stdout == f"6 sample(s), {sum(result.cycles or ()) + (result.resident_cycles or 0)} cycles\n"


@needs_tvm
def test_digits_on_the_host_alone(data: Path, tmp_path: Path) -> None:
    build_folder = digits_build(tmp_path / "build", data, "--no-accel")
    folder = export(tmp_path, build_folder)
    assert "host_k" in (folder / "host.c").read_text()
    done = run(folder, data.with_suffix(".bin"), tmp_path / "out.bin", command="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.bin").read_bytes() == expected(build_folder, data)


@needs_tvm
def test_programs_take_turns(tmp_path: Path) -> None:
    """Two programs with weights that stay, a float operator and an unusual integer one between them."""
    build_folder = two_programs(tmp_path)
    x = np.random.default_rng(4).normal(size=(3, 1, 3, 8, 8)).astype(np.float32)
    x.tofile(tmp_path / "x.bin")
    np.savez(tmp_path / "x.npz", x=x)
    folder = export(tmp_path, build_folder)
    done = run(folder, tmp_path / "x.bin", tmp_path / "out.bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(load_artifact(build_folder).programs) == 2
    got = np.fromfile(tmp_path / "out.bin", np.float32)
    want = np.frombuffer(expected(build_folder, tmp_path / "x.npz"), np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def two_programs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    x = Var("x", TensorType((1, 3, 8, 8), "float32"))

    def conv(data: Any, out: int, inner: int) -> Call:
        weight = op.const(rng.normal(size=(out, inner, 3, 3)).astype(np.float32) / 5)
        return op.nn.conv2d(data, weight, padding=(1, 1), channels=out, kernel_size=(3, 3))

    middle = op.nn.softmax(conv(x, 8, 3), axis=1)
    body = op.nn.softmax(op.nn.batch_flatten(conv(middle, 4, 8)), axis=1)
    mod = infer_type(IRModule({"main": Function([x], body)}))
    calibration = {"x": rng.normal(size=(4, 3, 8, 8)).astype(np.float32)}
    compile_model(mod, CompileOptions(config="tiny"), calibration=calibration).save(tmp_path / "two")
    return tmp_path / "two"


FETCHED = ROOT / "build" / "aarch64"
needs_aarch64 = pytest.mark.skipif(
    not (FETCHED / "python" / "ziglang").is_dir(), reason="build/aarch64 is missing: make aarch64 fetches a compiler"
)


def build_for_aarch64(folder: Path, program: Path) -> list[str]:
    """The words of a command that runs the exported model as a program for aarch64, compiled without a warning."""
    sources = sorted(map(str, folder.glob("*.c")))
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-static", "-O1", *STRICT]
    environment = {**os.environ, "PYTHONPATH": str(FETCHED / "python")}
    done = subprocess.run(
        [*compiler, *sources, "-o", str(program), "-lm", "-lpthread"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    qemu = shutil.which("qemu-aarch64") or str(FETCHED / "root" / "usr" / "bin" / "qemu-aarch64-static")
    return [qemu, str(program)]


@pytest.mark.long
@needs_aarch64
def test_digits_on_another_processor(exported: Path, digits: Path, data: Path, tmp_path: Path) -> None:
    """The same C for aarch64, under qemu-user, with the device of this machine behind its pipe."""
    words = build_for_aarch64(exported, tmp_path / "model")
    command = [*words, "--device", device_command(exported), "--folder", str(exported)]
    files = [str(data.with_suffix(".bin")), str(tmp_path / "out.bin")]
    done = subprocess.run([*command, *files], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.bin").read_bytes() == expected(digits, data)


def test_a_wrong_device_is_refused(exported: Path, data: Path, tmp_path: Path) -> None:
    command = device_command(exported).replace(str(exported / "config.json"), "tiny")
    done = run(exported, data.with_suffix(".bin"), tmp_path / "out.bin", command=command)
    assert done.returncode == 2
    assert done.stderr.startswith("error: register CONFIG_HASH of the accelerator must be 0x")


def test_a_device_that_ends_is_an_error(exported: Path, data: Path, tmp_path: Path) -> None:
    done = run(exported, data.with_suffix(".bin"), tmp_path / "out.bin", command="exit 0")
    assert (done.returncode, done.stderr) == (2, "error: the accelerator must answer, not be gone\n")


@pytest.mark.parametrize("name", ["program.bin", "host_weights.bin"])
def test_damaged_files_are_refused(exported: Path, data: Path, tmp_path: Path, name: str) -> None:
    for source in exported.iterdir():
        shutil.copy(source, tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    done = run(tmp_path, data.with_suffix(".bin"), tmp_path / "out.bin")
    assert done.returncode == 2
    assert f"{name} must be the file that the model was exported with; it is damaged or another one" in done.stderr
    (tmp_path / name).unlink()
    done = run(tmp_path, data.with_suffix(".bin"), tmp_path / "out.bin")
    assert f"{name} must be readable: No such file" in done.stderr


def test_half_a_sample_is_refused(exported: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(data.with_suffix(".bin").read_bytes()[:-3])
    done = run(exported, tmp_path / "in.bin", tmp_path / "out.bin")
    assert (done.returncode, done.stderr) == (2, "error: inputs must hold the same number of whole samples\n")
    usage = subprocess.run([str(exported / "model")], capture_output=True, text=True)
    assert (
        usage.returncode == 2 and "[--folder DIR] [--feed OUTPUT=INPUT]... input.bin probabilities.bin" in usage.stderr
    )


def test_the_runtime_is_small() -> None:
    lines = [len((RUNTIME / name).read_text().splitlines()) for name in ("relay_hw.c", "relay_hw.h")]
    assert sum(lines) < 500


def test_the_command(digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(digits), "-o", str(tmp_path / "out")]) == 0
    assert "model.c" in capsys.readouterr().out
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert main(["export", str(digits), "-o", str(tmp_path / "out")]) == 0
    assert before == {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="must be a new folder or an older export, not something else"):
        export_c(load_artifact(digits), tmp_path / "other")


def host_build(folder: Path, body: Any, *params: Var) -> Any:
    mod = infer_type(IRModule({"main": Function(list(params), body)}))
    calibration = {}
    for param in mod["main"].params:
        batch, *rest = param.tensor_type.static_shape
        calibration[param.name_hint] = np.ones((2 * batch, *rest), np.float32)
    compile_model(mod, CompileOptions(config="tiny", accelerate=False), calibration=calibration).save(folder)
    return load_artifact(folder)


@needs_tvm
def test_what_has_no_c_form_is_refused_in_one_message(tmp_path: Path) -> None:
    x = Var("x", TensorType((4, 6), "float32"))
    body = op.add(op.cast(op.argsort(x, axis=1), "float32"), op.cast(op.topk(x, k=6, ret_type="indices"), "float32"))
    with pytest.raises(UnsupportedError, match=r"operators must have a C form to be exported, not .*, .*"):
        export_c(host_build(tmp_path / "b", body, x), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("c") / "relay_hw.so"
    assert CC is not None
    command = [CC, "-O2", "-shared", "-fPIC", *STRICT, str(RUNTIME / "relay_hw.c"), "-o", str(path), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


class Quant(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("channels", ctypes.c_size_t), ("inner", ctypes.c_size_t),
        ("scale", ctypes.c_void_p), ("zero", ctypes.c_void_p),
        ("low", ctypes.c_int32), ("high", ctypes.c_int32), ("half_even", ctypes.c_int),
    )  # fmt: skip


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@pytest.mark.parametrize("rounding", ["half_even", "half_away"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantize_is_numpys(library: ctypes.CDLL, rounding: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-40, 0.49999997, -0.49999997]
    halves = np.arange(-300, 300) + 0.5
    x = np.concatenate([special, halves, rng.normal(size=3 * 400 - 610) * 100]).astype(np.float32).reshape(3, 400)
    scale, zero = np.array([1, 0.5, 0.037], np.float32), np.array([0, -7, 100], np.int32)
    info = np.iinfo(dtype)
    want = quantize_value(x, scale, zero, QuantizeAttrs(dtype, 0, rounding))
    got = np.empty(x.shape, dtype)
    even = int(rounding == "half_even")
    q = Quant(x.size, 3, 400, pointer(scale), pointer(zero), int(info.min), int(info.max), even)
    getattr(library, f"rhw_quantize_{dtype}")(pointer(x), pointer(got), ctypes.byref(q))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 3, 4, 5)])
def test_the_check_for_finite_numbers_says_what_python_says(
    library: ctypes.CDLL, shape: tuple[int, ...], dtype: str
) -> None:
    rng = np.random.default_rng(3)
    sizes = (ctypes.c_size_t * len(shape))(*shape)
    for bad in (np.nan, -np.nan, np.inf, -np.inf, None):
        context = ctypes.create_string_buffer(4096)
        x = rng.normal(size=shape).astype(dtype)
        x.reshape(-1)[0] = np.finfo(dtype).max
        wanted = ""
        if bad is not None:
            x.reshape(-1)[rng.integers(0, x.size) :] = bad
            with pytest.raises(InputError) as refused:
                check_value("input x", x, 4)
            wanted = str(refused.value).replace("sample 4, ", "")
        status = library.rhw_check_finite(context, b"input x", pointer(x), x.itemsize, len(shape), sizes)
        assert (status != 0) == (bad is not None)
        assert wanted.encode() in context.raw


def test_exported_c_refuses_what_run_refuses(exported: Path, data: Path, tmp_path: Path) -> None:
    digits = np.fromfile(data.with_suffix(".bin"), np.float32).reshape(6, 1, 28, 28)
    digits[2, 0, 5, 7] = np.nan
    digits.tofile(tmp_path / "nan.bin")
    done = run(exported, tmp_path / "nan.bin", tmp_path / "out.bin")
    sentence = "input input must hold finite numbers, not NaN (index (0, 0, 5, 7))"
    assert (done.returncode, done.stderr) == (2, f"error: sample 2: {sentence}\n")


@needs_tvm
@pytest.mark.parametrize("host", ["llvm", "numpy"])
def test_floats_in_the_middle_are_checked_where_they_become_integers(tmp_path: Path, host: str) -> None:
    x = Var("x", TensorType((1, 16), "float32"))
    weight = op.const(np.eye(16, dtype=np.float32))
    body = op.nn.dense(op.log(op.nn.dense(x, weight)), weight)
    mod = infer_type(IRModule({"main": Function([x], body)}))
    ones = np.full((4, 16), 2, np.float32)
    compile_model(mod, CompileOptions(config="tiny", host_target=host), calibration={"x": ones}).save(tmp_path / "b")
    artifact = load_artifact(tmp_path / "b")
    executor = Executor(artifact, open_device("functional", artifact.config))
    assert np.isfinite(executor.run({"x": ones}).outputs["output"]).all()
    ones[1, 3] = -1
    sentence = r"the input of qnn.quantize #2 must hold finite numbers, not -infinity \(sample 1, index \(0, 3\)\)"
    with pytest.raises(InputError, match=sentence):
        executor.run({"x": ones})
    folder = export(tmp_path, tmp_path / "b")
    ones.tofile(tmp_path / "x.bin")
    done = run(folder, tmp_path / "x.bin", tmp_path / "out.bin")
    assert done.returncode == 2
    sentence = "the input of qnn.quantize #2 must hold finite numbers, not -infinity (index (0, 3))"
    assert done.stderr == f"error: sample 1: {sentence}\n"


def test_softmax_is_numpys_to_the_bit(library: ctypes.CDLL) -> None:
    x = (np.random.default_rng(2).normal(size=(5, 37, 8)) * 20).astype(np.float32)
    got = np.empty_like(x)
    sizes = [ctypes.c_size_t(n) for n in x.shape]
    library.rhw_softmax(pointer(x), pointer(got), *sizes, 0)
    np.testing.assert_array_equal(got, softmax_value(x, 1))


def test_transpose_is_numpys(library: ctypes.CDLL) -> None:
    x = np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5)
    for axes in ((0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2), (0, 1, 2, 3)):
        want = np.ascontiguousarray(x.transpose(axes))
        got = np.empty_like(want)
        size = ctypes.c_size_t
        library.rhw_transpose(
            pointer(x), pointer(got), size(4), (size * 4)(*x.shape), (size * 4)(*axes), size(x.itemsize)
        )
        np.testing.assert_array_equal(got, want)
