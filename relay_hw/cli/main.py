"""`relay-hw`: run one command, report what is wrong in one line, exit with a status.

In: the command line. Out: status 0 success, 1 a command found the problem that it was asked to look for, 2 bad input:
one line on standard error that starts with `relay-hw: error:`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from relay_hw.accel.isa.errors import AccelError
from relay_hw.cli.commands import parser
from relay_hw.cli.console import Console
from relay_hw.errors import RelayHwError

FOUND, BAD_INPUT, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status; never raises for what a user can do wrong."""
    given = list(sys.argv[1:] if argv is None else argv)
    console = Console(as_json="--json" in given, wide="--wide" in given)
    try:
        args = parser().parse_args(given)
        _check(args)
        with _termination_as_interrupt(), console.progress():
            return _command(args.run)(args, console)
    except (RelayHwError, AccelError) as error:
        return _fail(console, str(error))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return _broken_pipe()
        what = error.filename if error.filename is not None else "a file"
        return _fail(console, f"{what} must be accessible: {error.strerror or error}")
    except MemoryError:
        return _fail(console, "out of memory: use fewer samples or a smaller model")
    except KeyboardInterrupt:
        console.note("interrupted; no partly written files are left")
        return INTERRUPTED
    except Exception as error:
        trace = traceback.format_exc() if "--debug" in given else ""
        where = "" if trace else "; run again with --debug to see where"
        return _fail(console, f"internal error, please report it: {type(error).__name__}: {error}{where}", trace)


def _fail(console: Console, message: str, trace: str = "") -> int:
    console.failure(message, trace)
    return BAD_INPUT


def _broken_pipe() -> int:
    """The reader of our output has closed it; keep Python from complaining about that at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt, so that a terminated command cleans up like an interrupted one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _command(name: str) -> Callable[[Namespace, Console], int]:
    """Import `module:function` only when it runs, so that `--help` and small commands start at once."""
    module, function = name.split(":")
    return getattr(import_module(f"relay_hw.cli.{module}"), function)


def _check(args: Namespace) -> None:
    """Check options together, and input files, before anything is imported for the command. Raises RelayHwError."""
    if "check" in args:
        args.check(args)
    for name, check in args.files.items():
        path = getattr(args, name)
        if path is not None:
            check(path)


if __name__ == "__main__":
    sys.exit(main())
