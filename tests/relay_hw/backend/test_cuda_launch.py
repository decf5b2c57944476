"""CUDA without a GPU: the source that nvcc gets, compiled for the CPU, launched through a driver that is made here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, evaluate, flatten
from relay_hw.backend.gpu import cuda, load_plan, read_plan
from relay_hw.backend.tvm import build_library
from relay_hw.backend.tvm.target import parse_host
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Constant, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from tests.needs import needs_tvm

CXX = shutil.which("g++") or shutil.which("clang++")
pytestmark = [
    needs_tvm,
    pytest.mark.skipif(CXX is None, reason="no C++ compiler on PATH"),
]
# What CUDA has and C++ lacks. Threads run one after the other: kernels that wait for one another cannot.
SHIM = """
#include <cmath>
#include <cstdint>
#include <map>
#define __global__
#define __launch_bounds__(n)
struct Place { unsigned x, y, z; };
extern "C" { Place fake_block, fake_thread; }
#define blockIdx fake_block
#define threadIdx fake_thread
template <class T> static T max(T a, T b) { return a > b ? a : b; }
template <class T> static T min(T a, T b) { return a < b ? a : b; }
"""


def network() -> FlatFunction:
    """Integers: a convolution, its output stage, a pooling, a depthwise convolution; no kernel shares memory."""
    rng = np.random.default_rng(2)

    def stage(data: Expr, out: int, inner: int, groups: int) -> Expr:
        weight = Constant(rng.integers(-128, 128, (out, inner, 3, 3), np.int8))
        extra: dict[str, Any] = {"channels": out, "kernel_size": (3, 3), "groups": groups, "out_dtype": "int32"}
        y = op.nn.conv2d(data, weight, padding=(1, 1), **extra)
        bias = Constant(rng.integers(-1000, 1000, out).astype(np.int32))
        numbers = {"multiplier": tuple(range(70, 70 + out)), "shift": (18,) * out}
        return op.fixed.requantize(y, bias, **numbers, zero_point=3, rounding="half_up", a_min=-128, a_max=127, axis=1)

    x = Var("x", TensorType((1, 3, 10, 9), "int8"))
    y = op.nn.max_pool2d(stage(x, 8, 3, 1), (2, 2), (2, 2))
    return flatten(infer_type(IRModule({"main": Function([x], stage(y, 8, 1, 8))}))["main"], "net")


def compile_for_cpu(folder: Path, source: str) -> None:
    """The kernels as a library, in the place of nvcc's binary its path."""
    body = source[source.index('extern "C" __global__') :]
    counts = {name: args.count("*") for name, args in re.findall(r"(\w+_kernel\w*)\(([^)]*)\) \{", body)}
    assert max(counts.values()) <= 8 and "__syncthreads" not in body
    rows = "".join(f"{{(void *){name}, {count}}}, " for name, count in counts.items())
    table = f"static std::map<void *, int> counts = {{{rows}}};\n"
    count = 'extern "C" int fake_count(void *kernel) { return counts.at(kernel); }\n'
    (folder / "kernels.cpp").write_text(SHIM + body + table + count)
    library = folder / "kernels.so"
    run = [str(CXX), "-O1", "-shared", "-fPIC", "-w", str(folder / "kernels.cpp"), "-o", str(library)]
    subprocess.run(run, check=True)
    (folder / "host.fatbin").write_bytes(str(library).encode() + b"\0")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    source = Path(__file__).with_name("fake_cuda.cpp")
    subprocess.run([str(CXX), "-O1", "-shared", "-fPIC", str(source), "-o", str(path), "-ldl"], check=True)
    return path


@pytest.fixture
def build(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build whose binary is the CPU's."""
    monkeypatch.setattr(cuda, "DRIVER", str(driver))
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    build_library([network()], tmp_path / "host.json", parse_host("cuda"))
    compile_for_cpu(tmp_path, (tmp_path / "host.cu").read_text())
    text = (tmp_path / "host.json").read_text().replace('"binary": null', '"binary": "host.fatbin"')
    (tmp_path / "host.json").write_text(text)
    return tmp_path / "host.json"


def test_the_source_computes_what_numpy_computes(build: Path) -> None:
    assert read_plan(build).binary == "host.fatbin"
    library = load_plan(build, {})
    for seed in range(3):
        x = np.random.default_rng(seed).integers(-128, 128, (1, 3, 10, 9), np.int8)
        np.testing.assert_array_equal(library.call("net", [x]), evaluate(network(), [x]))


def test_what_the_driver_refuses_is_said(build: Path) -> None:
    text = build.read_text()
    build.write_text(re.sub(r'"kernel": "\w+"', '"kernel": "none"', text))
    library = load_plan(build, {})
    x = np.zeros((1, 3, 10, 9), np.int8)
    sentence = "the GPU must be able to run host operators compiled for cuda: cuModuleGetFunction: no such thing"
    with pytest.raises(UnsupportedError, match=sentence):
        library.call("net", [x])
    (build.parent / "host.fatbin").write_bytes(b"nothing\0")
    with pytest.raises(UnsupportedError, match="cuda: cuModuleLoadData: no such thing"):
        load_plan(build, {})


def test_the_architecture_of_the_gpu(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "DRIVER", str(driver))
    assert cuda.find_gpu() == "sm_86"
