"""`relay-hw debug`: step through the evaluation of a function, forwards and backwards.

In: parsed arguments, commands from a terminal or from a file on standard input. Out: exit status; the dialogue.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Final

from relay_hw.cli.console import Console
from relay_hw.cli.debugger.history import Recorder
from relay_hw.cli.debugger.session import Session, converse
from relay_hw.cli.language import prepared
from relay_hw.support.quote import line

_PROMPT: Final = "(relay) "


def debug_command(args: Namespace, console: Console) -> int:
    """Evaluate a function value by value, as the commands on standard input say."""
    interpreter, given = prepared(args)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if not console.as_json:
            console.result({}, text)

    converse(Session(Recorder(interpreter.mod), args.entry, given, say), _commands(say))
    if console.as_json:
        console.result({"transcript": said}, "")
    return 0


def _commands(say: Callable[[str], None]) -> Iterator[str]:
    """Lines of standard input: typed at a prompt, or read from a file and shown behind one."""
    if sys.stdin.isatty():
        while True:
            try:
                yield input(_PROMPT)
            except EOFError:
                return
    for text in sys.stdin:
        say(f"{_PROMPT}{line(text.strip())}")
        yield text
