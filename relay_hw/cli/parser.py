"""The parser of command lines: errors of one sentence with a hint, and arguments that several commands share.

In: argparse's parsers. Out: the same with more arguments; wrong command lines raise `UsageError`.
"""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from relay_hw.cli import arguments as arg
from relay_hw.cli.colours import has_colours, help_styled
from relay_hw.cli.examples import examples
from relay_hw.errors import RelayHwError
from relay_hw.support.names import did_you_mean, one_of
from relay_hw.target.accel.devices import DEVICES, DeviceKind

MEMORY: Final = "NAME[,KEY=VALUE]"
# The dashes of two options are alike already.
_ALIKE: Final = 0.7


class UsageError(RelayHwError):
    """A command line that cannot be understood."""


class Parser(ArgumentParser):
    """Reports a wrong command line as one sentence; accepts positional `arguments` after options too."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        stream = file or sys.stdout
        super()._print_message(help_styled(message) if has_colours(stream) else message, stream)

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            what = "/".join(action.option_strings) or action.metavar or action.dest
            self.error(one_of(str(what), action.choices, value))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        self._check_options(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(args, namespace)
        mark = rest.index("--") if "--" in rest else len(rest)
        late = [text for text in rest[:mark] if not text.startswith("-") or _is_number(text)]
        if not hasattr(found, "arguments") or len(late) < mark:
            return found, rest
        found.arguments = [*found.arguments, *late, *rest[mark + 1 :]]
        return found, []

    def _check_options(self, given: Sequence[str]) -> None:
        """Refuse an unknown option before argparse asks for what is missing."""
        for text in given:
            if text == "--" or (self._subparsers is not None and not text.startswith("-")):
                return
            option = text.partition("=")[0]
            known = list(self._option_string_actions)
            if option.startswith("--") and not any(one.startswith(option) for one in known):
                where = "" if self._subparsers is None else " before COMMAND"
                self.error(f"there is no option {option}{where}{did_you_mean(option, known, least=_ALIKE)}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def add(commands: Any, name: str, run: str, text: str) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=examples(name),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--wide", action="store_true", help="show all columns of tables, however wide")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an internal error")
    parser.set_defaults(run=run, files={})
    return parser


def add_target_device(parser: ArgumentParser) -> None:
    """Add `--device` for any device of the build's target."""
    names = ", ".join(kind.name for kind in DEVICES)
    text = (
        f"where to run; for target accel: {names} (default: the target's default device, for accel {DEVICES[0].name})"
    )
    parser.add_argument("--device", metavar="NAME", help=text)
    add_device_options(parser)


def add_device(parser: ArgumentParser, kinds: Sequence[DeviceKind], default: str) -> None:
    names = [kind.name for kind in kinds]
    parser.add_argument("--device", choices=names, default=default, help=f"where to run (default {default})")
    add_device_options(parser)


def add_device_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--memory",
        type=arg.memory,
        metavar=MEMORY,
        help="memory model of the cycle and rtl devices (default: the build's)",
    )
    parser.add_argument("--port", metavar="PORT", help="serial port of the board, or socket://host:port (fpga)")
    parser.add_argument("--soc", type=Path, metavar="FOLDER", help="folder of the board's bitstream (fpga)")


def add_board(parser: ArgumentParser, default: str = "none", *, is_timed: bool = True) -> None:
    """`is_timed`: the command says how fast the board is; others simulate its memory only."""
    timed = "use this board's accelerator, clock, memory and link, and report ms and samples per second there"
    text = f"{timed if is_timed else 'simulate the memory of this board'} (default: {default})"
    parser.add_argument("--board", type=arg.board, metavar="NAME", help=text)


def add_runnable_build(parser: ArgumentParser) -> None:
    parser.add_argument("build", type=Path, metavar="BUILD")
    text = "run the host code of a build that was made elsewhere: do so only if you trust its author"
    parser.add_argument("--trust", action="store_true", help=text)
