"""What is given away: sdist and wheel hold the package and nothing else, and the wheel alone runs the whole walk.

An environment of the wheel with what it requires, no extra, no checkout, is put together of links to what is installed
here. The long test makes one from a registry instead, and prints sizes and times (`make test-wheel`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from email import message_from_string
from email.message import Message
from importlib.metadata import Distribution, distribution
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from relay_hw.accel.sim.verilator import find_toolchain
from relay_hw.demo.digits import read_digits

pytest.importorskip("setuptools", reason="setuptools, which builds the wheel, is not installed")

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("relay_hw", "accel", "tensorize")
BENCHES = "relay_hw/accel/sim/bench/"
MOST_MEGABYTES = 200
EXTRAS_ONLY = ("tvm", "tvm_ffi", "scipy", "egglog", "mpmath", "litex", "serial", "pyopencl")


def tracked() -> list[str]:
    """Files of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist of the repository's files, and a wheel of that sdist."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def names(wheel: Path) -> list[str]:
    return [name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")]


def test_nothing_but_the_package_is_installed(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in names(wheel)}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"relay_hw"}
    links = [info.filename for info in zipfile.ZipFile(wheel).infolist() if info.external_attr >> 28 == 0o12]
    assert links == []


def test_every_file_of_the_package_is_in_the_wheel_but_benches(wheel: Path) -> None:
    wanted: set[str] = set()
    for name in tracked():
        if name.split("/")[0] in PACKAGES and not (ROOT / name).is_dir():
            wanted.add(name if name.startswith("relay_hw/") else f"relay_hw/{name}")
    benches = {name for name in wanted if name.startswith(BENCHES)}
    found = {name for name in names(wheel) if ".dist-info/" not in name}
    assert benches and found == wanted - benches
    assert {Path(name).suffix for name in found} >= {".v", ".vh", ".cpp", ".h", ".json", ".relay", ".tcl", ".typed"}


def test_nothing_in_the_wheel_imports_benches(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    for name in names(wheel):
        if name.endswith(".py"):
            assert "sim.bench" not in archive.read(name).decode(), name


def test_the_sdist_holds_no_links(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        assert [one.name for one in archive if one.issym() or one.islnk()] == []


def metadata(wheel: Path) -> Message:
    (name,) = (name for name in names(wheel) if name.endswith(".dist-info/METADATA"))
    return message_from_string(zipfile.ZipFile(wheel).read(name).decode())


def test_what_the_wheel_says_of_itself(wheel: Path) -> None:
    about = metadata(wheel)
    texts = about.get_all("Requires-Dist") or []
    always = {one.name for one in map(Requirement, texts) if one.marker is None or "extra" not in str(one.marker)}
    assert always.isdisjoint({"apache-tvm", "apache-tvm-ffi", "scipy"}) and {"numpy", "onnx", "verilator"} <= always
    assert {"host", "mixed", "fpga"} <= set(about.get_all("Provides-Extra") or [])
    assert "Typing :: Typed" in (about.get_all("Classifier") or [])


def required(wheel: Path) -> dict[str, Distribution]:
    """What a default install brings beside the wheel, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(metadata(wheel).get_all("Requires-Dist") or [])
    while waiting:
        one = Requirement(waiting.pop())
        if one.name not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found[one.name] = distribution(one.name)
            waiting += found[one.name].requires or []
    return found


def test_a_default_install_is_small(wheel: Path) -> None:
    sizes = [sum(info.file_size for info in zipfile.ZipFile(wheel).infolist())]
    for one in required(wheel).values():
        paths = [Path(str(one.locate_file(file))) for file in one.files or []]
        sizes.append(sum(path.stat().st_size for path in paths if path.is_file()))
    assert sum(sizes) < MOST_MEGABYTES * 1_000_000


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel and what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("alone") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    for one in required(wheel).values():
        for top in {file.parts[0] for file in one.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(one.locate_file(top))))
    return folder / "bin" / "python"


class Shell:
    """Commands in a folder. `python`: of the environment that runs them."""

    def __init__(self, python: Path, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._python, self._folder = python, folder
        self._environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}

    def __call__(self, *words: str, status: int | None = 0, module: str = "relay_hw.cli") -> str:
        """What a command of `relay-hw`, or of another module, prints; for a status other than 0 its complaint."""
        command = [str(self._python), *(("-m", module) if module else ()), *words]
        done = subprocess.run(
            command, cwd=self._folder, env=self._environment, capture_output=True, text=True, check=False
        )
        assert status is None or done.returncode == status, f"{words}\n{done.stdout}{done.stderr}"
        return done.stderr if status else done.stdout


@pytest.fixture
def shell(alone: Path, tmp_path: Path) -> Shell:
    return Shell(alone, tmp_path)


def test_the_environment_has_no_extras(shell: Shell, tmp_path: Path) -> None:
    code = f"""
import importlib.util, relay_hw
print([name for name in {EXTRAS_ONLY!r} if importlib.util.find_spec(name)], relay_hw.__file__)
"""
    assert shell("-c", code, module="").startswith("[] ") and str(ROOT) not in shell("-c", code, module="")


def walk(shell: Shell, folder: Path, images: int, devices: Sequence[str]) -> None:
    """The demonstration, and every command on a build: the same cycles whoever counts them."""
    row = json.loads(shell("demo", "--device", devices[-1], "--images", str(images), "--json"))
    assert row["exact"] == row["images"] == images and row["device"] == devices[-1]
    shutil.copy2(ROOT / "examples" / "mnist_cnn.onnx", folder / "net.onnx")
    shell("compile", "net.onnx", "--calibration", "relay-hw-demo/mnist_calibration.npz", "-o", "build")
    data, cycles = "relay-hw-demo/mnist_test.npz", set[int]()
    for device in devices:
        row = json.loads(shell("run", "build", "--input", data, "--samples", "2", "--device", device, "--json"))
        assert row["accuracy"] == 1
        cycles |= set(row["cycles"] or ())
    shell("verify", "build", "--samples", "1", "--device", devices[-1])
    shell("profile", "build", "--device", devices[-1])
    assert len(cycles) == 1


def test_the_wheel_runs_the_whole_walk(shell: Shell, tmp_path: Path) -> None:
    walk(shell, tmp_path, 2, ("functional", "cycle"))


def test_without_extras_a_line_says_what_is_missing(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "net.relay").write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 4), float32]) { sigmoid(%x) }\n'
    )
    compile_ = ("compile", "net.relay", "--no-accel", "-o", "build")
    assert "numpy computes sigmoid on the host; TVM is faster: pip install 'relay-hw[host]'" in shell(*compile_)
    sentence = "TVM must be installed to compile host operators sigmoid: pip install 'relay-hw[host]'"
    assert sentence in shell(*compile_, "--host", "llvm", status=2)
    np.savez(tmp_path / "data.npz", input=read_digits()[0].images[:4])
    mixed = ("compile", str(ROOT / "examples" / "mnist_cnn.onnx"), "--calibration", "data.npz", "--quantize", "mixed")
    sentence = "scipy must be installed to choose widths of layers: pip install 'relay-hw[mixed]'"
    assert sentence in shell(*mixed, "-o", "other", status=2)
    assert "run host operators on numpy" in shell("doctor", status=None)


@pytest.mark.long
def test_first_contact(wheel: Path, tmp_path: Path) -> None:
    """From a registry into a fresh environment, to the first result on each device, with caches that are empty."""
    find_toolchain()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_CACHE_DIR": "1"}
    began = time.monotonic()

    def passed(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s: {what}")

    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python, bare = tmp_path / "venv" / "bin" / "python", size(tmp_path / "venv")
    shell = Shell(python, tmp_path, environment)
    shell("install", "--quiet", str(wheel), module="pip")
    added = size(tmp_path / "venv") - bare
    passed(f"installed, {added / 1e6:.0f} MB")
    assert added < MOST_MEGABYTES * 1_000_000
    row = json.loads(shell("demo", "--device", "functional", "--images", "100", "--json"))
    assert row["exact"] == row["images"] == 100
    passed("100 images on the functional simulator")
    walk(shell, tmp_path, 1000, ("functional", "cycle", "rtl"))
    passed("1,000 images on the Verilog, and every command")


def size(folder: Path) -> int:
    """Bytes of its files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
