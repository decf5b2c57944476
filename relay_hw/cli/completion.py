"""`relay-hw completion`: a script for bash or zsh, made from the parser by shtab.

In: parsed arguments. Out: exit status; the script on standard output.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from relay_hw.cli import arguments as arg
from relay_hw.cli.catalogue import names
from relay_hw.cli.console import Console

# Arguments that take the names of a kind, by the function that reads them.
_NAMES: Final[dict[Callable[[str], object], str]] = {
    arg.config: "configs",
    arg.configs: "configs",
    arg.variant: "configs",
    arg.strategy: "strategies",
    arg.strategies: "strategies",
    arg.board: "boards",
    arg.memory: "memories",
    arg.target: "targets",
}
_FILES: Final = (Path, arg.output_file)
_FOLDERS: Final = (arg.new_build, arg.output_folder)


def completion_command(args: Namespace, console: Console) -> int:
    """Print the script."""
    script = completion(args.shell)
    console.result({"shell": args.shell, "script": script}, script)
    return 0


def completion(shell: str) -> str:
    """The script by which `shell`, bash or zsh, completes a command line."""
    import shtab

    from relay_hw.cli.commands import parser

    found = parser()
    for action in _actions(found):
        if action.type in _NAMES:
            action.complete = {shell: _function(_NAMES[cast(Any, action.type)])}  # type: ignore[attr-defined]
        elif action.type in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.type in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    functions = "".join(map(_BODIES[shell], dict.fromkeys(_NAMES.values())))
    return shtab.complete(found, shell, preamble=functions)


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    """Arguments of a parser and of its commands."""
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action


def _function(kind: str) -> str:
    return f"_relay_hw_{kind}"


def _bash(kind: str) -> str:
    words = " ".join(names(kind))
    return f'{_function(kind)}() {{\n  compgen -W \'{words}\' -- "$1"\n  compgen -f -- "$1"\n}}\n'


def _zsh(kind: str) -> str:
    return f"{_function(kind)}() {{\n  compadd -- {' '.join(names(kind))}\n  _files\n}}\n"


_BODIES: Final[dict[str, Callable[[str], str]]] = {"bash": _bash, "zsh": _zsh}
