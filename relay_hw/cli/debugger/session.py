"""The dialogue of the debugger: commands under gdb's names, one sentence for what cannot be done.

In: lines of text. Out: lines of text. An empty line repeats the last command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from relay_hw.analysis.infer import infer_expr
from relay_hw.cli.debugger.history import Event, History, Recorder
from relay_hw.cli.debugger.places import Breakpoint, breakpoint_at
from relay_hw.cli.values import value_text
from relay_hw.errors import InputError, RelayHwError
from relay_hw.interp.evaluate import Interpreter
from relay_hw.interp.values import Value, type_of
from relay_hw.ir.expr import Call, Constructor, Function, GlobalVar, Op, RefWrite, Var
from relay_hw.support.quote import line, sentence

_AROUND: Final = 4  # source lines on each side of the current one
_WORD: Final = re.compile(r"%[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class Command:
    """`name` and its short form, what it takes, what it does."""

    name: str
    short: str
    takes: str
    does: str
    run: Callable[[Session, str], None]


class Session:
    """One evaluation that is debugged. `say` gets each line of output."""

    def __init__(self, recorder: Recorder, entry: str, args: Mapping[str, Any], say: Callable[[str], None]) -> None:
        self._mod = recorder.mod
        self._say = say
        self._history = History(recorder, recorder.events(entry, args))
        self._breakpoints: list[Breakpoint] = []
        self._made = 0
        self._last = ""
        self.is_over = False

    def begin(self) -> None:
        """Stop at the first value."""
        self._step("")

    def obey(self, text: str) -> None:
        """Carry out one line; what is wrong with it is said in a sentence."""
        given = text.strip() or self._last
        self._last = given
        word, _, rest = given.partition(" ")
        if not word:
            return
        found = [one for one in COMMANDS if word in (one.name, one.short)]
        try:
            if not found:
                raise InputError(f"command must be one that help lists, not {sentence(word)}")
            found[0].run(self, rest.strip())
        except RelayHwError as error:
            self._say(f"error: {line(' '.join(str(error).split()))}")

    # Moving

    def _move(self, move: Callable[[], bool], is_end: Callable[[Event], bool]) -> None:
        while move():
            here = self._history.here
            assert here is not None
            stops = [one for one in self._breakpoints if one.holds(here)]
            if stops or is_end(here):
                self._say("\n".join([*(f"breakpoint {one}" for one in stops), self._shown(here)]))
                return
        self._ended(move == self._history.backward)

    def _ended(self, is_start: bool) -> None:
        if is_start:
            self._say("this is the first value")
        elif self._history.failure is not None:
            self._say(f"the program failed: {line(' '.join(str(self._history.failure).split()))}")
        else:
            self._say(f"the program ended: {value_text(self._history.recorder.result)}")

    def _step(self, rest: str) -> None:
        self._times(rest, self._history.forward, lambda here: True)

    def _next(self, rest: str) -> None:
        self._times(rest, self._history.forward, self._not_deeper())

    def _reverse_step(self, rest: str) -> None:
        self._times(rest, self._history.backward, lambda here: True)

    def _reverse_next(self, rest: str) -> None:
        self._times(rest, self._history.backward, self._not_deeper())

    def _times(self, rest: str, move: Callable[[], bool], is_end: Callable[[Event], bool]) -> None:
        left = _count(rest)

        def is_last(here: Event) -> bool:
            nonlocal left
            left -= is_end(here)
            return left == 0

        self._move(move, is_last)

    def _not_deeper(self) -> Callable[[Event], bool]:
        depth = self._depth()
        return lambda here: here.place.depth <= depth

    def _depth(self) -> int:
        return 0 if self._history.here is None else self._history.here.place.depth

    def _finish(self, rest: str) -> None:
        depth = self._depth()
        self._move(self._history.forward, lambda here: here.place.depth < depth)

    def _continue(self, rest: str) -> None:
        self._move(self._history.forward, lambda here: False)

    def _reverse_continue(self, rest: str) -> None:
        self._move(self._history.backward, lambda here: False)

    # Breakpoints

    def _break(self, rest: str) -> None:
        found = breakpoint_at(rest, self._made + 1, self._mod)
        self._made += 1
        self._breakpoints.append(found)
        self._say(f"breakpoint {line(found)}")

    def _delete(self, rest: str) -> None:
        left = [one for one in self._breakpoints if str(one.number) != rest]
        if len(left) == len(self._breakpoints):
            numbers = ", ".join(str(one.number) for one in left)
            there = f"must be one of {numbers}" if numbers else "must be set before"
            raise InputError(f"breakpoint to delete {there}, not {sentence(rest) or 'nothing'}")
        self._breakpoints = left

    def _info(self, rest: str) -> None:
        self._say("\n".join(f"breakpoint {line(one)}" for one in self._breakpoints) or "no breakpoints")

    # Looking

    def _print(self, rest: str) -> None:
        value, ty = self._value(rest)
        self._say(f"{ty} = {value_text(value)}")

    def _whatis(self, rest: str) -> None:
        self._say(self._value(rest)[1])

    def _value(self, text: str) -> tuple[Value, str]:
        """The value at the cursor, of a variable, or of an expression over variables; and its type."""
        here = self._history.here
        if not text:
            if here is None:
                raise InputError("an expression must be given here: the program has ended")
            return self._of(here)
        known = self._history.variables()
        if text[1:] in known and text[0] == "%":
            return self._of(known[text[1:]])
        names = list(dict.fromkeys(_WORD.findall(text)))
        missing = [name for name in names if name[1:] not in known]
        if missing:
            raise InputError(f"{missing[0]} must have a value here: there are {_listed(known)}")
        return self._evaluated(text, {name: self._of(known[name[1:]]) for name in names})

    def _of(self, event: Event) -> tuple[Value, str]:
        """The value of an event as it was at the cursor, and its type: of tensors with the sizes of this run."""
        value = self._history.then(event.value)
        if isinstance(event.node, RefWrite):
            return value, "ref"
        return value, line(type_of(value) if _is_tensor(value) else event.node.type)

    def _evaluated(self, text: str, values: Mapping[str, tuple[Value, str]]) -> tuple[Value, str]:
        from relay_hw.text import parse_expr

        params = ", ".join(f"{name}: {ty}" for name, (_, ty) in values.items())
        function = infer_expr(parse_expr(f"fn ({params}) {{ {text} }}", "expression", init_module=self._mod), self._mod)
        interpreter = Interpreter(self._mod)
        value = interpreter.apply(interpreter.evaluate(function), [value for value, _ in values.values()])
        assert isinstance(function, Function)
        return value, line(type_of(value) if _is_tensor(value) else function.func_type.ret_type)

    def _backtrace(self, rest: str) -> None:
        here = self._history.here
        place, number = None if here is None else here.place, 0
        while place is not None and place.function:
            called = "" if place.span is None else f", called at {line(place.span)}"
            self._say(f"#{number} {line(place.function)}{called}")
            place, number = place.caller, number + 1

    def _list(self, rest: str) -> None:
        here = self._history.here
        span = None if here is None else here.node.span
        if span is None or not span.line or not Path(span.source).is_file():
            raise InputError("source must be a text file to be listed: this value has none")
        lines = Path(span.source).read_text(encoding="utf-8", errors="replace").splitlines()
        first = max(span.line - _AROUND, 1)
        for number, text in enumerate(lines[first - 1 : span.line + _AROUND], first):
            self._say(f"{'->' if number == span.line else '  '} {number:4} {line(text)}")

    def _shown(self, here: Event) -> str:
        """The event in one line: where, what, its type, its value."""
        where = "" if here.node.span is None else f"{line(here.node.span)}: "
        value, ty = self._of(here)
        text = " ".join(value_text(value).split())
        return f"{where}{line(_what(here))}: {ty} = {text if len(text) <= 80 else text[:77] + '...'}"

    def _help(self, rest: str) -> None:
        for one in COMMANDS:
            head = f"{one.name}{', ' + one.short if one.short else ''} {one.takes}".rstrip()
            self._say(f"  {head:28} {one.does}")

    def _quit(self, rest: str) -> None:
        self.is_over = True


def _what(here: Event) -> str:
    match here.node:
        case Var(name_hint=name):
            return f"%{name}" + (f" of {here.place.function}" if here.is_entry else "")
        case Call(op=Op(name=name)):
            return f"{name}(...)"
        case RefWrite():
            return "ref_write(...)"
        case Call(op=Var(name_hint=name)):
            return f"%{name}(...)"
        case Call(op=GlobalVar(name_hint=name)):
            return f"@{name}(...)"
        case Call(op=Constructor(name_hint=name)):
            return f"{name}(...)"
        case _:
            return "a call"


def _is_tensor(value: Value) -> bool:
    return all(map(_is_tensor, value)) if isinstance(value, tuple) else isinstance(value, np.ndarray)


def _listed(known: Mapping[str, Event]) -> str:
    return ", ".join(f"%{line(name)}" for name in sorted(known)) or "none"


def _count(text: str) -> int:
    if not text:
        return 1
    if not text.isascii() or not text.isdigit() or not int(text[:9]) > 0 or len(text) > 9:
        raise InputError(f"number of steps must be a whole number from 1 to 999,999,999, not {sentence(text)}")
    return int(text)


COMMANDS: Final = (
    Command("step", "s", "[N]", "go to the next value, into calls", Session._step),
    Command("next", "n", "[N]", "go to the next value of this call or of its callers", Session._next),
    Command("finish", "fin", "", "go on until this call has returned", Session._finish),
    Command("continue", "c", "", "go on to a breakpoint or to the end", Session._continue),
    Command("reverse-step", "rs", "[N]", "go back to the value before, into calls", Session._reverse_step),
    Command("reverse-next", "rn", "[N]", "go back, over calls inside", Session._reverse_next),
    Command("reverse-continue", "rc", "", "go back to a breakpoint or to the first value", Session._reverse_continue),
    Command("break", "b", "PLACE", "stop at an operator, %variable, @function, LINE or FILE:LINE", Session._break),
    Command("delete", "d", "NUMBER", "remove a breakpoint", Session._delete),
    Command("info", "i", "", "list the breakpoints", Session._info),
    Command("print", "p", "[EXPR]", "print type, shape and value: of this place, or of an expression", Session._print),
    Command("whatis", "", "[EXPR]", "print type and shape", Session._whatis),
    Command("backtrace", "bt", "", "list the calls that are running, the innermost first", Session._backtrace),
    Command("list", "l", "", "print the source around this place", Session._list),
    Command("help", "h", "", "list the commands", Session._help),
    Command("quit", "q", "", "leave the debugger", Session._quit),
)


def converse(session: Session, lines: Iterator[str]) -> None:
    """Obey line after line until one says quit, or they end."""
    session.begin()
    for text in lines:
        session.obey(text)
        if session.is_over:
            return
