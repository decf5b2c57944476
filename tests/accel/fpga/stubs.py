"""Stubs of the open tools, for tests of what goes on around them: they write files of the right form, soon."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay_hw.accel.fpga.tools import tool_version

# Cells: none. A tool that is killed has written the first half.
_YOSYS = """
top=$(sed -n 's/.*-top \\([a-z_]*\\).*/\\1/p' run.ys)
sleep 0.03
printf '{"modules": {"%s": {"ports": {}, "cells": {}, ' "$top" >mapped.json
sleep 0.03
printf '"netnames": {}, "attributes": {}}}}' >>mapped.json
"""
_NEXTPNR = """
while [ "$#" -gt 0 ]; do
  case "$1" in --textcfg) config=$2 ;; --report) report=$2 ;; --seed) seed=$2 ;; esac
  shift
done
sleep 0.03
printf 'seed %s' "$seed" >"$config"
sleep 0.03
cat netlist-"$seed".json >>"$config"
printf '{"fmax": {"clk": {"achieved": 5%s, "constraint": 25}}, "utilization": {}, ' "$seed" >"$report"
sleep 0.03
printf '"critical_paths": []}' >>"$report"
"""
_ECPPACK = """
shift
printf 'bits of ' >"$2"
sleep 0.03
cat "$1" >>"$2"
"""


def stub_tools(folder: Path) -> Path:
    """A folder for PATH with stubs of yosys, nextpnr and ecppack."""
    folder.mkdir()
    for name, script in {"yosys": _YOSYS, "nextpnr-ecp5": _NEXTPNR, "ecppack": _ECPPACK}.items():
        tool = folder / name
        tool.write_text(f'#!/bin/sh\ncase "$1" in --version) echo "stub 1"; exit ;; esac\n{script}')
        tool.chmod(0o755)
    return folder


def stubbed_flow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For fixtures: stubs are found before any tool, and results are kept in `folder`, not by the user."""
    monkeypatch.setenv("PATH", f"{stub_tools(folder / 'tools')}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    tool_version.cache_clear()
    yield
    tool_version.cache_clear()
