"""Host libraries for other processors: compiled here, run under qemu-user by TVM's runtime alone, equal to numpy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, evaluate, flatten
from relay_hw.backend.tvm import BuiltLibrary, build_library, load_library
from relay_hw.backend.tvm.target import HostTarget, parse_host
from relay_hw.errors import ArtifactError, UnsupportedError
from relay_hw.ir.expr import Constant, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from tests.needs import needs_tvm

ROOT = Path(__file__).resolve().parents[3]
FETCHED = ROOT / "build" / "aarch64"
SYSROOT = FETCHED / "root" / "usr" / "aarch64-linux-gnu"
SOURCE = Path(__file__).resolve().parent / "cross" / "run_library.c"
CODES = {"i": 0, "u": 1, "f": 2}
pytestmark = needs_tvm
needs_qemu = pytest.mark.skipif(
    not (FETCHED / "python" / "ziglang").is_dir() or not SYSROOT.is_dir(),
    reason="build/aarch64 is missing: make aarch64 fetches qemu-user, a C library and TVM's runtime",
)


def typed(name: str, build: Any, *types: tuple[tuple[int, ...], str]) -> FlatFunction:
    params = [Var(f"x{i}", TensorType(*ty)) for i, ty in enumerate(types)]
    return flatten(infer_type(IRModule({"main": Function(params, build(*params))}))["main"], name)


def weight(dtype: str, *shape: int) -> Constant:
    return Constant(np.random.default_rng(1).integers(-128, 128, shape).astype(dtype))


IMAGE = (1, 5, 9, 11)
FUNCTIONS = {
    "float_layer": typed(
        "float_layer",
        lambda x: op.nn.relu(
            op.nn.conv2d(x, weight("float32", 7, 5, 3, 3), padding=(1, 1), channels=7, kernel_size=(3, 3))
        ),
        (IMAGE, "float32"),
    ),
    "int8_layer": typed(
        "int8_layer",
        lambda x: op.fixed.requantize(
            op.nn.conv2d(x, weight("int8", 7, 5, 3, 3), channels=7, kernel_size=(3, 3), out_dtype="int32"),
            weight("int32", 7),
            1 << 30,
            40,
            rounding="half_even",
        ),
        (IMAGE, "int8"),
    ),
    "wrapping": typed("wrapping", lambda a, b: op.multiply(op.add(a, b), b), ((4, 6), "int32"), ((6,), "int32")),
    "softmax": typed("softmax", lambda x: op.nn.softmax(op.nn.dense(x, weight("float32", 9, 6))), ((3, 6), "float32")),
}


def values(function: FlatFunction) -> list[Any]:
    rng = np.random.default_rng(3)
    found = []
    for param in function.params:
        assert isinstance(param.type, TensorType)
        dtype = np.dtype(param.type.dtype)
        raw = rng.normal(size=param.type.static_shape) if dtype.kind == "f" else None
        bounds = None if dtype.kind == "f" else np.iinfo(dtype)
        found.append(
            raw.astype(dtype)
            if raw is not None or bounds is None
            else rng.integers(bounds.min, bounds.max, param.type.static_shape, dtype=dtype, endpoint=True)
        )
    return found


def to_file(path: Path, value: Any) -> str:
    head = np.array([CODES[value.dtype.kind], value.dtype.itemsize * 8, value.ndim], "<i4")
    path.write_bytes(head.tobytes() + np.array(value.shape, "<i8").tobytes() + value.tobytes())
    return str(path)


def from_file(path: Path, dtype: Any) -> Any:
    raw = path.read_bytes()
    code, bits, rank = np.frombuffer(raw[:12], "<i4")
    assert (code, bits) == (CODES[np.dtype(dtype).kind], np.dtype(dtype).itemsize * 8)
    shape = np.frombuffer(raw[12 : 12 + 8 * rank], "<i8")
    return np.frombuffer(raw[12 + 8 * rank :], dtype).reshape(shape)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The library, and a function that runs one of its functions as a board would."""
    import tvm_ffi

    folder: Path = tmp_path_factory.mktemp("aarch64")
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(FETCHED / "python"))
    patch.setenv("PYTHONPATH", os.pathsep.join([str(FETCHED / "python"), os.environ.get("PYTHONPATH", "")]))
    built = build_library(list(FUNCTIONS.values()), folder / "host.so", parse_host("llvm", "aarch64"))
    include = Path(tvm_ffi.__file__).parent / "include"
    link = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.34", "-O1", f"-I{include}"]
    libraries = FETCHED / "lib"
    runner = folder / "run_library"
    command = [*link, "-o", str(runner), str(SOURCE), f"-L{libraries}", "-ltvm_ffi", "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    patch.undo()
    qemu = shutil.which("qemu-aarch64") or str(FETCHED / "root" / "usr" / "bin" / "qemu-aarch64-static")

    def run(name: str, args: Sequence[Any], dtype: Any) -> Any:
        files = [to_file(folder / f"in{k}", value) for k, value in enumerate(args)]
        paths = f"LD_LIBRARY_PATH={libraries}:{SYSROOT / 'lib'}"
        words = [qemu, "-L", str(SYSROOT), "-E", paths, str(runner), str(folder / "host.so"), name]
        done = subprocess.run([*words, str(folder / "out"), *files], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return from_file(folder / "out", dtype)

    return built, run


@needs_qemu
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_equals_numpy_on_aarch64(name: str, board: tuple[BuiltLibrary, Any]) -> None:
    _, run = board
    args = values(FUNCTIONS[name])
    want = np.asarray(evaluate(FUNCTIONS[name], args))
    got = run(name, args, want.dtype)
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)
    else:
        np.testing.assert_array_equal(got, want)


@needs_qemu
def test_the_library_says_what_it_is_for(board: tuple[BuiltLibrary, Any], tmp_path: Path) -> None:
    built, _ = board
    assert built.cpu == "aarch64:generic"
    with pytest.raises(
        ArtifactError, match="must be made for this CPU, not for aarch64:generic: compile the model here"
    ):
        load_library(tmp_path / "host.so", built)


def test_a_missing_linker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from relay_hw.backend.tvm import library

    monkeypatch.setattr(library.shutil, "which", lambda _name: None)
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UnsupportedError, match=r"a linker for riscv64-linux-gnu must be installed .* ziglang"):
        library.find_linker(parse_host("llvm", "riscv64"))
    with pytest.raises(
        UnsupportedError, match=r"a C\+\+ compiler must be on PATH to link host operators: install g\+\+"
    ):
        library.find_linker(HostTarget())


def test_code_for_wider_vectors_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from relay_hw.backend.tvm import library

    monkeypatch.setattr(library, "_has", lambda feature: not feature.startswith("avx512"))
    monkeypatch.setattr(library, "_here", lambda: "x86_64")
    assert library.build_cpu(HostTarget()) == "x86-64-v3"
    library.check_cpu("x86-64-v3")
    with pytest.raises(ArtifactError, match="must be made for this CPU, not for x86-64-v4"):
        library.check_cpu("x86-64-v4")


def test_threads_can_be_set() -> None:
    from relay_hw.backend.tvm.library import use_threads
    from relay_hw.errors import InputError

    assert use_threads(1) == 1
    assert use_threads() >= 1
    with pytest.raises(InputError, match="number of threads must be at least 1, not 0"):
        use_threads(0)
