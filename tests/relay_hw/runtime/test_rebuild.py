"""The same model gives the same bytes: in two folders, with two hash seeds, on two versions of Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relay_hw.cli.data import save_npz
from tests.relay_hw.small_models import images, save_mixed, save_plain

ROOT = Path(__file__).parents[3]
# The Python of an environment with this package and another version of the language.
OTHER = os.environ.get("OTHER_PYTHON", "")
# A build, its C source, what the tools for bitstreams are given, a bitstream of stub tools.
SCRIPT = """
import sys
from pathlib import Path
from relay_hw.accel.fpga.flow import build_bitstream
from relay_hw.accel.fpga.socs import part_soc
from relay_hw.accel.fpga.parts import find_part
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.gen_verilog import verilog_parameters
from relay_hw.accel.sim.verilator import Build
from relay_hw.cli.main import main
from tests.accel.fpga.test_flow import design

model, data, out = Path(sys.argv[1]), sys.argv[2], Path("out")
out.mkdir()
words = ["--calibration", data, "--config", "tiny"]
assert main(["compile", str(model), "-o", "out/build", *words]) == 0
assert main(["export", "out/build", "-o", "out/c"]) == 0
soc = part_soc(load_config("tiny"), find_part("lfe5u-45f"), 25, 8192, 1_000_000)
for name, text in soc.design.files.items():
    (out / name).write_text(text)
(out / "constraints.lpf").write_text(soc.design.constraints)
(out / "key").write_text(f"{soc.design.key()} {Build.of(load_config('tiny'))}")
made = build_bitstream(design(), [1, 2], Path("stages"))
(out / "design.bit").write_bytes(made.data)
(out / "report").write_text(repr(made.report))
"""


def rebuilt(
    folder: Path, model: Path, data: Path, seed: int, tools: Path, python: str = sys.executable
) -> dict[str, bytes]:
    """What the script writes in a folder, by path."""
    folder.mkdir(parents=True)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed), "TZ": f"UTC{seed}",
                                "PATH": f"{tools}:{os.environ['PATH']}"}  # fmt: skip
    done = subprocess.run(
        [python, "-c", SCRIPT, model, data], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    files = sorted(path for path in (folder / "out").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def check(tmp_path: Path, model: Path, python: str) -> None:
    from tests.accel.fpga.stubs import stub_tools

    tools, data = stub_tools(tmp_path / "tools"), tmp_path / "data.npz"
    save_npz(data, {"image": images(4, 1)})
    one = rebuilt(tmp_path / "a", model, data, 1, tools)
    other = rebuilt(tmp_path / "deep" / "er", model, data, 2, tools, python)
    assert one.keys() == other.keys() and "out/build/manifest.json" in one and "out/c/model.c" in one
    assert [name for name in one if one[name] != other[name]] == []
    assert not [name for name, content in one.items() if str(tmp_path).encode() in content]


@pytest.mark.parametrize("save", [save_plain, pytest.param(save_mixed, marks=pytest.mark.long)])
def test_two_folders_and_two_hash_seeds(save: object, tmp_path: Path) -> None:
    assert callable(save)
    check(tmp_path, save(tmp_path / "net.onnx"), sys.executable)


@pytest.mark.long
@pytest.mark.skipif(not OTHER, reason="OTHER_PYTHON is not set: make test-rebuild OTHER_PYTHON=.../bin/python")
@pytest.mark.parametrize("save", [save_plain, save_mixed])
def test_two_versions_of_python(save: object, tmp_path: Path) -> None:
    assert callable(save)
    check(tmp_path, save(tmp_path / "net.onnx"), OTHER)
