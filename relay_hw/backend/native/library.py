"""Compiles programs by the system's C compiler and runs them in this process.

In: flat functions. Out: `NativeModule`, whose functions take and give values as the interpreter does.
"""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.native.c_code import c_text
from relay_hw.backend.native.calls import settle_calls
from relay_hw.backend.native.lower import Program, lower
from relay_hw.backend.native.ownership import count_holders
from relay_hw.backend.native.stream import Codec
from relay_hw.backend.nodes import FlatCall, FlatFunction, FlatInvoke, Value
from relay_hw.backend.reference import Invoke
from relay_hw.errors import EvalError, InputError, UnsupportedError
from relay_hw.interp.evaluate import operate
from relay_hw.ir.module import TypeData
from relay_hw.support.child import run_child

INCLUDES = '#include "native.h"\n#include "numbers.h"\n#include "stream.h"\n#include "ask.h"'
# The same bits on every machine: nothing is contracted or reordered, integers wrap.
FLAGS = ("-std=gnu99", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing")
FAST = ("-O3", "-march=native")
_ANSWER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int32)


def find_compiler() -> str | None:
    """The C compiler on PATH."""
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def c_source(program: Program, includes: str = INCLUDES) -> str:
    """The C text of a program; `includes`: lines that bring in the runtime, and `rhw_ask`."""
    functions, calls = settle_calls(program.functions)
    counted = [count_holders(function) for function in functions]
    return c_text(counted, calls, program.constructors, includes)


def compile_native(
    functions: Mapping[str, FlatFunction],
    types: Mapping[str, TypeData],
    speed: tuple[str, ...] = FAST,
    labels: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> NativeModule:
    """Flat functions as machine code. Calls of other names are answered by the `invoke` of a call. `types`: the data
    types of the module; `speed`: flags of the compiler; `labels`: as `lower` takes them. Raises UnsupportedError
    without a compiler, or where it refuses.
    """
    program = lower(functions, types, labels)
    return NativeModule(program, _library(c_source(program), speed))


@lru_cache(maxsize=32)
def _library(source: str, speed: tuple[str, ...]) -> ctypes.CDLL:
    compiler = find_compiler()
    if compiler is None:
        raise UnsupportedError("native code needs a C compiler: cc, gcc or clang must be on PATH")
    # The library stays loaded; its files are not needed any more.
    with tempfile.TemporaryDirectory() as name, as_file(files("relay_hw.backend.native") / "c") as headers:
        folder = Path(name)
        (folder / "program.c").write_text(source)
        words = [compiler, *speed, "-shared", "-fPIC", *FLAGS, f"-I{headers}"]
        done = run_child([*words, folder / "program.c", "-o", folder / "program.so", "-lm", "-lpthread"])
        if done.returncode:
            raise UnsupportedError(f"the C compiler must take the program, not say {done.stderr.strip()[:500]}")
        return _declared(ctypes.CDLL(str(folder / "program.so")))


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions."""
    run = ctypes.c_void_p
    for name, result, args in (
        ("open", run, (_ANSWER, run)),
        ("stream", run, (run, ctypes.c_size_t)),
        ("keep_constants", ctypes.c_int, (run,)),
        ("call", ctypes.c_int, (run, ctypes.c_uint32)),
        ("result", run, (run, ctypes.POINTER(ctypes.c_uint64))),
        ("error", ctypes.c_char_p, (run,)),
        ("is_input", ctypes.c_int, (run,)),
        ("refuse", None, (run, ctypes.c_char_p)),
        ("most_bytes", ctypes.c_uint64, (run,)),
        ("close", None, (run,)),
    ):
        function = getattr(library, f"rhw_native_{name}")
        function.restype, function.argtypes = result, args
    return library


class NativeModule:
    """Compiled functions by name, with the memory that their runs share."""

    def __init__(self, program: Program, library: ctypes.CDLL) -> None:
        self._program = program
        self._library = library
        self._codec = Codec(program.constructors)
        self._lock = Lock()
        self._raised: BaseException | None = None
        self._invoke: Invoke | None = None
        self._answer = _ANSWER(self._answered)
        self._run = library.rhw_native_open(self._answer, None)
        if not self._run:
            raise MemoryError
        self._give(self._codec.encode(program.constants))
        if library.rhw_native_keep_constants(self._run):
            raise MemoryError(self._error())

    def __del__(self) -> None:
        if getattr(self, "_run", None):
            self._library.rhw_native_close(self._run)

    def call(self, name: str, args: Sequence[Value], invoke: Invoke | None = None) -> Value:
        """The value of a function; `invoke` answers calls of functions that the module lacks. Raises EvalError."""
        with self._lock:
            self._raised, self._invoke = None, invoke
            self._give(self._codec.encode(args))
            status = self._library.rhw_native_call(self._run, self._program.entries[name])
            if self._raised is not None:
                raise self._raised
            if status:
                kind = InputError if self._library.rhw_native_is_input(self._run) else EvalError
                raise kind(self._error())
            return self._codec.decode(self._taken())[0]

    @property
    def most_bytes(self) -> int:
        """The most memory that the last call held at once."""
        return self._library.rhw_native_most_bytes(self._run)

    @property
    def left_to_numpy(self) -> tuple[str, ...]:
        """Names of operators that numpy computes, because native code has no form of them."""
        names = (call.op.name for call in self._program.callbacks if isinstance(call, FlatCall))
        return tuple(dict.fromkeys(names))

    def _error(self) -> str:
        return self._library.rhw_native_error(self._run).decode()

    def _give(self, raw: bytes) -> None:
        room = self._library.rhw_native_stream(self._run, len(raw) // 8)
        if not room and raw:
            raise MemoryError(self._error())
        ctypes.memmove(room, raw, len(raw))

    def _taken(self) -> bytes:
        words = ctypes.c_uint64()
        at = self._library.rhw_native_result(self._run, ctypes.byref(words))
        return ctypes.string_at(at, 8 * words.value)

    def _answered(self, _self: Any, number: int) -> int:
        """Answer a call of native code; what is raised is raised again when it has ended."""
        try:
            self._give(self._codec.encode([self._value(self._program.callbacks[number])]))
        except BaseException as error:
            self._raised = error
            self._library.rhw_native_refuse(self._run, str(error).encode()[:200])
            return -1
        return 0

    def _value(self, call: FlatCall | FlatInvoke) -> Value:
        args = self._codec.decode(self._taken())
        if isinstance(call, FlatCall):
            return operate(call.op, call.attrs, [_scalar(arg) for arg in args], call.type)
        if self._invoke is None:
            raise EvalError(f"@{call.function} must be a function of the module")
        return self._invoke(call.function, args)


def _scalar(value: Value) -> Value:
    return np.asarray(value) if isinstance(value, np.generic) else value
