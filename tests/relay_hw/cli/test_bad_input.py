"""Bad input: status 2, one line on standard error, nothing on standard output, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relay_hw.cli.main import main
from tests.relay_hw.small_models import images, save_data, save_plain, save_unsupported

Captured = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, data and a build; only read."""
    path = tmp_path_factory.mktemp("bad")
    save_plain(path / "net.onnx")
    save_unsupported(path / "strange.onnx")
    save_data(path / "data.npz", 4)
    arguments = ["--calibration", str(path / "data.npz"), "--config", "tiny", "-o", str(path / "build")]
    assert main(["compile", str(path / "net.onnx"), *arguments]) == 0
    return path


def refuse(capsys: Captured, sentence: str, *arguments: object) -> None:
    """The command must end with status 2 and the sentence, with and without --json."""
    texts = [str(argument) for argument in arguments]
    capsys.readouterr()
    assert main(texts) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("relay-hw: error: ")
    assert sentence in lines[0]
    assert "internal error" not in lines[0] and "Traceback" not in lines[0]
    assert main([*texts, "--json"]) == 2
    row = json.loads(capsys.readouterr().out)
    assert sentence in row["error"]


def compile_arguments(shared: Path, tmp_path: Path, model: object, *more: object) -> list[object]:
    calibration = ["--calibration", shared / "data.npz"]
    return ["compile", model, "-o", tmp_path / "out", *([] if "--calibration" in more else calibration), *more]


def test_missing_model(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    refuse(capsys, "none.onnx must be an existing file", *compile_arguments(shared, tmp_path, tmp_path / "none.onnx"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", [0, 1, 50, 0.5, 0.99])
def test_truncated_model(shared: Path, tmp_path: Path, capsys: Captured, keep: float) -> None:
    data = (shared / "net.onnx").read_bytes()
    part = tmp_path / "part.onnx"
    part.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    refuse(capsys, "part.onnx", *compile_arguments(shared, tmp_path, part))
    assert list(tmp_path.iterdir()) == [part]


def test_a_text_file_that_is_no_model(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    fake = tmp_path / "fake.onnx"
    fake.write_text("this is no protobuf")
    refuse(capsys, "fake.onnx", *compile_arguments(shared, tmp_path, fake))


def test_unsupported_operator(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    arguments = compile_arguments(shared, tmp_path, shared / "strange.onnx")
    refuse(capsys, "RandomUniformLike (node strange, opset 17): results must not be random", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_relay_text_with_an_error(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    text = tmp_path / "bad.relay"
    text.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) {\n  nn.relu(%y)\n}\n')
    refuse(capsys, "bad.relay:3:", *compile_arguments(shared, tmp_path, text))


def test_shapes_that_do_not_fit(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    given = compile_arguments(shared, tmp_path, shared / "net.onnx", "--shape", "image=1x3x9x9")
    refuse(capsys, "the shape of input image must fit 1x3x8x8, not be 1x3x9x9", *given)
    given = compile_arguments(shared, tmp_path, shared / "net.onnx", "--shape", "picture=1x3x8x8")
    refuse(capsys, "(image), not picture", *given)
    text = tmp_path / "net.relay"
    text.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) {\n  nn.relu(%x)\n}\n')
    given = compile_arguments(shared, tmp_path, text, "--shape", "x=2x3")
    refuse(capsys, "shapes must be given for an .onnx model, not for", *given)
    given = compile_arguments(shared, tmp_path, text, "--value", "x=2")
    refuse(capsys, "values must be given for an .onnx model, not for", *given)


def test_missing_calibration(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    refuse(capsys, "calibration", "compile", shared / "net.onnx", "-o", tmp_path / "out")
    missing = compile_arguments(shared, tmp_path, shared / "net.onnx", "--calibration", tmp_path / "none.npz")
    refuse(capsys, "none.npz must be an existing .npz file", *missing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--config", "huge", "configuration must be one of default, ecp5, ecp5w4, ecp5x2, mini, tiny, w4, wide"),
        ("--quantize", "int3", "strategy must be one of int8,"),
        ("--config", "none.json", "not none.json"),
    ],
)
def test_unknown_choices(
    shared: Path, tmp_path: Path, capsys: Captured, option: str, value: str, sentence: str
) -> None:
    refuse(capsys, sentence, *compile_arguments(shared, tmp_path, shared / "net.onnx", option, value))
    assert list(tmp_path.iterdir()) == []


def test_unknown_host_target(tmp_path: Path, capsys: Captured) -> None:
    from tests.relay_hw.small_models import save_mixed

    model, data = save_mixed(tmp_path / "mixed.onnx"), save_data(tmp_path / "data.npz", 2)
    refuse(
        capsys, "host must be one of llvm, cuda, opencl, numpy, not metal",
        "compile", model, "-o", tmp_path / "out", "--calibration", data, "--config", "tiny", "--host", "metal",
    )  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_calibration_of_another_shape(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    wrong = tmp_path / "wrong.npz"
    np.savez(wrong, image=np.zeros((2, 3, 8, 9), np.float32))
    refuse(capsys, "image", *compile_arguments(shared, tmp_path, shared / "net.onnx", "--calibration", wrong))


def write_npz(**arrays: np.ndarray) -> Callable[[Path], None]:
    return lambda path: np.savez(path, **arrays)  # type: ignore[arg-type]


def truncated(path: Path) -> None:
    np.savez(path, image=images(2))
    path.write_bytes(path.read_bytes()[:-40])


def damaged(path: Path) -> None:
    np.savez(path, image=images(2))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: None, "data.npz must be an existing .npz file"),
        (lambda path: path.write_bytes(b"no zip"), "data.npz must be an .npz file"),
        (lambda path: path.mkdir(), "data.npz must be an existing .npz file"),
        (truncated, "data.npz must"),
        (damaged, "data.npz must hold plain arrays only"),
        (write_npz(image=np.array([{"a": 1}], dtype=object)), "data.npz must hold plain arrays only"),
        (write_npz(picture=np.zeros(3)), "input image must be given; the data holds picture"),
        (write_npz(image=np.zeros((2, 3, 9, 8), np.float32)), "input image must have shape (N, 3, 8, 8)"),
        (write_npz(image=np.zeros((0, 3, 8, 8), np.float32)), "the data must hold at least 1 sample, not 0"),
        (write_npz(image=np.array(["text"])), "input image must have shape"),
    ],
)
def test_wrong_data(
    shared: Path, tmp_path: Path, capsys: Captured, make: Callable[[Path], None], sentence: str
) -> None:
    data, output = tmp_path / "data.npz", tmp_path / "out.npz"
    make(data)
    refuse(capsys, sentence, "run", shared / "build", "--input", data, "--output", output)
    assert not output.exists()


def test_a_build_for_another_configuration(shared: Path, capsys: Captured) -> None:
    arguments = ["run", shared / "build", "--input", shared / "data.npz", "--config", "default"]
    refuse(capsys, "program must be made for configuration default", *arguments)


def test_a_folder_that_is_no_build(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    for command in (["run", "--input", shared / "data.npz"], ["profile"], ["verify"], ["disasm"], ["show"]):
        name, *more = command
        refuse(capsys, "must be a folder that `relay-hw compile` wrote", name, tmp_path / "none", *more)


def test_a_damaged_build(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    import shutil

    build = Path(shutil.copytree(shared / "build", tmp_path / "build"))
    (build / "program.bin").write_bytes(b"")
    refuse(capsys, "program.bin must have SHA-256", "verify", build)


def test_an_output_that_cannot_be_written(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "out.npz"
    for folder in (["compare", "m.onnx", "--data", "x.npz", "--strategies", "int8"], ["export", "b"]):
        refuse(capsys, "file must be a folder, not a file", *folder, "-o", tmp_path / "file")
    refuse(capsys, "must be a file, not a folder", "run", "b", "--input", "x.npz", "--output", tmp_path)
    refuse(capsys, "must be writable", "run", shared / "build", "--input", shared / "data.npz", "--output", output)
    refuse(capsys, "must be writable", *compile_arguments(shared, tmp_path / "file", shared / "net.onnx"))


def test_an_output_folder_of_other_files_is_kept(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter").write_text("dear")
    arguments = compile_arguments(shared, tmp_path, shared / "net.onnx", "--config", "tiny")
    refuse(capsys, "must be a new folder or an older build, not a folder of other files", *arguments)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["letter"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "COMMAND"),
        (["fly"], "COMMAND must be one of demo, "),
        (["compile"], "required: MODEL, -o/--output"),
        (["compile", "a.onnx"], "required: -o/--output"),
        (["compile", "m.onnx", "-o", "b", "--target", "quantum"], "target must be one of accel, vta, not quantum"),
        (
            ["compile", "m.onnx", "-o", "b", "--tune", "soon"],
            "seconds must be a number from 0 to 1,000,000, not soon",
        ),
        (
            ["compile", "m.onnx", "-o", "b", "--tune", "nan"],
            "seconds must be a number from 0 to 1,000,000, not nan",
        ),
        (
            ["compile", "m.onnx", "-o", "b", "--tune", "-1"],
            "seconds must be a number from 0 to 1,000,000, not -1",
        ),
        (["run", "b", "--input", "x.npz", "--samples", "0"], "a count must be an integer of at least 1, not 0"),
        (["run", "b", "--input", "x.npz", "--samples", "many"], "a count must be an integer of at least 1, not many"),
        (["profile", "b", "--device", "functional"], "--device must be one of cycle, rtl, not functional"),
        (
            ["compile", "m.onnx", "-o", "b", "--shape", "images"],
            "a shape must be INPUT=SIZExSIZE..., such as images=1x3x320x320, not images",
        ),
        (["compile", "m.onnx", "-o", "b", "--shape", "x=1x0"], "such as images=1x3x320x320, not x=1x0"),
        (["compile", "m.onnx", "-o", "b", "--shape", "x=1x-3"], "such as images=1x3x320x320, not x=1x-3"),
        (["check", "m.onnx", "--value", "sr"], "a value must be INPUT=NUMBER, such as sr=16000, not sr"),
        (["isa", "jump"], "instruction must be one of load, store, gemm"),
    ],
)
def test_wrong_command_lines(capsys: Captured, arguments: list[str], sentence: str) -> None:
    refuse(capsys, sentence, *arguments)


def test_an_unknown_stage_and_function(shared: Path, capsys: Captured) -> None:
    refuse(capsys, "stage must be one of imported", "show", shared / "build", "--stage", "final")
    refuse(capsys, "function must be one of accel_0, not f", "disasm", shared / "build", "--function", "f")


def test_a_defect_of_ours_is_one_line_too(shared: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    import relay_hw.runtime.artifact as artifact

    def broken(*_given: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(artifact, "load_artifact", broken)
    assert main(["verify", str(shared / "build")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "internal error, please report it: ZeroDivisionError: oops; run again with --debug to see where" in err
    assert main(["verify", str(shared / "build"), "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


# Interrupted commands, in processes of their own.


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "import sys; from relay_hw.cli.main import main; sys.exit(main(sys.argv[1:]))",
         *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


WAITING = """
import signal, sys
from relay_hw.cli.console import Console
from relay_hw.cli.main import main

def wait(self, step):
    if step.name.startswith(sys.argv[1]):
        print("ready", flush=True)
        signal.pause()

Console._show = wait
# It is ignored in what a shell starts in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", ["calibrating", "writing the build"])
def test_an_interrupted_compile_leaves_nothing(
    shared: Path, tmp_path: Path, stage: str, number: signal.Signals
) -> None:
    """The command says that it has come to the stage, and waits there for the signal."""
    given = compile_arguments(shared, tmp_path, shared / "net.onnx", "--config", "tiny")
    with subprocess.Popen(
        [sys.executable, "-c", WAITING, stage, *map(str, given)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert (out, err) == ("", "relay-hw: interrupted; no partly written files are left\n")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_is_no_error(shared: Path) -> None:
    process = start("show", shared / "build")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def imported(*arguments: str) -> set[str]:
    """The modules that a command in a process of its own has loaded when it ends."""
    code = (
        "import sys; from relay_hw.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('loaded', *sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["compile", "m.onnx", "-o", "out", "--config", "huge"],
        ["compile", "m.onnx", "-o", "out", "--quantize", "int3"],
        ["compile", "m.onnx", "-o", "/dev/null/out"],
        ["compile", "m.onnx", "-o", "out", "--memory", "fast"],
        ["run", "b", "--input", "x.npz", "--device", "quantum"],
        ["run", "b", "--input", "x.npz", "--output", "/dev/null/out.npz"],
        ["compare", "m.onnx", "--data", "x.npz", "-o", "out", "--strategies", "int8,int3"],
        ["compare", "m.onnx", "--data", "x.npz", "-o", "out", "--strategies", "int8", "--config", "tiny,huge"],
        ["compare", "m.onnx", "--data", "x.npz", "-o", "/dev/null/out", "--strategies", "int8"],
        ["bitstream", "--board", "none", "-o", "out"],
        ["bitstream", "--part", "none", "-o", "out"],
        ["profile", "b", "--trace", "/dev/null/trace.json"],
    ],
)
def test_names_and_places_are_checked_before_anything_is_imported(arguments: list[str]) -> None:
    """What costs seconds to import is not there when a misspelled name is refused; numpy is most of it."""
    assert imported(*arguments).isdisjoint({"numpy", "tvm", "onnx", "relay_hw.transform", "tensorize"})


@pytest.mark.parametrize(
    ("memory", "sentence"),
    [
        ("fast", "memory model must be one of colorlight, narrow, standard, ulx3s, not fast"),
        ("ulx3s,banks=3", "memory model: banks must be a power of two from 1 to 65536, not 3"),
        ("ulx3s,rcd", "memory model: rcd must be an integer, not nothing"),
    ],
)
def test_memory_models(shared: Path, tmp_path: Path, capsys: Captured, memory: str, sentence: str) -> None:
    refuse(capsys, sentence, *compile_arguments(shared, tmp_path, shared / "net.onnx", "--memory", memory))
    refuse(capsys, sentence, "run", shared / "build", "--input", shared / "data.npz", "--memory", memory)
    refuse(capsys, sentence, "why", shared / "build", "--memory", memory)
    assert list(tmp_path.iterdir()) == []
