"""Code for the host in a build runs where it was built, or where somebody says so; what was checked is what runs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relay_hw.backend.gpu.plan import KIND, read_plan
from relay_hw.cli.data import save_npz
from relay_hw.cli.main import main
from relay_hw.errors import ArtifactError
from relay_hw.runtime.artifact import load_artifact
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.module import Module, copy_build
from relay_hw.runtime.trust import is_seal, key_folder, new_seal
from tests.relay_hw.runtime.conftest import Build
from tests.relay_hw.small_models import images

REFUSAL = (
    r"host library .*host\.\w+\.so must have been built here by this user, not elsewhere: "
    r"compile the model again, or give --trust \(Python: trust=True\) if you trust whoever built it"
)
SEALING = "import sys; from pathlib import Path; from relay_hw.runtime.trust import new_seal; "
SEALING += "sys.stdout.write(new_seal('x', Path(sys.argv[1])).decode())"


@pytest.fixture
def copy(mixed: Build, tmp_path: Path) -> Path:
    """A build whose host functions TVM compiled."""
    return Path(shutil.copytree(mixed[1].path, tmp_path / "copy"))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user, who has built something too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert new_seal("something") is not None


def test_a_build_runs_where_it_was_built_wherever_it_lies(copy: Path) -> None:
    artifact = load_artifact(copy)
    assert artifact.is_sealed and not artifact.trust
    assert Executor(artifact, None).run({"image": images(1)}).samples == 1
    copy_build(artifact, copy.parent / "again").check_trust()


@pytest.mark.usefixtures("elsewhere")
def test_a_build_from_elsewhere_runs_where_it_is_trusted(copy: Path) -> None:
    with pytest.raises(ArtifactError, match=REFUSAL):
        Executor(load_artifact(copy), None)
    with pytest.raises(ArtifactError, match=REFUSAL):
        Module.load(copy).run(image=images(1))
    assert np.ndim(Module.load(copy, trust=True).run(image=images(1)))
    assert Module(copy_build(load_artifact(copy, trust=True), copy.parent / "again")).run(image=images(1)).size


@pytest.mark.usefixtures("elsewhere")
def test_each_command_that_runs_a_build_asks(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = copy.parent / "data.npz"
    save_npz(data, {"image": images(1)})
    for words in (["run", copy, "--input", data], ["verify", copy, "--samples", "1"], ["profile", copy]):
        assert main([*map(str, words)]) == 2
        assert "if you trust whoever built it" in capsys.readouterr().err
    assert main(["run", str(copy), "--input", str(data), "--trust"]) == 0
    # These run nothing of it.
    assert main(["show", str(copy)]) == main(["disasm", str(copy)]) == 0


@pytest.mark.usefixtures("elsewhere")
def test_a_build_without_code_needs_no_trust(plain: Build) -> None:
    artifact = load_artifact(plain[1].path)
    assert not artifact.is_sealed
    assert Executor(artifact, None).run({"image": images(1)}).samples == 1
    assert not (artifact.path / "seal.txt").exists()


def test_a_seal_is_of_one_build(copy: Path, mixed: Build) -> None:
    row = json.loads((copy / "manifest.json").read_bytes())
    seal = (copy / "seal.txt").read_bytes()
    assert is_seal(seal, row["sha256"]) and not is_seal(seal, "0" * 64)
    for wrong in (b"", seal[:-1], bytes([seal[0] ^ 1]) + seal[1:]):
        (copy / "seal.txt").write_bytes(wrong)
        assert not load_artifact(copy).is_sealed
    (copy / "seal.txt").unlink()
    (copy / "seal.txt").symlink_to(mixed[1].path / "seal.txt")
    assert not load_artifact(copy).is_sealed


def test_what_was_checked_is_what_runs(copy: Path) -> None:
    executor = Executor(load_artifact(copy), None)
    (library,) = copy.glob("host.*")
    library.write_bytes(library.read_bytes().replace(b"\x7fELF", b"\x7fELE"))
    with pytest.raises(ArtifactError, match=r"host\.\w+\.so must have SHA-256"):
        executor.run({"image": images(1)})


# The key.


def test_two_processes_make_one_key(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "state"
    started = [subprocess.Popen([sys.executable, "-c", SEALING, folder], stdout=subprocess.PIPE) for _ in range(2)]
    first, second = (process.communicate()[0] for process in started)
    assert first == second == new_seal("x", folder) != new_seal("y", folder)
    assert stat.S_IMODE((folder / "build.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["cut", "known to others", "a link"])
def test_a_key_that_others_may_know_is_none(tmp_path: Path, damage: str) -> None:
    seal, key = new_seal("x", tmp_path), tmp_path / "build.key"
    assert seal is not None and is_seal(seal, "x", tmp_path)
    if damage == "cut":
        key.write_bytes(key.read_bytes()[:-1])
    elif damage == "known to others":
        key.chmod(0o640)
    else:
        key.symlink_to(key.rename(tmp_path / "other"))
    assert not is_seal(seal, "x", tmp_path)
    # The next build has a new one.
    new = new_seal("x", tmp_path)
    assert new is not None and new != seal and is_seal(new, "x", tmp_path)


def test_where_no_key_can_be_kept_nothing_is_sealed(
    mixed: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    artifact = mixed[0].save(tmp_path / "build")
    assert not (artifact.path / "seal.txt").exists()
    # Whoever has just built it may run it.
    assert Executor(artifact, None).run({"image": images(1)}).samples == 1
    with pytest.raises(ArtifactError, match=REFUSAL):
        load_artifact(artifact.path).check_trust()


def test_the_key_lies_where_the_system_keeps_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert key_folder() == tmp_path / "relay-hw"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert key_folder() == tmp_path / ".local" / "state" / "relay-hw"


# Files of a build are its own.


@pytest.mark.parametrize("name", ["weights.bin", "program_0.bin", "0_imported.relay", "manifest.json"])
@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_is_no_file_of_its_own_is_refused(copy: Path, name: str, what: str) -> None:
    file = copy / name
    if what == "link":
        file.symlink_to(file.rename(copy.parent / "outside"))
    else:
        file.unlink()
        os.mkfifo(file)
    refusal = r"must be a file of the build's own, not a link|must be a readable JSON|without manifest\.json"
    with pytest.raises(ArtifactError, match=refusal):
        load_artifact(copy)


@pytest.mark.parametrize("key", ["source", "binary", "constants"])
@pytest.mark.parametrize("name", ["../host.cl", "/etc/passwd", "a\0b"])
def test_a_plan_names_files_beside_it(tmp_path: Path, key: str, name: str) -> None:
    row = {"kind": KIND, "target": "opencl", "source": "host.cl", "binary": None, "constants": "host.constants.bin"}
    path = tmp_path / "host.json"
    path.write_text(json.dumps(row | {"functions": []}))
    assert read_plan(path).source == "host.cl"
    path.write_text(json.dumps(row | {"functions": [], key: name}))
    with pytest.raises(ArtifactError, match=r"must be a plan of kernel launches; it is damaged .*no file beside it"):
        read_plan(path)
