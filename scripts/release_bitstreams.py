"""Bitstreams of all boards as release assets: a zip for each board and configuration, their hashes, how to start.

In: the boards' table, `relay-hw bitstream` (what it has made before is not made again), a folder. Out: zips of
bitstream, `soc.json` for the driver and `report.json`; SHA256SUMS; README.md. Equal bitstreams give equal zips.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw.accel.fpga.boards import BOARDS, Board, Fit, HostLink
from relay_hw.accel.fpga.report import slowest_clock
from relay_hw.cli.main import main as relay_hw
from relay_hw.support import durable

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "dist" / "bitstreams"
SUMS, README = "SHA256SUMS", "README.md"
# Random programs that run on the netlist of each accelerator before it is routed.
PROGRAMS = 20
# Zips have no time before this one, and any other would differ from day to day.
EPOCH = (1980, 1, 1, 0, 0, 0)


def stem(board: Board, fit: Fit) -> str:
    """What the files of a board and configuration are called."""
    return f"{board.name}-{fit.config}"


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip of these files, the same for the same bytes."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            member = zipfile.ZipInfo(name, EPOCH)
            member.external_attr = 0o644 << 16
            archive.writestr(member, data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def made(board: Board, fit: Fit, programs: int) -> dict[str, bytes] | None:
    """Files that `relay-hw bitstream` writes; None where it fails, of which it has said why."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["bitstream", "--board", board.name, "--config", fit.config, "--clock", f"{fit.mhz:g}", "-o", folder]
        if relay_hw([*words, "--programs", f"{programs}"]):
            return None
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def sums(assets: Mapping[str, bytes]) -> str:
    """Hashes as `sha256sum -c` reads them."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(assets.items()))


def readme(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """How to start a board with what lies here. `reports`: by stem."""
    rows = [_row(board, fit, reports[stem(board, fit)]) for board, fit in fits() if stem(board, fit) in reports]
    return _README.format(rows="\n".join(rows), sums=SUMS)


def fits() -> list[tuple[Board, Fit]]:
    """Every board with every configuration that has a clock on it."""
    return [(board, fit) for board in BOARDS for fit in board.fits]


def _row(board: Board, fit: Fit, report: Mapping[str, Any]) -> str:
    name = stem(board, fit)
    clock = slowest_clock(report["clocks"])
    reached = "" if clock is None else f"{clock['mhz']:.1f} MHz of {clock['asked_mhz']:g}"
    reached += "" if report["timing_met"] else ", MISSED"
    tools = ", ".join(f"{tool} {version}" for tool, version in sorted(report["tools"].items()))
    # soc.json knows the address of a board in the network.
    port = "--port /dev/ttyUSB0 " if board.link is HostLink.SERIAL else ""
    load = f"`openFPGALoader -b {board.loader} {name}.bit`, `relay-hw selftest --device fpga {port}--soc .`"
    return f"| {board.title} | {fit.config} | {report['macs_per_cycle']} | {reached} | {tools} | {load} |"


_README = """\
# Bitstreams of relay-hw

Not yet tested on hardware: these were routed, and their accelerators' netlists ran programs in simulation.

`sha256sum -c {sums}` checks the files. Unpack the zip of your board, and in its folder:

| Board | Configuration | Products a cycle | Slowest clock | Made by | Load, and try it out |
| --- | --- | --- | --- | --- | --- |
{rows}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: 1 where a bitstream could not be made, or misses a clock; the others are there all the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder to write (default dist/bitstreams)")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose name holds this text")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help=f"on each netlist (default {PROGRAMS})")
    args = parser.parse_args(arguments)
    assets: dict[str, bytes] = {}
    reports: dict[str, Mapping[str, Any]] = {}
    chosen = [(board, fit) for board, fit in fits() if args.only in stem(board, fit)]
    for board, fit in chosen:
        files = made(board, fit, args.programs)
        if files is not None:
            name = stem(board, fit)
            assets[f"{name}.zip"], reports[name] = zipped(files), json.loads(files["report.json"])
    texts = {SUMS: sums(assets).encode(), README: readme(reports).encode()}
    # Archives of anybody else may lie there.
    ours = {f"{stem(board, fit)}.zip" for board, fit in fits()} | texts.keys()
    with durable.new_folder(args.output, ours.__contains__) as work:
        for name, data in (assets | texts).items():
            (work / name).write_bytes(data)
    return int(len(reports) < len(chosen) or not all(report["timing_met"] for report in reports.values()))


if __name__ == "__main__":
    sys.exit(main())
