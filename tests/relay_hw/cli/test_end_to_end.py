"""The command line from an ONNX file to outputs: compile, run, profile, verify, show, disasm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relay_hw.cli.main import main
from relay_hw.runtime.artifact import manifest_bytes
from relay_hw.runtime.manifest import manifest_from_json
from tests.relay_hw.small_models import save_data, save_mixed, save_plain

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two models, data, and a build of the plain one."""
    path = tmp_path_factory.mktemp("cli")
    save_plain(path / "net.onnx")
    save_mixed(path / "mixed.onnx")
    save_data(path / "calibration.npz", 8, seed=9)
    save_data(path / "test.npz", 6, seed=1, labels=True)
    assert compile_to(path, "build") == 0
    return path


def compile_to(folder: Path, name: str, model: str = "net.onnx", config: str = "tiny") -> int:
    calibration = str(folder / "calibration.npz")
    arguments = ["--calibration", calibration, "--config", config, "-o", str(folder / name)]
    return main(["compile", str(folder / model), *arguments])


def ask(capsys: Captured, *arguments: object) -> dict[str, Any]:
    """Run with --json; standard output must be one object and nothing else."""
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    row = json.loads(out)
    assert isinstance(row, dict)
    return row


def test_compile_says_what_it_made(folder: Path, capsys: Captured) -> None:
    assert compile_to(folder, "told") == 0
    text = capsys.readouterr().out
    assert "conv_a" in text and "accel.conv2d" in text and "qnn.quantize" in text
    assert "net for tiny" in text
    row = ask(
        capsys, "compile", folder / "net.onnx", "--calibration", folder / "calibration.npz", "-o", folder / "told"
    )
    assert row["config"] == "default" and row["strategy"] == "int8" and row["launches"] == 1
    assert {layer["where"] for layer in row["layers"]} == {"accel", "host"}
    assert all(layer["reason"] for layer in row["layers"] if layer["where"] == "host")


def test_a_build_for_the_host_alone_needs_no_calibration(folder: Path, capsys: Captured) -> None:
    words = ["compile", str(folder / "net.onnx"), "--no-accel", "-o", str(folder / "alone")]
    row = ask(capsys, *words)
    assert row["strategy"] == "float" and {layer["where"] for layer in row["layers"]} == {"host"}
    assert ask(capsys, *words, "--calibration", folder / "calibration.npz")["strategy"] == "int8"
    assert main([*words, "--quantize", "int8"]) == 2
    assert "strategy int8 needs calibration data" in capsys.readouterr().err


def rtl_if_there_is_one() -> list[str]:
    """The RTL device, or a printed line that says why it is left out."""
    from relay_hw.accel.sim.verilator import ToolError, find_toolchain

    try:
        find_toolchain()
    except ToolError as error:
        print(f"the rtl device is left out: {error}")
        return []
    return ["rtl"]


def test_devices_write_equal_files(folder: Path, capsys: Captured) -> None:
    devices = ["functional", "cycle", *rtl_if_there_is_one()]
    for device in devices:
        output = folder / f"{device}.npz"
        row = ask(
            capsys, "run", folder / "build", "--input", folder / "test.npz", "--device", device, "--output", output
        )
        assert row["device"] == device and row["samples"] == 6 and row["seconds"] > 0
        assert row["outputs"] == {"scores": {"shape": [6, 5], "dtype": "float32"}}
        assert 0 <= row["accuracy"] <= 1
        if device != "functional":
            assert len(row["cycles"]) == 6 and len(set(row["cycles"])) == 1
            assert row["resident_launches"] == 1 and row["resident_cycles"] > 0
        else:
            assert row["cycles"] is None and row["resident_cycles"] is None
    for device in devices[1:]:
        assert (folder / "functional.npz").read_bytes() == (folder / f"{device}.npz").read_bytes()
    with np.load(folder / "functional.npz") as archive:
        assert archive.files == ["scores"] and archive["scores"].shape == (6, 5)
        np.testing.assert_allclose(archive["scores"].sum(axis=1), 1, rtol=1e-5)


def test_run_for_people(folder: Path, capsys: Captured) -> None:
    output = folder / "new folder" / "out.npz"
    data = folder / "test.npz"
    assert main(["run", str(folder / "build"), "--input", str(data), "--samples", "2", "--output", str(output)]) == 0
    text = capsys.readouterr().out
    assert "2 sample(s) on the functional device" in text
    assert "output scores: float32[2, 5]" in text and "accuracy" in text and str(output) in text
    assert output.is_file() and [p.name for p in output.parent.iterdir()] == ["out.npz"]


def test_a_mixed_network_runs(folder: Path, capsys: Captured) -> None:
    pytest.importorskip("tvm")
    assert compile_to(folder, "mixed", "mixed.onnx") == 0
    row = ask(capsys, "run", folder / "mixed", "--input", folder / "test.npz", "--device", "cycle")
    assert row["samples"] == 6 and all(cycles > 0 for cycles in row["cycles"])
    assert ask(capsys, "verify", folder / "mixed")["ok"] is True


def test_profile(folder: Path, capsys: Captured) -> None:
    row = ask(capsys, "profile", folder / "build", "--device", "cycle")
    assert row["cycles"] == sum(layer["cycles"] for layer in row["layers"])
    page = (folder / "build" / "report.html").read_text()
    assert f"{row['cycles']:,}" in page and "measured on the cycle device" in page
    stored = json.loads((folder / "build" / "report.json").read_text())
    assert stored["device"] == "cycle" and stored["layers"] == row["layers"]
    assert main(["profile", str(folder / "build"), "--device", "cycle"]) == 0
    text = capsys.readouterr().out
    assert "conv_a" in text and "total" in text and "report.html" in text
    row = ask(capsys, "verify", folder / "build")
    assert row["ok"] is True
    (proof,) = row["proofs"]
    assert len(proof["layers"]) == sum(layer["where"] == "accel" for layer in stored["layers"])
    assert main(["verify", str(folder / "build")]) == 0
    text = capsys.readouterr().out
    assert f"proved when compiled: {len(proof['layers'])} layer(s) of 1 region(s), " in text


def test_segments_of_a_run_are_timed(folder: Path, capsys: Captured) -> None:
    row = ask(capsys, "run", folder / "build", "--input", folder / "test.npz", "--device", "cycle")
    (region,) = [segment for segment in row["segments"] if segment["where"] == "accel"]
    assert region["calls"] == 6 and region["cycles"] == sum(row["cycles"])
    assert row["segments"][-1]["where"] == "machine"
    assert sum(segment["seconds"] for segment in row["segments"]) == pytest.approx(row["seconds"])
    assert main(["profile", str(folder / "build"), "--device", "cycle", "--input", str(folder / "test.npz")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["segment", "where", "calls", "ms", "cycles"] in lines
    assert [line[:3] for line in lines if line[:2] == ["accel_0", "accel"]] == [["accel_0", "accel", "1"]]
    stored = json.loads((folder / "build" / "report.json").read_text())
    assert {segment["name"] for segment in stored["segments"]} >= {"accel_0", "main"}
    assert "<h2>Segments</h2>" in (folder / "build" / "report.html").read_text()


def test_programs_with_control_flow_run(tmp_path: Path, capsys: Captured) -> None:
    text = (
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(1, 16), float32], %n: int32) -> (Tensor[(1, 16), float32], Tensor[(2, 16), float32]) {"
        ' let %w = ones(shape=[16, 16], dtype="float32") * 0.0625f;'
        " let %f = fn (%y: Tensor[(1, 16), float32], %k: int32) -> Tensor[(1, 16), float32] {"
        "   if (%k < 1) { %y } else { %f(nn.relu(nn.dense(%y, %w, units=16)), %k - 1) } };"
        " (%f(%x, %n), repeat(%x, repeats=2, axis=0)) }"
    )
    (tmp_path / "loop.relay").write_text(text)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(5, 16)).astype("float32"), n=np.arange(5, dtype="int32"))
    words = ["--calibration", tmp_path / "data.npz", "-o", tmp_path / "build"]
    compiled = ask(capsys, "compile", tmp_path / "loop.relay", *words)
    assert (compiled["regions"], compiled["launches"]) == (1, None)
    assert main(["compile", str(tmp_path / "loop.relay"), *map(str, words)]) == 0
    assert "1 region(s) on the accelerator, launched as often as control flow requires" in capsys.readouterr().out
    row = ask(
        capsys, "run", tmp_path / "build", "--input", tmp_path / "data.npz", "--output", tmp_path / "out.npz",
        "--device", "cycle",
    )  # fmt: skip
    assert sum(segment["calls"] for segment in row["segments"] if segment["where"] == "accel") == 10
    assert row["cycles"][0] == 0 and row["cycles"] == sorted(row["cycles"])
    with np.load(tmp_path / "out.npz") as archive:
        assert archive["output_0"].shape == (5, 16)
    assert ask(capsys, "verify", tmp_path / "build", "--samples", "1")["ok"] is True


def test_profile_writes_a_timeline(folder: Path, capsys: Captured) -> None:
    trace = folder / "traces" / "out.json"
    row = ask(capsys, "profile", folder / "build", "--device", "cycle", "--trace", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    units = {event["args"]["name"].split()[0] for event in events if event["name"] == "thread_name"}
    assert units == {"array", "LOAD", "COMPUTE", "OUTPUT", "STORE"}
    boxes = [event for event in events if event["ph"] == "X"]
    causes = [box for box in boxes if box["cat"] == "array"]
    assert sum(cause["dur"] for cause in causes) == row["cycles"]
    assert {"products", "drain"} <= {cause["name"] for cause in causes}
    assert {box["cat"] for box in boxes} >= {"load", "gemm", "requant", "store"}
    assert max(box["ts"] + box["dur"] for box in boxes if box["pid"] == 0) <= row["cycles"]
    resident = [box["ts"] + box["dur"] for box in boxes if box["pid"] == 1]
    assert (max(resident) <= row["resident_cycles"]) if resident else row["resident_cycles"] is None
    boxes = [box for box in boxes if box["cat"] != "array"]
    lanes: dict[tuple[int, int], int] = {}
    for box in sorted(boxes, key=lambda box: box["ts"]):
        lane = (box["pid"], box["tid"])
        assert box["dur"] > 0 and box["ts"] >= lanes.get(lane, 0), "boxes of one row must not overlap"
        lanes[lane] = box["ts"] + box["dur"]
        assert box["args"]["layer"] and box["args"]["instruction"].startswith(box["cat"])


def test_verify_finds_a_wrong_program(folder: Path, capsys: Captured) -> None:
    """A weight that is changed in the program alone, with all hashes made to fit."""
    import hashlib
    import shutil
    from dataclasses import replace

    from relay_hw.accel.isa.program import Program, SectionKind

    wrong = Path(shutil.copytree(folder / "build", folder / "wrong"))
    program = Program.load(wrong / "program.bin")
    sections = []
    for section in program.sections:
        if section.kind is SectionKind.WEIGHTS or (section.data and section.name.startswith("weight")):
            data = bytearray(section.data or b"")
            data[0] ^= 0x40
            section = replace(section, data=bytes(data))
        sections.append(section)
    assert sections != list(program.sections)
    replace(program, sections=tuple(sections)).save(wrong / "program.bin")
    row = json.loads((wrong / "manifest.json").read_text())
    row["files"]["program.bin"] = hashlib.sha256((wrong / "program.bin").read_bytes()).hexdigest()
    (wrong / "manifest.json").write_bytes(manifest_bytes(manifest_from_json(row)))
    capsys.readouterr()
    assert main(["verify", str(wrong), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False and found["problem"].startswith("output 0 of @accel_0 must be ")


def test_show_stages_and_files(folder: Path, capsys: Captured) -> None:
    stages = {"imported": "nn.conv2d", "simplified": "nn.bias_add", "quantized": "fixed.requantize"}
    for stage, word in (stages | {"partitioned": 'Composite="accel.conv2d"'}).items():
        row = ask(capsys, "show", folder / "build", "--stage", stage)
        assert row["stage"] == stage and word in row["text"]
    assert main(["show", str(folder / "net.onnx")]) == 0
    assert "nn.max_pool2d" in capsys.readouterr().out


def test_why(folder: Path, capsys: Captured) -> None:
    row = ask(capsys, "why", folder / "build", "--change", "latency=50", "--change", "queue_depth=16,latency=200")
    assert row["accel"] == 4 and {r["operator"] for r in row["host"]} >= {"qnn.quantize", "nn.softmax"}
    assert all(r["reason"] and r["function"].startswith("host_") for r in row["host"])
    assert [change["recompiled"] for change in row["changes"]] == [False, False]
    faster, slower = (change["cycles"] for change in row["changes"])
    assert faster < row["cycles"] < slower and max(bound["cycles"] for bound in row["bounds"]) < row["cycles"]
    assert sum(loss["cycles"] for loss in row["losses"]) < row["cycles"]
    assert main(["why", str(folder / "build"), "--change", "latency=50"]) == 0
    text = capsys.readouterr().out
    assert "makes integers for the accelerator" in " ".join(text.split()) and "lower bound if" in text
    assert f"{faster:,}" in text and "same program" in text
    assert main(["why", str(folder / "build"), "--change", "speed=9"]) == 2
    assert "a change must be one of" in capsys.readouterr().err


def test_disasm(folder: Path, capsys: Captured) -> None:
    assert main(["disasm", str(folder / "build")]) == 0
    text = capsys.readouterr().out
    for word in ("; program accel_0", "load", "gemm", "requant", "store", "finish"):
        assert word in text
    row = ask(capsys, "disasm", folder / "build" / "program.bin")
    assert list(row["programs"]) == ["program"] and "gemm" in row["programs"]["program"]
    assert list(ask(capsys, "disasm", folder / "build", "--function", "accel_0")["programs"]) == ["accel_0"]


def test_check(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    good = tmp_path / "good.relay"
    good.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }\n')
    assert main(["check", str(good)]) == 0
    assert "Tensor[(2, 3), float32]" in capsys.readouterr().out
    row = ask(capsys, "check", good)
    assert row["ok"] is True and "nn.relu" in row["text"]
    assert ask(capsys, "check", folder / "net.onnx")["ok"] is True


@pytest.mark.parametrize(
    ("body", "line", "column"),
    [
        ("nn.relu(%y)", 3, 11),
        ("add(%x, nn.conv2d(%x, %x))", 3, None),
        ("nn.relu(%x", 4, None),
        ("@missing(%x)", 3, None),
    ],
)
def test_check_says_where(tmp_path: Path, capsys: Captured, body: str, line: int, column: int | None) -> None:
    bad = tmp_path / "bad.relay"
    bad.write_text(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) {{\n  {body}\n}}\n')
    assert main(["check", str(bad)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"relay-hw: error: {bad}:")
    assert main(["check", str(bad), "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert row["ok"] is False and row["line"] >= line - 1
    assert "^" in row["source"]
    if column is not None:
        assert (row["line"], row["column"]) == (line, column)


def test_isa(capsys: Captured) -> None:
    row = ask(capsys, "isa")
    instructions = {"load", "store", "gemm", "alu", "requant", "finish", "gather", "row"}
    assert set(row["layouts"]) == instructions | {"uop", "prm", "tab", "cof"}
    assert any(register["name"] == "CYCLES" for register in row["registers"])
    assert main(["isa", "gemm"]) == 0
    text = capsys.readouterr().out
    assert "acc_out" in text and "registers" not in text


def test_doctor(capsys: Captured) -> None:
    status = main(["doctor", "--json"])
    row = json.loads(capsys.readouterr().out)
    assert row["ok"] == (status == 0) == all(ability["works"] for ability in row["abilities"])
    tools = {tool["name"]: tool for tool in row["tools"]}
    assert tools["numpy"]["version"] == np.__version__
    assert main(["doctor"]) == status
    text = capsys.readouterr().out
    assert "numpy" in text and "simulate the Verilog" in text


def test_doctor_says_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    import importlib.metadata
    import shutil

    real = importlib.metadata.version

    def version(name: str) -> str:
        if name.startswith("apache-tvm"):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(shutil, "which", lambda *_args, **_more: None)
    assert main(["doctor", "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    tools = {tool["name"]: tool for tool in row["tools"]}
    assert tools["apache-tvm"]["version"] is None and "pip install 'relay-hw[host]'" in tools["apache-tvm"]["get"]
    assert tools["g++"]["version"] is None and "apt-get install g++" in tools["g++"]["get"]
    works = {ability["name"]: ability for ability in row["abilities"]}
    assert works["compile Relay text, run on the functional simulator"]["works"] is True
    assert works["compile host operators with TVM"]["problem"] == "missing: apache-tvm, apache-tvm-ffi, g++"


def test_doctor_refuses_the_package_that_crashes(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    import importlib.metadata

    real = importlib.metadata.version
    versions = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.15.post2"}
    monkeypatch.setattr(importlib.metadata, "version", lambda name: versions.get(name) or real(name))
    assert main(["doctor", "--json"]) == 1
    works = {ability["name"]: ability for ability in json.loads(capsys.readouterr().out)["abilities"]}
    assert (
        "apache-tvm-ffi must be 0.1.14.post1, not 0.1.15.post2" in works["compile host operators with TVM"]["problem"]
    )


def test_help_and_version(capsys: Captured) -> None:
    for arguments in (["--help"], ["compile", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert "relay-hw" in capsys.readouterr().out


def test_open_sizes_are_given_or_read_from_data(tmp_path: Path, capsys: Captured) -> None:
    model = onnx.load(save_plain(tmp_path / "plain.onnx"))
    for axis, name in ((0, "batch"), (2, "height"), (3, "width")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "open.onnx")
    data = save_data(tmp_path / "data.npz", 4)
    compiling = ["compile", str(tmp_path / "open.onnx"), "--config", "tiny", "-o", str(tmp_path / "build")]
    assert main([*compiling, "--calibration", str(data)]) == 0
    assert json.loads((tmp_path / "build" / "manifest.json").read_text())["inputs"][0]["shape"] == [1, 3, 8, 8]
    assert main([*compiling, "--calibration", str(data), "--shape", "image=2x3x8x8"]) == 0
    assert json.loads((tmp_path / "build" / "manifest.json").read_text())["inputs"][0]["shape"] == [2, 3, 8, 8]
    capsys.readouterr()
    checking = ["check", str(tmp_path / "open.onnx")]
    assert main(checking) == 2
    assert "dimension 2 of input image must be a number, not height" in capsys.readouterr().err
    assert main([*checking, "--shape", "image=1x3x8x8"]) == 0
    assert "Tensor[(1, 3, 8, 8), float32]" in capsys.readouterr().out
    relay = tmp_path / "net.relay"
    assert main(["convert", str(tmp_path / "open.onnx"), str(relay), "--shape", "image=1x3x8x8"]) == 0
    assert "Tensor[(1, 3, 8, 8), float32]" in relay.read_text()
