"""Build folders: the same bytes each time, whole or not at all, and no byte changed unnoticed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.isa.program import Program
from relay_hw.errors import ArtifactError, InputError
from relay_hw.runtime.artifact import Artifact, load_artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.runtime.folder import new_folder
from relay_hw.runtime.manifest import FORMAT, manifest_from_json, manifest_to_json
from relay_hw.support.quote import line

Build = tuple[CompiledModel, Artifact]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def copy(build: Build, tmp_path: Path) -> Path:
    return Path(shutil.copytree(build[1].path, tmp_path / "copy"))


@pytest.mark.parametrize("which", ["plain", "mixed"])
def test_saving_twice_gives_the_same_bytes(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    compiled, artifact = request.getfixturevalue(which)
    again = compiled.save(tmp_path / "elsewhere" / "again")
    assert contents(again.path) == contents(artifact.path)


def test_compiling_twice_gives_the_same_bytes(plain: Build, tmp_path: Path) -> None:
    from tests.relay_hw.runtime.conftest import build
    from tests.relay_hw.small_models import save_plain

    _, again = build(tmp_path, save_plain, "tiny")
    assert contents(again.path) == contents(plain[1].path)


def test_the_folder_holds_what_the_design_names(plain: Build, mixed: Build) -> None:
    stages = {f"{k}_{s}.relay" for k, s in enumerate(("imported", "simplified", "quantized", "partitioned"))}
    common = {"manifest.json", "network.json", "weights.bin", "report.json", "report.html", *stages}
    assert contents(plain[1].path).keys() == common | {"program.bin"}
    (library,) = mixed[1].path.glob("host.*")
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    assert library.name == f"host.{digest[:8]}.so"
    own = {"program_0.bin", "program_1.bin", library.name, "seal.txt"}
    assert contents(mixed[1].path).keys() == common | own


def test_nothing_is_pickled_and_no_path_of_this_machine_is_inside(mixed: Build) -> None:
    for name, data in contents(mixed[1].path).items():
        assert not data.startswith(b"\x80\x04"), name
        assert str(mixed[1].path).encode() not in data, name


def test_a_changed_byte_is_found_in_every_file(mixed: Build, tmp_path: Path) -> None:
    folder = copy(mixed, tmp_path)
    hashed = [n for n in contents(folder) if n not in ("manifest.json", "report.json", "report.html", "seal.txt")]
    assert len(hashed) == 9
    for name in hashed:
        file = folder / name
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(bytes(data))
        with pytest.raises(ArtifactError, match=rf"{name} must have SHA-256 \w+…, not \w+…; it is damaged"):
            load_artifact(folder)
        data[len(data) // 2] ^= 1
        file.write_bytes(bytes(data))
    load_artifact(folder)


def test_a_truncated_file_is_found(plain: Build, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path)
    file = folder / "program.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match=r"program\.bin must have SHA-256"):
        load_artifact(folder)


def test_a_missing_file_is_found(plain: Build, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path)
    (folder / "weights.bin").unlink()
    with pytest.raises(ArtifactError, match=r"weights\.bin must exist: it belongs to the build"):
        load_artifact(folder)


def rewrite(folder: Path, **changes: Any) -> None:
    """Change the manifest and sign it again, as somebody who means harm would."""
    row = json.loads((folder / "manifest.json").read_text())
    row.pop("sha256")
    row |= changes
    text = json.dumps(row, sort_keys=True, separators=(",", ":"))
    row["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(row))


def test_an_instruction_that_is_not_legal_is_found(plain: Build, tmp_path: Path) -> None:
    """Whoever makes hashes fit is told which file and which instruction."""
    folder = copy(plain, tmp_path)
    program = Program.load(folder / "program.bin")
    code = bytearray(program.code.data or b"")
    code[-1] ^= 0x40
    sections = tuple(replace(s, data=bytes(code)) if s is program.code else s for s in program.sections)
    data = replace(program, sections=sections).to_bytes()
    (folder / "program.bin").write_bytes(data)
    files = json.loads((folder / "manifest.json").read_text())["files"]
    rewrite(folder, files=files | {"program.bin": hashlib.sha256(data).hexdigest()})
    with pytest.raises(ArtifactError, match=r"copy/program\.bin: instruction \d+: finish: reserved bits must be 0"):
        load_artifact(folder)


def test_an_edited_manifest_is_found(plain: Build, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path)
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"model": "save_plain"', '"model": "other"'))
    with pytest.raises(ArtifactError, match="must match its own SHA-256 hash; it was changed after compiling"):
        load_artifact(folder)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": 99}, f"manifest format must be {FORMAT}, not 99: compile the model again"),
        ({"kind": "other"}, "manifest kind must be 'relay-hw build', not 'other'"),
        ({"inputs": [{"name": 1}]}, "manifest must describe a build; it is damaged"),
        ({"config": {"name": "tiny"}}, "manifest must describe a build; it is damaged"),
        ({"config": 3}, "it is damaged .configuration  must be an object, not int"),
        (
            {"regions": [{"name": "a", "program": [], "inputs": [], "outputs": []}]},
            r"regions\[0\]\.program must be a string",
        ),
        ({"layers": [{"name": "a"}]}, r"manifest\.layers\[0\] must have the field operator"),
        ({"calls": "abc"}, "manifest.calls must be a list, not"),
        ({"calls": ["accel_0", "accel_9"]}, "manifest.calls must name regions, not accel_9"),
        ({"strategy": {}}, "manifest.strategy must have a name"),
        ({"inputs": [{"name": "a", "shape": [-1], "dtype": "int8"}]}, "a must have sizes of at least 0, not"),
        (
            {"inputs": [{"name": "a", "shape": [1], "dtype": "int8", "batch_axis": 1}]},
            "a must have batch_axis within its 1 axes, not 1",
        ),
        ({"main": {"name": "main", "nodes": 1, "result": 0}}, r"manifest\.json: a stored host function must have"),
        ({"files": {}}, r"must list weights\.bin among its files"),
        ({"main": {"name": "main", "nodes": [], "result": 0}}, "function main: result must be a node, not 0"),
    ],
)
def test_a_strange_manifest_is_refused(plain: Build, tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    folder = copy(plain, tmp_path)
    rewrite(folder, **changes)
    with pytest.raises(ArtifactError, match=sentence):
        load_artifact(folder)


def test_a_stage_that_is_no_text(plain: Build, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path)
    name = plain[1].manifest.stages[0]
    (folder / name).write_bytes(b"\xff")
    rewrite(folder, files=plain[1].manifest.files | {name: hashlib.sha256(b"\xff").hexdigest()})
    artifact = load_artifact(folder)
    with pytest.raises(ArtifactError, match=f"{name} must be a readable text file: 'utf-8' codec"):
        artifact.stage_text(name)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "sub/secret", "..", "", "a\0b"])
def test_files_outside_the_folder_are_refused(plain: Build, tmp_path: Path, name: str) -> None:
    folder = copy(plain, tmp_path)
    rewrite(folder, files=plain[1].manifest.files | {name: "0"})
    with pytest.raises(ArtifactError, match=rf"must list plain file names, not {re.escape(line(name))}"):
        load_artifact(folder)


def test_a_program_for_another_configuration_is_refused(plain: Build, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path)
    config = json.loads((folder / "manifest.json").read_text())["config"]
    rewrite(folder, config=config | {"name": "bigger", "acc_depth": 2048})
    with pytest.raises(
        ArtifactError, match=r"program\.bin: .*program must be made for configuration bigger .* not tiny"
    ):
        load_artifact(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "5"])
def test_a_manifest_that_is_no_object_is_refused(plain: Build, tmp_path: Path, text: str) -> None:
    folder = copy(plain, tmp_path)
    (folder / "manifest.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"manifest\.json(: manifest)? must be"):
        load_artifact(folder)


def test_what_is_no_build_is_refused(tmp_path: Path) -> None:
    for path, what in ((tmp_path / "none", "a missing folder"), (tmp_path, "a folder without manifest.json")):
        with pytest.raises(ArtifactError, match=f"must be a folder that `relay-hw compile` wrote, not {what}"):
            load_artifact(path)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ArtifactError, match="must be a folder that `relay-hw compile` wrote, not a file"):
        load_artifact(file)


def test_the_manifest_survives_json(mixed: Build) -> None:
    manifest = mixed[1].manifest
    row = json.loads(json.dumps(manifest_to_json(manifest)))
    assert manifest_from_json(row) == manifest


def test_the_memory_map_is_that_of_the_program(plain: Build) -> None:
    _, artifact = plain
    program = artifact.programs["accel_0"]
    sections = artifact.manifest.memory["accel_0"]["sections"]
    assert [(s["name"], s["offset"], s["bytes"]) for s in sections] == [
        (s.name, s.offset, s.size) for s in program.sections
    ]


def test_stage_texts_parse_back_to_the_stages(plain: Build) -> None:
    import numpy as np

    from relay_hw.interp import evaluate
    from relay_hw.text import parse
    from tests.relay_hw.small_models import images

    compiled, artifact = plain
    for stage in ("imported", "quantized", "partitioned"):
        mod = parse(artifact.stage_text(stage))
        image = images(1)
        want = evaluate(compiled.stages[stage], [image])
        np.testing.assert_array_equal(evaluate(mod, [image]), want)
    with pytest.raises(
        InputError, match="stage must be one of imported, simplified, quantized, partitioned, not other"
    ):
        artifact.stage_text("other")


# Folders that appear whole or not at all.


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), new_folder(tmp_path / "build") as folder:
            (folder / "half").write_text("half")
            raise error
    assert list(tmp_path.iterdir()) == []


def test_a_failure_keeps_the_older_build(plain: Build, tmp_path: Path) -> None:
    folder = copy(plain, tmp_path)
    before = contents(folder)
    with pytest.raises(RuntimeError), new_folder(folder) as work:
        (work / "manifest.json").write_text("new")
        raise RuntimeError
    assert contents(folder) == before
    assert list(tmp_path.iterdir()) == [folder]


def test_an_older_build_is_replaced_and_other_files_stay(plain: Build, mixed: Build, tmp_path: Path) -> None:
    folder = copy(mixed, tmp_path)
    (folder / "notes.txt").write_text("mine")
    plain[0].save(folder)
    assert contents(folder) == contents(plain[1].path) | {"notes.txt": b"mine"}
    assert list(tmp_path.iterdir()) == [folder]


def test_other_folders_and_files_are_not_overwritten(plain: Build, tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "letter").write_text("dear")
    with pytest.raises(InputError, match="must be a new folder or an older build, not a folder of other files"):
        plain[0].save(folder)
    with pytest.raises(InputError, match="must be a new folder or an older build, not a file"):
        plain[0].save(folder / "letter")
    assert contents(folder) == {"letter": b"dear"}


def test_an_empty_folder_may_become_a_build(plain: Build, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    plain[0].save(folder)
    assert contents(folder) == contents(plain[1].path)
