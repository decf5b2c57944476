"""Runs an action with a fault at its n-th step of the file system, in a process of its own, for every n.

A step is a call by which `relay_hw.support.durable` changes anything: names, bytes, or what is on the disk for sure.
The fault is an error (EIO), or the end of the process; a write that faults has written half of its bytes.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from relay_hw.support import durable, temporary

STEPS = ("open", "write", "fsync", "rename", "replace", "mkdir", "link", "unlink")
DONE, FAILED, KILLED = 0, 3, 9
# More steps than any action here has.
MANY = 1_000


class Fault(Enum):
    """What happens at the step."""

    ERROR = "error"
    EXIT = "exit"


class _Faulty:
    """`os` and more for `relay_hw.support.durable` and its neighbour, with a fault at one step."""

    def __init__(self, number: int, fault: Fault) -> None:
        self.left = number
        self.fault = fault

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        return self.step(found) if name in STEPS else found

    def step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, or the fault."""

        def call(*args: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left:
                return function(*args, **options)
            if function is os.write:
                os.write(args[0], args[1][: len(args[1]) // 2])
            if self.fault is Fault.EXIT:
                os._exit(KILLED)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        return call


class _FaultyShutil:
    """`shutil` for `relay_hw.support.durable`: removing a tree is a step that may end half-way."""

    def __init__(self, faulty: _Faulty) -> None:
        self._faulty = faulty

    def __getattr__(self, name: str) -> Any:
        return getattr(shutil, name)

    def rmtree(self, path: Path, ignore_errors: bool = False) -> None:
        def half(path: Path) -> None:
            for item in sorted(path.iterdir())[: len(list(path.iterdir())) // 2]:
                item.unlink() if item.is_file() else shutil.rmtree(item)

        def whole(path: Path) -> None:
            half(path)
            shutil.rmtree(path, ignore_errors=True)

        try:
            self._faulty.step(whole)(path)
        except OSError:
            assert ignore_errors


def with_fault(action: Callable[[], object], number: int, fault: Fault, can_exchange: bool = True) -> int:
    """Status of a process that does `action` with a fault at step `number`: DONE where there is no such step."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        faulty = _Faulty(number, fault)
        exchange = durable._exchange if can_exchange else lambda _one, _other: False
        vars(temporary).update(os=faulty)
        vars(durable).update(os=faulty, shutil=_FaultyShutil(faulty), _exchange=faulty.step(exchange))
        action()
        status = DONE if faulty.left > 0 else FAILED
    except Exception:
        status = FAILED if faulty.left <= 0 else 1
    finally:
        os._exit(status)


def every_fault(
    prepare: Callable[[], object], action: Callable[[], object], fault: Fault, can_exchange: bool = True
) -> Iterator[int]:
    """Do `prepare`, then `action` with a fault, for each of its steps; yields the step's number after each."""
    for number in range(1, MANY):
        prepare()
        status = with_fault(action, number, fault, can_exchange)
        if status == DONE:
            assert number > 1, "an action must have steps"
            return
        assert status == (KILLED if fault is Fault.EXIT else FAILED), status
        yield number
    raise AssertionError(f"an action must have fewer than {MANY} steps")
