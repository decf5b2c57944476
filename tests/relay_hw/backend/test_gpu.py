"""GPU hosts: kernels equal the interpreter where there is a device, plans read back, errors say what lacks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, evaluate, flatten
from relay_hw.backend.gpu import cuda, load_plan, opencl, read_plan
from relay_hw.backend.gpu.plan import KernelLaunch, Plan, plan_bytes
from relay_hw.backend.tvm import BuiltLibrary, build_library, load_library
from relay_hw.backend.tvm.target import HostTarget, parse_host
from relay_hw.errors import ArtifactError, UnsupportedError
from relay_hw.ir.expr import Constant, Expr, Function, If, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType, TupleType
from tests.needs import needs_tvm
from tests.relay_hw.backend.gpus import HOSTS, host_target, needs_nvcc, needs_opencl
from tests.relay_hw.random_cnn import random_cnn, random_input

pytestmark = needs_tvm


SEEDS = (3, 11, 42, 78)


def tensor_var(name: str, *shape: int, dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


def tuples() -> IRModule:
    """Tuples in and out, a value that is returned as it came, a sort that has no kernel, and a scalar."""
    pair = Var("pair", TupleType([TensorType((4, 6), "float32"), TensorType((4, 6), "float32")]))
    one = tensor_var("one")
    left, right = TupleGetItem(pair, 0), TupleGetItem(pair, 1)
    total = op.add(op.multiply(left, one), right)
    ordered = op.argsort(total, axis=1)
    return infer_type(IRModule({"main": Function([pair, one], Tuple([Tuple([left, total]), ordered, op.exp(one)]))}))


def integers() -> IRModule:
    """An int8 layer with everything that wraps, rounds and saturates, seven channels wide."""
    rng = np.random.default_rng(5)
    x = tensor_var("x", 1, 3, 9, 9, dtype="int8")
    weight = Constant(rng.integers(-128, 128, (7, 3, 3, 3), np.int8))
    y: Expr = op.nn.conv2d(x, weight, padding=(1, 1), channels=7, kernel_size=(3, 3), out_dtype="int32")
    bias = Constant(rng.integers(-(2**31), 2**31, 7).astype(np.int32))
    numbers = {
        "multiplier": tuple(rng.integers(1, 2**20, 7).tolist()),
        "shift": tuple(rng.integers(18, 32, 7).tolist()),
    }
    y = op.fixed.requantize(y, bias, **numbers, zero_point=-3, rounding="half_away", a_min=-128, a_max=127, axis=1)
    return infer_type(IRModule({"main": Function([x], op.nn.max_pool2d(y, (2, 2), (2, 2)))}))


def modules() -> dict[str, IRModule]:
    nets = {f"net_{seed}": infer_type(random_cnn(seed)) for seed in SEEDS}
    return nets | {"tuples": tuples(), "integers": integers()}


MODULES = modules()
FUNCTIONS: dict[str, FlatFunction] = {name: flatten(mod["main"], name) for name, mod in MODULES.items()}


def build(folder: Path, target: HostTarget) -> BuiltLibrary:
    return build_library(list(FUNCTIONS.values()), folder / "host.json", target)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuiltLibrary]:
    folder = tmp_path_factory.mktemp("opencl")
    return folder / "host.json", build(folder, parse_host("opencl"))


@pytest.fixture(scope="module", params=HOSTS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions on each device that is here."""
    folder = tmp_path_factory.mktemp(request.param)
    return load_library(folder / "host.json", build(folder, host_target(request.param)))


@pytest.mark.parametrize("seed", SEEDS)
def test_networks_equal_the_interpreter(seed: int, library: Any) -> None:
    name = f"net_{seed}"
    for data in range(2):
        args = list(random_input(MODULES[name], data).values())
        want = evaluate(FUNCTIONS[name], args)
        got = library.call(name, args)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * (1 + np.abs(want).max()))


def test_integers_are_exact(library: Any) -> None:
    for seed in range(3):
        x = np.random.default_rng(seed).integers(-128, 128, (1, 3, 9, 9), np.int8)
        np.testing.assert_array_equal(library.call("integers", [x]), evaluate(FUNCTIONS["integers"], [x]))


def test_tuples_and_numpy_calls(library: Any, built: tuple[Path, BuiltLibrary]) -> None:
    rng = np.random.default_rng(1)
    pair = tuple(rng.normal(size=(4, 6)).astype(np.float32) for _ in range(2))
    (left, total), order, scalar = library.call("tuples", [pair, np.float32(2)])
    np.testing.assert_array_equal(left, pair[0])
    np.testing.assert_allclose(total, 2 * pair[0] + pair[1], rtol=1e-6)
    np.testing.assert_array_equal(order, np.argsort(total, axis=1))
    assert scalar.shape == () and abs(float(scalar) - np.exp(2)) < 1e-5
    assert "argsort" in built[1].left_to_numpy["tuples"]


@pytest.mark.parametrize("kind", HOSTS)
def test_every_operator_equals_numpy(kind: str, tmp_path: Path) -> None:
    """What the CPU path is tested with: convolutions of all kinds, products, pools, reductions, integers that wrap."""
    from tests.relay_hw.backend import test_tvm_operators as cpu

    built = build_library(list(cpu.FUNCTIONS.values()), tmp_path / "host.json", host_target(kind))
    assert built.functions == tuple(cpu.FUNCTIONS)
    assert set(built.left_to_numpy) == set(cpu.NUMPY)
    library = load_library(tmp_path / "host.json", built)
    for name, (types, _) in (cpu.CASES | cpu.NUMPY).items():
        args = cpu.values(types, 0)
        got, want = library.call(name, args), evaluate(cpu.FUNCTIONS[name], args)
        pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
        for mine, theirs in pairs:
            assert (mine.shape, mine.dtype) == (np.shape(theirs), theirs.dtype), name
            exact = theirs.dtype.kind != "f"
            np.testing.assert_allclose(mine, theirs, rtol=0 if exact else 1e-4, atol=0 if exact else 1e-4, err_msg=name)


def branch() -> FlatFunction:
    x = tensor_var("x", 4)
    body = If(op.less(op.sum(x), op.const(np.float32(0))), op.negative(x), op.exp(x))
    return flatten(infer_type(IRModule({"main": Function([x], body)}))["main"], "branch")


def halves() -> FlatFunction:
    x = tensor_var("x", 4, dtype="float16")
    return flatten(infer_type(IRModule({"main": Function([x], op.add(x, x))}))["main"], "halves")


def test_what_no_plan_holds_is_left_to_numpy(tmp_path: Path) -> None:
    functions = [branch(), FUNCTIONS["tuples"], halves()]
    built = build_library(functions, tmp_path / "host.json", parse_host("opencl"))
    assert built.functions == ("tuples",)
    built = build_library([branch()], tmp_path / "host.json", parse_host("opencl"))
    assert built.functions == () and read_plan(tmp_path / "host.json").functions == {}


def test_plans_read_back_and_repeat(built: tuple[Path, BuiltLibrary], tmp_path: Path) -> None:
    path, library = built
    plan = read_plan(path)
    assert plan_bytes(plan) == path.read_bytes()
    assert tuple(plan.functions) == library.functions == tuple(FUNCTIONS)
    build(tmp_path, parse_host("opencl"))
    for file in ("host.json", "host.cl", "host.constants.bin"):
        assert (tmp_path / file).read_bytes() == (path.parent / file).read_bytes()


def test_buffers_are_shared_but_never_while_both_are_needed(built: tuple[Path, BuiltLibrary]) -> None:
    """Follows each plan with names in place of values: a step must find in each buffer what its tensor was given."""
    for function in read_plan(built[0]).functions.values():
        holds: dict[int, int] = {}

        def give(index: int) -> None:
            slot = function.tensors[index].slot  # noqa: B023
            assert slot is not None
            holds[slot] = index  # noqa: B023

        written: set[int] = set()
        for index in function.inputs:
            give(index)
            written.add(index)
        for step in function.steps:
            args = step.args if isinstance(step, KernelLaunch) else (*step.args, *step.results)
            for index in args:
                if function.tensors[index].constant is None and index not in written:
                    give(index)
                    written.add(index)
            for index in args:
                slot = function.tensors[index].slot
                assert slot is None or holds[slot] == index
        assert (
            sum(function.slots) < sum(t.size for t in function.tensors if t.constant is None) or len(function.steps) < 4
        )


@needs_nvcc
def test_nvcc_compiles_the_source(tmp_path: Path) -> None:
    built = build(tmp_path, parse_host("cuda", "sm_80"))
    plan = read_plan(tmp_path / "host.json")
    assert (plan.target.gpu, plan.source, plan.binary) == ("sm_80", "host.cu", "host.fatbin")
    assert built.functions == tuple(FUNCTIONS)
    source, binary = (tmp_path / "host.cu").read_text(), (tmp_path / "host.fatbin").read_bytes()
    kernels = {step.kernel for f in plan.functions.values() for step in f.steps if isinstance(step, KernelLaunch)}
    assert len(kernels) > 10
    for kernel in kernels:
        assert f"{kernel}(" in source and kernel.encode() in binary


def test_without_nvcc_the_source_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, *rest: None)
    build_library([FUNCTIONS["integers"]], tmp_path / "host.json", parse_host("cuda"))
    plan = read_plan(tmp_path / "host.json")
    assert plan.binary is None and not (tmp_path / "host.fatbin").exists()
    assert "__global__" in (tmp_path / "host.cu").read_text()
    with pytest.raises(UnsupportedError, match=r"host\.cu must be compiled by nvcc, which was not on PATH when"):
        cuda._binary(plan, tmp_path)


@needs_nvcc
def test_nvcc_refuses_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "host.cu").write_text("int main( {")
    with pytest.raises(UnsupportedError, match=r"nvcc must be able to compile the host operators for sm_90: .*error"):
        cuda.compile_source(tmp_path / "host.cu", tmp_path / "out", HostTarget("cuda", gpu="sm_90"))
    (tmp_path / "host.cu").write_text("int main() {}")
    with pytest.raises(
        UnsupportedError, match=r"nvcc must be able to compile the host operators for sm_11: .*compute_11"
    ):
        cuda.compile_source(tmp_path / "host.cu", tmp_path / "out", HostTarget("cuda", gpu="sm_11"))


def test_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "DRIVER", "libcuda-that-is-not-there.so.1")
    plan = Plan(parse_host("cuda"), "host.cu", None, "host.constants.bin")
    (tmp_path / "host.json").write_bytes(plan_bytes(plan))
    sentence = "an NVIDIA GPU and its driver must be at hand to run host operators compiled for cuda; libcuda-that"
    with pytest.raises(UnsupportedError, match=sentence):
        load_plan(tmp_path / "host.json", {})


def test_without_opencl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match="pyopencl must be installed to run host operators compiled for opencl"):
        opencl.find_device()


@needs_opencl
def test_without_an_opencl_device(monkeypatch: pytest.MonkeyPatch) -> None:
    cl = pytest.importorskip("pyopencl")
    monkeypatch.setattr(cl, "get_platforms", lambda: [])
    with pytest.raises(UnsupportedError, match="an OpenCL device must be at hand to run host operators compiled for"):
        opencl.find_device()


@needs_opencl
def test_a_device_that_cannot_compile() -> None:
    with pytest.raises(UnsupportedError, match="must be able to compile the host operators"):
        opencl.OpenClLauncher("__kernel void broken(")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"kind": "relay-hw gpu plan"', '"kind": "plan"'),
        ('"slot": 0', '"slot": 99'),
        ('"steps": [', '"steps": [{"numpy": "f", "args": [-1], "results": []},'),
        ('"inputs": [', '"inputs": [1000,'),
        ('"target": "opencl"', '"target": "metal"'),
        ("{", "", ),
    ],
)  # fmt: skip
def test_damaged_plans(built: tuple[Path, BuiltLibrary], tmp_path: Path, before: str, after: str) -> None:
    text = built[0].read_text()
    assert before in text
    (tmp_path / "host.json").write_text(text.replace(before, after, 1))
    with pytest.raises(ArtifactError, match="must be a plan of kernel launches; it is damaged"):
        read_plan(tmp_path / "host.json")
