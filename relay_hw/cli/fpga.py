"""FPGA commands: bitstream, selftest, export of vendor projects.

In: parsed arguments. Out: exit status; a bitstream, `report.json` and `soc.json` in a folder; test results of a device.
"""

from __future__ import annotations

import json
import platform
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relay_hw.cli.console import Console
from relay_hw.errors import InputError
from relay_hw.support import durable
from relay_hw.support.documents import parse_json
from relay_hw.support.quote import line

if TYPE_CHECKING:
    from relay_hw.accel.fpga.parts import Part
    from relay_hw.accel.fpga.socs import Soc
    from relay_hw.accel.isa.config import AccelConfig

REPORT = "report.json"
FINDINGS_VERSION = 1
# Fields of a bitstream's report that say how it was made.
_MADE = (
    "design",
    "part",
    "speed_grade",
    "macs_per_cycle",
    "netlist",
    "clocks",
    "timing_met",
    "seed",
    "tools",
    "key",
    "sha256",
)
# Groups of late signals that are printed; `report.json` has all of them.
_LATE_GROUPS = 5


def bitstream_command(args: Namespace, console: Console) -> int:
    """Synthesise, place, route and pack; the fastest seed is kept. Status 1: the netlist failed its self-test."""
    from relay_hw.accel.fpga.families import toolchain
    from relay_hw.accel.fpga.flow import build_bitstream
    from relay_hw.accel.fpga.soc_map import SOC_FILE
    from relay_hw.accel.fpga.synth import bitstreams_folder
    from relay_hw.accel.isa.config import load_config
    from relay_hw.runtime.folder import replace_files

    config = load_config(args.config)
    soc, output, kept = _soc(args, config), _writable(args.output), bitstreams_folder()
    # Before routing, which takes an hour: a wrong netlist need not be routed.
    netlist = _netlist(args.programs, config, soc.design.part, kept, console) if args.programs else None
    if netlist is not None and not netlist["ok"]:
        console.result({"netlist": netlist}, _netlist_text(netlist))
        return 1
    built = build_bitstream(soc.design, seeds_of(args), kept, console)
    bitstream = output / f"{soc.design.name}{toolchain(soc.design.part).suffix}"
    report = built.report | {"macs_per_cycle": config.macs_per_cycle, "netlist": netlist}
    text = json.dumps(report, indent=2, sort_keys=True) + "\n"
    texts = {SOC_FILE: soc.map.to_json().encode(), REPORT: text.encode()}
    replace_files(output, {bitstream.name: built.data, **texts})
    console.result(report | {"bitstream": str(bitstream)}, _text(report, bitstream))
    return 0


def _netlist(programs: int, config: AccelConfig, part: Part, kept: Path, console: Console) -> dict[str, Any]:
    """Run the self-test on the accelerator's netlist for a part; without times, so that reports are reproducible."""
    from relay_hw.accel.fpga.sim.netlist import netlist_findings
    from relay_hw.accel.sim.selftest import passed

    findings = netlist_findings(config, part, programs, kept, console)
    tests = [{"name": found.name, "ok": found.ok, "detail": found.detail} for found in findings]
    what = {"of": "the accelerator alone", "part": part.name, "programs": programs}
    return what | {"ok": passed(findings), "tests": tests}


def selftest_command(args: Namespace, console: Console) -> int:
    """Run every test on a device; status 1 if one of them failed."""
    from relay_hw.accel.isa.config import load_config
    from relay_hw.accel.sim.selftest import passed, self_test
    from relay_hw.cli.data import save_text
    from relay_hw.report import table
    from relay_hw.target.accel.clock import STANDARD
    from relay_hw.target.accel.devices import DeviceOptions, close_device, open_device

    config = load_config(args.config or _config_of(args))
    options = DeviceOptions(memory=args.memory or STANDARD, progress=console, port=args.port, soc=args.soc)
    row = _circumstances(args, config)
    device = open_device(args.device, config, options)
    try:
        findings = self_test(device, args.programs, args.seed, console)
    finally:
        close_device(device)
    row |= {
        "ok": passed(findings),
        "tests": [asdict(finding) for finding in findings],
    }
    if args.output is not None:
        save_text(args.output, json.dumps(row, indent=2) + "\n")
    marks = {True: "ok", False: "FAILED", None: "not run"}
    rows = [(finding.name, marks[finding.ok], f"{finding.seconds:.1f} s", finding.detail) for finding in findings]
    header = ("test", "result", "time", "what")
    lines = [f"{line(config.name)} on {line(row['board'] or args.device)}", table(header, rows, width=console.width)]
    if args.output is not None:
        lines.append(f"written to {line(args.output)}")
    console.result(row, "\n".join(lines))
    return 0 if row["ok"] else 1


def export_project(args: Namespace, console: Console) -> int:
    """Write a project for Vivado or Quartus."""
    from relay_hw.accel.fpga.synth import cache_folder
    from relay_hw.accel.fpga.vendor.estimate import estimate
    from relay_hw.accel.fpga.vendor.project import MARK, project_files
    from relay_hw.accel.fpga.vendor.targets import Form, find_target
    from relay_hw.accel.isa.config import load_config
    from relay_hw.runtime.artifact import load_artifact

    form = Form(args.form)
    if args.board is None:
        raise InputError(f"a project for {form.value} must have a board: --board NAME")
    target = find_target(args.board, form)
    if args.build is not None and args.config is not None:
        raise InputError("the accelerator must come from BUILD or --config, not both")
    config = load_artifact(args.build).config if args.build is not None else load_config(args.config or target.config)
    files = project_files(target, config, target.mhz if args.clock is None else args.clock)
    folder = args.output
    durable.recover(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError(f"{folder} must be a new folder or an older export, not something else")
    estimated: dict[str, Any] | None = None
    if args.estimate:
        console.started("synthesis: yosys")
        estimated = estimate(target, config, cache_folder(), console)
        files["estimate.json"] = (json.dumps(estimated, indent=2, sort_keys=True) + "\n").encode()
    ours = {Path(name).parts[0] for name in files} | {"estimate.json"}
    with durable.new_folder(folder, ours.__contains__) as work:
        for name, data in files.items():
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_bytes(data)
    row = {"output": str(folder), "form": form.value, "board": target.name, "config": config.name}
    lines = [f"{line(folder)}: {line(config.name)} for {line(target.title)}; see its README.md for the next steps"]
    lines += _shares(estimated) if estimated is not None else []
    console.result(row | {"files": sorted(files), "estimate": estimated}, "\n".join(lines))
    return 0


def _shares(estimated: dict[str, Any]) -> list[str]:
    used, has = estimated["used"], estimated["available"]
    rows = [f"  {name:12} {used[name]:7,} of {has[name]:7,}  {100 * used[name] / has[name]:5.1f} %" for name in has]
    return [f"{line(estimated['part'])}, estimated by yosys:", *rows]


def _config_of(args: Namespace) -> str:
    """The bitstream's configuration, or this command's default one."""
    from relay_hw.accel.fpga.soc_map import load_map
    from relay_hw.target.accel.devices import FPGA

    return load_map(args.soc).config if args.device == FPGA and args.soc is not None else "tiny"


def _circumstances(args: Namespace, config: AccelConfig) -> dict[str, Any]:
    """What was tested and with what versions: everything needed to reproduce it elsewhere."""
    from relay_hw import __version__
    from relay_hw.accel.fpga.soc_map import load_map
    from relay_hw.target.accel.devices import FPGA

    soc = load_map(args.soc) if args.device == FPGA and args.soc is not None else None
    row: dict[str, Any] = {
        "selftest": FINDINGS_VERSION,
        "version": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": args.device,
        "board": soc.board if soc else None,
        "config": asdict(config),
        "config_hash": config.hash32,
        "programs": args.programs,
        "seed": args.seed,
        "soc": asdict(soc) if soc else None,
        "bitstream": None,
    }
    if soc is not None and args.soc is not None:
        row["bitstream"] = _made(args.soc / REPORT)
    return row


def _made(report: Path) -> dict[str, Any] | None:
    """How a bitstream was made; None if it has no report."""
    if not report.is_file():
        return None
    try:
        made: dict[str, Any] = parse_json(durable.read_given(report))
        return {key: made.get(key) for key in _MADE}
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{report} must be the report of `relay-hw bitstream`: {error}") from None


def _soc(args: Namespace, config: AccelConfig) -> Soc:
    from relay_hw.accel.fpga.boards import find_board
    from relay_hw.accel.fpga.parts import find_part
    from relay_hw.accel.fpga.socs import PART_BAUD, PART_MEMORY_BYTES, PART_MHZ, board_soc, part_soc

    if args.board is None:
        memory_bytes = args.memory_kib * 1024 if args.memory_kib else PART_MEMORY_BYTES
        return part_soc(config, find_part(args.part), args.clock or PART_MHZ, memory_bytes, args.baud or PART_BAUD)
    if args.memory_kib is not None:
        raise InputError("--memory-kib must be used with --part, not --board: a board's memory is fixed")
    return board_soc(config, find_board(args.board), args.clock, args.baud)


def _writable(folder: Path) -> Path:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} must be a folder, not a file")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def seeds_of(args: Namespace) -> range:
    """The seeds that `bitstream` tries."""
    return range(args.seed, args.seed + args.seeds)


def _netlist_text(netlist: dict[str, Any] | None) -> str:
    """The netlist's test result in one line."""
    if netlist is None:
        return "  netlist: not simulated (--programs N simulates it)"
    if netlist["ok"]:
        return f"  netlist: self-test passed, {netlist['programs']:,} random programs ran on it"
    failed = next(test for test in netlist["tests"] if test["ok"] is False)
    return f"  netlist: self-test FAILED: {line(failed['name'])}: {line(failed['detail'])}"


def _text(report: dict[str, Any], bitstream: Path) -> str:
    used, has = report["used"], report["available"]
    lines = [f"{line(report['design'])} on {line(report['part'])}, seed {report['seed']:d}"]
    lines.append(f"  {'MACs':12} {report['macs_per_cycle']:7,} per cycle")
    for key, label in (("luts", "LUT4"), ("multipliers", "MULT18X18D"), ("block_rams", "DP16KD")):
        lines.append(f"  {label:12} {used[key]:7,} of {has[key]:7,}  {100 * used[key] / has[key]:5.1f} %")
    lines.append(f"  {'flip-flops':12} {used['flip_flops']:7,}")
    for name, clock in report["clocks"].items():
        met = "met" if clock["mhz"] >= clock["asked_mhz"] else "missed"
        lines.append(f"  clock {line(name)}: {clock['mhz']:.1f} MHz, target {clock['asked_mhz']:g} MHz: {met}")
    slowest = ", ".join(f"{line(name)} {ns:.1f} ns" for name, ns in report["critical_modules"].items())
    lines.append(f"  slowest path: {slowest}")
    for group, row in list(report["late"].items())[:_LATE_GROUPS]:
        lines.append(f"  late, {row['ns']:.1f} ns: {row['signals']:d} signals to {line(group)}")
    lines.append(_netlist_text(report["netlist"]))
    lines.append(f"bitstream: {line(bitstream)}")
    return "\n".join(lines)
