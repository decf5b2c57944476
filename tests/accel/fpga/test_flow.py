"""The way to a bitstream on a small design: the same bytes twice, what was made is not made again, errors."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from relay_hw.accel.fpga import route, tools
from relay_hw.accel.fpga.flow import Bitstream, Design, build_bitstream, is_built
from relay_hw.accel.fpga.part_top import FPGA_RTL
from relay_hw.accel.fpga.parts import FlowError, find_part
from relay_hw.accel.fpga.tools import find_tool, run_tool
from relay_hw.accel.sim.result_cache import seal
from relay_hw.support.progress import ProgressStep, Steps
from tests.accel.fpga.extra import needs_tools
from tests.told import told

ECHO = """
module echo (input wire clk_i, input wire rst_ni, input wire rx_i, output wire tx_o);
  wire valid, ready;
  wire [7:0] data;
  fpga_uart_rx #(.DIVISOR(25)) u_rx (
      .clk_i(clk_i), .rst_ni(rst_ni), .rx_i(rx_i), .valid_o(valid), .data_o(data)
  );
  fpga_uart_tx #(.DIVISOR(25)) u_tx (
      .clk_i(clk_i), .rst_ni(rst_ni), .valid_i(valid), .ready_o(ready), .data_i(data), .tx_o(tx_o)
  );
endmodule
"""
ROOT = Path(__file__).resolve().parents[3]
CONSTRAINTS = 'FREQUENCY PORT "clk_i" 25 MHZ;\nLOCATE COMP "clk_i" SITE "G2";\n'


def design(text: str = ECHO) -> Design:
    files = {"echo.v": text} | {
        f"fpga_uart_{way}.v": (FPGA_RTL / f"fpga_uart_{way}.v").read_text() for way in ("rx", "tx")
    }
    return Design("echo", "echo", files, find_part("lfe5u-25f"), CONSTRAINTS, 25)


@needs_tools
def test_two_folders_give_one_bitstream_and_a_third_run_nothing_new(tmp_path: Path) -> None:
    first = build_bitstream(design(), [1, 2], tmp_path / "a")
    second = build_bitstream(design(), [1, 2], tmp_path / "b" / "c")
    assert first == second
    assert len(first.data) > 10_000
    report = first.report
    assert report["timing_met"] and report["clocks"]["clk_i"]["mhz"] > 100
    netlist = json.loads(next((tmp_path / "a").glob("*/netlist-1.json")).read_text())["modules"]["echo"]
    kinds = Counter(cell["type"] for cell in netlist["cells"].values())
    assert report["used"]["flip_flops"] == kinds["TRELLIS_FF"] > 20 and report["used"]["block_rams"] == 0
    assert report["used"]["luts"] == kinds["LUT4"] + 2 * kinds["CCU2C"]
    assert report["seeds"][str(report["seed"])] == max(report["seeds"].values())
    said: list[str] = []
    assert build_bitstream(design(), [1, 2], tmp_path / "a", told(said)) == first
    assert said == []
    # A step that was interrupted is made again, those before it are not.
    stage = next((tmp_path / "a").iterdir())
    (stage / "routed-2").unlink()
    assert build_bitstream(design(), [1, 2], tmp_path / "a", told(said)) == first
    assert said[0] == "place and route: nextpnr, seed 2"


def as_large(patch: pytest.MonkeyPatch) -> None:
    """Have a small part placed, refined and routed in steps, as large ones are, which nextpnr reads for seconds."""
    patch.setattr(route, "_LARGE_LUTS", 20_000)


@dataclass(frozen=True)
class Large:
    """A build for a part that counts as large: its design, folder and result, and what was said of it."""

    design: Design
    folder: Path
    built: Bitstream
    said: list[str]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Large:
    """With two seeds; tests change copies of the folder."""
    folder, said = tmp_path_factory.mktemp("large"), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        as_large(patch)
        return Large(design(), folder, build_bitstream(design(), [1, 2], folder, told(said)), said)


@needs_tools
def test_on_a_large_part_the_seed_that_promises_most_is_routed(
    large: Large, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    as_large(monkeypatch)
    shutil.copytree(large.folder, tmp_path, dirs_exist_ok=True)
    asked, built, said = large.design, large.built, large.said
    promised = {int(seed): ns for seed, ns in built.report["promised_ns"].items()}
    best = min(promised, key=lambda seed: (promised[seed], seed))
    assert list(promised) == [1, 2] and all(0 < ns < 40 for ns in promised.values())
    assert built.report["seed"] == best and list(built.report["seeds"]) == [str(best)]
    assert [line for line in said if line.startswith("route: ")] == [f"route: nextpnr, seed {best}"]
    assert not any("more seeds" in line for line in said)
    # The router is asked for more than the design asks for, and the design is judged by what it asks for.
    stage = next(tmp_path.iterdir())
    report = json.loads((stage / f"report-{best}.json").read_text())["fmax"]
    assert all(25 < row["constraint"] < 30 for row in report.values())
    assert built.report["clocks"]["clk_i"]["asked_mhz"] == 25 and built.report["timing_met"]
    assert is_built(asked, [1, 2], tmp_path) and not is_built(asked, [1, 2, 3], tmp_path)
    # What failed to route makes room for what promises less.
    (stage / f"routed-{best}").unlink()
    seal(stage, f"unrouted-{best}", [f"netlist-{best}.json"])
    assert not is_built(asked, [1, 2], tmp_path)
    second = build_bitstream(asked, [1, 2], tmp_path).report
    assert second["seeds"][str(best)] is None and second["seed"] != best


@needs_tools
def test_nextpnr_reads_the_settings_of_its_netlist(large: Large, tmp_path: Path) -> None:
    netlist = next(large.folder.iterdir()) / "netlist-1.json"
    shutil.copyfile(netlist, tmp_path / netlist.name)
    given = json.loads(netlist.read_text())["modules"]["echo"]["settings"]
    arguments = ["--25k", "--json", "netlist-1.json", "--pack-only", "--write", "packed.json"]
    run_tool(tmp_path, "nextpnr-ecp5", [*arguments, "--lpf-allow-unconstrained"])
    (module,) = json.loads((tmp_path / "packed.json").read_text())["modules"].values()
    has = module["settings"]
    assert given and {key: has[key] for key in given} == given


@needs_tools
def test_a_clock_out_of_reach_is_missed_and_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    as_large(monkeypatch)
    fast = CONSTRAINTS.replace("25 MHZ", "2000 MHZ")
    asked = replace(design(), constraints=fast, mhz=2000)
    said: list[str] = []
    report = build_bitstream(asked, [1], tmp_path, told(said)).report
    tried = [line for line in said if "out of reach" in line or "once more" in line]
    assert tried == [
        "seed 1: 2060 MHz are out of reach",
        "seed 1: 1900 MHz are out of reach",
        "seed 1: once more, slow routes are left",
    ]
    (warning,) = [line for line in said if line.startswith("placement promises ")]
    assert re.fullmatch(r"placement promises [\d.]+ MHz of 2000: more seeds may promise more", warning)
    assert report["clocks"]["clk_i"]["asked_mhz"] == 2000
    assert not report["timing_met"] and 100 < report["clocks"]["clk_i"]["mhz"] < 2000


# A nextpnr whose router never comes to an end with seed 1.
STUCK = """#!/bin/sh
case "$*" in
  *"--version"*) echo stuck; exit ;;
  *"--seed 1 "*) ;;
  *) exec {real} "$@" ;;
esac
k=0
while k=$((k + 1)); do echo "Info:     iter=$k wires=9 overused=3 overuse=3 archfail=NA"; done
"""


@needs_tools
def test_a_seed_whose_wires_stay_shared_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stuck = tmp_path / "bin" / "nextpnr-ecp5"
    stuck.parent.mkdir()
    stuck.write_text(STUCK.format(real=find_tool("nextpnr-ecp5")))
    stuck.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stuck.parent}:{os.environ['PATH']}")
    tools.tool_version.cache_clear()
    match = "a wire must have one signal, not more after 400 iterations of the router [(]seed 1[)]: ask for more seeds"
    for _ in range(2):
        said: list[str] = []
        with pytest.raises(FlowError, match=match):
            build_bitstream(design(), [1], tmp_path, told(said))
    # What was given up is known the second time.
    assert said == [] and is_built(design(), [1], tmp_path)
    report = build_bitstream(design(), [1, 2], tmp_path).report
    tools.tool_version.cache_clear()
    assert report["seed"] == 2 and report["seeds"]["1"] is None and report["seeds"]["2"] > 1


# A nextpnr that never comes to an end, but with seed 2, with which it fails.
ENDLESS = """#!/bin/sh
case "$*" in *"--version"*) echo endless; exit ;; *"--seed 2 "*) exit 1 ;; esac
while true; do echo "Info: Running nothing"; done
"""


def endless(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    program = folder / "nextpnr-ecp5"
    program.write_text(ENDLESS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    tools.tool_version.cache_clear()


@needs_tools
def test_where_one_seed_fails_the_others_are_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    endless(monkeypatch, tmp_path)
    with pytest.raises(FlowError, match="nextpnr-ecp5 must end well, not with status 1"):
        build_bitstream(design(), [2, 1], tmp_path / "kept")
    tools.tool_version.cache_clear()


@needs_tools
def test_an_interrupt_ends_all_seeds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    endless(monkeypatch, tmp_path)
    main = threading.get_ident()
    # Whoever runs the tests in the background of a shell has told them to ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts = iter([signal.SIGINT])

    def interrupt(step: ProgressStep) -> None:
        if "Running nothing" in step.text and (number := next(interrupts, None)):
            signal.pthread_kill(main, number)

    try:
        with pytest.raises(KeyboardInterrupt):
            build_bitstream(design(), [1, 3], tmp_path / "kept", Steps(interrupt))
    finally:
        signal.signal(signal.SIGINT, before)
    tools.tool_version.cache_clear()


@needs_tools
def test_what_fails_without_regard_to_time_is_made_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stuck = tmp_path / "bin" / "nextpnr-ecp5"
    stuck.parent.mkdir()
    stuck.write_text(STUCK.format(real=find_tool("nextpnr-ecp5")).replace("--seed 1 ", "--no-tmdriv"))
    stuck.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stuck.parent}:{os.environ['PATH']}")
    tools.tool_version.cache_clear()
    said: list[str] = []
    report = build_bitstream(design(), [1], tmp_path, told(said)).report
    assert "seed 1: once more, with regard to time" in said and report["timing_met"]
    # A clock that is not easy is asked for once.
    fast = replace(design(), mhz=40, constraints=CONSTRAINTS.replace("25 MHZ", "40 MHZ"))
    assert build_bitstream(fast, [1], tmp_path, told(said)).report["timing_met"]
    tools.tool_version.cache_clear()
    assert said.count("seed 1: once more, with regard to time") == 1


@needs_tools
def test_what_a_tool_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=r"yosys must end well, not with status 1: .*syntax error"):
        build_bitstream(design("module echo (input wire clk_i) endmodule"), [1], tmp_path)


def test_at_least_one_seed(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="seeds must be at least 1, not 0"):
        build_bitstream(design(), [], tmp_path)


def test_a_missing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tools.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FlowError, match=r"yosys must be installed: pip install 'relay-hw\[fpga\]'"):
        run_tool(tmp_path, "yosys", [])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_tool_ends_with_what_started_it(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "yosys"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho $$\nexec sleep 600\n")
    tool.chmod(0o755)
    script = "from pathlib import Path; from relay_hw.accel.fpga.tools import run_tool\n"
    script += "run_tool(Path('.'), 'yosys', [], lambda line: print(line, flush=True))"
    environment = os.environ | {"PATH": f"{tool.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        running = Path(f"/proc/{int(started.stdout.readline())}")
        assert running.exists()
        started.terminate()
    deadline = time.monotonic() + 30
    while _runs(running) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(running)


def _runs(process: Path) -> bool:
    """Whether a process is there and not only waiting to be collected."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_native_tools_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    native = tmp_path / "ecppack"
    native.write_text("#!/bin/sh\necho 'native 1.0'\n")
    native.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert find_tool("ecppack") == str(native)
    tools.tool_version.cache_clear()
    assert tools.tool_version("ecppack") == "native 1.0"
    tools.tool_version.cache_clear()
    said: list[str] = []
    run_tool(tmp_path, "ecppack", [], said.append)
    assert said == ["native 1.0"] and (tmp_path / "ecppack.out").read_text() == "native 1.0\n"


def test_a_tool_finds_what_a_wheel_brought(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Behind all that is on PATH."""
    for folder, name, text in (("bin", "yosys-smtbmc", "solver; both"), ("wheels", "solver", "echo from a wheel"),
                               ("bin", "both", "echo native"), ("wheels", "both", "echo from a wheel")):  # fmt: skip
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / folder / name).chmod(0o755)
    monkeypatch.setattr(tools.sys, "executable", str(tmp_path / "wheels" / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    said: list[str] = []
    run_tool(tmp_path, "yosys-smtbmc", [], said.append)
    assert said == ["from a wheel", "native"]
