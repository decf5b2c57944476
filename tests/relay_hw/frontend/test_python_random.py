"""Random Python functions: translated to Relay they compute what Python computes."""

from __future__ import annotations

import linecache
import random
from itertools import count
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.frontend.python import Float64, Int, relay

FLOATS, INTS = ("a", "b", "x"), ("i", "j", "n")
SERIAL = count()


class Writer:
    """Writes statements on three numbers, three integers and a list; every loop ends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        self.budget = 18

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def integer(self, depth: int = 2) -> str:
        if depth == 0 or self.pick(True, False):
            return self.pick(*INTS, "1", "2", "len(xs)")
        left, right = self.integer(depth - 1), self.integer(depth - 1)
        return self.pick(f"({left} + {right}) % 7", f"({left} - {right})", f"({left} * 3 - {right}) // 2", f"-{left}")

    def number(self, depth: int = 2) -> str:
        if depth == 0 or self.pick(True, False):
            return self.pick(*FLOATS, "0.5", "-1.25", "1")
        left, right = self.number(depth - 1), self.number(depth - 1)
        return self.pick(
            f"({left} + {right})", f"({left} - {right}) * 0.5", f"min({left}, {right}, 2.0)", f"abs({left})",
            f"({left} if {self.test(0)} else {right})", f"{left} * {self.integer(0)} * 0.125", f"max({left}, {right})",
        )  # fmt: skip

    def test(self, depth: int = 2) -> str:
        if depth == 0 or self.pick(True, False):
            sign, part = self.pick("<", ">", "<=", ">="), self.pick(self.number, self.integer)
            inner = min(depth, 1)
            return f"{part(inner)} {sign} {part(inner)}"
        left, right = self.test(depth - 1), self.test(depth - 1)
        return self.pick(f"({left} and {right})", f"({left} or {right})", f"not {left}", f"0 < {self.integer(1)} <= 4")

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, in_loop)
        return lines

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        self.budget -= 1
        rules = [self.assign, self.assign, self.change, self.swap, self.append]
        if depth > 0 and self.budget > 0:
            rules += [self.branch, self.branch, self.for_range, self.while_loop, self.for_list]
        if in_loop:
            rules += [self.jump]
        rules += [self.leave] if depth < 3 else []
        return self.pick(*rules)(depth, in_loop)

    def assign(self, depth: int, in_loop: bool) -> list[str]:
        if self.pick(True, False):
            return [f"{self.pick('a', 'b')} = {self.number()} + x * 0.0"]
        return [f"{self.pick('i', 'j')} = {self.integer()}"]

    def change(self, depth: int, in_loop: bool) -> list[str]:
        return self.pick([f"a {self.pick('+=', '-=')} {self.number(1)}"], [f"i = (i + {self.integer(1)}) % 9"])

    def swap(self, depth: int, in_loop: bool) -> list[str]:
        return self.pick(["a, b = b, a"], ["i, j = j, i"], ["b, (i, j) = a, (j, n)"])

    def append(self, depth: int, in_loop: bool) -> list[str]:
        return ["if len(xs) < 6:", *indented([f"xs.append({self.number(1)} + x * 0.0)"])]

    def branch(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self.test()}:", *indented(self.block(depth - 1, in_loop))]
        if self.pick(True, False):
            lines += [f"elif {self.test(1)}:", *indented(self.block(depth - 1, in_loop))]
        if self.pick(True, False):
            lines += ["else:", *indented(self.block(depth - 1, in_loop))]
        return lines

    def for_range(self, depth: int, in_loop: bool) -> list[str]:
        self.loops += 1
        name = f"k{self.loops}"
        head = self.pick(f"range({self.pick(0, 2, 4)})", f"range(min(n, 4), -1, {self.pick(-1, -2)})")
        return [f"for {name} in {head}:", *indented([f"a = a + {name} * 0.25", *self.block(depth - 1, True)])]

    def for_list(self, depth: int, in_loop: bool) -> list[str]:
        self.loops += 1
        name = f"y{self.loops}"
        # Python goes on while the list grows; a copy does not.
        body = [f"b = b * 0.5 + {name}", *self.block(depth - 1, True)]
        return [f"ys{self.loops} = xs + []", f"for {name} in ys{self.loops}:", *indented(body)]

    def while_loop(self, depth: int, in_loop: bool) -> list[str]:
        self.loops += 1
        name = f"w{self.loops}"
        body = [f"{name} = {name} + 1", *self.block(depth - 1, True)]
        return [f"{name} = 0", f"while {name} < 3 and {self.test(1)}:", *indented(body)]

    def jump(self, depth: int, in_loop: bool) -> list[str]:
        return [f"if {self.test(1)}:", *indented([self.pick("break", "continue")])]

    def leave(self, depth: int, in_loop: bool) -> list[str]:
        return [f"if {self.test(1)}:", *indented([f"return {self.number(1)} + x * 0.0, i, xs"])]


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def written(seed: int) -> str:
    """The text of a function."""
    body = Writer(seed).block(3, False)
    start = ["a = x * 0.5", "b = x + 1.0", "i = n", "j = 1", "xs = [x]"]
    head = "def f(x: Float64, n: Int) -> tuple[Float64, Int, list[Float64]]:"
    return "\n".join([head, *indented([*start, *body, "return a + b, i + j, xs"])]) + "\n"


@settings(max_examples=40)
@given(st.integers(0, 2**30), st.floats(-2, 2).map(lambda x: round(x * 8) / 8), st.integers(0, 5))
def test_random_functions(seed: int, x: float, n: int) -> None:
    text = written(seed)
    file = f"<random {next(SERIAL)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"Float64": Float64, "Int": Int}
    exec(compile(text, file, "exec"), space)
    function = space["f"]
    expected = function(x, n)
    found = relay(function)(x, n)
    np.testing.assert_allclose(float(found[0]), expected[0], rtol=1e-9, atol=1e-9, err_msg=text)
    assert int(found[1]) == expected[1], text
    np.testing.assert_allclose([float(item) for item in found[2]], expected[2], rtol=1e-9, atol=1e-9, err_msg=text)
