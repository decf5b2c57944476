"""Argparse types: names, sizes and output paths, checked while the command line is parsed.

In: the text of one argument. Out: its value, or an error of one sentence; imports nothing heavy.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from relay_hw.errors import InputError
from relay_hw.support.names import one_of

if TYPE_CHECKING:
    from relay_hw.backend.tvm.target import HostTarget
    from relay_hw.explore.front import Objective
    from relay_hw.explore.search import Search
    from relay_hw.explore.space import Axis
    from relay_hw.runtime.artifact import Artifact

# More digits than any limit needs; parsing takes time quadratic in them.
_DIGITS: Final = 18


def config(text: str) -> str:
    """The name or file of an accelerator configuration. Raises ConfigError."""
    from relay_hw.accel.isa.config import load_config

    load_config(text)
    return text


def variant(text: str) -> str:
    """The name or file of a configuration of the target, which `check_variant` asks when the target is known."""
    return text


def check_variant(args: Namespace) -> None:
    """Whether the target has the configuration that is asked for: names of `accel`, or what another one knows.

    Raises ConfigError, InputError.
    """
    if args.config is None:
        return
    if args.target in (None, "accel"):
        config(args.config)
        return
    from relay_hw.target.registry import find_target

    find_target(args.target, args.config)


def target(text: str) -> str:
    """The name of a target to compile for. Raises InputError."""
    from relay_hw.target.registry import target_names

    if text not in target_names():
        raise InputError(one_of("target", target_names(), text))
    return text


def targets(text: str) -> list[str]:
    """Other targets than ours, each with a configuration behind a colon or none. Raises InputError."""
    from relay_hw.compare.targets import check_target

    names = text.split(",")
    for name in names:
        check_target(name)
    return names


def configs(text: str) -> list[str]:
    """Names or files of accelerator configurations, separated by commas. Raises ConfigError."""
    return [config(name) for name in text.split(",")]


def strategy(text: str) -> str:
    """The name or file of a quantization strategy, or `float`. Raises QuantizeError."""
    from relay_hw.quantize.recipes import FLOAT
    from relay_hw.quantize.strategy_file import find_strategy

    if text != FLOAT:
        find_strategy(text)
    return text


def strategies(text: str) -> list[str]:
    """Names or files of quantization strategies, separated by commas. Raises QuantizeError."""
    from relay_hw.quantize.strategy_file import find_strategy

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        find_strategy(name)
    return names


def memory(text: str) -> str:
    """The name of a memory model, with changed parameters. Raises ConfigError."""
    from relay_hw.accel.sim.dram_timing import memory_model

    memory_model(text)
    return text


def board(text: str) -> str:
    """The name of a board that `bitstream` supports. Raises FlowError."""
    from relay_hw.accel.fpga.boards import find_board

    find_board(text)
    return text


def part(text: str) -> str:
    """The name of an FPGA part. Raises FlowError."""
    from relay_hw.accel.fpga.parts import find_part

    find_part(text)
    return text


def new_build(text: str) -> Path:
    """A folder that a build can be written to. Raises InputError."""
    from relay_hw.runtime.folder import check_target

    check_target(Path(text))
    return Path(text)


def output_folder(text: str) -> Path:
    """A folder that can be written to. Raises InputError."""
    path = _writable(text)
    if path.exists() and not path.is_dir():
        raise InputError(f"output {path} must be a folder, not a file")
    return path


def output_file(text: str) -> Path:
    """A file that can be written. Raises InputError."""
    path = _writable(text)
    if path.is_dir():
        raise InputError(f"output {path} must be a file, not a folder")
    return path


def _writable(text: str) -> Path:
    from relay_hw.runtime.folder import why_not_writable

    reason = why_not_writable(Path(text))
    if reason is not None:
        raise InputError(f"output {text} must be writable: {reason}")
    return Path(text)


def seconds(text: str) -> float:
    """A duration. Raises InputError."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1e6:
        raise InputError(f"seconds must be a number from 0 to 1,000,000, not {text}")
    return found


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """The name of an input and its sizes, as in `images=1x3x320x320`. Raises InputError."""
    name, mark, sizes = text.rpartition("=")
    parts = sizes.split("x") if sizes else []
    if not name or not mark or not all(part.isdecimal() and int(part) for part in parts):
        raise InputError(f"a shape must be INPUT=SIZExSIZE..., such as images=1x3x320x320, not {text}")
    return name, tuple(int(part) for part in parts)


def value(text: str) -> tuple[str, float]:
    """The name of an input and its number, as in `sr=16000`. Raises InputError."""
    name, mark, number = text.rpartition("=")
    try:
        return name, float(number if name and mark else "")
    except ValueError:
        raise InputError(f"a value must be INPUT=NUMBER, such as sr=16000, not {text}") from None


def machine(text: str) -> tuple[str, HostTarget]:
    """A device that programs name, and the host that computes for it, as in `cuda=cuda:sm_90`. Raises InputError."""
    from relay_hw.backend.tvm.target import read_host

    device, _, host = text.partition("=")
    if not device or not host:
        raise InputError(f"a machine must be DEVICE=HOST, such as cuda=cuda:sm_90, not {text}")
    return device, read_host(host)


def limit(text: str) -> tuple[str, int]:
    """The name of a limit and its number, as in `nodes=200000`. Raises InputError."""
    from relay_hw.limits import changed

    name, mark, number = text.partition("=")
    if not mark or not number.isdecimal() or len(number) > _DIGITS:
        raise InputError(f"a limit must be NAME=NUMBER, such as nodes=200000, not {text}")
    changed({name: int(number)})
    return name, int(number)


def model_options(args: Namespace) -> dict[str, Any]:
    """The command line's options for reading an .onnx model, as arguments of `load_model`."""
    from relay_hw.limits import OnnxOptions, changed

    limits = changed(dict(args.limit))
    options = OnnxOptions(values=dict(args.value), limits=limits, external_data=args.external_data)
    return {"shapes": dict(args.shape), "untrusted": args.untrusted, "options": options}


def runnable_build(args: Namespace) -> Artifact:
    """Load the build that a command runs. Raises ArtifactError, also for host code from elsewhere without `--trust`."""
    from relay_hw.runtime.artifact import load_artifact

    artifact = load_artifact(args.build, args.trust)
    artifact.check_trust()
    return artifact


def feed(text: str) -> tuple[str, str]:
    """The name of an output and that of an input, as in `h_n=h`. Raises InputError."""
    output, _, name = text.partition("=")
    if not output or not name:
        raise InputError(f"a feed must be OUTPUT=INPUT, such as h_n=h, not {text}")
    return output, name


def axis(text: str) -> Axis:
    """An axis of a design space, as in `block_in=8,16`. Raises InputError."""
    from relay_hw.explore.space import read_axis

    return read_axis(text)


def objectives(text: str) -> tuple[Objective, ...]:
    """Names of objectives, separated by commas. Raises InputError."""
    from relay_hw.explore.front import read_objectives

    return read_objectives(text)


def search(text: str) -> Search:
    """How a design space is searched. Raises InputError."""
    from relay_hw.explore.search import read_search

    return read_search(text)


def natural(text: str) -> int:
    """An index, counted from 0. Raises InputError."""
    if not text.isdecimal() or len(text) > _DIGITS:
        raise InputError(f"a number must be an integer of at least 0, not {text}")
    return int(text)


def count(text: str) -> int:
    """A positive count. Raises InputError."""
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"a count must be an integer of at least 1, not {text}")
    return int(text)


def megahertz(text: str) -> float:
    """A clock frequency in MHz. Raises InputError."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"a clock must be a number of MHz, not {text}") from None
